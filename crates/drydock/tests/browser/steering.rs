//! What can be done to a plan beside answering its questions.

use std::fs;

use drydock_testkit::wait;

use crate::browser::Browser;
use crate::scene::{Site, WRITER};
use crate::shared::Shared;
use crate::world::{Kind, LIMIT, World, text};

/// Opens the dialog of a thing to do and says yes.
#[track_caller]
fn consent(browser: &Browser, id: &str) {
    browser.press(&format!("[data-dialog='dialog-{id}']"));
    browser.press(&format!("#dialog-{id} .button:not([data-close])"));
    browser.until("!document.querySelector('dialog[open]')");
}

/// Breaks when the draft, the remote or an earlier state of the work can be reached with the command line alone.
#[test]
fn a_draft_is_adopted_a_branch_synced_and_work_taken_back_on_the_page() {
    let world = Shared::new(Kind::Sqlite, WRITER).world;
    let site = Site::of(world);
    let id = text(&site.world.ok(&["plan", "use", "think", "--project", "team"])["plan"]["id"]);
    site.wait_stage(&id, "strategize/complete");
    let run = text(&site.world.show(&id)["run"]);
    let folder = site.world.worktrees().join(&id).join(run).join("tree/.drydock");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("strategy.json"), r#"{"choices":[{"question":"how","chosen":"by hand"}]}"#)
        .unwrap();
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    consent(&browser, "adopt");
    browser.until_text(".tree", "by hand");
    // Somebody else puts a commit on the plan's branch.
    let branch = format!("refs/heads/drydock/{id}/work");
    let repo = &site.world.repo;
    let theirs = repo.git(&["commit-tree", "main^{tree}", "-p", &branch, "-m", "theirs"]);
    repo.git(&["push", "--quiet", "origin", &format!("{theirs}:{branch}")]);
    consent(&browser, "sync");
    wait::until("the branch to be synced", LIMIT, || {
        (repo.git(&["rev-parse", &branch]) == theirs).then_some(())
    });
    browser.until_text(".timeline", "sync.fast_forwarded");
    browser.press(".question .button.primary");
    browser.until_text(".question", "Ready to land on main");
    let rolled = |site: &Site| site.world.count(&id, "plan.rolled_back");
    assert_eq!(rolled(&site), 0);
    browser.press(".checkpoint [data-dialog^='dialog-rollback-']");
    browser.press("dialog[open] .button:not([data-close])");
    wait::until("the work to be taken back", LIMIT, || (rolled(&site) == 1).then_some(()));
}

/// Breaks when a phase that failed cannot be tried again on the page.
#[test]
fn a_phase_that_failed_is_tried_again_with_one_button() {
    let world = World::new(Kind::Sqlite);
    world.agent("writer", &format!("test -e {} || exit 3\n{WRITER}", world.place("gate")));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let site = Site::of(world);
    let id = site.world.plan(&["--profile", "trusted"]);
    site.wait_stage(&id, "execute/errored");
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.until_text(".standing", "exit code 3");
    site.world.write("gate", "");
    browser.press("[data-id='act-retry'] .button");
    browser.until_text(".question", "Ready to land on main");
}

/// Breaks when a button is shown that can only be refused while a run is under way, or the one that ends it does not.
#[test]
fn a_run_under_way_can_be_ended_and_nothing_else_is_offered() {
    let world = World::new(Kind::Sqlite);
    world.agent("slow", "sleep 600");
    world.action("fix", "[agents]\nexecute = \"slow\"");
    let site = Site::of(world);
    let id = site.world.plan(&["--profile", "auto"]);
    site.wait_stage(&id, "execute/processing");
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.until_text(".plan-line .mark", "Processing");
    browser.settled();
    let offered = browser.js("return [...document.querySelectorAll('main .button')].filter((one) => one.offsetParent).map((one) => one.innerText)", &[]);
    assert_eq!(offered, serde_json::json!(["Cancel plan…"]));
    browser.press("[data-dialog='dialog-cancel']");
    browser.write("#dialog-cancel textarea", "too slow");
    browser.press("#dialog-cancel .button.danger");
    browser.until_text(".plan-line .mark", "Cancelled");
    browser.until("!document.querySelector('dialog[open]')");
    assert_eq!(site.world.show(&id)["cancel_reason"], "too slow");
}

/// Page B6. Breaks when a plan that a rule blocks looks complete, hides the measured value, or has a button that lands.
#[test]
fn a_blocked_plan_is_shown_as_blocked_and_offers_what_works() {
    let world = World::new(Kind::Sqlite);
    world.agent("writer", "seq 8 > eight.txt");
    let rule = "[[invariants]]\nname = \"small\"\ncel = \"diff.lines_changed < 3\"\nat = [\"apply\"]";
    world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
    let site = Site::of(world);
    let id = site.world.plan(&["--profile", "trusted"]);
    site.wait_stage(&id, "execute/complete");
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.until_text(".question .button.primary", "Land");
    site.world.drydock(&["plan", "apply", &id]).expect(5);
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.until_text(".plan-line .mark", "Blocked");
    browser.until_text(".standing h2", "8 lines changed, limit 3");
    browser.until_text(".standing", "Ask the agent to reduce the change, or edit the rule");
    let shown = "return [...document.querySelectorAll('main .button')].filter((one) => one.offsetParent).map((one) => one.innerText.trim())";
    let offered = browser.js(shown, &[]).to_string();
    assert!(offered.contains("Plan again") && !offered.contains("Land"), "{offered}");
    browser.go(&site.address("/"));
    browser.until_text(".card", "8 lines changed, limit 3");
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.press("[data-dialog='dialog-revert']");
    browser.press("#dialog-revert .button:not([data-close])");
    wait::until("the plan to go back", LIMIT, || (site.world.count(&id, "plan.reverted") == 1).then_some(()));
    let guided = site.world.show(&id)["feedback"].to_string();
    assert!(guided.contains("small: 8 lines changed, limit 3"), "{guided}");
}
