//! Stored tokens: all data except the secret, of which only a digest is stored. Expiry uses the same clock as
//! lock expiry. These writes change no plan, so they wake no watcher. Only a token that was created with
//! another token is reported as an event.

use std::time::Duration;

use drydock_domain::{
    Event, IdPrefix, Name, Timestamp, Token, TokenId, TokenKind, TokenRole, TokenState, counted,
};
use serde_json::Value as Json;

use crate::event::{EventSubject, append_with};
use crate::find::{PrefixMatch, by_prefix};
use crate::lease::micros;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// Resolution of the last-use time: a write for each request would cost more than the request. It is slightly
/// less than the documented minute, because callers cache a token for a moment.
const USE_EVERY: Duration = Duration::from_secs(59);

/// A token to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInsert {
    /// Unique id.
    pub id: TokenId,
    /// The digest of its secret, as hexadecimal text.
    pub digest: String,
    /// The name shown to people.
    pub name: Name,
    /// The role of its bearer.
    pub role: TokenRole,
    /// How its secret is presented.
    pub kind: TokenKind,
    /// How long it is valid; `None` means forever.
    pub life: Option<Duration>,
    /// The token with which it is revoked.
    pub made_by: Option<TokenId>,
}

/// The session that replaces a sign-in link when the link is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Unique id.
    pub id: TokenId,
    /// The digest of its secrets, as hexadecimal text.
    pub digest: String,
    /// How long it is valid.
    pub life: Duration,
}

/// The outcome of storing a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenAdded {
    /// The token was stored.
    Kept(Token),
    /// Another token that is not revoked has this name.
    NameTaken,
    /// The token that created it is no longer valid.
    MakerEnded,
    /// It would outlive the token that created it, which is valid for this long.
    Outlives(Duration),
}

/// A revoked token, and the number of tokens revoked with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The token.
    pub token: Token,
    /// Number of valid sessions revoked with it.
    pub sessions_ended: u64,
    /// Number of valid bearer tokens revoked with it.
    pub tokens_ended: u64,
}

/// A token with the digest of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// The token.
    pub token: Token,
    /// The digest, as hexadecimal text.
    pub digest: String,
    /// Whether the recorded last use is so old that the next use should be recorded.
    pub use_due: bool,
    /// Remaining validity, unless it is revoked; `None` means forever.
    pub left: Option<Duration>,
}

const COLUMNS: &str = "id, digest, name, role, plan, run, created_at, expires_at, last_used_at, revoked_at,
    CAST(CASE WHEN expires_at <= drydock_now() THEN 1 ELSE 0 END AS BIGINT), kind, made_by";

impl Store {
    /// Stores a new token. A token that ends with its maker is stored only while the maker is valid. The
    /// transaction locks the maker's row, so that a revocation of the maker either happens before and is seen
    /// here, or happens after and finds the new token.
    ///
    /// A bearer token expires no later than its maker, and an alert names both.
    pub fn token_add(&self, new: TokenInsert) -> BoxFuture<'_, Result<TokenAdded, StoreError>> {
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                let Some(maker) = &new.made_by else {
                    tx.quiet();
                    let rows = tx.last(insertion(new, None)).await?;
                    return Ok(TxOutcome::Keep(added(&rows)?));
                };
                let sql = format!(
                    "UPDATE tokens SET name = name WHERE id = $1 AND revoked_at IS NULL
                     RETURNING {COLUMNS}, expires_at - drydock_now()"
                );
                let held = tx.query(Statement::composed(sql, vec![maker.as_str().into()])).await?;
                let Some(held) = held.first() else { return Ok(TxOutcome::Undo(TokenAdded::MakerEnded)) };
                let (maker, left) = (token_from(held)?, held.int_or_null(13)?);
                match new.kind {
                    TokenKind::Bearer => add_below(tx, new, maker, left).await,
                    TokenKind::Machine | TokenKind::Session | TokenKind::Link => {
                        tx.quiet();
                        let rows = tx.last(insertion(new, None)).await?;
                        Ok(TxOutcome::Keep(added(&rows)?))
                    }
                }
            })
        }))
    }

    /// Returns every stored token, by creation time.
    pub fn token_list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        Box::pin(self.read(|tx| {
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM tokens ORDER BY created_at, id");
                tx.last(Statement::composed(sql, Vec::new())).await?.iter().map(token_from).collect()
            })
        }))
    }

    /// Returns the token whose id starts with this prefix.
    pub fn token_find(&self, prefix: &IdPrefix) -> BoxFuture<'_, Result<PrefixMatch<Token>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { by_prefix(tx, &prefix, FIND, token_from).await })))
    }

    /// Returns a token with its digest.
    pub fn token_fetch(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<StoredToken>, StoreError>> {
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
                    Ok(StoredToken { token, digest, use_due: row.int(13)? != 0, left })
                };
                rows.first().map(kept).transpose()
            })
        }))
    }

    /// Revokes a token permanently, together with the tokens and links that it created, the sessions that
    /// those started, and theirs in turn. A token that is already revoked keeps its revocation time. Returns
    /// `None` if the token does not exist.
    pub fn token_revoke(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<Revocation>, StoreError>> {
        let (revoke, id) = (revocation(id), id.clone());
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                let rows = tx.query(revoke).await?;
                let Some(token) = rows.first().map(token_from).transpose()? else {
                    return Ok(TxOutcome::Undo(None));
                };
                let ended = tx.last(Statement::new(REVOKE_BELOW, [id.as_str().into()])).await?;
                let (mut sessions_ended, mut tokens_ended) = (0, 0);
                for row in &ended {
                    sessions_ended += u64::from(row.text(0)? == TokenKind::Session.name());
                    tokens_ended += u64::from(row.text(0)? == TokenKind::Bearer.name());
                }
                Ok(TxOutcome::Keep(Some(Revocation { token, sessions_ended, tokens_ended })))
            })
        }))
    }

    /// Revokes this token and the tokens that were created with it, but no sessions. Returns `None` if it does not exist.
    pub fn token_end(&self, id: &TokenId) -> BoxFuture<'_, Result<Option<Token>, StoreError>> {
        let (revoke, id) = (revocation(id), id.clone());
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                let rows = tx.query(revoke).await?;
                let Some(token) = rows.first().map(token_from).transpose()? else {
                    return Ok(TxOutcome::Undo(None));
                };
                let ended = tx.query(Statement::new(END_BELOW, [id.as_str().into()])).await?;
                let mut tokens = Vec::new();
                for row in &ended {
                    if row.text(0)? == TokenKind::Bearer.name() {
                        tokens.push((row.text(1)?.to_owned(), row.text(2)?.to_owned()));
                    }
                }
                if tokens.is_empty() {
                    tx.quiet();
                    tx.finish(Vec::new()).await?;
                } else {
                    tx.finish(vec![ended_below(&token, &tokens)]).await?;
                }
                Ok(TxOutcome::Keep(Some(token)))
            })
        }))
    }

    /// Turns a sign-in link into a session. Returns `None` if the link was used, revoked, or has expired. Of
    /// several concurrent calls, one gets the session. The token stays one row, so that a revocation of its
    /// maker finds it as a link or as a session.
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

    /// Deletes the token of an agent whose run has ended.
    pub fn token_forget(&self, id: &TokenId) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = format!("DELETE FROM tokens WHERE id = $1 AND role = 'agent' RETURNING {COLUMNS}");
        let written = self.token_written(Statement::composed(sql, vec![id.as_str().into()]));
        Box::pin(async move { written.await.map(drop) })
    }

    /// Deletes expired links and agent tokens, machine tokens that are revoked or older than `kept`, and
    /// sessions that ended more than `kept` ago.
    pub fn token_prune(&self, kept: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = format!(
            "DELETE FROM tokens WHERE ((kind = 'link' OR role = 'agent') AND expires_at <= drydock_now())
             OR (kind = 'machine' AND (revoked_at IS NOT NULL OR created_at <= drydock_now() - $1))
             OR (kind = 'session' AND coalesce(revoked_at, expires_at) <= drydock_now() - $1) RETURNING {COLUMNS}"
        );
        let written = self.token_written(Statement::composed(sql, vec![micros(kept).into()]));
        Box::pin(async move { written.await.map(drop) })
    }

    /// Records that a token is used now.
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
                Ok(TxOutcome::Keep(rows.first().map(token_from).transpose()?))
            })
        }))
    }
}

/// Matches by maker and not by id, because a link that is being redeemed is about to change its id.
const REVOKE_BELOW: &str = "WITH RECURSIVE makers (id) AS (
        SELECT id FROM tokens WHERE id = $1 UNION SELECT tokens.id FROM tokens JOIN makers ON tokens.made_by = makers.id
    )
    UPDATE tokens SET revoked_at = drydock_now()
    WHERE revoked_at IS NULL AND made_by IN (SELECT id FROM makers)
    RETURNING kind";

/// Ends the tokens that one made, and all that those made in turn; its own sessions and links stay.
const END_BELOW: &str = "WITH RECURSIVE makers (id) AS (
        SELECT id FROM tokens WHERE made_by = $1 AND kind = 'bearer'
        UNION SELECT tokens.id FROM tokens JOIN makers ON tokens.made_by = makers.id
    )
    UPDATE tokens SET revoked_at = drydock_now()
    WHERE revoked_at IS NULL AND ((made_by = $1 AND kind = 'bearer') OR made_by IN (SELECT id FROM makers))
    RETURNING kind, id, name";

/// Returns the alert that tokens, each by its id and name, ended with the one that made them.
fn ended_below(maker: &Token, tokens: &[(String, String)]) -> Statement {
    let named: Vec<_> = tokens.iter().map(|(id, name)| format!("{name} ({id})")).collect();
    let text = format!(
        "{} ended with token {} ({}), which created {}: {}",
        counted(tokens.len(), "token"),
        maker.name,
        maker.id,
        if tokens.len() == 1 { "it" } else { "them" },
        named.join(", ")
    );
    let ids: Vec<_> = tokens.iter().map(|(id, _)| id.as_str()).collect();
    let more = [("tokens", Json::from(ids)), ("made_by", Json::from(maker.id.as_str()))];
    append_with(&EventSubject::nothing(), &Event::Alert { priority: "low", text }, more)
}

fn revocation(id: &TokenId) -> Statement {
    let sql = format!(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, drydock_now()) WHERE id = $1 RETURNING {COLUMNS}"
    );
    Statement::composed(sql, vec![id.as_str().into()])
}

/// Stores a bearer token created with `maker`, which is valid for another `left` microseconds.
async fn add_below(
    tx: &mut Tx<'_>,
    new: TokenInsert,
    maker: Token,
    left: Option<i64>,
) -> Result<TxOutcome<TokenAdded>, StoreError> {
    if left.is_some_and(|left| left <= 0) {
        return Ok(TxOutcome::Undo(TokenAdded::MakerEnded));
    }
    if let (Some(life), Some(left)) = (new.life, left)
        && micros(life) > left
    {
        return Ok(TxOutcome::Undo(TokenAdded::Outlives(Duration::from_micros(left.unsigned_abs()))));
    }
    let until = if new.life.is_none() { maker.expires_at } else { None };
    let rows = tx.query(insertion(new, until)).await?;
    let TokenAdded::Kept(token) = added(&rows)? else { return Ok(TxOutcome::Undo(TokenAdded::NameTaken)) };
    let text = format!(
        "token {} ({}, {}) was created with token {} ({}); revoke either if that was not you",
        token.name,
        token.id,
        token.role.name(),
        maker.name,
        maker.id
    );
    let more = [("token", Json::from(token.id.as_str())), ("made_by", Json::from(maker.id.as_str()))];
    let alert = append_with(&EventSubject::nothing(), &Event::Alert { priority: "high", text }, more);
    tx.finish(vec![alert]).await?;
    Ok(TxOutcome::Keep(TokenAdded::Kept(token)))
}

fn added(rows: &[Row]) -> Result<TokenAdded, StoreError> {
    let token = rows.first().map(token_from).transpose()?;
    Ok(token.map_or(TokenAdded::NameTaken, TokenAdded::Kept))
}

/// Returns the statement that stores a token. It expires at `until` if given, otherwise after its own
/// lifetime.
fn insertion(new: TokenInsert, until: Option<Timestamp>) -> Statement {
    let sql = format!(
        "INSERT INTO tokens (id, digest, name, role, plan, run, kind, created_at, expires_at, made_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, drydock_now(), coalesce($10, drydock_now() + $8), $9)
         ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING RETURNING {COLUMNS}"
    );
    let (plan, run) = match &new.role {
        TokenRole::Agent { plan, run } => (Some(plan.as_str()), Some(run.as_str())),
        TokenRole::Human | TokenRole::Operator | TokenRole::Reader => (None, None),
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
        ("human", None, None) => TokenRole::Human,
        ("operator", None, None) => TokenRole::Operator,
        ("reader", None, None) => TokenRole::Reader,
        ("agent", Some(plan), Some(run)) => TokenRole::Agent {
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
        kind => return Err(damaged(format!("{kind:?} is not a kind of token"))),
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
