//! Delivery of events to hooks. Each hook has a task that follows the feed, claims the hook when an event
//! matches, and delivers the event. A failed delivery is retried with growing delays and finally given up.
//! This module emits no events, so a failing hook cannot cause more deliveries. Delivery is at least once: if
//! a process dies right after a delivery, the event is delivered again. Each delivery carries the event's
//! number, so that the receiver can drop duplicates.

use std::time::Duration;

use drydock_domain::{Name, StoredEvent, error_chain};
use drydock_store::{ClaimStatus, Delivery, DeliveryClaim, DeliveryOutcome, EventFilter, StoreError};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::spec::{Hook, HookKind};
use super::webhook::{self, WebhookPayload};
use crate::engine::Engine;
use crate::task;

/// After how many attempts an event is given up.
const ATTEMPTS_MAX: i64 = 10;
/// The delay after the first failed attempt; it doubles up to the last.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
const BACK_OFF_LAST: Duration = Duration::from_secs(5 * 60);
/// How long a claim is valid, and how often it is renewed during a delivery. Both are short, so that another
/// process soon delivers an event that a killed process had claimed.
const CLAIM_TTL: Duration = Duration::from_secs(15);
const CLAIM_RENEW: Duration = Duration::from_secs(3);
/// How long a delivery may continue after a request to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long an idle task waits for a wake before it polls, and the shortest interval between two polls.
const IDLE_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How many events are read at a time.
const PAGE: i64 = 200;
/// After how many events that do not match a hook its position is stored.
const PASS_EVERY: i64 = 200;
/// How many characters of an error are stored.
const ERROR_MAX: usize = 300;

/// Why a delivery failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeliveryError(pub(super) String);

impl Engine {
    /// Registers the configured hooks, so that each gets the events that are committed from now on.
    pub async fn hooks_begin(&self) -> Result<(), StoreError> {
        let names: Vec<Name> = self.settings().hooks.list.iter().map(|hook| hook.name.clone()).collect();
        if names.is_empty() { Ok(()) } else { self.store().delivery_begin(&names).await }
    }

    /// Delivers the matching events to every hook, until `stop` is cancelled.
    pub async fn deliver(&self, stop: &CancellationToken) {
        let courier = |hook| {
            let (engine, stop) = (self.clone(), stop.clone());
            task::start("courier", async move { engine.deliver_to(hook, stop).await })
        };
        joined(self.usable_hooks().map(courier).collect()).await;
    }

    /// Delivers the due events to every hook, for at most `limit`.
    pub async fn deliver_due(&self, limit: Duration) {
        let courier = |hook| {
            let engine = self.clone();
            task::start("courier", async move { HookDeliverer::new(&engine, &hook).hurry(limit).await })
        };
        joined(self.usable_hooks().map(courier).collect()).await;
    }

    /// Returns the hooks that this process can deliver to. A hook whose secret is not in this environment is
    /// left to a process that has it: the receiver would refuse an unsigned delivery, and the attempt would
    /// count as a failure.
    fn usable_hooks(&self) -> impl Iterator<Item = Hook> + '_ {
        let is_usable = |hook: &&Hook| match hook.missing_secret() {
            None => true,
            Some(variable) => {
                tracing::warn!(hook = %hook.name, variable, "not delivered by this process: its secret is not in the environment");
                false
            }
        };
        self.settings().hooks.list.iter().filter(is_usable).cloned()
    }

    /// Runs the delivery task of one hook, and restarts it after a panic.
    async fn deliver_to(&self, hook: Hook, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let (engine, hook, stop) = (self.clone(), hook.clone(), stop.clone());
            let round =
                task::start(
                    "hook delivery",
                    async move { HookDeliverer::new(&engine, &hook).go(&stop).await },
                );
            if let Err(error) = round.await {
                tracing::error!(error = %error_chain(&error), "a delivery task panicked and is restarted");
            }
        }
    }

    async fn deliver_event(&self, hook: &Hook, event: StoredEvent) -> Result<(), DeliveryError> {
        match &hook.means {
            HookKind::Command { argv, pass_env } => self.tell_program(hook, argv, pass_env, event).await,
            HookKind::Webhook { address, .. } => {
                let (kind, seq) = (event.kind.clone(), event.seq);
                let shown = (self.settings().hooks.shape)(event);
                let body = serde_json::json!({ "event": shown }).to_string().into_bytes();
                let secret = hook.secret();
                let posting = webhook::post(address, secret.as_deref(), WebhookPayload { kind, seq, body });
                let late =
                    || DeliveryError(format!("{address} took longer than {} s", hook.timeout.as_secs()));
                tokio::time::timeout(hook.timeout, posting).await.unwrap_or_else(|_| Err(late()))
            }
        }
    }
}

async fn joined(couriers: Vec<JoinHandle<()>>) {
    for courier in couriers {
        if let Err(error) = courier.await {
            tracing::error!(error = %error_chain(&error), "a delivery task panicked");
        }
    }
}

/// Ends a delivery because the process is about to exit. It counts as an attempt: otherwise a delivery that
/// always takes too long would be retried forever if no other process delivers.
async fn late(deadline: Instant, limit: Duration) -> Option<DeliveryError> {
    tokio::time::sleep_until(deadline).await;
    Some(DeliveryError(format!(
        "it took longer than the {} s allowed at the end of a command",
        limit.as_secs()
    )))
}

/// The next step of a delivery task.
enum DeliveryStep {
    /// Continue at once.
    Again,
    /// Nothing is due yet.
    Later(Duration),
}

/// Delivers events to one hook.
struct HookDeliverer<'e> {
    engine: &'e Engine,
    hook: &'e Hook,
    owner: String,
    /// Up to this event, no event after the stored position matches the hook.
    passed: i64,
}

impl<'e> HookDeliverer<'e> {
    fn new(engine: &'e Engine, hook: &'e Hook) -> Self {
        let owner = engine.identity().holder("deliver to a hook").owner;
        Self { engine, hook, owner, passed: 0 }
    }

    async fn go(&mut self, stop: &CancellationToken) {
        let mut watch = self.engine.store().watch();
        while !stop.is_cancelled() {
            let cut = async {
                stop.cancelled().await;
                tokio::time::sleep(STOP_GRACE).await;
                None
            };
            let pause = match self.step(cut).await {
                Ok(DeliveryStep::Again) => continue,
                Ok(DeliveryStep::Later(pause)) => pause.min(IDLE_MAX),
                Err(error) => {
                    tracing::warn!(hook = %self.hook.name, error = %error_chain(&error), "could not query for events to deliver");
                    IDLE_MAX
                }
            };
            let news = async {
                tokio::time::sleep(LOOK_EVERY).await;
                watch.changed(pause).await;
            };
            tokio::select! {
                () = news => {}
                () = stop.cancelled() => {}
            }
        }
        if let Err(error) = self.write_down(1).await {
            tracing::debug!(hook = %self.hook.name, error = %error_chain(&error), "some events will be checked again");
        }
    }

    /// Delivers the due events until the limit is reached.
    async fn hurry(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            match self.step(late(deadline, limit)).await {
                Ok(DeliveryStep::Again) => {}
                Ok(DeliveryStep::Later(_)) => return,
                Err(error) => {
                    tracing::warn!(hook = %self.hook.name, error = %error_chain(&error), "could not query for due deliveries");
                    return;
                }
            }
        }
    }

    /// Delivers the next matching event, if it is due and no other process has claimed it. `cut` ends a
    /// delivery that takes too long. If `cut` returns a failure, the delivery counts as an attempt.
    async fn step(
        &mut self,
        cut: impl Future<Output = Option<DeliveryError>>,
    ) -> Result<DeliveryStep, StoreError> {
        let store = self.engine.store();
        let Some(seen) = store.delivery_fetch(&self.hook.name).await? else {
            store.delivery_begin(std::slice::from_ref(&self.hook.name)).await?;
            return Ok(DeliveryStep::Again);
        };
        let Some(event) = self.next(&seen).await? else {
            self.write_down(PASS_EVERY).await?;
            return Ok(DeliveryStep::Later(IDLE_MAX));
        };
        if !seen.due_in.is_zero() {
            return Ok(DeliveryStep::Later(seen.due_in));
        }
        let Some(claim) = store.delivery_claim(&seen, &self.owner, CLAIM_TTL).await? else {
            return Ok(DeliveryStep::Later(LOOK_EVERY));
        };
        let seq = event.seq;
        let told = tokio::select! {
            sent = self.engine.deliver_event(self.hook, event) => Some(self.verdict(seq, claim.attempts, sent)),
            failure = cut => Some(match failure {
                Some(failure) => self.verdict(seq, claim.attempts, Err(failure)),
                None => DeliveryOutcome::CutShort,
            }),
            () = self.keep(&claim) => None,
        };
        let Some(told) = told else { return Ok(DeliveryStep::Later(LOOK_EVERY)) };
        match store.delivery_settle(&claim, told).await? {
            ClaimStatus::Kept => Ok(DeliveryStep::Again),
            ClaimStatus::Lost => {
                tracing::warn!(hook = %self.hook.name, seq, "the claim was lost; the event may be delivered twice");
                Ok(DeliveryStep::Later(LOOK_EVERY))
            }
        }
    }

    /// Returns the next event that matches the hook.
    async fn next(&mut self, seen: &Delivery) -> Result<Option<StoredEvent>, StoreError> {
        self.passed = self.passed.max(seen.position);
        loop {
            let filter = EventFilter { after: self.passed, plan: None, limit: PAGE };
            let page = self.engine.store().event_list(&filter).await?;
            let Some(last) = page.last().map(|event| event.seq) else { return Ok(None) };
            if let Some(event) = page.into_iter().find(|event| self.hook.wants.include(event)) {
                self.passed = event.seq - 1;
                return Ok(Some(event));
            }
            self.passed = last;
        }
    }

    /// Stores how far the feed has no matching event, if that is at least `least` events.
    async fn write_down(&self, least: i64) -> Result<(), StoreError> {
        let store = self.engine.store();
        match store.delivery_fetch(&self.hook.name).await? {
            Some(seen) if self.passed - seen.position >= least => {
                store.delivery_pass(&seen, self.passed).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Renews a claim; returns when it is lost.
    async fn keep(&self, claim: &DeliveryClaim) {
        loop {
            tokio::time::sleep(CLAIM_RENEW).await;
            match self.engine.store().delivery_renew(claim, CLAIM_TTL).await {
                Ok(ClaimStatus::Kept) => {}
                Ok(ClaimStatus::Lost) => return,
                Err(error) => {
                    tracing::warn!(hook = %self.hook.name, error = %error_chain(&error), "could not renew a claim")
                }
            }
        }
    }

    fn verdict(&self, seq: i64, attempts: i64, sent: Result<(), DeliveryError>) -> DeliveryOutcome {
        let name = &self.hook.name;
        let error = match sent {
            Ok(()) => {
                tracing::info!(hook = %name, seq, "delivered");
                return DeliveryOutcome::Delivered(seq);
            }
            Err(DeliveryError(error)) => shortened(error),
        };
        match back_off(attempts) {
            Some(delay) => {
                tracing::warn!(hook = %name, seq, error, delay_s = delay.as_secs(), "delivery failed; trying again later");
                DeliveryOutcome::Later { error, delay }
            }
            None => {
                tracing::error!(hook = %name, seq, error, attempts = ATTEMPTS_MAX, "delivery failed permanently");
                DeliveryOutcome::GivenUp { seq, error }
            }
        }
    }
}

/// Returns the delay after a failed attempt, given the number of failures before it; `None` if it was the
/// last.
fn back_off(attempts: i64) -> Option<Duration> {
    if attempts + 1 >= ATTEMPTS_MAX {
        return None;
    }
    let doublings = u32::try_from(attempts.max(0)).unwrap_or(u32::MAX);
    Some(BACK_OFF_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(BACK_OFF_LAST))
}

fn shortened(error: String) -> String {
    // A program may print NUL, which PostgreSQL cannot store in text.
    let error = error.replace('\0', "\u{fffd}");
    match error.char_indices().nth(ERROR_MAX) {
        Some((at, _)) => format!("{}…", &error[..at]),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when the output of a hook's program cannot be stored on PostgreSQL, so that the same event is
    /// delivered forever.
    #[test]
    fn an_error_is_short_and_has_no_nul() {
        assert_eq!(shortened("bad\0thing".to_owned()), "bad\u{fffd}thing");
        assert_eq!(shortened("x".repeat(ERROR_MAX + 1)).chars().count(), ERROR_MAX + 1);
    }

    #[test]
    fn pauses_grow_and_end() {
        let pauses: Vec<_> = (0..ATTEMPTS_MAX).map_while(back_off).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        assert_eq!(back_off(ATTEMPTS_MAX + 5), None);
        assert_eq!(shortened("é".repeat(400)).chars().count(), ERROR_MAX + 1);
    }
}
