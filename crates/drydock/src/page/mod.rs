//! The page where a person steers: HTML made on the server from what the API answers, with a small script that keeps it
//! current. It reads and changes nothing by itself: every view asks the router of `/api/v1` as whoever looks at it, and
//! every button posts there, so what a role may do is said in one place.

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

pub(crate) use opening::{Gate, Unopened, welcome};
pub(crate) use router::page;
pub(crate) use trouble::sign_in;
