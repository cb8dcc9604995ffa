//! Finding things by the beginning of their id, and lists in pages.

use drydock_domain::IdPrefix;

use crate::StoreError;
use crate::tx::Tx;
use crate::value::{Row, Statement};

/// How many ids an ambiguous prefix names at most.
const NAMED_MAX: usize = 5;

/// Longest page that a list gives.
pub(crate) const PAGE_MAX: i64 = 1000;

/// What the beginning of an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// Exactly this.
    One(T),
    /// Nothing.
    None,
    /// Several; the first few ids.
    Many(Vec<String>),
}

/// A part of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// What to pass as `after` for the next page, when there is one.
    pub next: Option<i64>,
}

impl<T> Page<T> {
    /// Makes a page of rows whose first column is their place, of which one more than `limit` was asked for.
    pub(crate) fn of(
        rows: &[Row],
        limit: i64,
        item: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Result<Self, StoreError> {
        let shown = usize::try_from(limit).unwrap_or(0).min(rows.len());
        let items = rows[..shown].iter().map(item).collect::<Result<Vec<_>, _>>()?;
        let next = match rows[..shown].last() {
            Some(last) if rows.len() > shown => Some(last.int(0)?),
            Some(_) | None => None,
        };
        Ok(Self { items, next })
    }
}

/// Runs a statement that takes the bounds of a prefix and gives ids (first column), at most six.
pub(crate) async fn by_prefix<T>(
    tx: &mut Tx<'_>,
    prefix: &IdPrefix,
    sql: &'static str,
    item: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<Found<T>, StoreError> {
    let rows = tx.last(Statement::new(sql, [prefix.first().into(), prefix.beyond().into()])).await?;
    match rows.as_slice() {
        [] => Ok(Found::None),
        [row] => item(row).map(Found::One),
        several => {
            let named = several.iter().take(NAMED_MAX).map(|row| row.text(0).map(str::to_owned));
            named.collect::<Result<_, _>>().map(Found::Many)
        }
    }
}

/// Keeps a page within its bound.
pub(crate) fn page_size(limit: i64) -> i64 {
    limit.clamp(1, PAGE_MAX)
}
