//! `drydock token`: create, link, list, revoke.

use clap::Subcommand;
use drydock_api::{NewLink, NewToken, Role};
use jiff::{Span, SpanRelativeTo};
use serde_json::json;

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token; its secret is printed only once
    Create {
        /// Name of its user; actions with the token are recorded under this name
        name: String,
        /// Role: human, operator, agent or reader
        #[arg(long)]
        role: Role,
        /// Run of an agent's token: id or unique prefix
        #[arg(long, required_if_eq("role", "agent"))]
        run: Option<String>,
        /// Lifetime, such as 12h or 30d [default: none, or that of the token used to create it]
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        expires: Option<u64>,
    },
    /// Create a sign-in link for a browser; it works once, within ten minutes
    Link {
        /// Name of the user who will open it [default: you]
        #[arg(long)]
        name: Option<String>,
        /// Server address for the browser [default: that of --server, or http://127.0.0.1:7717]
        #[arg(long, value_name = "URL", value_parser = at)]
        at: Option<String>,
    },
    /// List tokens, without their secrets
    List,
    /// Revoke a token permanently, with the tokens, links and sessions created with it
    Revoke {
        /// Token id or unique prefix
        id: String,
    },
}

impl TokenCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            TokenCommand::Create { .. } => "create",
            TokenCommand::Link { .. } => "link",
            TokenCommand::List => "list",
            TokenCommand::Revoke { .. } => "revoke",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: TokenCommand) -> CliResult {
    let client = session.client();
    match command {
        TokenCommand::Create { name, role, run, expires } => {
            let made = client.token_create(&NewToken { name, role, run, expires_in_s: expires }).await?;
            let said = format!(
                "created token {} with role {} for {}",
                made.token.id, made.token.role, made.token.name
            );
            let text = format!("{}\n", made.secret);
            let keep = "the secret is not shown again; store it where only its user can read it";
            Ok(Report::new(made, text).note(Level::Info, said).note(Level::Info, keep))
        }
        TokenCommand::Link { name, at } => {
            let made = client.token_link(&NewLink { name }).await?;
            let at = at.as_deref().or(session.server()).unwrap_or(crate::serve::AT_DEFAULT);
            let link = format!("{}{}", at.trim_end_matches('/'), made.path);
            let said = "it signs in one browser, once, within ten minutes";
            let answer = json!({ "token": made.token, "link": link });
            Ok(Report::new(answer, format!("{link}\n")).note(Level::Info, said))
        }
        TokenCommand::List => {
            let tokens = client.tokens().await?;
            let text = render::token::list(&tokens.tokens, session.now());
            Ok(Report::new(tokens, text).or_say("no tokens"))
        }
        TokenCommand::Revoke { id } => {
            let revoked = client.token_revoke(&id).await?;
            let token = &revoked.token;
            let said = format!("revoked the token of {} ({})", token.name, token.id);
            let text = render::token::list(std::slice::from_ref(token), session.now());
            let ended = match revoked.sessions_ended {
                0 => None,
                1 => Some("ended 1 session that its links started".to_owned()),
                many => Some(format!("ended {many} sessions that its links started")),
            };
            let below = match revoked.tokens_ended {
                0 => None,
                1 => Some("ended 1 token that was created with it".to_owned()),
                many => Some(format!("ended {many} tokens that were created with it")),
            };
            let report = Report::new(revoked, text).note(Level::Info, said);
            Ok(ended.into_iter().chain(below).fold(report, |report, said| report.note(Level::Info, said)))
        }
    }
}

/// Parses the address of a server as a browser uses it.
fn at(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['?', '#', ' ']) => Ok(text.to_owned()),
        Some(_) | None => Err("write it as http://HOST:PORT or https://HOST".to_owned()),
    }
}

/// Parses a duration in which a day has 24 hours. Months and years are refused because their length varies.
fn seconds(text: &str) -> Result<u64, String> {
    let span: Option<Span> = text.parse().ok();
    let exact = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    exact
        .and_then(|duration| u64::try_from(duration.as_secs()).ok())
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "write a number and a unit, such as 12h or 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_units_that_are_always_as_long() {
        for (text, expected) in
            [("1s", 1), ("12h", 43_200), ("30d", 2_592_000), ("1w", 604_800), ("1d 1h", 90_000)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "30", "0s", "-1d", "1mo", "1y", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
