//! What a session has used, as its agent tells. It always tells it for the whole session, so only what is beyond its last
//! word counts, that of an earlier conversation included.

use crate::task::SessionUse;

/// Keeps the last word on what a session used.
#[derive(Debug, Default)]
pub(super) struct Account {
    tokens: Meter,
    cost_micros: Meter,
}

#[derive(Debug, Default)]
struct Meter {
    told: u64,
    /// Set until the first word after the session was loaded.
    resumed: bool,
}

impl Account {
    /// Goes on with a session of which this much was told before.
    pub(super) fn resumed(told: SessionUse) -> Self {
        let meter = |told| Meter { told, resumed: true };
        Self { tokens: meter(told.tokens), cost_micros: meter(told.cost_micros) }
    }

    /// Hears the tokens of the whole session, and returns how many are new.
    pub(super) fn tokens(&mut self, total: u64) -> SessionUse {
        SessionUse { tokens: self.tokens.hear(total), cost_micros: 0 }
    }

    /// Hears what the whole session cost, and returns how much of it is new.
    pub(super) fn cost(&mut self, total_micros: u64) -> SessionUse {
        SessionUse { tokens: 0, cost_micros: self.cost_micros.hear(total_micros) }
    }

    /// Returns what the whole session has used by its agent's last word.
    pub(super) fn told(&self) -> SessionUse {
        SessionUse { tokens: self.tokens.told, cost_micros: self.cost_micros.told }
    }
}

impl Meter {
    fn hear(&mut self, total: u64) -> u64 {
        // One that tells less than before has begun to count anew with this conversation.
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
    use super::{Account, SessionUse};

    /// Breaks when what was told in an earlier conversation counts again, or what is new does not.
    #[test]
    fn only_what_is_beyond_the_last_word_counts() {
        let mut account = Account::resumed(SessionUse { tokens: 100, cost_micros: 50 });
        assert_eq!(
            (account.tokens(100).tokens, account.tokens(130).tokens, account.tokens(120).tokens),
            (0, 30, 0)
        );
        assert_eq!((account.cost(80).cost_micros, account.cost(80).cost_micros), (30, 0));
        assert_eq!(account.told(), SessionUse { tokens: 130, cost_micros: 80 });
        let mut anew = Account::resumed(SessionUse { tokens: 100, cost_micros: 50 });
        assert_eq!(
            (anew.tokens(40).tokens, anew.tokens(60).tokens),
            (40, 20),
            "it counts from nothing again"
        );
        assert_eq!(anew.told(), SessionUse { tokens: 60, cost_micros: 50 });
    }
}
