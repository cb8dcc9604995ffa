//! The error page: the error and the next step. A user who is not signed in gets instructions for a sign-in
//! link.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use drydock_api::{ClientError, Code, Problem};
use maud::{Markup, html};

use super::shell;
use super::words::{sentence, with_code};

/// Why a view cannot be shown.
#[derive(Debug)]
pub(super) struct PageError(Box<Problem>);

impl PageError {
    /// Returns the error for an unknown path.
    pub(super) fn unknown() -> Self {
        let problem = Problem::new(Code::NotFound, "This page does not exist.");
        PageError(Box::new(problem.hint("open the board")))
    }

    /// Returns the error for a URL that cannot be parsed.
    pub(super) fn unreadable(text: &str) -> Self {
        let problem = Problem::new(Code::Unparsable, format!("The URL is not valid: {text}"));
        PageError(Box::new(problem.hint("open the board")))
    }
}

impl From<ClientError> for PageError {
    fn from(error: ClientError) -> Self {
        PageError(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (title, body) = match self.0.code {
            Code::Unauthorized => return sign_in("You are not signed in, or your session has expired."),
            _ => (heading(status), told(&self.0, status)),
        };
        (status, shell::bare(title, body)).into_response()
    }
}

fn heading(status: StatusCode) -> &'static str {
    match status.as_u16() {
        403 => "Not allowed",
        404 => "Not found",
        503 => "Not available",
        _ => "Error",
    }
}

fn told(problem: &Problem, status: StatusCode) -> Markup {
    html! {
        p.bare-code { (status.as_u16()) " · " (problem.code) }
        h1 { (heading(status)) }
        p { (with_code(&sentence(&problem.detail))) }
        @if let Some(hint) = &problem.hint {
            p.hint { "Next: " (with_code(hint)) }
        }
        p { a.button href="/" { "Go to the board" } }
    }
}

/// Answers a browser that is not signed in.
pub(crate) fn sign_in(why: &str) -> Response {
    (StatusCode::UNAUTHORIZED, shell::bare("Sign in", stranger(why))).into_response()
}

fn stranger(why: &str) -> Markup {
    html! {
        h1 { "Sign in" }
        p { (why) }
        p { "A sign-in link works once. On the server, run" }
        pre.command { code { "drydock token link" } }
        p.hint { "Then open the printed link in this browser." }
    }
}
