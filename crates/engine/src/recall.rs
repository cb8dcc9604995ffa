//! Tokens that the store knew a moment ago. Whoever looks at many things in a row is not looked up for each of them: for
//! half a second what the store said is taken as still so. A token that is taken back by this engine is forgotten at
//! once; one that another process takes back, or whose time runs out, counts no longer than it was remembered. Nothing is
//! kept of a secret but its digest.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drydock_domain::{Role, Token};
use drydock_store::KeptToken;
use tokio::time::Instant;

/// How long a token is remembered. Streams that are opened with one are looked at twice a second, so that both together
/// keep to the second that is promised.
const REMEMBERED: Duration = Duration::from_millis(500);
/// How many are. Beyond, the store is asked.
const TOKENS_MAX: usize = 1_024;

pub(crate) type Digest = [u8; 32];

/// Tokens by the digests of their secrets.
#[derive(Debug, Default)]
pub(crate) struct Recall(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    turn: u64,
    tokens: HashMap<Digest, (Token, Instant)>,
}

/// A moment before the store was asked. What it answered is remembered only if nothing was forgotten since: the answer
/// may be older than what made us forget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    number: u64,
    began: Instant,
}

impl Recall {
    /// Returns the token, if it is remembered.
    pub(crate) fn find(&self, digest: &Digest) -> Option<Token> {
        let now = Instant::now();
        self.lock().tokens.get(digest).filter(|(_, until)| now < *until).map(|(token, _)| token.clone())
    }

    /// Begins to ask the store.
    pub(crate) fn turn(&self) -> Turn {
        Turn { number: self.lock().turn, began: Instant::now() }
    }

    /// Remembers what the store said, for no longer than the token has left. An agent's token ends with its run, which is
    /// not a change of the token; it is looked up each time.
    pub(crate) fn keep(&self, turn: Turn, digest: Digest, kept: &KeptToken) {
        match kept.token.role {
            Role::Human | Role::Operator | Role::Reader => {}
            Role::Agent { .. } => return,
        }
        let until = turn.began + kept.left.map_or(REMEMBERED, |left| left.min(REMEMBERED));
        let mut known = self.lock();
        if known.tokens.len() >= TOKENS_MAX {
            known.tokens.retain(|_, (_, until)| turn.began < *until);
        }
        if known.turn == turn.number && known.tokens.len() < TOKENS_MAX {
            known.tokens.insert(digest, (kept.token.clone(), until));
        }
    }

    /// Forgets all of them, and whatever the store was asked before this.
    pub(crate) fn forget(&self) {
        let mut known = self.lock();
        known.turn += 1;
        known.tokens.clear();
    }

    /// A panic while this was held left nothing half done.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_domain::{PlanId, RunId, Timestamp, TokenId, TokenKind, TokenState};

    fn kept(role: Role, left: Option<Duration>) -> KeptToken {
        let token = Token {
            id: TokenId::from_random(1),
            name: "laptop".parse().unwrap(),
            role,
            kind: TokenKind::Bearer,
            created_at: Timestamp::from_micros(1),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            state: TokenState::Valid,
            made_by: None,
        };
        KeptToken { token, digest: String::new(), use_due: false, left }
    }

    /// Breaks when a request that asked the store before a token was taken back reminds us of it afterwards.
    #[test]
    fn what_was_asked_before_something_was_forgotten_is_not_remembered() {
        let recall = Recall::default();
        let (early, reader) = (recall.turn(), kept(Role::Reader, None));
        recall.keep(early, [1; 32], &reader);
        assert_eq!(recall.find(&[1; 32]), Some(reader.token.clone()));
        assert_eq!(recall.find(&[2; 32]), None);
        recall.forget();
        assert_eq!(recall.find(&[1; 32]), None);
        recall.keep(early, [1; 32], &reader);
        assert_eq!(recall.find(&[1; 32]), None);
        recall.keep(recall.turn(), [1; 32], &reader);
        assert!(recall.find(&[1; 32]).is_some());
    }

    /// Breaks when a token is remembered beyond its own time, or an agent's beyond its run.
    #[test]
    fn what_may_be_over_in_a_moment_is_not_remembered() {
        let recall = Recall::default();
        recall.keep(recall.turn(), [1; 32], &kept(Role::Human, Some(Duration::ZERO)));
        let (plan, run) = (PlanId::from_random(1), RunId::from_random(1));
        recall.keep(recall.turn(), [2; 32], &kept(Role::Agent { plan, run }, None));
        recall.keep(recall.turn(), [3; 32], &kept(Role::Human, Some(Duration::from_secs(3_600))));
        assert_eq!([1, 2, 3].map(|digit| recall.find(&[digit; 32]).is_some()), [false, false, true]);
    }

    /// Breaks when the memory grows with the number of tokens.
    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let recall = Recall::default();
        for number in 0..2 * TOKENS_MAX {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            recall.keep(recall.turn(), digest, &kept(Role::Reader, Some(Duration::from_secs(3_600))));
        }
        assert!(recall.lock().tokens.len() <= TOKENS_MAX);
    }
}
