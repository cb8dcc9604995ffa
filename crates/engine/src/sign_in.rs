//! Signing a browser in: a link is traded for a session, once and within minutes, so that no address that somebody
//! finds later is worth anything. Both are tokens of a person, under a name of their own. A session has two secrets, and
//! is known by both together: one is the cookie, which a browser sends to every port of the host, and the other is kept
//! by our own pages alone.

use std::time::Duration;

use drydock_domain::{Name, Role, Token, TokenId, TokenKind};
use drydock_store::{NewSession, NewToken as Kept};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::token::{Recognised, Secret, digest_of, fresh, hex, id_of};

/// How long a link can be opened.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a browser stays signed in, and for how long it is told that it was.
const SESSION_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the token of a server's own machine counts, should the server not end it.
const MACHINE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How much of a label goes into a name, and how much of the id behind it.
const LABEL_MAX: usize = 60;
const MARK: usize = 6;

/// What a browser has that is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// What it shows by itself.
    pub cookie: Secret,
    /// What the scripts of our own pages send.
    pub page: Secret,
}

impl Engine {
    /// How long a browser stays signed in.
    pub const SESSION_LIFE: Duration = SESSION_LIFE;
    /// How long the token of a server's own machine counts.
    pub const MACHINE_LIFE: Duration = MACHINE_LIFE;

    /// Makes a link that signs a browser in once, for a person who is called like this. What comes of it ends with the
    /// token that it was asked for with.
    pub async fn link_create(
        &self,
        label: &str,
        made_by: Option<&TokenId>,
    ) -> Result<(Token, Secret), EngineError> {
        self.store().token_prune(SESSION_LIFE).await?;
        self.mint(TokenKind::Link, LINK_LIFE, label, made_by).await
    }

    /// Trades a link for a session; nothing when it is none, or was used, or came too late.
    pub async fn link_redeem(&self, text: &str) -> Result<Option<(Token, Session)>, EngineError> {
        let Some(kept) = self.token_of(&digest_of(text), TokenKind::Link).await? else { return Ok(None) };
        let session = Session { cookie: fresh(TokenKind::Session.name()), page: fresh("page") };
        let digest = digest_of(&both(session.cookie.reveal(), session.page.reveal()));
        let new = NewSession { id: id_of(&digest), digest: hex(&digest), life: SESSION_LIFE };
        Ok(self.store().token_redeem(&kept.token.id, new).await?.map(|token| (token, session)))
    }

    /// Says whose secrets these are; neither is worth anything without the other.
    pub async fn session_recognise(&self, cookie: &str, page: &str) -> Result<Recognised, EngineError> {
        self.token_recognise(&both(cookie, page), TokenKind::Session).await
    }

    /// Says the same as it was a moment ago, for whoever only looks.
    pub async fn session_recall(&self, cookie: &str, page: &str) -> Result<Recognised, EngineError> {
        self.token_recall(&both(cookie, page), TokenKind::Session).await
    }

    /// Makes a token for the command line of whoever serves, who is called like this.
    pub async fn token_mint(&self, label: &str) -> Result<(Token, Secret), EngineError> {
        self.store().token_prune(SESSION_LIFE).await?;
        self.mint(TokenKind::Machine, MACHINE_LIFE, label, None).await
    }

    /// Makes a person's token under a name that is made with the beginning of its id.
    async fn mint(
        &self,
        kind: TokenKind,
        life: Duration,
        label: &str,
        made_by: Option<&TokenId>,
    ) -> Result<(Token, Secret), EngineError> {
        let secret = fresh(match kind {
            TokenKind::Bearer | TokenKind::Machine => Role::Human.name(),
            TokenKind::Session | TokenKind::Link => kind.name(),
        });
        let digest = digest_of(secret.reveal());
        let id = id_of(&digest);
        let mark: String = id.as_str().chars().skip_while(|c| *c != '-').skip(1).take(MARK).collect();
        let (name, life, made_by) = (named(label, &mark), Some(life), made_by.cloned());
        let kept = Kept { id, digest: hex(&digest), name, role: Role::Human, kind, life, made_by };
        Ok((self.token_keep(kept).await?, secret))
    }
}

/// Returns what is digested of two secrets. Neither has a space, so no other two make the same.
fn both(cookie: &str, page: &str) -> String {
    format!("{cookie} {page}")
}

/// Makes a name of whatever people are called; it is shown beside what they did.
fn named(label: &str, mark: &str) -> Name {
    let fits = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let label: String =
        label.chars().filter(fits).skip_while(|c| !c.is_ascii_alphanumeric()).take(LABEL_MAX).collect();
    let label = if label.is_empty() { "person" } else { &label };
    format!("{label}-{mark}").parse().expect("letters and digits make a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_label_makes_a_name() {
        for (label, name) in [
            ("anna", "anna-m"),
            ("", "person-m"),
            ("-._", "person-m"),
            ("Zo\u{eb} M/\u{fc}ller", "ZoMller-m"),
            ("..a", "a-m"),
        ] {
            assert_eq!(named(label, "m").as_str(), name);
        }
        assert!(named(&"x".repeat(500), "m").as_str().len() < 100);
    }
}
