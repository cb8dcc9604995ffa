//! A cache of tokens. A client that sends many read requests in a row is not looked up in the store for each
//! of them: for half a second the last answer of the store is reused. A token that this engine revokes leaves
//! the cache at once. A token that another process revokes, or that expires, stays valid at most until its
//! cache entry expires. The cache holds digests, never secrets.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drydock_domain::{Token, TokenRole};
use drydock_store::StoredToken;
use tokio::time::Instant;

/// How long a token is cached. Streams check their token twice a second, so cache and check together stay
/// within the promised second.
const REMEMBERED: Duration = Duration::from_millis(500);
/// How many tokens are cached. Others are looked up each time.
const TOKENS_MAX: usize = 1_024;

pub(crate) type Digest = [u8; 32];

/// Tokens by the digests of their secrets.
#[derive(Debug, Default)]
pub(crate) struct TokenCache(Mutex<CachedTokens>);

#[derive(Debug, Default)]
struct CachedTokens {
    turn: u64,
    tokens: HashMap<Digest, (Token, Instant)>,
}

/// The time before a lookup in the store. The answer is cached only if the cache was not cleared since: the
/// answer may be older than the revocation that cleared it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheGeneration {
    number: u64,
    began: Instant,
}

impl TokenCache {
    pub(crate) fn find(&self, digest: &Digest) -> Option<Token> {
        let now = Instant::now();
        self.lock().tokens.get(digest).filter(|(_, until)| now < *until).map(|(token, _)| token.clone())
    }

    /// Starts a lookup in the store.
    pub(crate) fn turn(&self) -> CacheGeneration {
        CacheGeneration { number: self.lock().turn, began: Instant::now() }
    }

    /// Caches the answer of the store, for no longer than the token is valid. An agent's token ends with its
    /// run, which does not change the token's row, so it is never cached.
    pub(crate) fn keep(&self, turn: CacheGeneration, digest: Digest, kept: &StoredToken) {
        match kept.token.role {
            TokenRole::Human | TokenRole::Operator | TokenRole::Reader => {}
            TokenRole::Agent { .. } => return,
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

    /// Clears the cache and invalidates lookups that started before this call.
    pub(crate) fn forget(&self) {
        let mut known = self.lock();
        known.turn += 1;
        known.tokens.clear();
    }

    /// Ignores poisoning: a panic under this lock cannot leave the cache half changed.
    fn lock(&self) -> MutexGuard<'_, CachedTokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_domain::{PlanId, RunId, Timestamp, TokenId, TokenKind, TokenState};

    fn kept(role: TokenRole, left: Option<Duration>) -> StoredToken {
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
        StoredToken { token, digest: String::new(), use_due: false, left }
    }

    /// Breaks when a lookup that started before a revocation caches the token again afterwards.
    #[test]
    fn what_was_asked_before_something_was_forgotten_is_not_remembered() {
        let recall = TokenCache::default();
        let (early, reader) = (recall.turn(), kept(TokenRole::Reader, None));
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

    /// Breaks when a token is cached beyond its expiry, or an agent's token beyond its run.
    #[test]
    fn what_may_be_over_in_a_moment_is_not_remembered() {
        let recall = TokenCache::default();
        recall.keep(recall.turn(), [1; 32], &kept(TokenRole::Human, Some(Duration::ZERO)));
        let (plan, run) = (PlanId::from_random(1), RunId::from_random(1));
        recall.keep(recall.turn(), [2; 32], &kept(TokenRole::Agent { plan, run }, None));
        recall.keep(recall.turn(), [3; 32], &kept(TokenRole::Human, Some(Duration::from_secs(3_600))));
        assert_eq!([1, 2, 3].map(|digit| recall.find(&[digit; 32]).is_some()), [false, false, true]);
    }

    /// Breaks when the cache grows with the number of tokens.
    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let recall = TokenCache::default();
        for number in 0..2 * TOKENS_MAX {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            recall.keep(recall.turn(), digest, &kept(TokenRole::Reader, Some(Duration::from_secs(3_600))));
        }
        assert!(recall.lock().tokens.len() <= TOKENS_MAX);
    }
}
