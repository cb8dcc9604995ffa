//! Names that drydock writes into a project's repository. They are part of the outside contract: a store and its
//! repositories outlive the program that wrote them.

/// Where the snapshots of all plans are, as `<plan>/<n>`.
pub const SNAPSHOTS: &str = "refs/drydock/snap/";
/// Where the results of subplans that joined are, as `<plan>/<subplan>`.
pub const JOINS: &str = "refs/drydock/join/";
/// Where the pins of all plans are, as `<plan>/<n>`.
pub const PINS: &str = "refs/drydock/pin/";

/// Returns the line that every commit of a plan bears, by which it is known from those of others.
pub fn trailer(plan: &str) -> String {
    format!("Drydock-Plan: {plan}")
}
