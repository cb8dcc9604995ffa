//! The authority behind a change. Names are for the record. The rights of a command depend on this alone, and `decide`
//! alone judges it.

/// The capacity in which a caller asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// A person, whose asking answers the question that holds the plan up.
    Person,
    /// A program, or a person in charge of operation: a plan that a question holds up stays held up.
    Operator,
    /// An agent, and what else only reads: it asks for no change of a plan.
    Agent,
    /// Drydock itself, which takes the steps that follow from the record.
    Engine,
}

impl Authority {
    /// Every authority there is.
    pub const ALL: [Authority; 4] =
        [Authority::Person, Authority::Operator, Authority::Agent, Authority::Engine];

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Authority::Person => "person",
            Authority::Operator => "operator",
            Authority::Agent => "agent",
            Authority::Engine => "engine",
        }
    }
}
