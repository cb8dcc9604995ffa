//! Locks as text: their plan or project, their holder, and until when.

use drydock_api::Lock;
use jiff::Timestamp;

use super::columns::{Cell, table};
use super::style::{BUSY, CAUTION, STRONG};
use super::time::ago;

/// Returns a table of locks.
pub(crate) fn list(locks: &[Lock], now: Timestamp) -> String {
    let rows = locks.iter().map(|lock| {
        let (style, state) = if lock.stale { (CAUTION, "stale") } else { (BUSY, "held") };
        [
            Cell::styled(STRONG, &lock.id),
            Cell::styled(style, state),
            Cell::new(format!("{} {}", lock.scope, lock.key)),
            Cell::new(format!("{} (process {} on {})", lock.purpose, lock.pid, lock.host)),
            Cell::new(ago(&lock.acquired_at, now)),
            Cell::new(ago(&lock.expires_at, now)),
        ]
    });
    table(["ID", "STATE", "OF", "HELD BY", "TAKEN", "ENDS"], rows.collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::LockScope;

    #[test]
    fn a_lock_says_who_holds_it_and_whether_it_ran_out() {
        let lock = Lock {
            id: "lck-1".into(),
            scope: LockScope::Plan,
            key: "pln-1".into(),
            owner: "o".into(),
            host: "h".into(),
            pid: 7,
            purpose: "execute".into(),
            fence: 1,
            acquired_at: "2026-03-10T11:59:00Z".into(),
            expires_at: "2026-03-10T11:59:30Z".into(),
            stale: true,
        };
        let text = bare(&list(&[lock], "2026-03-10T12:00:00Z".parse().unwrap()));
        assert!(
            text.contains("lck-1  stale  plan pln-1  execute (process 7 on h)  1 min ago  30 s ago"),
            "{text}"
        );
    }
}
