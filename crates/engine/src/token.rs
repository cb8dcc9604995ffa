//! Tokens: create, recognise, revoke. The secret is returned once, to its bearer. The store keeps only its
//! SHA-256, so reading the store gives no access.

use std::fmt;
use std::time::Duration;

use drydock_domain::{
    Name, PlanId, RunId, State, Token, TokenId, TokenKind, TokenRole, TokenState, error_chain,
};
use drydock_store::{PlanFilter, Revocation, Store, StoredToken, TokenAdded, TokenInsert as Kept};
use ring::{digest, hmac};

use crate::clock;
use crate::engine::{Engine, one, prefix};
use crate::error::EngineError;
use crate::recall::Digest;
use crate::task::shield;

/// The digits of a secret, the same as those of ids: no two look alike.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many digits encode 32 random bytes.
const DIGITS: usize = 52;
/// How many plans are read at a time to find a run.
const RUNS_PAGE: i64 = 500;
/// How long the token of a run is valid at most, even if the process that created it crashed.
const RUN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// The bounds of a requested lifetime.
const LIFE_MIN: Duration = Duration::from_secs(1);
const LIFE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The secret of a token. It has its own type so that no log or message can print it by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the secret as text, to be sent to its bearer.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInput {
    /// The name of the token.
    pub name: String,
    /// The role of the token.
    pub role: NewRole,
    /// How long the token is valid; default: as long as the token that creates it, or forever.
    pub life: Option<Duration>,
    /// The token that creates this one. This one ends with it.
    pub made_by: Option<TokenId>,
}

/// The role of a requested token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewRole {
    /// A person.
    Human,
    /// A program or a person in charge of operation.
    Operator,
    /// The agent of a run, given by a prefix of the run's id.
    Agent(String),
    /// A bearer that may only read.
    Reader,
}

/// The result of checking a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenCheck {
    /// A valid token.
    Bearer(Token),
    /// An expired token.
    Expired,
    /// A revoked token.
    Revoked,
    /// An agent's token whose run is no longer the latest of its plan.
    RunOver,
    /// Not a token of this store.
    Unknown,
}

impl Engine {
    /// Creates a token. Only this result contains its secret.
    pub async fn token_create(&self, new: TokenInput) -> Result<(Token, Secret), EngineError> {
        let name: Name = new.name.parse().map_err(|error| {
            EngineError::invalid(format!("{error}"), "name it after its user or device, e.g. laptop")
        })?;
        if new.life.is_some_and(|life| life < LIFE_MIN || life > LIFE_MAX) {
            let text = "a token must be valid for at least one second and at most ten years";
            return Err(EngineError::invalid(text, "use for example 30d, or leave it out"));
        }
        let role = match new.role {
            NewRole::Human => TokenRole::Human,
            NewRole::Operator => TokenRole::Operator,
            NewRole::Reader => TokenRole::Reader,
            NewRole::Agent(run) => {
                let (plan, run) = self.run_under_way(&run).await?;
                TokenRole::Agent { plan, run }
            }
        };
        let secret = fresh(role.name());
        let digest = digest_of(secret.reveal());
        let (id, digest, kind) = (id_of(&digest), hex(&digest), TokenKind::Bearer);
        let kept = Kept { id, digest, name, role, kind, life: new.life, made_by: new.made_by };
        Ok((self.token_keep(kept).await?, secret))
    }

    /// Returns all tokens, including expired and revoked ones.
    pub async fn tokens(&self) -> Result<Vec<Token>, EngineError> {
        Ok(self.store().token_list().await?)
    }

    /// Revokes a token permanently, with the tokens and links that it made and the sessions that those began. After
    /// this returns, none of them gives access here any more.
    pub async fn token_revoke(&self, given: &str) -> Result<Revocation, EngineError> {
        let found = self.store().token_find(&prefix(given, TokenId::PREFIX, "token")?).await?;
        let token = one(found, "token", given)?;
        let revoked = self.forgetting(move |store| async move { store.token_revoke(&token.id).await });
        revoked.await?.ok_or_else(|| EngineError::absent("token", given))
    }

    /// Revokes a token permanently, with the tokens that it made; the sessions that its links began stay signed in.
    pub async fn token_end(&self, id: &TokenId) -> Result<Token, EngineError> {
        let ended = id.clone();
        let ended = self.forgetting(move |store| async move { store.token_end(&ended).await });
        ended.await?.ok_or_else(|| EngineError::absent("token", id))
    }

    /// Ends tokens and clears the token cache. Runs to its end even if the caller is dropped in between.
    async fn forgetting<T, F>(&self, end: impl FnOnce(Store) -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send,
    {
        let engine = self.clone();
        shield(async move {
            let ended = end(engine.store().clone()).await;
            engine.check_cached().forget();
            ended
        })
        .await
    }

    pub(crate) async fn token_keep(&self, new: Kept) -> Result<Token, EngineError> {
        let (name, maker) = (new.name.to_string(), new.made_by.clone());
        match (self.store().token_add(new).await?, maker) {
            (TokenAdded::Kept(token), _) => Ok(token),
            (TokenAdded::MakerEnded, Some(maker)) => Err(EngineError::absent("token", maker)),
            (TokenAdded::Outlives(left), _) => {
                let text = format!(
                    "a token cannot outlive the token that creates it, which expires in {} s",
                    left.as_secs()
                );
                let hint = "use a shorter `--expires`, or leave it out: it then expires with that token";
                Err(EngineError::invalid(text, hint))
            }
            (TokenAdded::NameTaken | TokenAdded::MakerEnded, _) => {
                Err(EngineError::Exists { kind: "token", name })
            }
        }
    }

    /// Returns the token of a secret that was presented in this way. A secret for another way is unknown.
    pub async fn token_recognise(&self, text: &str, shown: TokenKind) -> Result<TokenCheck, EngineError> {
        self.check_token(&digest_of(text), shown).await
    }

    /// Returns the same from the cache if possible, for read requests. Requests that change something always
    /// query the store.
    pub async fn token_recall(&self, text: &str, shown: TokenKind) -> Result<TokenCheck, EngineError> {
        let digest = digest_of(text);
        match self.check_cached().find(&digest).filter(|token| token.kind.shown() == shown) {
            Some(token) => Ok(TokenCheck::Bearer(token)),
            None => self.check_token(&digest, shown).await,
        }
    }

    async fn check_token(&self, digest: &Digest, shown: TokenKind) -> Result<TokenCheck, EngineError> {
        let turn = self.check_cached().turn();
        let Some(kept) = self.token_of(digest, shown).await? else { return Ok(TokenCheck::Unknown) };
        match kept.token.state {
            TokenState::Valid => {}
            TokenState::Expired => return Ok(TokenCheck::Expired),
            TokenState::Revoked => return Ok(TokenCheck::Revoked),
        }
        if self.is_of_a_run_that_is_over(&kept.token.role).await? {
            return Ok(TokenCheck::RunOver);
        }
        if kept.use_due
            && let Err(error) = self.store().token_used(&kept.token.id).await
        {
            tracing::warn!(error = %error_chain(&error), token = %kept.token.id, "could not record the use of a token");
        }
        self.check_cached().keep(turn, *digest, &kept);
        Ok(TokenCheck::Bearer(kept.token))
    }

    /// Returns true if a token is still valid, for connections that last longer than a request.
    pub async fn token_counts(&self, id: &TokenId) -> Result<bool, EngineError> {
        match self.store().token_fetch(id).await? {
            Some(StoredToken { token, .. }) => {
                Ok(token.state == TokenState::Valid && !self.is_of_a_run_that_is_over(&token.role).await?)
            }
            None => Ok(false),
        }
    }

    /// Returns the token whose secret has this digest. The lookup uses the public part of the digest; the
    /// rest is compared in constant time.
    pub(crate) async fn token_of(
        &self,
        digest: &Digest,
        shown: TokenKind,
    ) -> Result<Option<StoredToken>, EngineError> {
        let found = self.store().token_fetch(&id_of(digest)).await?;
        Ok(found.filter(|kept| is_same(&hex(digest), &kept.digest) && kept.token.kind.shown() == shown))
    }

    async fn is_of_a_run_that_is_over(&self, role: &TokenRole) -> Result<bool, EngineError> {
        let TokenRole::Agent { plan, run } = role else { return Ok(false) };
        let plan = self.store().plan_fetch(plan).await?;
        Ok(plan.is_none_or(|plan| {
            let is_under_way = matches!(plan.stage.state(), State::Processing | State::Waiting);
            !is_under_way || plan.run.as_ref() != Some(run)
        }))
    }

    /// Creates the token for the agents of a run. The process that runs the phase deletes it when the run
    /// ends. After a crash it stays in the store, and is no longer valid once the plan is taken over.
    pub(crate) async fn run_token(
        &self,
        plan: &PlanId,
        run: &RunId,
    ) -> Result<(TokenId, Secret), EngineError> {
        let role = TokenRole::Agent { plan: plan.clone(), run: run.clone() };
        let secret = fresh(role.name());
        let digest = digest_of(secret.reveal());
        let name: Name = run.as_str().parse().expect("letters, digits and a dash are a name");
        let (id, kind, life) = (id_of(&digest), TokenKind::Bearer, Some(RUN_LIFE));
        let kept = Kept { id: id.clone(), digest: hex(&digest), name, role, kind, life, made_by: None };
        self.token_keep(kept).await?;
        Ok((id, secret))
    }

    /// Returns the plan with a current run whose id starts with this prefix. A run that has ended needs no
    /// token.
    async fn run_under_way(&self, given: &str) -> Result<(PlanId, RunId), EngineError> {
        let wanted = prefix(given, RunId::PREFIX, "run")?;
        let mut found = Vec::new();
        for state in [State::Processing, State::Waiting] {
            let mut filter = PlanFilter { state: Some(state), limit: RUNS_PAGE, ..PlanFilter::default() };
            loop {
                let page = self.store().plan_list(&filter).await?;
                found.extend(page.items.into_iter().filter_map(|plan| {
                    let run = plan.run?;
                    (wanted.first() <= run.as_str() && run.as_str() < wanted.beyond().as_str())
                        .then_some((plan.id, run))
                }));
                filter.after = page.next;
                if filter.after.is_none() {
                    break;
                }
            }
        }
        match found.len() {
            0 => Err(EngineError::absent("run under way", given)),
            1 => Ok(found.remove(0)),
            _ => {
                let candidates = found.into_iter().map(|(_, run)| run.to_string()).collect();
                Err(EngineError::Ambiguous { kind: "run", given: given.to_owned(), candidates })
            }
        }
    }
}

/// Generates a random secret. It contains its purpose, which helps a person to identify a leaked one.
pub(crate) fn fresh(what: &str) -> Secret {
    let random = [clock::random(), clock::random()];
    let bit = |place: usize| random[place / 128] >> (place % 128) & 1;
    let digit = |number: usize| {
        let bits = (number * 5..number * 5 + 5).filter(|&place| place < 256);
        char::from(ALPHABET[bits.fold(0, |value, place| value << 1 | bit(place)) as usize])
    };
    let digits: String = (0..DIGITS).map(digit).collect();
    Secret(format!("dry_{what}_{digits}"))
}

pub(crate) fn digest_of(text: &str) -> Digest {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().try_into().expect("a SHA-256 has 32 bytes")
}

/// Derives the id from the digest, so that a secret leads to its token without being stored.
pub(crate) fn id_of(digest: &Digest) -> TokenId {
    let (first, _) = digest.split_at(16);
    TokenId::from_random(u128::from_be_bytes(first.try_into().expect("half of 32 bytes are 16")))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Compares two texts in constant time.
fn is_same(one: &str, other: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[]);
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Breaks when secrets can be guessed, repeat, or appear in debug output.
    #[test]
    fn a_secret_is_random_says_its_role_and_hides() {
        let secrets: Vec<_> = (0..100).map(|_| fresh("operator")).collect();
        let different: HashSet<_> = secrets.iter().map(Secret::reveal).collect();
        assert_eq!(different.len(), 100);
        for place in 0..DIGITS {
            let seen: HashSet<_> =
                different.iter().map(|text| text.as_bytes()["dry_operator_".len() + place]).collect();
            // The last digit carries one bit; the others five.
            assert!(
                seen.len() >= if place == DIGITS - 1 { 2 } else { 8 },
                "digit {place} is one of {seen:?}"
            );
        }
        let one = &secrets[0];
        assert!(
            one.reveal().len() == "dry_operator_".len() + DIGITS
                && !format!("{one:?}").contains(one.reveal())
        );
    }

    #[test]
    fn only_the_same_text_is_the_same() {
        for (one, other, same) in
            [("", "", true), ("ab", "ab", true), ("ab", "ac", false), ("ab", "abc", false)]
        {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
    }
}
