//! The client against canned bytes on a real socket: the requests it sends, and how it handles each kind of answer.

#![allow(clippy::unwrap_used)]

mod client;
mod shapes;
