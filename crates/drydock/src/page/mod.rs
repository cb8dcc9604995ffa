//! The web page: HTML rendered on the server from the answers of the API, with a small script that keeps it current.
//! The page has no access of its own: every view calls the router of `/api/v1` with the user's credentials, and every
//! button posts there. So the rights of a role are checked in one place.

mod act;
mod ask;
mod asset;
mod backups;
mod board;
mod colour;
mod conflict;
mod diff;
mod facts;
mod health;
mod language;
mod list;
mod locks;
mod log;
mod mark;
mod new;
mod opening;
mod patch;
mod plan;
mod question;
mod questions;
mod router;
mod shell;
mod timeline;
mod trouble;
mod words;

pub(crate) use opening::{PageGuard, SignedOut, welcome};
pub(crate) use router::page;
pub(crate) use trouble::sign_in;
