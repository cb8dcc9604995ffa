//! The OpenAPI description, generated from the code: the routes and their roles from the table of rights, the types
//! from `drydock_api`, and the errors from the table of codes.

mod document;
mod operations;
mod reference;

pub(super) use document::answer as document;
pub(super) use reference::routes as reference;
