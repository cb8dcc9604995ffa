//! Tokens: who may ask over the network, and as what. The secret itself is nowhere here; a token is known by its id.

use crate::{Name, PlanId, RunId, Timestamp, TokenId};

/// What the bearer of a token is. An agent's token belongs to one run; no other has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A person: may do everything, and alone answers decisions and makes tokens.
    Human,
    /// A program or a person that keeps things running: everything but that.
    Operator,
    /// An agent in a run: may read its own plan.
    Agent {
        /// The plan it works on.
        plan: PlanId,
        /// Its run.
        run: RunId,
    },
    /// May read.
    Reader,
}

impl Role {
    /// Returns the word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Role::Human => "human",
            Role::Operator => "operator",
            Role::Agent { .. } => "agent",
            Role::Reader => "reader",
        }
    }
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id, which is no secret.
    pub id: TokenId,
    /// What people call it; what is done with it is recorded under this name.
    pub name: Name,
    /// What its bearer is.
    pub role: Role,
    /// How its secret is shown.
    pub kind: TokenKind,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The token that made the link which this is or began as; it ends with it.
    pub made_by: Option<TokenId>,
    /// Whether it still counts, by the store's clock.
    pub state: TokenState,
}

/// How the secret of a token is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// By a program, with each request.
    Bearer,
    /// By the command line of whoever serves on this machine, who finds it there; made by the server for itself.
    Machine,
    /// By a browser: half of it as a cookie, and half by its pages.
    Session,
    /// In an address that is opened once, to sign a browser in.
    Link,
}

impl TokenKind {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::Bearer => "bearer",
            TokenKind::Machine => "machine",
            TokenKind::Session => "session",
            TokenKind::Link => "link",
        }
    }

    /// Returns how a request shows it: what a machine has for itself is shown as any program does.
    pub fn shown(self) -> TokenKind {
        match self {
            TokenKind::Bearer | TokenKind::Machine => TokenKind::Bearer,
            TokenKind::Session | TokenKind::Link => self,
        }
    }
}

/// Whether a token still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// It does.
    Valid,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}
