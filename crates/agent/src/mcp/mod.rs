//! Drydock as an MCP server: an agent calls tools instead of writing lines. The server is a process of the agent's, in its
//! sandbox; what it hears goes through a socket to the run's own drydock, which hears it as it hears lines. There is no
//! second way for a message to count, and nothing in here can answer a decision.

mod door;
mod lines;
mod server;
mod socket;
mod tools;

pub(crate) use door::{Door, attend};
pub use server::{McpError, serve_mcp};
pub(crate) use socket::{SECRET, SOCKET};
