//! The sandbox as configured in `[sandbox]` and per agent, and the result for one run on this kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::kernel::{Landlock, SandboxPaths};
use super::resources::{RawResources, Resources};
use super::size::Size;
use crate::error::StartError;
use crate::task::RunDirs;

/// Paths that programs need to read, in addition to configured ones; missing paths are left out.
const SYSTEM: [&str; 14] = [
    "/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var/lib",
];

/// How strictly a run is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// As far as the kernel supports it; without Landlock not at all.
    #[default]
    BestEffort,
    /// Fully, or the run does not start.
    Required,
    /// Not at all.
    Off,
}

/// The paths that a run may read besides its own directories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reads {
    /// Everything that its user may read.
    #[default]
    All,
    /// The system's programs and settings, the repository, and these paths.
    Only(Vec<PathBuf>),
}

/// The sandbox of all runs, configured as `[sandbox]` with `mode`, `read` (`"all"` or paths), `write`
/// (further paths), `memory_max`, `processes_max` and `files_max`. Unknown keys are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "RawSandbox")]
pub struct Sandbox {
    mode: SandboxMode,
    read: Reads,
    write: Vec<PathBuf>,
    resources: RawResources,
}

/// A minimum for a run's sandbox beyond the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Floor {
    #[default]
    AsConfigured,
    Required,
}

impl Sandbox {
    /// Returns the mode for runs without a mode of their own.
    pub fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// Returns this sandbox in another mode.
    #[must_use]
    pub fn with_mode(self, mode: SandboxMode) -> Self {
        Self { mode, ..self }
    }

    /// Returns this sandbox with one more writable path.
    #[must_use]
    pub fn with_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Returns this sandbox with these reads.
    #[must_use]
    pub fn with_read(self, read: Reads) -> Self {
        Self { read, ..self }
    }

    pub(crate) fn resources(&self) -> Resources {
        self.resources.over(Resources::default())
    }

    /// Returns the effective mode for a run with an optional mode of its own; `required` in any place wins.
    pub(crate) fn mode_for(&self, own: Option<SandboxMode>, floor: Floor) -> SandboxMode {
        let required = floor == Floor::Required
            || self.mode == SandboxMode::Required
            || own == Some(SandboxMode::Required);
        if required { SandboxMode::Required } else { own.unwrap_or(self.mode) }
    }

    /// Returns the sandbox paths of a run, `None` if it is not confined, or an error if it must not start.
    pub(crate) fn cage(
        &self,
        mode: SandboxMode,
        kernel: &Landlock,
        dirs: &RunDirs,
    ) -> Result<Option<SandboxPaths>, StartError> {
        match (mode, kernel) {
            (SandboxMode::Off, _) => return Ok(None),
            (SandboxMode::BestEffort, Landlock::Absent { .. }) => return Ok(None),
            (SandboxMode::Required, Landlock::Absent { reason }) => {
                return Err(StartError::Sandbox { reason: format!("it is required, and {reason}") });
            }
            (_, Landlock::Broken { reason }) => return Err(StartError::Sandbox { reason: reason.clone() }),
            (SandboxMode::Required, Landlock::Partial { abi, lacks }) => {
                let reason = format!("it is required in full, and Landlock {abi} of this kernel {lacks}");
                return Err(StartError::Sandbox { reason });
            }
            (SandboxMode::BestEffort, Landlock::Partial { .. }) | (_, Landlock::Full { .. }) => {}
        }
        let named = |path: &PathBuf| match path.exists() {
            true => Ok(path.clone().into_os_string()),
            false => Err(StartError::Sandbox {
                reason: format!("{}, named in the configuration, does not exist", path.display()),
            }),
        };
        let mut writes = self.write.iter().map(named).collect::<Result<Vec<OsString>, _>>()?;
        writes.extend([dirs.worktree.clone().into(), dirs.temp.clone().into()]);
        let reads = match &self.read {
            Reads::All => None,
            Reads::Only(paths) => {
                let mut reads = paths.iter().map(named).collect::<Result<Vec<OsString>, _>>()?;
                reads.extend(SYSTEM.iter().filter(|path| Path::new(path).exists()).map(Into::into));
                reads.extend(dirs.reads.iter().map(Into::into));
                Some(reads)
            }
        };
        Ok(Some(SandboxPaths { writes, reads }))
    }
}

/// Describes how a run in this mode is confined, for the record.
pub(crate) fn describe(mode: SandboxMode, kernel: &Landlock) -> String {
    match (mode, kernel) {
        (SandboxMode::Off, _) => "none: it is off in the configuration".to_owned(),
        (_, Landlock::Absent { reason } | Landlock::Broken { reason }) => format!("none: {reason}"),
        (_, Landlock::Partial { abi, lacks }) => format!("landlock {abi}, which {lacks}"),
        (_, Landlock::Full { abi }) => format!("landlock {abi}"),
    }
}

/// The table as parsed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSandbox {
    #[serde(default)]
    mode: SandboxMode,
    #[serde(default, deserialize_with = "read")]
    read: Reads,
    #[serde(default)]
    write: Vec<PathBuf>,
    memory_max: Option<Size>,
    processes_max: Option<u64>,
    files_max: Option<u64>,
}

impl TryFrom<RawSandbox> for Sandbox {
    type Error = String;

    fn try_from(written: RawSandbox) -> Result<Self, String> {
        let resources = RawResources::checked(written.memory_max, written.processes_max, written.files_max)?;
        let read = match written.read {
            Reads::All => Reads::All,
            Reads::Only(paths) => Reads::Only(absolute(paths)?),
        };
        Ok(Self { mode: written.mode, read, write: absolute(written.write)?, resources })
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reads, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Word(String),
        Paths(Vec<PathBuf>),
    }
    match Either::deserialize(deserializer) {
        Ok(Either::Word(word)) if word == "all" => Ok(Reads::All),
        Ok(Either::Paths(paths)) => Ok(Reads::Only(paths)),
        Ok(Either::Word(_)) | Err(_) => {
            Err(serde::de::Error::custom("read must be \"all\" or a list of paths"))
        }
    }
}

/// Expands `~`. Returns an error for other relative paths, which would differ between worktrees.
fn absolute(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let one = |path: PathBuf| match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => Ok(home.join(below)),
        _ if path.is_absolute() => Ok(path),
        _ => Err(format!("{path:?} is neither absolute nor below ~/")),
    };
    paths.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Landlock;
    use super::{Floor, Reads, Sandbox, SandboxMode, describe};
    use crate::task::RunDirs;

    fn sandbox(text: &str) -> Result<Sandbox, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    fn absent() -> Landlock {
        Landlock::Absent { reason: "this kernel has no Landlock".into() }
    }

    fn dirs() -> RunDirs {
        RunDirs { worktree: "/w".into(), temp: "/t".into(), reads: vec!["/r".into()] }
    }

    #[test]
    fn what_is_required_anywhere_is_required() {
        let (off, required) = (Some(SandboxMode::Off), Some(SandboxMode::Required));
        let plain = Sandbox::default();
        assert_eq!(plain.mode_for(None, Floor::AsConfigured), SandboxMode::BestEffort);
        assert_eq!(plain.mode_for(off, Floor::AsConfigured), SandboxMode::Off);
        assert_eq!(plain.mode_for(off, Floor::Required), SandboxMode::Required);
        assert_eq!(plain.mode_for(required, Floor::AsConfigured), SandboxMode::Required);
        let strict = Sandbox::default().with_mode(SandboxMode::Required);
        assert_eq!(strict.mode_for(off, Floor::AsConfigured), SandboxMode::Required);
    }

    #[test]
    fn a_required_sandbox_that_cannot_be_had_in_full_starts_nothing() {
        let partial = Landlock::Partial { abi: 2, lacks: "cannot prevent files from being truncated" };
        for kernel in [absent(), partial] {
            let refused = Sandbox::default().cage(SandboxMode::Required, &kernel, &dirs());
            let error = refused.expect_err("a kernel that cannot");
            assert!(error.to_string().contains("required") && error.hint().contains("sandbox"), "{error}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_and_does_without() {
        let free = Sandbox::default().cage(SandboxMode::BestEffort, &absent(), &dirs()).unwrap();
        assert!(free.is_none());
        assert_eq!(describe(SandboxMode::BestEffort, &absent()), "none: this kernel has no Landlock");
        assert_eq!(describe(SandboxMode::Required, &Landlock::Full { abi: 7 }), "landlock 7");
        let partial = Landlock::Partial { abi: 7, lacks: "has no seccomp" };
        assert_eq!(describe(SandboxMode::BestEffort, &partial), "landlock 7, which has no seccomp");
        assert!(describe(SandboxMode::Off, &Landlock::Full { abi: 7 }).starts_with("none: "));
    }

    #[test]
    fn the_table_is_read_and_nonsense_refused() {
        let read =
            sandbox("mode = 'required'\nread = ['/srv']\nwrite = ['/tmp']\nmemory_max = '1GiB'").unwrap();
        assert_eq!((read.mode, &read.read), (SandboxMode::Required, &Reads::Only(vec!["/srv".into()])));
        assert_eq!(read.resources().memory_max, Some(1 << 30));
        assert_eq!(sandbox("read = 'all'").unwrap(), Sandbox::default());
        for (text, reason) in [
            ("mode = 'strong'", "strong"),
            ("read = 'some'", "\"all\" or a list"),
            ("read = ['here']", "neither absolute"),
            ("write = ['../x']", "neither absolute"),
            ("memory_max = '1MiB'", "at least 64MiB"),
            ("memory_max = 'much'", "not an amount"),
            ("processes_max = 0", "at least 1"),
            ("files_max = 1", "at least 64"),
            ("walls = 4", "walls"),
        ] {
            let refusal = sandbox(text).expect_err(text);
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
