//! A language model on loopback for real agents. It follows a script and supports the APIs that agents use.

mod chat;
mod http;
mod messages;
mod reply;
mod responses;
mod script;
mod server;

pub use http::ModelRequest;
pub use script::Script;
pub use server::ScriptedModel;
