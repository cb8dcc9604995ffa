//! Tokens: who may ask over the network, and as what.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// What the bearer of a token is.
    Role {
        /// A person: may do everything.
        Human = "human",
        /// Keeps things running: everything but answering decisions and making tokens.
        Operator = "operator",
        /// An agent in a run: may read its own plan.
        Agent = "agent",
        /// May read.
        Reader = "reader",
    }
}

words! {
    /// Whether a token still counts.
    TokenState {
        /// It does.
        Valid = "valid",
        /// Its time is over.
        Expired = "expired",
        /// It was taken back.
        Revoked = "revoked",
    }
}

words! {
    /// How the secret of a token is shown.
    TokenKind {
        /// By a program, with each request.
        Bearer = "bearer",
        /// By the command line of whoever serves on this machine; made by the server for itself.
        Machine = "machine",
        /// By a browser: half of it as a cookie, and half by its pages.
        Session = "session",
        /// In an address that is opened once, to sign a browser in.
        Link = "link",
    }
}

/// Where the links that sign a browser in lead, on a server.
pub const WELCOME: &str = "/welcome";

/// What is known of a token; its secret is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// What people call it; what is done with it is recorded under this name.
    pub name: String,
    /// What its bearer is.
    pub role: Role,
    /// How its secret is shown.
    #[serde(default = "bearer")]
    pub kind: TokenKind,
    /// The plan of an agent's token.
    #[serde(default)]
    pub plan: Option<String>,
    /// The run of an agent's token.
    #[serde(default)]
    pub run: Option<String>,
    /// Whether it still counts.
    pub state: TokenState,
    /// When it was made.
    pub created_at: String,
    /// When it ends by itself.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(default)]
    pub last_used_at: Option<String>,
    /// When it was revoked.
    #[serde(default)]
    pub revoked_at: Option<String>,
    /// The token that it was made with; of a session, the one that its link was made with. It ends with that one.
    #[serde(default)]
    pub made_by: Option<String>,
}

/// Servers that had no other kind did not say it.
fn bearer() -> TokenKind {
    TokenKind::Bearer
}

/// Makes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What people will call it.
    pub name: String,
    /// What its bearer will be.
    pub role: Role,
    /// The run of an agent's token, or the beginning of its id.
    #[serde(default)]
    pub run: Option<String>,
    /// How many seconds it counts, at most as long as the token that it is made with; default: as long as that one, or
    /// until it is revoked.
    #[serde(default)]
    pub expires_in_s: Option<u64>,
}

/// A token that was just made, with its secret, which is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MadeToken {
    /// The token.
    pub token: Token,
    /// What its bearer sends.
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
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// A token that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RevokedToken {
    /// The token.
    pub token: Token,
    /// How many sessions ended with it.
    #[serde(default)]
    pub sessions_ended: u64,
    /// How many tokens ended with it that were made with it, or with one of those.
    #[serde(default)]
    pub tokens_ended: u64,
}

/// Makes a link that signs a browser in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// Who will open it; what is done in the browser is recorded under this name and a mark.
    #[serde(default)]
    pub name: Option<String>,
}

/// A link that was just made; it is told this once, and can be opened once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MadeLink {
    /// The token behind it.
    pub token: Token,
    /// What is opened on the server, its secret included.
    pub path: String,
}

impl fmt::Debug for MadeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadeLink").field("token", &self.token).finish_non_exhaustive()
    }
}
