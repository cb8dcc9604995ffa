//! The client against canned bytes on a real socket: what it sends, and what it makes of each kind of answer.

#![allow(clippy::unwrap_used)]

mod client;
mod shapes;
