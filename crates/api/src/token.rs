//! Tokens for the HTTP API and their roles.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// The role of a token.
    Role {
        /// A person: may do everything.
        Human = "human",
        /// Operates the server: everything but answering decisions and creating tokens.
        Operator = "operator",
        /// An agent in a run: may read its own plan.
        Agent = "agent",
        /// May read.
        Reader = "reader",
    }
}

words! {
    /// Whether a token is still valid.
    TokenState {
        /// Accepted.
        Valid = "valid",
        /// Its lifetime has ended.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
    }
}

words! {
    /// How the secret of a token is sent.
    TokenKind {
        /// By a program, with each request.
        Bearer = "bearer",
        /// By the command line on the server's machine; the server creates it for its own user.
        Machine = "machine",
        /// By a browser: half of it as a cookie, and half by its pages.
        Session = "session",
        /// In a URL that is opened once, to sign a browser in.
        Link = "link",
    }
}

/// The path of sign-in links on a server.
pub const WELCOME: &str = "/welcome";

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Token {
    /// The token's id.
    pub id: String,
    /// The name of its user; actions with the token are recorded under it.
    pub name: String,
    /// The token's role.
    pub role: Role,
    /// How its secret is sent.
    #[serde(default = "bearer")]
    pub kind: TokenKind,
    /// The plan of an agent's token.
    #[serde(default)]
    pub plan: Option<String>,
    /// The run of an agent's token.
    #[serde(default)]
    pub run: Option<String>,
    /// Whether it is still valid.
    pub state: TokenState,
    /// When it was created.
    pub created_at: String,
    /// When it expires; null if it does not.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(default)]
    pub last_used_at: Option<String>,
    /// When it was revoked.
    #[serde(default)]
    pub revoked_at: Option<String>,
    /// The token that it was created with; for a session, the one that its link was created with. It ends with that
    /// one.
    #[serde(default)]
    pub made_by: Option<String>,
}

/// The default for servers that had only one kind and did not send it.
fn bearer() -> TokenKind {
    TokenKind::Bearer
}

/// Creates a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The name of its user.
    pub name: String,
    /// The token's role.
    pub role: Role,
    /// The run of an agent's token: its id or a unique prefix.
    #[serde(default)]
    pub run: Option<String>,
    /// The lifetime in seconds, at most that of the token that it is created with; default: that lifetime, or until
    /// it is revoked.
    #[serde(default)]
    pub expires_in_s: Option<u64>,
}

/// A new token with its secret, which is returned only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MadeToken {
    /// The token.
    pub token: Token,
    /// The secret to send with requests.
    pub secret: String,
}

impl fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeToken").field("token", &self.token).finish_non_exhaustive()
    }
}

/// All tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// A revoked token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RevokedToken {
    /// The token.
    pub token: Token,
    /// The number of sessions that ended with it.
    #[serde(default)]
    pub sessions_ended: u64,
    /// The number of tokens that ended with it: those created with it, directly or indirectly.
    #[serde(default)]
    pub tokens_ended: u64,
}

/// Creates a sign-in link for a browser.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// The name of the user who will open it; actions in the browser are recorded under this name and a mark.
    #[serde(default)]
    pub name: Option<String>,
}

/// A new link, which is returned only once and can be opened once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MadeLink {
    /// The token of the link.
    pub token: Token,
    /// The path to open on the server, including the secret.
    pub path: String,
}

impl fmt::Debug for MadeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeLink").field("token", &self.token).finish_non_exhaustive()
    }
}
