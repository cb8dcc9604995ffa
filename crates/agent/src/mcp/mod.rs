//! Drydock as an MCP server: an agent calls tools instead of writing lines. The server is a process of the
//! agent, inside its sandbox. It forwards messages over a socket to the run's drydock process, which handles
//! them like lines of output. There is only one path by which a message counts, and nothing in this module
//! can answer a decision.

mod door;
mod lines;
mod server;
mod socket;
mod tools;

pub(crate) use door::{RunSocket, attend};
pub use server::{McpError, serve_mcp};
pub(crate) use socket::{SECRET, SOCKET};
