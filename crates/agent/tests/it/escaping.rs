//! Ways out of the sandbox, each tried by a real process: none may change anything outside, and everything a
//! run needs inside still works.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use drydock_agent::{
    AgentSpec, Ending, Landlock, OutputStream, Reads, Resource, RunDirs, Sandbox, SandboxMode, Signal,
    StartError, landlock,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::world::{World, alive, lines, sh};

/// A real repository with a linked worktree, as a run has it, and a directory of another owner.
struct Ship {
    world: World,
    dock: TempDir,
}

impl Ship {
    fn new() -> Self {
        assert!(matches!(landlock(), Landlock::Full { .. }), "these tests need a kernel with Landlock 3");
        let (world, dock) = (World::new(), TempDir::new().unwrap());
        fs::remove_dir(world.worktree()).unwrap();
        let repository = dock.path().join("repository");
        fs::create_dir(&repository).unwrap();
        fs::write(dock.path().join("precious"), "mine").unwrap();
        let tree = world.worktree().display().to_string();
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["commit", "-q", "--allow-empty", "-m", "first"],
            &["worktree", "add", "-q", "-b", "work", &tree],
        ] {
            git(&repository, words);
        }
        Self { world, dock }
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.dock.path().join(path)
    }

    fn dirs(&self) -> RunDirs {
        RunDirs { reads: vec![self.outside("repository/.git")], ..self.world.dirs() }
    }

    /// Runs a script with the outside directory in `$OUT` and the repository's `.git` in `$GIT`.
    async fn try_out(&self, script: &str) -> (Ending, Vec<Signal>) {
        self.world.sh(&self.told(script)).await
    }

    fn told(&self, script: &str) -> String {
        let (out, git) = (self.dock.path().display(), self.outside("repository/.git"));
        format!("OUT={out}; GIT={}\n{script}", git.display())
    }

    /// Returns all outside files with their content.
    fn seen_outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut seen = BTreeMap::new();
        let mut directories = vec![self.dock.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_symlink() {
                    seen.insert(
                        path.clone(),
                        fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                    );
                } else if path.is_dir() {
                    seen.insert(path.clone(), Vec::new());
                    directories.push(path);
                } else {
                    seen.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        seen
    }
}

fn git(at: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(at)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Breaks when a run can change anything outside its two directories. Every line is one attempt; `out` counts
/// those that the system allowed. None would harm the machine if this is run against a version that allows
/// it.
#[tokio::test]
async fn no_way_out_changes_anything_outside() {
    let ship = Ship::new();
    fs::create_dir(ship.outside("folder")).unwrap();
    let before = ship.seen_outside();
    let script = r#"
        out() { if eval "$1" 2>/dev/null; then echo "OUT: $1"; fi; }
        # Plain and relative paths.
        out 'echo x > $OUT/new'
        out 'echo x >> $OUT/precious'
        out 'echo x > ../beside'
        out 'echo x > ../../beside'
        out 'mkdir $OUT/made'
        out 'rm $OUT/precious'
        out 'rmdir $OUT/folder'
        out 'mv $OUT/precious $OUT/moved'
        out 'mv $OUT/precious stolen'
        out 'truncate -s 0 $OUT/precious'
        out 'cp /etc/hostname $OUT/folder/copy'
        # Links of both kinds, made inside and leading out.
        ln -s $OUT/precious link
        out 'echo x > link'
        ln -s $OUT/folder door
        out 'echo x > door/new'
        out 'echo x > door/../new'
        out 'ln $OUT/precious hard'
        out 'ln -L link hard'
        out 'ln inside $OUT/hard'
        out 'mv link $OUT/link'
        # Another name of the same place.
        out 'echo x > /proc/self/root$OUT/new'
        out 'echo x > /proc/self/cwd/../beside'
        out 'echo x > /proc/$$/root$OUT/precious'
        # A file that is only read, opened again through /proc to be written.
        exec 5< $OUT/precious
        out 'echo x > /proc/self/fd/5'
        # Another process, with more rights than ours.
        out 'cat /proc/$PPID/environ > stolen'
        out 'cat /proc/$PPID/maps > stolen'
        out 'kill -0 $PPID'
        out 'kill -0 1'
        # What root could do.
        out 'mount -t tmpfs none $OUT/folder && umount $OUT/folder'
        out 'mknod device b 1 0'
        out 'mknod device c 1 3'
        out 'unshare -r -m true'
        out 'unshare -m true'
        out 'chroot /proc/1/root true'
        # Shared directories.
        out 'f=$(mktemp -p /tmp) && rm $f'
        out 'f=$(mktemp -p /dev/shm) && rm $f'
        echo done
    "#;
    let (ending, signals) = ship.try_out(script).await;
    let said = lines(&signals, OutputStream::Stdout);
    assert_eq!((ending, said), (Ending::Finished, vec!["done"]));
    assert_eq!(ship.seen_outside(), before);
    assert!(!ship.world.worktree().parent().unwrap().join("beside").exists());
    assert_eq!(ship.world.file("stolen"), "");
}

/// Breaks when a run can set the limits of its keeper, and therefore of drydock: the kernel kills a process
/// that exceeded its CPU limit. The limits tried here would end no process.
#[tokio::test]
async fn no_limit_of_another_process_can_be_set() {
    let world = World::new();
    let script = r#"
        out() { if eval "$1" 2>/dev/null; then echo "OUT: $1"; fi; }
        out 'prlimit --pid $PPID --cpu=900000:900000'
        out 'prlimit --pid $DRYDOCK_KEEPER --core=0:0'
        out 'prlimit --pid 1 --core=0:0'
        prlimit --pid $PPID --cpu --noheadings --output SOFT
        ulimit -n 100 && sh -c 'ulimit -n'
        prlimit --nofile=90:90 sh -c 'ulimit -n'
    "#;
    let (ending, signals) = world.sh(script).await;
    let said = lines(&signals, OutputStream::Stdout);
    assert_eq!((ending, said), (Ending::Finished, vec!["unlimited", "100", "90"]));
}

/// Breaks when the repository of the worktree is writable: its settings, hooks, refs or objects.
#[tokio::test]
async fn the_repository_of_the_worktree_cannot_be_written() {
    let ship = Ship::new();
    let before = ship.seen_outside();
    let script = r#"
        out() { if eval "$1" 2>/dev/null; then echo "OUT: $1"; fi; }
        out 'echo x >> $GIT/config'
        out 'git config core.hooksPath /tmp'
        out 'echo x > $GIT/hooks/post-checkout'
        out 'echo x > $GIT/refs/heads/mine'
        out 'git update-ref refs/heads/mine HEAD'
        out 'git branch mine'
        out 'git tag mine'
        out 'echo x > $GIT/objects/info/alternates'
        out 'echo x | git hash-object -w --stdin'
        out 'rm -rf $GIT/objects'
        out 'git gc --prune=now'
        out 'echo x > $GIT/worktrees/worktree/HEAD'
        out 'git checkout -b other'
        out 'git -c user.name=a -c user.email=b commit --allow-empty -m mine'
        out 'git stash'
        # The file that names the repository is in the worktree and may be replaced; it opens nothing.
        echo "gitdir: $GIT" > .git
        out 'git config a.b c'
        out 'git -c user.name=a -c user.email=b commit --allow-empty -m mine'
        echo done
    "#;
    let (ending, signals) = ship.try_out(script).await;
    assert_eq!((ending, lines(&signals, OutputStream::Stdout)), (Ending::Finished, vec!["done"]));
    assert_eq!(ship.seen_outside(), before);
}

/// Breaks when the sandbox prevents normal work: files, reading with git, devices, own processes.
#[tokio::test]
async fn inside_everything_works() {
    let ship = Ship::new();
    let script = r#"
        set -e
        mkdir -p a/b; echo one > a/b/c; mv a/b/c a/c; ln a/c hard; ln -s a/c soft; mkfifo pipe; rm -r a/b
        echo two > "$TMPDIR/x"; mv "$TMPDIR/x" moved; cat moved > /dev/null
        head -c 4 /dev/urandom > random; echo err > /dev/stderr; echo out > /dev/stdout
        git status --short > status; git log --oneline | grep -q first; git diff > /dev/null
        sleep 1000 & kill $!; wait || true
        cat soft moved
    "#;
    let (ending, signals) = ship.try_out(script).await;
    assert_eq!(ending, Ending::Finished, "{signals:?}");
    assert_eq!(lines(&signals, OutputStream::Stdout), ["out", "one", "two"]);
    assert!(ship.world.file("status").contains("?? moved"), "{}", ship.world.file("status"));
}

/// Breaks when a validation is confined less strictly than an agent.
#[tokio::test]
async fn a_shell_command_is_confined_as_well() {
    let ship = Ship::new();
    let command = ship.told("echo in > inside && echo x > $OUT/new");
    let stop = CancellationToken::new();
    let run =
        ship.world.runner.shell(&command, &ship.dirs(), &BTreeMap::new(), Duration::from_secs(60), stop);
    let seen = run.await.unwrap();
    assert!(matches!(seen.ending, Ending::Failed { .. }), "{seen:?}");
    assert!(seen.output.contains("Permission denied"), "{seen:?}");
    assert_eq!((ship.world.file("inside").as_str(), ship.outside("new").exists()), ("in\n", false));
}

/// Breaks when the kernel's rules differ from the configured reads and writes.
#[tokio::test]
async fn reads_and_writes_are_as_configured() {
    let mut ship = Ship::new();
    fs::create_dir(ship.outside("folder")).unwrap();
    fs::create_dir(ship.outside("shelf")).unwrap();
    fs::write(ship.outside("shelf/book"), "text").unwrap();
    let sandbox = Sandbox::default()
        .with_read(Reads::Only(vec![ship.outside("shelf")]))
        .with_write(ship.outside("folder"));
    ship.world.runner = ship.world.runner.with_sandbox(sandbox);
    let script = ship.told(
        r#"
        cat $OUT/shelf/book; echo; echo x > $OUT/folder/new; git log --format=%s
        cat $OUT/precious; ls $OUT; echo x > $OUT/shelf/new
        "#,
    );
    let (sender, mut heard) = tokio::sync::mpsc::channel(1000);
    let run = ship.world.runner.agent(
        &sh(&script),
        &ship.world.task,
        &ship.dirs(),
        sender,
        CancellationToken::new(),
    );
    assert!(matches!(run.await.unwrap(), Ending::Failed { .. }));
    let mut signals = Vec::new();
    while let Some(signal) = heard.recv().await {
        signals.push(signal);
    }
    assert_eq!(lines(&signals, OutputStream::Stdout), ["text", "first"], "{signals:?}");
    assert!(ship.outside("folder/new").exists() && !ship.outside("shelf/new").exists());
}

/// Breaks when `off` has no effect, or when a configured path that does not exist is silently left out.
#[tokio::test]
async fn off_is_off_and_a_missing_place_is_named() {
    let mut ship = Ship::new();
    let free = sh(&ship.told("echo x > $OUT/new")).with_sandbox(SandboxMode::Off);
    assert_eq!(ship.world.run(&free).await.0.unwrap(), Ending::Finished);
    assert!(ship.outside("new").exists());
    assert!(ship.world.runner.confinement(&free).starts_with("none: "));
    let held = sh("true");
    assert!(ship.world.runner.confinement(&held).starts_with("landlock "));

    let sandbox = Sandbox::default().with_write(ship.outside("nowhere"));
    ship.world.runner = ship.world.runner.with_sandbox(sandbox);
    let error = ship.world.run(&held).await.0.expect_err("the place is missing");
    assert!(matches!(&error, StartError::Sandbox { reason } if reason.contains("nowhere")), "{error}");
}

/// Breaks when a run starts without a sandbox that the kernel rejected: it allows sixteen nested ones, so the
/// last one fails.
#[tokio::test]
async fn a_sandbox_that_fails_starts_nothing() {
    let world = World::new();
    let keeper = env!("CARGO_BIN_EXE_drydock-agent-tests");
    // Each level runs the next one inside its own sandbox.
    let script = format!(
        "n=${{N-0}}; echo $n > level; [ $n = 20 ] || N=$((n+1)) {keeper} run \"$(cat nest)\" . || echo stopped > stopped"
    );
    world.put("nest", &format!("N=$(($(cat level)+1)); {}", script.replacen("n=${N-0}; ", "n=$N; ", 1)));
    let (ending, _) = world.sh(&script).await;
    assert_eq!(ending, Ending::Finished);
    let level: u32 = world.file("level").trim().parse().unwrap();
    assert!(level < 20 && !world.file("stopped").is_empty(), "{level}");
}

/// Breaks when the whole run is not counted: each single process is within the limit. The bomb has 8191
/// processes, so that a machine survives a version without the limit.
#[tokio::test]
async fn a_fork_bomb_is_over_in_a_moment() {
    let world = World::new();
    let spec: AgentSpec = toml::from_str(
        r#"
        protocol = "command"
        command = ["sh", "-c", '''
            bomb() { if [ $1 = 0 ]; then sleep 1000; else bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; }
            bomb 12
        ''']
        processes_max = 50
        "#,
    )
    .unwrap();
    let (ending, _) = world.run(&spec).await;
    let ending = ending.unwrap();
    assert!(matches!(ending, Ending::LimitExceeded { what: Resource::Processes, max: 50, .. }), "{ending:?}");
    assert_eq!(crate::world::processes_mentioning(Path::new("bomb 12")), 0);
}

/// Breaks when memory is limited per process only, or not at all.
#[tokio::test]
async fn a_run_that_takes_too_much_memory_is_ended() {
    let world = World::new();
    // Ten processes of about 20 MB each, which `tail` buffers because the line does not end.
    let script =
        "for n in 0 1 2 3 4 5 6 7 8 9; do (head -c 20000000 /dev/zero; sleep 1000) | tail -n 1 & done; wait";
    let spec: AgentSpec = toml::from_str(&format!(
        "protocol = 'command'\ncommand = ['sh', '-c', '{script}']\nmemory_max = '100MiB'\n"
    ))
    .unwrap();
    let (ending, _) = world.run(&spec).await;
    let ending = ending.unwrap();
    assert!(
        matches!(ending, Ending::LimitExceeded { what: Resource::Memory, max: 104_857_600, .. }),
        "{ending:?}"
    );
}

/// Breaks when shared memory is not counted, or is counted once per process.
#[tokio::test]
async fn shared_memory_counts_and_counts_once() {
    let world = World::new();
    // Memory that is shared with children and has no file; each of two processes touches all of it.
    world.put(
        "share.py",
        "import mmap, os, sys, time\nsize = int(sys.argv[1]) << 20\nshared = mmap.mmap(-1, size)\nos.fork()\n\
         for page in range(0, size, 4096): shared[page] = 1\ntime.sleep(float(sys.argv[2]))\n",
    );
    let limited = |words: &str| -> AgentSpec {
        let command = format!("['python3', 'share.py', {words}]");
        toml::from_str(&format!("protocol = 'command'\ncommand = {command}\nmemory_max = '100MiB'\n"))
            .unwrap()
    };
    let ending = world.run(&limited("'150', '1000'")).await.0.unwrap();
    assert!(matches!(ending, Ending::LimitExceeded { what: Resource::Memory, .. }), "{ending:?}");
    // Long enough for the keeper to check many times; a slower one could only miss an excess.
    assert_eq!(world.run(&limited("'60', '1'")).await.0.unwrap(), Ending::Finished);
}

/// Breaks when one process can exceed the run's limit between two checks.
#[tokio::test]
async fn limits_of_each_process_are_set() {
    let world = World::new();
    let spec: AgentSpec = toml::from_str(
        "protocol = 'command'\ncommand = ['sh', '-c', 'ulimit -n; ulimit -d']\nfiles_max = 100\nmemory_max = '1GiB'\n",
    )
    .unwrap();
    let (_, signals) = world.run(&spec).await;
    assert_eq!(lines(&signals, OutputStream::Stdout), ["100", "1048576"]);
}

/// Breaks when a gigabyte of output is kept, or stops a validation that is only verbose.
#[tokio::test]
async fn a_gigabyte_of_output_ends_an_agent_and_not_a_validation() {
    let world = World::new();
    let script = "echo $$ > pid; head -c 1000000000 /dev/zero; sleep 1000";
    let (ending, signals) = world.run(&sh(script).with_output_max(1 << 20)).await;
    assert!(matches!(ending, Ok(Ending::OutputExceeded { .. })), "{ending:?}");
    let kept: usize = lines(&signals, OutputStream::Stdout).iter().map(|line| line.len()).sum();
    assert!(kept < 70_000 && !alive(&world.file("pid")), "{kept}");
    let stop = CancellationToken::new();
    let command = "yes | head -c 1000000000";
    let run = world.runner.shell(command, &world.dirs(), &BTreeMap::new(), Duration::from_secs(120), stop);
    let seen = run.await.unwrap();
    assert!(seen.ending == Ending::Finished && seen.output.len() < 70_000, "{:?}", seen.ending);
}

/// Breaks when a sandboxed daemon can persist: it must end with the run and must not write anywhere outside.
#[tokio::test]
async fn a_daemon_neither_escapes_nor_outlives_the_run() {
    let ship = Ship::new();
    let script = r#"
        (setsid sh -c 'echo $$ > pid; while :; do echo x > '$OUT'/new; sleep 0.01; done' > /dev/null 2>&1 &)
        while [ ! -s pid ]; do sleep 0.01; done
    "#;
    let (ending, _) = ship.try_out(script).await;
    assert_eq!(ending, Ending::Finished);
    assert!(!alive(&ship.world.file("pid")) && !ship.outside("new").exists());
}
