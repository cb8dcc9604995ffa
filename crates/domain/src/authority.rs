//! The authority behind a command. Only `decide` checks it, and the rights of a command depend on it alone.
//! Caller names are kept for the record only.

/// The capacity in which a caller sends a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// A person. A command from a person also answers the decision that blocks the plan.
    Person,
    /// A program, or a person in charge of operation. Cannot get a plan past an open decision.
    Operator,
    /// An agent or another read-only caller. Cannot change a plan.
    Agent,
    /// Drydock itself, for steps that follow from the stored plan.
    Engine,
}

impl Authority {
    /// All authorities.
    pub const ALL: [Authority; 4] =
        [Authority::Person, Authority::Operator, Authority::Agent, Authority::Engine];

    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Authority::Person => "person",
            Authority::Operator => "operator",
            Authority::Agent => "agent",
            Authority::Engine => "engine",
        }
    }
}
