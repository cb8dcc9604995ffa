//! Tests of subplans, and random trees of them against general guarantees.

mod claims;
mod order;
mod random;
mod world;
