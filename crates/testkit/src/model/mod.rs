//! A language model on loopback, for real agents: it does what its script says, in the dialects agents speak.

mod chat;
mod http;
mod messages;
mod reply;
mod responses;
mod script;
mod server;

pub use http::Request;
pub use script::Script;
pub use server::Model;
