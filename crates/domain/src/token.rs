//! Tokens: authenticate callers of the HTTP API, with a role. The secret is not stored here; a token is
//! identified by its id.

use crate::{Name, PlanId, RunId, Timestamp, TokenId};

/// The role of a token's bearer. A token with the agent role belongs to one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRole {
    /// A person: has all rights. Only this role answers decisions and creates tokens.
    Human,
    /// A program or a person in charge of operation: all rights except those two.
    Operator,
    /// An agent in a run: may read its own plan.
    Agent {
        /// The agent's plan.
        plan: PlanId,
        /// The agent's run.
        run: RunId,
    },
    /// May read.
    Reader,
}

impl TokenRole {
    /// Returns the name used in JSON and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            TokenRole::Human => "human",
            TokenRole::Operator => "operator",
            TokenRole::Agent { .. } => "agent",
            TokenRole::Reader => "reader",
        }
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Unique id; not secret.
    pub id: TokenId,
    /// The name that actions with this token are recorded under.
    pub name: Name,
    /// The role of its bearer.
    pub role: TokenRole,
    /// How the secret is presented.
    pub kind: TokenKind,
    /// When the token was created.
    pub created_at: Timestamp,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
    /// When the token was last used, with a resolution of one minute.
    pub last_used_at: Option<Timestamp>,
    /// When the token was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The token that created this one, or the sign-in link that it was exchanged for. Revoking that token
    /// revokes this one too.
    pub made_by: Option<TokenId>,
    /// Whether the token is valid, by the clock of the store.
    pub state: TokenState,
}

/// How a caller presents the secret of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// In a header of each request, by a program.
    Bearer,
    /// In a header of each request, by the command line on the server's machine. The server creates this
    /// token for local use and stores it in a file that the command line reads.
    Machine,
    /// By a browser: one half as a cookie, the other half in its requests' headers.
    Session,
    /// In a URL that is opened once, to sign a browser in.
    Link,
}

impl TokenKind {
    /// Returns the name used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::Bearer => "bearer",
            TokenKind::Machine => "machine",
            TokenKind::Session => "session",
            TokenKind::Link => "link",
        }
    }

    /// Returns how a request presents the token: a machine token is presented like a bearer token.
    pub fn shown(self) -> TokenKind {
        match self {
            TokenKind::Bearer | TokenKind::Machine => TokenKind::Bearer,
            TokenKind::Session | TokenKind::Link => self,
        }
    }
}

/// Whether a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It does.
    Valid,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}
