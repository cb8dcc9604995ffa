//! Lookup by id prefix, and paged lists.

use drydock_domain::IdPrefix;

use crate::StoreError;
use crate::tx::Tx;
use crate::value::{Row, Statement};

/// Maximum number of ids returned for an ambiguous prefix.
const NAMED_MAX: usize = 5;

/// Maximum page size of a list.
pub(crate) const PAGE_MAX: i64 = 1000;

/// The result of a lookup by id prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixMatch<T> {
    /// Exactly one match.
    One(T),
    /// No match.
    None,
    /// Several matches; the first few ids.
    Many(Vec<String>),
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor to pass as `after` for the next page, if there is one.
    pub next: Option<i64>,
}

impl<T> Page<T> {
    /// Builds a page from rows whose first column is the cursor. The query must request one row more than
    /// `limit`.
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

/// Runs a statement that takes the bounds of a prefix and returns at most six rows with the id in the first
/// column.
pub(crate) async fn by_prefix<T>(
    tx: &mut Tx<'_>,
    prefix: &IdPrefix,
    sql: &'static str,
    item: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<PrefixMatch<T>, StoreError> {
    let rows = tx.last(Statement::new(sql, [prefix.first().into(), prefix.beyond().into()])).await?;
    match rows.as_slice() {
        [] => Ok(PrefixMatch::None),
        [row] => item(row).map(PrefixMatch::One),
        several => {
            let named = several.iter().take(NAMED_MAX).map(|row| row.text(0).map(str::to_owned));
            named.collect::<Result<_, _>>().map(PrefixMatch::Many)
        }
    }
}

/// Limits a page size to the allowed range.
pub(crate) fn page_size(limit: i64) -> i64 {
    limit.clamp(1, PAGE_MAX)
}
