//! The client against canned bytes on a real socket: what it sends, and what it makes of each kind of answer.

mod client;
mod shapes;
