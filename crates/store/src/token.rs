//! Tokens as they are kept: everything about them but the secret, of which there is only a digest. Whether one has
//! expired is judged by the clock that judges locks. No plan changes by these writes, so they wake no one; only a token that
//! is made with another one is an event.

use std::time::Duration;

use drydock_domain::{Event, IdPrefix, Name, Role, Timestamp, Token, TokenId, TokenKind, TokenState};
use serde_json::Value as Json;

use crate::event::{About, append_with};
use crate::find::{Found, by_prefix};
use crate::lease::micros;
use crate::tx::{BoxFuture, Tx, Verdict};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// How exact the time of the last use is: a write for each request would cost more than the requests. It is a little less
/// than the minute that is promised, since whoever asks may remember a token for a moment without asking here.
const USE_EVERY: Duration = Duration::from_secs(59);

/// A token that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Its id.
    pub id: TokenId,
    /// The digest of its secret, as hexadecimal text.
    pub digest: String,
    /// What people call it.
    pub name: Name,
    /// What its bearer is.
    pub role: Role,
    /// How its secret is shown.
    pub kind: TokenKind,
    /// How long it counts; for ever when nothing is said.
    pub life: Option<Duration>,
    /// The token that it ends with.
    pub made_by: Option<TokenId>,
}

/// What a link becomes when it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: TokenId,
    /// The digest of its secrets, as hexadecimal text.
    pub digest: String,
    /// How long it counts.
    pub life: Duration,
}

/// What came of keeping a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenAdded {
    /// It is kept.
    Kept(Token),
    /// Another that is not revoked has its name.
    NameTaken,
    /// The token that it would end with has ended.
    MakerEnded,
    /// It would outlive the token that it is made with, which counts for so long.
    Outlives(Duration),
}

/// A token that was taken back, and what ended with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// The token.
    pub token: Token,
    /// How many sessions that counted ended with it.
    pub sessions_ended: u64,
    /// How many bearer tokens that counted ended with it.
    pub tokens_ended: u64,
}

/// A token with the digest of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptToken {
    /// What is known of it.
    pub token: Token,
    /// The digest, as hexadecimal text.
    pub digest: String,
    /// Whether its last use was noted so long ago that the next should be.
    pub use_due: bool,
    /// How long it still counts by itself; for ever when nothing is said.
    pub left: Option<Duration>,
}

const COLUMNS: &str = "id, digest, name, role, plan, run, created_at, expires_at, last_used_at, revoked_at,
    CAST(CASE WHEN expires_at <= drydock_now() THEN 1 ELSE 0 END AS BIGINT), kind, made_by";

impl Store {
    /// Stores a new token. A token that ends with its maker is stored only while the maker is valid. The transaction
    /// holds the maker's row, so a revocation of the maker either happens before and is seen here, or happens after and
    /// finds the new token.
    ///
    /// A bearer token ends no later than its maker, and an alert names both.
    pub fn token_add(&self, new: NewToken) -> BoxFuture<'_, Result<TokenAdded, StoreError>> {
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                let Some(maker) = &new.made_by else {
                    tx.quiet();
                    let rows = tx.last(insertion(new, None)).await?;
                    return Ok(Verdict::Keep(added(&rows)?));
                };
                let sql = format!(
                    "UPDATE tokens SET name = name WHERE id = $1 AND revoked_at IS NULL
                     RETURNING {COLUMNS}, expires_at - drydock_now()"
                );
                let held = tx.query(Statement::composed(sql, vec![maker.as_str().into()])).await?;
                let Some(held) = held.first() else { return Ok(Verdict::Undo(TokenAdded::MakerEnded)) };
                let (maker, left) = (token_from(held)?, held.int_or_null(13)?);
                match new.kind {
                    TokenKind::Bearer => add_below(tx, new, maker, left).await,
                    TokenKind::Machine | TokenKind::Session | TokenKind::Link => {
                        tx.quiet();
                        let rows = tx.last(insertion(new, None)).await?;
                        Ok(Verdict::Keep(added(&rows)?))
                    }
                }
            })
        }))
    }

    /// Returns every token that was ever made, by the time it was.
    pub fn token_list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        Box::pin(self.read(|tx| {
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM tokens ORDER BY created_at, id");
                tx.last(Statement::composed(sql, Vec::new())).await?.iter().map(token_from).collect()
            })
        }))
    }

    /// Returns the token whose id begins like this.
    pub fn token_find(&self, prefix: &IdPrefix) -> BoxFuture<'_, Result<Found<Token>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { by_prefix(tx, &prefix, FIND, token_from).await })))
    }

    /// Returns a token with its digest.
    pub fn token_fetch(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<KeptToken>, StoreError>> {
        let id = id.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let sql = format!(
                    "SELECT {COLUMNS}, CAST(CASE WHEN last_used_at > drydock_now() - $2 THEN 0 ELSE 1 END AS BIGINT),
                     expires_at - drydock_now() FROM tokens WHERE id = $1"
                );
                let params = vec![id.as_str().into(), micros(USE_EVERY).into()];
                let rows = tx.last(Statement::composed(sql, params)).await?;
                let kept = |row: &Row| {
                    let (token, digest) = (token_from(row)?, row.text(1)?.to_owned());
                    let left = row.int_or_null(14)?.map(|left| Duration::from_micros(left.max(0).unsigned_abs()));
                    Ok(KeptToken { token, digest, use_due: row.int(13)? != 0, left })
                };
                rows.first().map(kept).transpose()
            })
        }))
    }

    /// Revokes a token permanently, together with the tokens and links that it made, the sessions that those began, and
    /// theirs in turn. A token that is already revoked keeps its revocation time. Returns `None` when the token does
    /// not exist.
    pub fn token_revoke(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<RevokedToken>, StoreError>> {
        let (revoke, id) = (revocation(id), id.clone());
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                let rows = tx.query(revoke).await?;
                let Some(token) = rows.first().map(token_from).transpose()? else {
                    return Ok(Verdict::Undo(None));
                };
                let ended = tx.last(Statement::new(REVOKE_BELOW, [id.as_str().into()])).await?;
                let (mut sessions_ended, mut tokens_ended) = (0, 0);
                for row in &ended {
                    sessions_ended += u64::from(row.text(0)? == TokenKind::Session.name());
                    tokens_ended += u64::from(row.text(0)? == TokenKind::Bearer.name());
                }
                Ok(Verdict::Keep(Some(RevokedToken { token, sessions_ended, tokens_ended })))
            })
        }))
    }

    /// Takes a token back and nothing else; nothing when there is none.
    pub fn token_end(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<Token>, StoreError>> {
        self.token_written(revocation(id))
    }

    /// Makes a link the session that it is good for; nothing when it is not there any more, or its time is over. Of
    /// several who ask at once one gets it. It stays one row, which whoever takes its maker back finds as either.
    pub fn token_redeem(
        &self,
        link: &TokenId,
        session: NewSession,
    ) -> BoxFuture<'_, Result<Option<Token>, StoreError>> {
        let sql = format!(
            "UPDATE tokens SET id = $2, digest = $3, kind = 'session', created_at = drydock_now(),
                 expires_at = drydock_now() + $4, last_used_at = NULL
             WHERE id = $1 AND kind = 'link' AND revoked_at IS NULL AND expires_at > drydock_now() RETURNING {COLUMNS}"
        );
        let params = vec![
            link.as_str().into(),
            session.id.as_str().into(),
            session.digest.into(),
            micros(session.life).into(),
        ];
        self.token_written(Statement::composed(sql, params))
    }

    /// Forgets a token of an agent, whose run is over.
    pub fn token_forget(&self, id: &TokenId) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = format!("DELETE FROM tokens WHERE id = $1 AND role = 'agent' RETURNING {COLUMNS}");
        let written = self.token_written(Statement::composed(sql, vec![id.as_str().into()]));
        Box::pin(async move { written.await.map(drop) })
    }

    /// Forgets the links that nobody used in time, agents' tokens whose time is over, the tokens that servers made for
    /// their own machine and ended, and what of those is older than this, and the sessions that ended longer ago.
    pub fn token_prune(&self, kept: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = format!(
            "DELETE FROM tokens WHERE ((kind = 'link' OR role = 'agent') AND expires_at <= drydock_now())
             OR (kind = 'machine' AND (revoked_at IS NOT NULL OR created_at <= drydock_now() - $1))
             OR (kind = 'session' AND coalesce(revoked_at, expires_at) <= drydock_now() - $1) RETURNING {COLUMNS}"
        );
        let written = self.token_written(Statement::composed(sql, vec![micros(kept).into()]));
        Box::pin(async move { written.await.map(drop) })
    }

    /// Notes that a token is used now.
    pub fn token_used(&self, id: &TokenId) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = format!("UPDATE tokens SET last_used_at = drydock_now() WHERE id = $1 RETURNING {COLUMNS}");
        let written = self.token_written(Statement::composed(sql, vec![id.as_str().into()]));
        Box::pin(async move { written.await.map(drop) })
    }

    fn token_written(&self, statement: Statement) -> BoxFuture<'_, Result<Option<Token>, StoreError>> {
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                let rows = tx.last(statement).await?;
                Ok(Verdict::Keep(rows.first().map(token_from).transpose()?))
            })
        }))
    }
}

/// By their maker and not by their own id, which a link that is being opened is about to change.
const REVOKE_BELOW: &str = "WITH RECURSIVE makers (id) AS (
        SELECT id FROM tokens WHERE id = $1 UNION SELECT tokens.id FROM tokens JOIN makers ON tokens.made_by = makers.id
    )
    UPDATE tokens SET revoked_at = drydock_now()
    WHERE revoked_at IS NULL AND made_by IN (SELECT id FROM makers)
    RETURNING kind";

fn revocation(id: &TokenId) -> Statement {
    let sql = format!(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, drydock_now()) WHERE id = $1 RETURNING {COLUMNS}"
    );
    Statement::composed(sql, vec![id.as_str().into()])
}

/// Keeps a bearer token that was asked for with another one, of which `left` microseconds are left.
async fn add_below(
    tx: &mut Tx<'_>,
    new: NewToken,
    maker: Token,
    left: Option<i64>,
) -> Result<Verdict<TokenAdded>, StoreError> {
    if left.is_some_and(|left| left <= 0) {
        return Ok(Verdict::Undo(TokenAdded::MakerEnded));
    }
    if let (Some(life), Some(left)) = (new.life, left)
        && micros(life) > left
    {
        return Ok(Verdict::Undo(TokenAdded::Outlives(Duration::from_micros(left.unsigned_abs()))));
    }
    let until = if new.life.is_none() { maker.expires_at } else { None };
    let rows = tx.query(insertion(new, until)).await?;
    let TokenAdded::Kept(token) = added(&rows)? else { return Ok(Verdict::Undo(TokenAdded::NameTaken)) };
    let text = format!(
        "token {} ({}, {}) was made with token {} ({}); revoke either if that was not you",
        token.name,
        token.id,
        token.role.name(),
        maker.name,
        maker.id
    );
    let more = [("token", Json::from(token.id.as_str())), ("made_by", Json::from(maker.id.as_str()))];
    let alert = append_with(&About::nothing(), &Event::Alert { priority: "high", text }, more);
    tx.finish(vec![alert]).await?;
    Ok(Verdict::Keep(TokenAdded::Kept(token)))
}

fn added(rows: &[Row]) -> Result<TokenAdded, StoreError> {
    let token = rows.first().map(token_from).transpose()?;
    Ok(token.map_or(TokenAdded::NameTaken, TokenAdded::Kept))
}

/// A token counts for its own life, or until `until` when that is given.
fn insertion(new: NewToken, until: Option<Timestamp>) -> Statement {
    let sql = format!(
        "INSERT INTO tokens (id, digest, name, role, plan, run, kind, created_at, expires_at, made_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, drydock_now(), coalesce($10, drydock_now() + $8), $9)
         ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING {COLUMNS}"
    );
    let (plan, run) = match &new.role {
        Role::Agent { plan, run } => (Some(plan.as_str()), Some(run.as_str())),
        Role::Human | Role::Operator | Role::Reader => (None, None),
    };
    let params: Vec<Value> = vec![
        new.id.as_str().into(),
        new.digest.into(),
        new.name.as_str().into(),
        new.role.name().into(),
        plan.into(),
        run.into(),
        new.kind.name().into(),
        new.life.map(micros).into(),
        new.made_by.as_ref().map(TokenId::as_str).into(),
        until.map(Timestamp::as_micros).into(),
    ];
    Statement::composed(sql, params)
}

const FIND: &str =
    "SELECT id, digest, name, role, plan, run, created_at, expires_at, last_used_at, revoked_at,
    CAST(CASE WHEN expires_at <= drydock_now() THEN 1 ELSE 0 END AS BIGINT), kind, made_by
    FROM tokens WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6";

fn token_from(row: &Row) -> Result<Token, StoreError> {
    let id = row.text(0)?.to_owned();
    let damaged = |reason: String| StoreError::damaged("tokens", id.clone(), reason);
    let role = match (row.text(3)?, row.text_or_null(4)?, row.text_or_null(5)?) {
        ("human", None, None) => Role::Human,
        ("operator", None, None) => Role::Operator,
        ("reader", None, None) => Role::Reader,
        ("agent", Some(plan), Some(run)) => Role::Agent {
            plan: plan.parse().map_err(|error| damaged(format!("{error}")))?,
            run: run.parse().map_err(|error| damaged(format!("{error}")))?,
        },
        (role, plan, run) => {
            return Err(damaged(format!("no role is {role:?} with plan {plan:?} and run {run:?}")));
        }
    };
    let time = |column| Ok::<_, StoreError>(row.int_or_null(column)?.map(Timestamp::from_micros));
    let revoked_at = time(9)?;
    let state = match (revoked_at, row.int(10)?) {
        (Some(_), _) => TokenState::Revoked,
        (None, 0) => TokenState::Valid,
        (None, _) => TokenState::Expired,
    };
    let kind = match row.text(11)? {
        "bearer" => TokenKind::Bearer,
        "machine" => TokenKind::Machine,
        "session" => TokenKind::Session,
        "link" => TokenKind::Link,
        kind => return Err(damaged(format!("no token is a {kind:?}"))),
    };
    Ok(Token {
        kind,
        name: row.text(2)?.parse().map_err(|error| damaged(format!("{error}")))?,
        role,
        created_at: row.time(6)?,
        expires_at: time(7)?,
        last_used_at: time(8)?,
        revoked_at,
        state,
        made_by: row
            .text_or_null(12)?
            .map(str::parse)
            .transpose()
            .map_err(|error| damaged(format!("{error}")))?,
        id: id.parse().map_err(|error| damaged(format!("{error}")))?,
    })
}
