//! Tokens as text: their users, roles and validity.

use drydock_api::{Token, TokenState};
use jiff::Timestamp;

use super::columns::{Cell, table};
use super::style::{BAD, CAUTION, GOOD, STRONG};
use super::time::ago;

/// Returns a table of tokens.
pub(crate) fn list(tokens: &[Token], now: Timestamp) -> String {
    let rows = tokens.iter().map(|token| {
        let style = match token.state {
            TokenState::Valid => GOOD,
            TokenState::Expired => CAUTION,
            TokenState::Revoked => BAD,
        };
        let of = token.run.as_ref().map(|run| format!(" of {run}")).unwrap_or_default();
        let told = |at: &Option<String>| at.as_ref().map_or("never".to_owned(), |at| ago(at, now));
        [
            Cell::styled(STRONG, &token.id),
            Cell::styled(style, token.state.name()),
            Cell::new(&token.name),
            Cell::new(format!("{}{of}", token.role)),
            Cell::new(token.kind.name()),
            Cell::new(ago(&token.created_at, now)),
            Cell::new(told(&token.last_used_at)),
            Cell::new(told(&token.expires_at)),
            Cell::new(token.made_by.as_deref().unwrap_or("-")),
        ]
    });
    table(["ID", "STATE", "NAME", "ROLE", "KIND", "CREATED", "USED", "EXPIRES", "CREATED BY"], rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{Role, TokenKind};

    #[test]
    fn a_token_says_who_has_it_and_whether_it_counts() {
        let token = Token {
            id: "tok-1".into(),
            name: "ci".into(),
            role: Role::Agent,
            kind: TokenKind::Bearer,
            plan: Some("pln-1".into()),
            run: Some("run-1".into()),
            state: TokenState::Expired,
            created_at: "2026-03-10T11:00:00Z".into(),
            expires_at: Some("2026-03-10T11:59:30Z".into()),
            last_used_at: None,
            revoked_at: None,
            made_by: Some("tok-0".into()),
        };
        let text = bare(&list(&[token], "2026-03-10T12:00:00Z".parse().unwrap()));
        assert!(
            text.contains("tok-1  expired  ci    agent of run-1  bearer  1 h ago  never  30 s ago  tok-0"),
            "{text}"
        );
    }
}
