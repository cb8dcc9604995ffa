//! The programs that the tests need in addition to Rust: git, ssh-keygen, PostgreSQL's programs, a browser and
//! Python. As root, missing ones are installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use drydock_testkit::postgres::Programs;
use drydock_worktree::Git;

use crate::say::{self, CommandError};

/// Debian's packages create and start a cluster unless this file forbids it beforehand.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Checks that git exists and is new enough.
pub(crate) fn check_git() -> Result<(), CommandError> {
    Git::find().map(drop).map_err(|error| CommandError::failed(error.to_string()))
}

/// Returns true if Debian packages can be installed here.
pub(crate) fn has_apt() -> bool {
    runs(Command::new("apt-get").arg("--version")) && runs(Command::new("dpkg-deb").arg("--version"))
}

/// Something that the tests use and that the machine may not have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requirement {
    shown: &'static str,
    /// How to do without it, if that is possible.
    instead: Option<&'static str>,
    /// Debian's packages of it.
    packages: &'static [&'static str],
    found: fn() -> bool,
}

/// Debian has the part that makes environments as a package of its own.
pub(crate) const PYTHON: Requirement = Requirement {
    shown: "Python 3 with venv",
    instead: None,
    packages: &["python3", "python3-venv"],
    found: || runs(Command::new("python3").args(["-c", "import ensurepip, venv"])),
};

/// The program has no option that only asks whether it is there.
pub(crate) const SSH_KEYGEN: Requirement = Requirement {
    shown: "ssh-keygen",
    instead: None,
    packages: &["openssh-client"],
    found: || Command::new("ssh-keygen").arg("-?").output().is_ok(),
};

pub(crate) const POSTGRES: Requirement = Requirement {
    shown: "the server programs of PostgreSQL 13 or newer",
    instead: Some("a server named in DRYDOCK_TEST_POSTGRES"),
    packages: &["postgresql"],
    found: || Programs::find().is_ok(),
};

pub(crate) const CHROMIUM: Requirement = Requirement {
    shown: "chromium and chromedriver",
    instead: Some("--no-browser"),
    packages: &["chromium", "chromium-driver"],
    found: || ["chromium", "chromedriver"].iter().all(|program| runs(Command::new(program).arg("--version"))),
};

pub(crate) const NPM: Requirement = Requirement {
    shown: "npm",
    instead: Some("--no-browser"),
    packages: &["npm"],
    found: || runs(Command::new("npm").arg("--version")),
};

/// Installs Debian's packages of everything that is missing, in one go. Where that is not possible, the error names all of it.
pub(crate) fn require(needs: &[Requirement]) -> Result<(), CommandError> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        return Err(CommandError::failed(advice(&missing)));
    }
    let packages = packages(&missing);
    say::note(&format!("xtask: installing {} with apt-get", packages.join(" ")));
    if packages.contains(&"postgresql") {
        forbid_cluster()
            .map_err(|error| CommandError::failed(format!("could not write {CLUSTER_SETTINGS}: {error}")))?;
    }
    apt_get(&["update"])?;
    // The settings file is ours by then, and the package must keep it rather than ask.
    let keep = ["-o", "Dpkg::Options::=--force-confold"];
    apt_get(&[&["install", "-y", "--no-install-recommends"], &keep[..], &packages].concat())?;
    match self::missing(&missing).first() {
        Some(need) => Err(CommandError::failed(format!("{}: not found after its installation", need.shown))),
        None => Ok(()),
    }
}

/// Finds PostgreSQL's programs, installing them first where that is possible.
pub(crate) fn postgres_programs() -> Result<Programs, CommandError> {
    require(&[POSTGRES])?;
    Programs::find().map_err(|missing| CommandError::failed(missing.to_string()))
}

fn missing(needs: &[Requirement]) -> Vec<Requirement> {
    needs.iter().filter(|need| !(need.found)()).copied().collect()
}

fn packages(missing: &[Requirement]) -> Vec<&'static str> {
    missing.iter().flat_map(|need| need.packages).copied().collect()
}

/// Returns what to do about missing programs where we cannot install them.
fn advice(missing: &[Requirement]) -> String {
    let shown = |need: &Requirement| match need.instead {
        Some(instead) => format!("{} (or {instead})", need.shown),
        None => need.shown.to_owned(),
    };
    format!(
        "not found: {}; install them (Debian, as root: `apt-get install {}`)",
        missing.iter().map(shown).collect::<Vec<_>>().join(", "),
        packages(missing).join(" ")
    )
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

fn apt_get(args: &[&str]) -> Result<(), CommandError> {
    let mut command = Command::new("apt-get");
    // The settings file was written first, so the package must keep it instead of asking or replacing it.
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").env("UCF_FORCE_CONFFOLD", "1");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::failed(format!("`apt-get {}` failed ({status})", args.join(" ")))),
        Err(error) => Err(CommandError::failed(format!("could not run apt-get: {error}"))),
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when the error names only the first missing program: a user who is not root would need a run for each.
    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let absent = |need: Requirement| Requirement { found: || false, ..need };
        let there = Requirement { found: || true, ..PYTHON };
        let missing = missing(&[there, absent(SSH_KEYGEN), absent(CHROMIUM), absent(NPM)]);
        assert_eq!(
            advice(&missing),
            "not found: ssh-keygen, chromium and chromedriver (or --no-browser), npm (or --no-browser); \
             install them \
             (Debian, as root: `apt-get install openssh-client chromium chromium-driver npm`)"
        );
    }
}
