//! The cache of git data is never wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use drydock_testkit::wait;
use drydock_worktree::{Git, Repository};

use crate::fixture::{Fixture, read, write};

const LIMIT: Duration = Duration::from_secs(60);

struct Scene {
    fixture: Fixture,
    repository: Repository,
}

impl Scene {
    /// Creates a repository whose git logs its calls.
    fn new() -> Scene {
        let fixture = Fixture::new();
        let (program, log) = (fixture.path("git"), fixture.path("log"));
        let real = fixture.git.program().display().to_string();
        write(&program, &format!("#!/bin/sh\necho \"$1\" >> {}\nexec {real} \"$@\"\n", log.display()));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let git = Git::at(program).unwrap().with_home(&fixture.path("home"));
        let repository = Repository::open(&git, &fixture.repo()).unwrap();
        Scene { fixture, repository }
    }

    /// Returns the user's name, and whether git was called for it.
    fn name(&self) -> (String, bool) {
        let log = self.fixture.path("log");
        write(&log, "");
        let name = self.repository.signature(1).name;
        (name, read(&log).contains("config"))
    }

    fn wait_until_kept(&self) {
        wait::until("the configuration to be remembered", LIMIT, || (!self.name().1).then_some(()));
    }
}

/// Breaks when a cached configuration is not compared with all of its files, or not by their full content.
#[test]
fn a_configuration_that_changes_is_read_anew() {
    let scene = Scene::new();
    let (home, own) = (scene.fixture.path("home/.gitconfig"), scene.fixture.repo().join(".git/config"));
    scene.wait_until_kept();
    assert_eq!(scene.name(), ("Ada".to_owned(), false));
    // Same size as before, and written in place.
    let text = read(&home).replace("Ada", "Bob");
    fs::write(&home, text).unwrap();
    assert_eq!(scene.name(), ("Bob".to_owned(), true));
    scene.wait_until_kept();
    scene.fixture.user(&["config", "user.name", "Cyd"], &scene.fixture.repo());
    assert_eq!(scene.name(), ("Cyd".to_owned(), true));
    scene.wait_until_kept();
    let (meta, text) = (fs::metadata(&own).unwrap(), read(&own).replace("Cyd", "Dan"));
    fs::write(&own, text).unwrap();
    fs::File::options().write(true).open(&own).unwrap().set_modified(meta.modified().unwrap()).unwrap();
    assert_eq!(scene.name(), ("Dan".to_owned(), true));
    scene.fixture.user(&["config", "--unset", "user.name"], &scene.fixture.repo());
    scene.wait_until_kept();
    // The creation of a missing file is a change too.
    write(&scene.fixture.path("home/.config/git/config"), "[user]\n\tname = Eve\n");
    fs::remove_file(&home).unwrap();
    write(&home, "[user]\n\temail = eve@example.org\n");
    assert_eq!(scene.name(), ("Eve".to_owned(), true));
}

/// Breaks when a configuration is cached that depends on files other than its own.
#[test]
fn a_configuration_that_includes_others_is_read_each_time() {
    let scene = Scene::new();
    let included = scene.fixture.path("included");
    write(&included, "[user]\n\tname = Ada\n");
    scene.wait_until_kept();
    scene.fixture.user(&["config", "include.path", included.to_str().unwrap()], &scene.fixture.repo());
    for name in ["Bob", "Cyd", "Dan"] {
        // Long enough for a cached value to be used.
        let kept = wait::poll(Duration::from_millis(500), || (!scene.name().1).then_some(()));
        assert_eq!(kept, None);
        write(&included, &format!("[user]\n\tname = {name}\n"));
        assert_eq!(scene.name(), (name.to_owned(), true));
    }
}
