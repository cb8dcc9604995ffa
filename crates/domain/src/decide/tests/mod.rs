//! Tests of the state machine: every stage against every command, random histories against a model, and
//! single promises.

mod claims;
mod divergence;
mod gates;
mod random;
mod rounds;
mod say;
mod table;
mod world;
