//! Browser sign-in. A link is exchanged for a session, once and within minutes, so that an address that
//! someone finds later is worthless. Link and session are both tokens of a person, each with its own name. A
//! session is recognised only by two secrets together: the cookie, which a browser sends to every port of the
//! host, and a second secret, which only our own pages hold.

use std::time::Duration;

use drydock_domain::{Name, Token, TokenId, TokenKind, TokenRole};
use drydock_store::{NewSession, TokenInsert as Kept};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::token::{Secret, TokenCheck, digest_of, fresh, hex, id_of};

/// How long a link can be opened.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a browser stays signed in, and how long the store keeps an expired session, so that the browser
/// learns that its session expired.
const SESSION_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long the token of a server's own machine is valid if the server does not end it.
const MACHINE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many characters of the label a name has, and how many of the id.
const LABEL_MAX: usize = 60;
const MARK: usize = 6;

/// The secrets of a signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    /// The secret that the browser sends automatically.
    pub cookie: Secret,
    /// The secret that the scripts of our own pages send.
    pub page: Secret,
}

impl Engine {
    /// How long a browser stays signed in.
    pub const SESSION_LIFE: Duration = SESSION_LIFE;
    /// How long the token of a server's own machine is valid.
    pub const MACHINE_LIFE: Duration = MACHINE_LIFE;

    /// Creates a link that signs a browser in once, for a person with this label. Revoking the token that
    /// requested the link also ends the link and its session.
    pub async fn link_create(
        &self,
        label: &str,
        made_by: Option<&TokenId>,
    ) -> Result<(Token, Secret), EngineError> {
        self.store().token_prune(SESSION_LIFE).await?;
        self.mint(TokenKind::Link, LINK_LIFE, label, made_by).await
    }

    /// Exchanges a link for a session. Returns `None` if it is not a link, was used, or has expired.
    pub async fn link_redeem(&self, text: &str) -> Result<Option<(Token, BrowserSession)>, EngineError> {
        let Some(kept) = self.token_of(&digest_of(text), TokenKind::Link).await? else { return Ok(None) };
        let session = BrowserSession { cookie: fresh(TokenKind::Session.name()), page: fresh("page") };
        let digest = digest_of(&both(session.cookie.reveal(), session.page.reveal()));
        let new = NewSession { id: id_of(&digest), digest: hex(&digest), life: SESSION_LIFE };
        Ok(self.store().token_redeem(&kept.token.id, new).await?.map(|token| (token, session)))
    }

    /// Returns the token of these two secrets. Neither is valid without the other.
    pub async fn session_recognise(&self, cookie: &str, page: &str) -> Result<TokenCheck, EngineError> {
        self.token_recognise(&both(cookie, page), TokenKind::Session).await
    }

    /// Returns the same from the cache if possible, for read requests.
    pub async fn session_recall(&self, cookie: &str, page: &str) -> Result<TokenCheck, EngineError> {
        self.token_recall(&both(cookie, page), TokenKind::Session).await
    }

    /// Creates a token for the command line on the server's own machine, for a person with this label.
    pub async fn token_mint(&self, label: &str) -> Result<(Token, Secret), EngineError> {
        self.store().token_prune(SESSION_LIFE).await?;
        self.mint(TokenKind::Machine, MACHINE_LIFE, label, None).await
    }

    /// Creates a person's token. Its name is the label and the first characters of its id.
    async fn mint(
        &self,
        kind: TokenKind,
        life: Duration,
        label: &str,
        made_by: Option<&TokenId>,
    ) -> Result<(Token, Secret), EngineError> {
        let secret = fresh(match kind {
            TokenKind::Bearer | TokenKind::Machine => TokenRole::Human.name(),
            TokenKind::Session | TokenKind::Link => kind.name(),
        });
        let digest = digest_of(secret.reveal());
        let id = id_of(&digest);
        let mark: String = id.as_str().chars().skip_while(|c| *c != '-').skip(1).take(MARK).collect();
        let (name, life, made_by) = (named(label, &mark), Some(life), made_by.cloned());
        let kept = Kept { id, digest: hex(&digest), name, role: TokenRole::Human, kind, life, made_by };
        Ok((self.token_keep(kept).await?, secret))
    }
}

/// Returns the text that is digested for two secrets. Neither secret has a space, so no other pair gives the
/// same text.
fn both(cookie: &str, page: &str) -> String {
    format!("{cookie} {page}")
}

/// Makes a valid name from any label. The name is shown beside the person's commands.
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
