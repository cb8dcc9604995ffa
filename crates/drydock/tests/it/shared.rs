//! A project whose branches others can push to: a bare remote, and a clone of somebody else's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::world::{Kind, World, list, text};

/// A world whose project `team` has a remote.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) other: PathBuf,
}

impl Shared {
    /// Makes the remote, somebody else's clone, and the project with the policy `recover`.
    pub(crate) fn new(kind: Kind, script: &str) -> Self {
        Self::with(kind, script, &[])
    }

    pub(crate) fn with(kind: Kind, script: &str, project: &[&str]) -> Self {
        let world = World::with_writer(kind, script);
        world.agent("thinker", "true");
        world.action("think", "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
        let (bare, other) = (world.path("remote.git"), world.path("other"));
        let root = world.repo.path().to_str().unwrap().to_owned();
        git(Path::new("/"), &["clone", "-q", "--bare", &root, bare.to_str().unwrap()]);
        world.repo.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
        git(Path::new("/"), &["clone", "-q", bare.to_str().unwrap(), other.to_str().unwrap()]);
        let add = ["project", "add", "team", "--repo", &root, "--remote", "origin"];
        world.ok(&[&add, project].concat());
        Self { world, other }
    }

    /// Makes a plan of an action and returns its id.
    pub(crate) fn plan(&self, action: &str) -> String {
        text(&self.world.ok(&["plan", "use", action, "--project", "team"])["plan"]["id"])
    }

    /// Takes a plan with an agent that thinks to the end of Strategize, and returns its id and its worktree.
    pub(crate) fn strategized(&self) -> (String, PathBuf) {
        let id = self.plan("think");
        self.world.ok(&["plan", "strategize", &id]);
        let run = text(&self.world.show(&id)["run"]);
        let tree = self.world.worktrees().join(&id).join(run).join("tree");
        assert!(tree.is_dir(), "{}", tree.display());
        (id, tree)
    }

    /// Somebody else puts a commit on the plan's branch, on top of what the remote has of it.
    pub(crate) fn others_push(&self, plan: &str, path: &str, content: &str) -> String {
        let branch = format!("drydock/{plan}/work");
        git(&self.other, &["fetch", "-q", "origin"]);
        let remote = format!("origin/{branch}");
        let known = try_git(&self.other, &["rev-parse", "-q", "--verify", &remote]).is_some();
        git(&self.other, &["checkout", "-q", "-B", "theirs", if known { &remote } else { "origin/main" }]);
        let file = self.other.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        git(&self.other, &["add", "-A"]);
        git(&self.other, &["commit", "-q", "-m", &format!("others change {path}")]);
        git(&self.other, &["push", "-q", "origin", &format!("theirs:{branch}")]);
        git(&self.other, &["rev-parse", "HEAD"])
    }

    /// Somebody else adds a file to the newest commit of the plan's branch, and replaces it on the remote.
    pub(crate) fn others_amend(&self, plan: &str, path: &str, content: &str) -> String {
        let branch = format!("drydock/{plan}/work");
        git(&self.other, &["fetch", "-q", "origin"]);
        git(&self.other, &["checkout", "-q", "-B", "theirs", &format!("origin/{branch}")]);
        fs::write(self.other.join(path), content).unwrap();
        git(&self.other, &["add", "-A"]);
        git(&self.other, &["commit", "-q", "--amend", "--no-edit", "--reset-author"]);
        git(&self.other, &["push", "-q", "--force", "origin", &format!("theirs:{branch}")]);
        git(&self.other, &["rev-parse", "HEAD"])
    }

    /// Somebody else forces the plan's branch on the remote to a commit of theirs on the target.
    pub(crate) fn others_force(&self, plan: &str, path: &str, content: &str) {
        git(&self.other, &["fetch", "-q", "origin"]);
        git(&self.other, &["checkout", "-q", "-B", "theirs", "origin/main"]);
        fs::write(self.other.join(path), content).unwrap();
        git(&self.other, &["add", "-A"]);
        git(&self.other, &["commit", "-q", "-m", &format!("others force {path}")]);
        git(&self.other, &["push", "-q", "--force", "origin", &format!("theirs:drydock/{plan}/work")]);
    }

    /// Somebody else puts a commit on the remote's target branch.
    pub(crate) fn others_land(&self, path: &str) {
        git(&self.other, &["fetch", "-q", "origin"]);
        git(&self.other, &["checkout", "-q", "-B", "theirs", "origin/main"]);
        fs::write(self.other.join(path), "theirs\n").unwrap();
        git(&self.other, &["add", "-A"]);
        git(&self.other, &["commit", "-q", "-m", &format!("others change {path}")]);
        git(&self.other, &["push", "-q", "origin", "theirs:main"]);
    }

    /// Somebody else puts a merge of the plan's own commits with theirs on the remote.
    pub(crate) fn others_merge(&self, plan: &str, ours: &str) {
        let root = self.world.repo.path().to_str().unwrap().to_owned();
        git(&self.other, &["fetch", "-q", &root, ours]);
        git(&self.other, &["merge", "-q", "-s", "ours", "-m", "others merge", ours]);
        git(&self.other, &["push", "-q", "origin", &format!("theirs:drydock/{plan}/work")]);
    }

    /// Returns where the remote's branch of a plan is.
    pub(crate) fn remote_tip(&self, plan: &str) -> Option<String> {
        let name = format!("refs/heads/drydock/{plan}/work");
        try_git(&self.world.path("remote.git"), &["rev-parse", "-q", "--verify", &name])
    }

    /// Returns where the plan's own branch is.
    pub(crate) fn local_tip(&self, plan: &str) -> String {
        self.world.repo.git(&["rev-parse", &format!("refs/heads/drydock/{plan}/work")])
    }

    /// Returns the open decisions of a plan.
    pub(crate) fn open(&self, plan: &str) -> Vec<Value> {
        list(&self.world.ok(&["decision", "list", "--open", "--plan", plan])["decisions"])
    }

    /// Returns the one open decision of a plan.
    #[track_caller]
    pub(crate) fn decision(&self, plan: &str) -> Value {
        let open = self.open(plan);
        assert_eq!(open.len(), 1, "{open:#?}");
        open[0].clone()
    }

    /// Returns the pins of a plan as git has them.
    pub(crate) fn pins(&self, plan: &str) -> Vec<String> {
        let below = format!("refs/drydock/pin/{plan}/");
        let refs = self.world.repo.git(&["for-each-ref", "--format=%(refname)", &below]);
        refs.lines().map(str::to_owned).collect()
    }
}

/// Commits in a directory as a person would.
pub(crate) fn commit_in(tree: &Path, path: &str, content: &str) -> String {
    fs::write(tree.join(path), content).unwrap();
    git(tree, &["add", "-A"]);
    git(tree, &["commit", "-q", "-m", &format!("by hand: {path}")]);
    git(tree, &["rev-parse", "HEAD"])
}

#[track_caller]
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    try_git(folder, args).unwrap_or_else(|| panic!("git {args:?} failed in {}", folder.display()))
}

pub(crate) fn try_git(folder: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "user.name=Other", "-c", "user.email=other@example.org"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}
