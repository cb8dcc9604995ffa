//! Tests of the state machine: every stage against every command, random histories against a model, and
//! individual guarantees.

mod authority;
mod budgets;
mod claims;
mod divergence;
mod gates;
mod interruptions;
mod kept;
mod landing;
mod limits;
mod offers;
mod random;
mod repeats;
mod rounds;
mod say;
mod table;
mod target;
mod world;
