//! Landing in a repository with very many worktrees and refs, against landing in one without, and, with a remote, against the
//! fetch and the two pushes that a landing cannot do without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use drydock_testkit::repo::Repo;
use serde_json::Value;

use crate::measure::{Promise, Table, seconds};

const WORKTREES: usize = 1_000;
const REFS: usize = 20_000;
const ROUNDS: usize = 9;
const DRYDOCK: &str = env!("CARGO_BIN_EXE_drydock");

pub(crate) fn run(table: &mut Table) {
    let world = World::new();
    let (plain, crowded) = (Repo::new(), Repo::new());
    world.project("plain", &plain, None);
    world.project("crowded", &crowded, None);
    worktrees(&crowded);
    let ratios = world.compare("crowded", "plain");
    table.ratio(&format!("Apply with {WORKTREES} other worktrees ÷ without"), Promise::AtMost(1.2), &ratios);

    let many = Repo::new();
    world.project("many", &many, None);
    refs(&many);
    for how in ["loose", "packed"] {
        if how == "packed" {
            many.git(&["pack-refs", "--all"]);
        }
        let ratios = world.compare("many", "plain");
        table.ratio(&format!("Apply with {REFS} {how} refs ÷ without"), Promise::AtMost(1.2), &ratios);
    }
    let sent = Repo::new();
    let bare = world.home.path().join("remote.git");
    sent.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    sent.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    world.project("sent", &sent, Some("origin"));
    refs(&sent);
    for how in ["loose", "packed"] {
        if how == "packed" {
            sent.git(&["pack-refs", "--all"]);
        }
        let ratios: Vec<f64> = (0..ROUNDS)
            .map(|round| {
                let plan = world.executed("sent");
                let ours = seconds(|| drop(world.drydock(&["plan", "apply", &plan])));
                ours / by_hand(&sent, &format!("{how}-{round}"))
            })
            .collect();
        let what = format!("Apply with a remote and {REFS} {how} refs ÷ a bare fetch and two pushes");
        table.ratio(&what, Promise::AtMost(1.2), &ratios);
    }
}

/// Returns how many seconds the gits take that no landing with a remote can do without.
fn by_hand(repo: &Repo, name: &str) -> f64 {
    let refspec = |branch: &str| format!("refs/heads/main:refs/heads/{branch}");
    seconds(|| {
        repo.git(&["fetch", "--quiet", "origin", "main"]);
        repo.git(&["push", "--quiet", "origin", &refspec(&format!("by-hand/{name}/one"))]);
        repo.git(&["push", "--quiet", "origin", &refspec(&format!("by-hand/{name}/two"))]);
    })
}

/// Adds the records and directories of worktrees, as other plans have them.
fn worktrees(repo: &Repo) {
    let head = repo.head("main");
    for number in 0..WORKTREES {
        let record = repo.path().join(format!(".git/worktrees/other-{number}"));
        let tree = repo.path().parent().unwrap().join(format!("others/{number}/tree"));
        fs::create_dir_all(&record).unwrap();
        fs::create_dir_all(&tree).unwrap();
        let write = |path: PathBuf, text: String| fs::write(path, text).unwrap();
        write(record.join("commondir"), "../..\n".to_owned());
        write(record.join("HEAD"), format!("{head}\n"));
        write(record.join("gitdir"), format!("{}/.git\n", tree.display()));
        write(tree.join(".git"), format!("gitdir: {}\n", record.display()));
    }
}

/// Adds refs as plans that are over left them: two each.
fn refs(repo: &Repo) {
    let head = repo.head("main");
    for number in 0..REFS / 2 {
        for name in
            [format!("refs/heads/drydock/other-{number}/work"), format!("refs/drydock/snap/other-{number}/1")]
        {
            let path = repo.path().join(".git").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{head}\n")).unwrap();
        }
    }
}

struct World {
    home: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let world = World { home: tempfile::tempdir().unwrap() };
        let config = world.home.path().join(".config/drydock");
        fs::create_dir_all(&config).unwrap();
        let agent = "[agents.writer]\nprotocol = \"command\"\ncommand = [\"sh\", \"-c\", \"date +%N > $(date +%s%N).txt\"]\n";
        fs::write(config.join("config.toml"), agent).unwrap();
        let action = world.home.path().join("fix.toml");
        let text = "name = \"fix\"\ndescription = \"fix\"\n[agents]\nexecute = \"writer\"\n";
        fs::write(&action, text).unwrap();
        world.drydock(&["action", "create", "--file", action.to_str().unwrap()]);
        world
    }

    fn project(&self, name: &str, repo: &Repo, remote: Option<&str>) {
        let path: &Path = repo.path();
        let add = ["project", "add", name, "--repo", path.to_str().unwrap()];
        let remote: Vec<&str> = remote.iter().flat_map(|remote| ["--remote", remote]).collect();
        self.drydock(&[&add[..], &remote].concat());
    }

    /// Makes a plan that only waits to land.
    fn executed(&self, project: &str) -> String {
        let plan = self.drydock(&["plan", "use", "fix", "--project", project])["data"]["plan"]["id"].clone();
        let plan = plan.as_str().unwrap().to_owned();
        self.drydock(&["plan", "strategize", &plan]);
        self.drydock(&["plan", "execute", &plan]);
        plan
    }

    /// Lands in one project and in another, in turns, and returns the ratios.
    fn compare(&self, one: &str, other: &str) -> Vec<f64> {
        let land = |project: &str| {
            let plan = self.executed(project);
            seconds(|| drop(self.drydock(&["plan", "apply", &plan])))
        };
        (0..ROUNDS)
            .map(|round| {
                if round % 2 == 0 {
                    let ours = land(one);
                    ours / land(other)
                } else {
                    let plain = land(other);
                    land(one) / plain
                }
            })
            .collect()
    }

    fn drydock(&self, words: &[&str]) -> Value {
        let mut command = Command::new(DRYDOCK);
        command.arg("--json").args(words).env("HOME", self.home.path()).env_remove("XDG_CONFIG_HOME");
        command
            .env("DRYDOCK_STORE", self.home.path().join("drydock.db"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&said).unwrap()
    }
}
