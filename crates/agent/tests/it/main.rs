//! Agents and shell commands as real processes, seen from outside: through what they are told, what is passed on, how
//! they end, and that nothing of them is left.

// clippy lets functions marked as tests unwrap; the world they share may too.
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
