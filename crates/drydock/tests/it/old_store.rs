//! A store and a repository of an earlier version open, read and continue (`tests/old_store/README.md`). Breaks when a
//! migration, or a name in stored JSON, in a git blob or in a ref, no longer fits what earlier versions wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::world::{Kind, World, list, stage, text};

/// The folder in which the fixture was made.
const MADE_IN: &str = "/tmp/drydock-old-store";

/// Every plan of the fixture that has no parent, its stage and the kind of its open decision.
const PLANS: &[(&str, &str, &str)] = &[
    ("applied", "apply/applied", ""),
    ("gate", "execute/complete", "gate"),
    ("question", "execute/waiting", "agent"),
    ("errored", "execute/errored", ""),
    ("subplans", "execute/queued", ""),
    ("conflict", "execute/waiting", "conflict"),
    ("validation", "execute/errored", "validation"),
    ("review", "execute/waiting", "review"),
    ("budget", "execute/waiting", "budget"),
    ("cancelled", "strategize/cancelled", ""),
    ("prompted", "strategize/queued", ""),
    ("limited", "execute/queued", ""),
    ("diverged", "strategize/errored", "divergence"),
    ("killed", "execute/processing", ""),
    ("keyed", "strategize/queued", ""),
];

/// Runs its task as a command, except for the one that fails.
const WRITER: &str = r#"task=$(printf %s "$DRYDOCK_TASK" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p')
case "$task" in
    'exit 3') echo retried > retried.txt ;;
    *sleep*) echo killed > killed.txt ;;
    *check*) echo check > check.txt; echo fixed > fixed.txt ;;
    *) eval "$task" ;;
esac"#;

/// The fixture, unpacked.
struct OldStore {
    world: World,
    plans: BTreeMap<String, String>,
}

impl OldStore {
    fn unpack(kind: Kind) -> Self {
        let (folder, store) = match kind {
            Kind::Sqlite => ("sqlite", "store.db"),
            Kind::Postgres => ("postgres", "store.sql"),
        };
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old_store").join(folder);
        let world = World::without_store(kind);
        agents(&world);
        let unzipped = run(Command::new("gzip").arg("-dc").arg(packed.join(format!("{store}.gz"))));
        fs::write(world.path(store), unzipped).unwrap();
        world.load(&world.path(store));
        let (root, remote) = (world.repo.path().to_str().unwrap().to_owned(), world.place("remote.git"));
        run(Command::new("git").args(["init", "-q", "--bare", "-b", "main", &remote]));
        fetch(&packed.join("remote.bundle"), Path::new(&remote));
        fetch(&packed.join("repo.bundle"), world.repo.path());
        world.repo.git(&["reset", "-q", "--hard"]);
        world.repo.git(&["remote", "add", "origin", &remote]);
        world.query(&format!(
            "UPDATE projects SET repo = '{root}', body = replace(body, '{MADE_IN}/repo', '{root}')"
        ));
        let plans = fs::read_to_string(packed.join("plans")).unwrap();
        let plans = plans.lines().map(|line| line.split_once('=').unwrap());
        Self { world, plans: plans.map(|(label, id)| (label.to_owned(), id.to_owned())).collect() }
    }

    fn id(&self, label: &str) -> &str {
        &self.plans[label]
    }

    /// Answers the open decision of a plan, by its label or its id.
    #[track_caller]
    fn answer(&self, plan: &str, option: &str) {
        let id = self.plans.get(plan).map_or(plan, String::as_str);
        let pending = text(&self.world.show(id)["pending_decision"]);
        self.world.ok(&["decision", "resolve", &pending, "--option", option]);
    }

    /// Takes a plan through the remaining phases, and requires that the file is on the target with this text.
    #[track_caller]
    fn lands(&self, label: &str, phases: &[&str], file: &str, content: &str) {
        let id = self.id(label);
        for phase in phases {
            self.world.ok(&["plan", phase, id]);
        }
        self.world.assert_landed_once(id);
        assert_eq!(self.world.repo.git(&["show", &format!("main:{file}")]), content, "{label}");
        self.world.assert_sound(id);
    }
}

fn agents(world: &World) {
    world.agent("writer", WRITER);
    world.agent("asker", "echo blue > colour.txt");
    world.agent("limited", "echo whole > limited.txt");
    world.agent("spender", "echo whole > spent.txt");
    world.agent("refuser", r#"echo '{"drydock":"verdict","verdict":"ack"}'"#);
    world.agent("thinker", "true");
    world.agent("splitter", "true");
    world.agent("clasher", "true");
}

#[track_caller]
fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[track_caller]
fn fetch(bundle: &PathBuf, into: &Path) {
    let refs = ["--update-head-ok", "+refs/*:refs/*"];
    run(Command::new("git").arg("-C").arg(into).args(["fetch", "-q"]).arg(bundle).args(refs.iter().rev()));
}

on_both! {
    /// Issue 14, DESIGN 5–9. Breaks when a stored plan, decision, changeset, pin, token or rule cannot be read.
    fn a_store_of_an_earlier_version_opens_and_reads(kind: Kind) {
        let old = OldStore::unpack(kind);
        let world = &old.world;
        let listed = list(&world.ok(&["plan", "list", "--limit", "100"])["plans"]);
        let open = list(&world.ok(&["decision", "list", "--open"])["decisions"]);
        for (label, expected, asked) in PLANS {
            let id = old.id(label);
            assert_eq!(stage(&world.show(id)), *expected, "{label}");
            assert!(listed.iter().any(|plan| plan["id"] == id), "{label}");
            let kinds: Vec<_> = open.iter().filter(|one| one["plan"] == id).map(|one| text(&one["kind"])).collect();
            assert_eq!(kinds.concat(), *asked, "{label}");
            for view in ["why", "explain", "diff", "tree", "events"] {
                world.ok(&["plan", view, id]);
            }
            world.ok(&["changeset", "list", id]);
            world.ok(&["checkpoint", "list", id]);
        }
        let diff = world.ok(&["plan", "diff", old.id("gate")]);
        assert!(diff.to_string().contains("gate.txt"), "{diff:#}");
        let explained = world.ok(&["plan", "explain", old.id("subplans")]);
        assert!(explained.to_string().contains("it is large"), "{explained:#}");
        let prompted = world.ok(&["plan", "explain", old.id("prompted")]);
        assert!(prompted.to_string().contains("mind the tests"), "{prompted:#}");
        let tree = world.ok(&["plan", "tree", old.id("subplans")])["tree"].clone();
        let states: Vec<_> = list(&tree["subplans"]).iter().map(|one| format!("{} {} {}", text(&one["name"]), text(&one["fate"]), text(&one["state"]))).collect();
        assert_eq!(states, ["a joined applied", "b open waiting", "c open queued"]);
    }
}

on_both! {
    /// Issue 14, S4.3. Breaks when backups, tokens, rules, delivery positions or the words of plans of an earlier version
    /// are not found.
    fn what_an_earlier_version_kept_beside_its_plans_is_found(kind: Kind) {
        let old = OldStore::unpack(kind);
        let world = &old.world;
        let backups = list(&world.ok(&["backup", "list"])["backups"]);
        let of_diverged: Vec<_> = backups.iter().filter(|one| one["plan"] == old.id("diverged")).collect();
        assert_eq!(of_diverged.len(), 1, "{backups:#?}");
        assert_eq!(of_diverged[0]["commits"][0]["subject"], "by hand", "{of_diverged:#?}");
        assert_ne!(of_diverged[0]["reason"], Value::Null);
        world.ok(&["backup", "restore", &text(&of_diverged[0]["ref"]), "--branch", "mine"]);
        assert_eq!(world.repo.git(&["show", "mine:README.md"]), "by hand");
        let names = |found: Vec<Value>| found.iter().map(|one| text(&one["name"])).collect::<Vec<_>>();
        assert_eq!(names(list(&world.ok(&["token", "list"])["tokens"])), ["laptop"]);
        assert_eq!(names(list(&world.ok(&["invariant", "list"])["invariants"])), ["polite", "small"]);
        assert_eq!(list(&world.ok(&["action", "list"])["actions"]).len(), 8);
        let found = list(&world.ok(&["plan", "list", "--search", "keyed"])["plans"]);
        assert_eq!(found.iter().map(|plan| text(&plan["id"])).collect::<Vec<_>>(), [old.id("keyed")]);
        assert_eq!(world.query("SELECT hook FROM deliveries"), "pager");
        assert_eq!(world.query("SELECT key, status FROM answers"), "k1|200");
        assert_eq!(world.ok(&["store", "check"])["problems"], Value::Array(Vec::new()));
    }
}

on_both! {
    /// Issue 14. Breaks when a plan that an earlier version left at a gate, a question or an error cannot be continued.
    fn plans_of_an_earlier_version_continue_and_land(kind: Kind) {
        let old = OldStore::unpack(kind);
        old.lands("gate", &["apply"], "gate.txt", "gate");
        old.answer("question", "blue");
        old.lands("question", &["execute", "apply"], "colour.txt", "blue");
        old.world.ok(&["plan", "retry", old.id("errored")]);
        old.lands("errored", &["execute", "apply"], "retried.txt", "retried");
        old.answer("validation", "another_round");
        old.lands("validation", &["execute", "apply"], "check.txt", "check");
        old.answer("review", "another_round");
        old.lands("review", &["execute", "apply"], "review.txt", "review");
        old.answer("budget", "raise");
        old.lands("budget", &["execute", "apply"], "spent.txt", "whole");
        old.answer("diverged", "continue");
        old.lands("diverged", &["strategize", "execute", "apply"], "pinned.txt", "pinned");
        old.lands("keyed", &["strategize", "execute", "apply"], "keyed.txt", "keyed");
        old.lands("killed", &["execute", "apply"], "killed.txt", "killed");
    }
}

on_both! {
    /// Issue 14, INV-TURN. Breaks when subplans that an earlier version left part-way or in conflict do not join and land.
    fn subplans_of_an_earlier_version_continue_and_land(kind: Kind) {
        let old = OldStore::unpack(kind);
        let tree = old.world.ok(&["plan", "tree", old.id("subplans")])["tree"].clone();
        let asks = list(&tree["subplans"]).into_iter().find(|one| one["name"] == "b").unwrap();
        old.answer(&text(&asks["plan"]), "blue");
        old.lands("subplans", &["execute", "apply"], "colour.txt", "blue");
        assert_eq!(old.world.repo.git(&["show", "main:a.txt", "main:c.txt"]), "a\nc");
        old.answer("conflict", "take_child");
        old.lands("conflict", &["execute", "apply"], "same.txt", "two");
    }
}
