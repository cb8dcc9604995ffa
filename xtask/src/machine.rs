//! The programs that the tests need in addition to Rust: git, ssh-keygen, PostgreSQL's programs, a browser and
//! Python. As root, missing ones are installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use drydock_testkit::postgres::Programs;
use drydock_worktree::Git;

use crate::say::{self, Failure};

/// Debian's packages create and start a cluster unless this file forbids it beforehand.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Checks that git exists and is new enough.
pub(crate) fn check_git() -> Result<(), Failure> {
    Git::find().map(drop).map_err(|error| Failure::failed(error.to_string()))
}

/// Returns true if Debian packages can be installed here.
pub(crate) fn has_apt() -> bool {
    runs(Command::new("apt-get").arg("--version")) && runs(Command::new("dpkg-deb").arg("--version"))
}

/// Finds PostgreSQL's programs, and installs them first if possible.
pub(crate) fn postgres_programs() -> Result<Programs, Failure> {
    if let Ok(programs) = Programs::find() {
        return Ok(programs);
    }
    install()?;
    Programs::find()
        .map_err(|missing| Failure::failed(format!("{missing}, although they were just installed")))
}

/// Checks that programs exist, and installs their Debian packages if possible.
pub(crate) fn programs(names: &[&str], packages: &[&str]) -> Result<(), Failure> {
    if names.iter().all(|name| runs(Command::new(name).arg("--version"))) {
        return Ok(());
    }
    debian(&names.join(" and "), packages)
}

/// Checks that Python can create virtual environments, which is a separate package on Debian.
pub(crate) fn python() -> Result<(), Failure> {
    if runs(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        return Ok(());
    }
    debian("python3 with venv", &["python3", "python3-venv"])
}

/// Checks that keys can be created. The program has no option that only prints its version.
pub(crate) fn ssh_keygen() -> Result<(), Failure> {
    if Command::new("ssh-keygen").arg("-?").output().is_ok() {
        return Ok(());
    }
    debian("ssh-keygen", &["openssh-client"])
}

/// Installs Debian packages, if possible.
fn debian(names: &str, packages: &[&str]) -> Result<(), Failure> {
    let shown = packages.join(" ");
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        return Err(Failure::failed(format!(
            "{names} did not run; install them (Debian: `apt-get install {shown}`)"
        )));
    }
    say::note(&format!("xtask: {names} did not run; installing {shown} with apt-get"));
    apt_get(&["update"])?;
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

fn install() -> Result<(), Failure> {
    let advice = "PostgreSQL's server programs were not found; install PostgreSQL 13 or newer (Debian: \
                  `apt-get install postgresql`), or name a server in DRYDOCK_TEST_POSTGRES";
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        return Err(Failure::failed(advice));
    }
    say::note("xtask: PostgreSQL's server programs were not found; installing them with apt-get");
    forbid_cluster()
        .map_err(|error| Failure::failed(format!("could not write {CLUSTER_SETTINGS}: {error}")))?;
    apt_get(&["update"])?;
    // The settings file exists by then, and the package must keep it instead of asking.
    apt_get(&[
        "install",
        "-y",
        "--no-install-recommends",
        "-o",
        "Dpkg::Options::=--force-confold",
        "postgresql",
    ])
}

/// Keeps the package from creating a cluster. An existing file belongs to the administrator and is not changed.
fn forbid_cluster() -> std::io::Result<()> {
    let path = Path::new(CLUSTER_SETTINGS);
    if path.exists() {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("the constant names a file in a directory"))?;
    fs::write(path, "create_main_cluster = false\n")
}

fn apt_get(args: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    // The settings file was written first, so the package must keep it instead of asking or replacing it.
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").env("UCF_FORCE_CONFFOLD", "1");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::failed(format!("`apt-get {}` failed ({status})", args.join(" ")))),
        Err(error) => Err(Failure::failed(format!("could not run apt-get: {error}"))),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
