//! The description of the interface, made from the code: which routes there are and who may use them from the table of
//! rights, what goes in and out from the wire types, what can go wrong from the table of codes.

mod document;
mod operations;
mod reference;

pub(super) use document::answer as document;
pub(super) use reference::routes as reference;
