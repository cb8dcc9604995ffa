//! Agents and shell commands as real processes, observed from outside: their input, the forwarded output,
//! their endings, and that no process is left.

// clippy allows `unwrap` in functions marked as tests; their shared helpers use it too.
#![allow(clippy::unwrap_used)]

mod calling;
mod endings;
mod escaping;
mod leaving_nothing;
mod living;
mod output;
mod scripts;
mod shell;
mod speaking;
mod starting;
mod telling;
mod world;
