//! Claims about subplans, and random trees of them against what must always hold.

mod claims;
mod order;
mod random;
mod world;
