//! First paint of the board with 100,000 plans stored against an empty store, in a real browser.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use drydock_store::StoreUrl;
use drydock_testkit::proc::{self, Running};
use drydock_testkit::wait;

use crate::browser::Browser;
use crate::lists::fill_sqlite;
use crate::measure::{Promise, Table, median};
use crate::seed;

const MANY: u128 = 100_000;
const ROUNDS: usize = 7;
const LOOKS: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let (empty, full) = (world.path().join("empty.db"), world.path().join("full.db"));
    drop(seed::open(&StoreUrl::Sqlite(empty.clone())).await);
    let store = seed::open(&StoreUrl::Sqlite(full.clone())).await;
    let (plan, lease) = seed::plan(&store, 0).await;
    fill_sqlite(&full, &plan, MANY);
    drop((lease, store));
    let servers = [serve(world.path(), &empty), serve(world.path(), &full)];
    let browser = Browser::open();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let [none, many] = [0, 1].map(|at| paint(&browser, &servers[at].1));
        ratios.push(many / none);
    }
    assert_eq!(
        browser.js("return document.querySelectorAll('.card').length", &[]),
        40,
        "the board is not what is measured"
    );
    table.ratio("first paint of the page with 100,000 plans ÷ with none", Promise::AtMost(1.2), &ratios);
}

fn serve(home: &Path, store: &Path) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drydock"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--tokens", "optional", "--store"])
        .arg(store);
    let running = proc::spawn(command.env("HOME", home).env("XDG_CONFIG_HOME", home));
    let at = wait::until("the server's address", LIMIT, || {
        let said = running.stderr();
        let rest = &said[said.find("http://")?..];
        let end = rest["http://".len()..].find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))?;
        Some(rest[..end + "http://".len()].to_owned())
    });
    (running, at)
}

/// Returns the time from asking for the page to its first paint with content, in milliseconds.
fn paint(browser: &Browser, address: &str) -> f64 {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        browser.go(address);
        let script = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null";
        times.push(wait::until("the first paint", LIMIT, || browser.js(script, &[]).as_f64()));
    }
    median(&times)
}
