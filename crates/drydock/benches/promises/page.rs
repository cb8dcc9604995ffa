//! First paint of the board with 100,000 plans stored against an empty store, in a real browser.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use drydock_domain::Plan;
use drydock_store::{Store, StoreUrl};
use drydock_testkit::postgres;
use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;

use crate::browser::Browser;
use crate::lists::{fill_postgres, fill_sqlite};
use crate::measure::{Promise, Table, median};
use crate::seed;

const MANY: u128 = 100_000;
const ROUNDS: usize = 15;
const LOOKS: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let [empty, full] = ["empty.db", "full.db"].map(|name| world.path().join(name));
    let (plan, stores) = two_stores([&empty, &full].map(|path| StoreUrl::Sqlite(path.clone()))).await;
    fill_sqlite(&full, &plan, MANY);
    drop(stores);
    compare(table, "SQLite", world.path(), [&empty, &full].map(|path| path.to_str().unwrap()));

    let [empty, full] = [postgres::database(), postgres::database()];
    let (plan, stores) = two_stores([&empty, &full].map(|database| database.url().parse().unwrap())).await;
    fill_postgres(&full, &plan, MANY);
    drop(stores);
    let urls = [empty.url(), full.url()];
    compare(table, "PostgreSQL", world.path(), urls.each_ref().map(String::as_str));
}

/// Makes two stores, and a plan in the second.
async fn two_stores([empty, full]: [StoreUrl; 2]) -> (Plan, [Store; 2]) {
    let stores = [seed::open(&empty).await, seed::open(&full).await];
    let (plan, _lease) = seed::plan(&stores[1], 0).await;
    (plan, stores)
}

fn compare(table: &mut Table, database: &str, home: &Path, stores: [&str; 2]) {
    let servers = stores.map(|store| serve(home, store));
    let browser = Browser::open();
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let [none, many] = [0, 1].map(|at| paint(&browser, &servers[at].1));
        ratios.push(many / none);
        times.push([none, many]);
    }
    assert_eq!(
        browser.js("return document.querySelectorAll('.card').length", &[]),
        20,
        "the board is not what is measured"
    );
    let what = format!("{database}: first paint of the page with 100,000 plans ÷ with none");
    table.ratio(&what, Promise::AtMost(1.2), &ratios);
    let [none, many] = [0, 1].map(|at| median(&times.iter().map(|pair| pair[at]).collect::<Vec<_>>()));
    table.plain(
        &format!("{database}: first paint with none / with 100,000"),
        format!("{none:.0} / {many:.0} ms"),
    );
}

fn serve(home: &Path, store: &str) -> (RunningProcess, String) {
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
