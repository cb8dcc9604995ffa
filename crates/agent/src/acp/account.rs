//! Counts the usage of a session. An agent always reports totals for the whole session, including earlier
//! conversations, so only the difference from its last report counts.

use crate::task::SessionUsage;

/// The last reported usage of a session.
#[derive(Debug, Default)]
pub(super) struct Account {
    tokens: SessionCounter,
    cost_micros: SessionCounter,
}

#[derive(Debug, Default)]
struct SessionCounter {
    told: u64,
    /// Set until the first report after the session was loaded.
    resumed: bool,
}

impl Account {
    /// Continues a session whose usage so far was already reported.
    pub(super) fn resumed(told: SessionUsage) -> Self {
        let meter = |told| SessionCounter { told, resumed: true };
        Self { tokens: meter(told.tokens), cost_micros: meter(told.cost_micros) }
    }

    /// Records the session's total tokens, and returns the increase.
    pub(super) fn tokens(&mut self, total: u64) -> SessionUsage {
        SessionUsage { tokens: self.tokens.hear(total), cost_micros: 0 }
    }

    /// Records the session's total cost, and returns the increase.
    pub(super) fn cost(&mut self, total_micros: u64) -> SessionUsage {
        SessionUsage { tokens: 0, cost_micros: self.cost_micros.hear(total_micros) }
    }

    /// Returns the last reported usage of the whole session.
    pub(super) fn told(&self) -> SessionUsage {
        SessionUsage { tokens: self.tokens.told, cost_micros: self.cost_micros.told }
    }
}

impl SessionCounter {
    fn hear(&mut self, total: u64) -> u64 {
        // A total lower than the last one means that the agent restarted counting with this conversation.
        if std::mem::take(&mut self.resumed) && total < self.told {
            self.told = 0;
        }
        let more = total.saturating_sub(self.told);
        self.told = self.told.max(total);
        more
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, SessionUsage};

    /// Breaks when usage reported in an earlier conversation counts again, or new usage does not count.
    #[test]
    fn only_what_is_beyond_the_last_word_counts() {
        let mut account = Account::resumed(SessionUsage { tokens: 100, cost_micros: 50 });
        assert_eq!(
            (account.tokens(100).tokens, account.tokens(130).tokens, account.tokens(120).tokens),
            (0, 30, 0)
        );
        assert_eq!((account.cost(80).cost_micros, account.cost(80).cost_micros), (30, 0));
        assert_eq!(account.told(), SessionUsage { tokens: 130, cost_micros: 80 });
        let mut anew = Account::resumed(SessionUsage { tokens: 100, cost_micros: 50 });
        assert_eq!(
            (anew.tokens(40).tokens, anew.tokens(60).tokens),
            (40, 20),
            "it counts from nothing again"
        );
        assert_eq!(anew.told(), SessionUsage { tokens: 60, cost_micros: 50 });
    }
}
