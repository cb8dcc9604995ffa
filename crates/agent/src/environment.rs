//! Builds the environment of the processes we start. It starts empty, so that no secret from drydock's own
//! environment leaks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::StartError;
use crate::mcp::{SECRET, SOCKET};
use crate::spec::AgentSpec;
use crate::task::{AgentTask, RunDirs};

/// A complete environment; nothing else is inherited.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// Maximum length of `NAME=value` with its terminating NUL that Linux passes to a program (`MAX_ARG_STRLEN`).
const STRING_MAX: usize = 128 * 1024;

/// Search path for programs if drydock itself has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Name of the file with a task that is too long for a variable.
const TASK_FILE: &str = "drydock-task.json";

/// Variable that identifies all processes below a keeper if the keeper itself was killed.
pub const KEEPER: &str = "DRYDOCK_KEEPER";

/// Variables set by drydock, which a configuration therefore cannot set.
const OURS: [&str; 10] = [
    "DRYDOCK_TASK",
    "DRYDOCK_TASK_FILE",
    "DRYDOCK_PLAN",
    "DRYDOCK_RUN",
    "DRYDOCK_PHASE",
    "DRYDOCK_WORKTREE",
    // The token of the run; a user's token must never be passed.
    "DRYDOCK_TOKEN",
    KEEPER,
    SOCKET,
    SECRET,
];

/// Returns the variables that every process gets.
///
/// `HOME` is the temporary directory, so git and other tools find neither the credentials nor the settings of
/// the user who runs drydock. The system's git settings may name a credential helper and are disabled for the
/// same reason. Git never prompts for a password. It also takes no optional locks, because a sandboxed run
/// may not create them.
pub(crate) fn base(temp: &Path) -> Environment {
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    let fixed: [(&str, OsString); 7] = [
        ("PATH", path),
        ("LANG", "C.UTF-8".into()),
        ("HOME", temp.into()),
        ("TMPDIR", temp.into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_OPTIONAL_LOCKS", "0".into()),
    ];
    fixed.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Returns the environment of an agent, and the file for a task that is too long for a variable.
///
/// Configured variables override the base, so an agent that needs the real `HOME` can be given it.
pub(crate) fn of_agent(
    spec: &AgentSpec,
    task: &AgentTask,
    task_json: &str,
    dirs: &RunDirs,
) -> (Environment, Option<PathBuf>) {
    let mut environment = base(&dirs.temp);
    for name in spec.pass_env() {
        // A variable that drydock does not have is left unset.
        if let Some(value) = std::env::var_os(name) {
            environment.insert(name.into(), value);
        }
    }
    environment.extend(spec.env().iter().map(|(name, value)| (name.into(), value.into())));
    let ours: [(&str, OsString); 4] = [
        ("DRYDOCK_PLAN", task.plan.as_str().into()),
        ("DRYDOCK_RUN", task.run.as_str().into()),
        ("DRYDOCK_PHASE", task.phase.as_str().into()),
        ("DRYDOCK_WORKTREE", dirs.worktree.as_os_str().into()),
    ];
    environment.extend(ours.into_iter().map(|(name, value)| (name.into(), value)));
    if "DRYDOCK_TASK=".len() + task_json.len() < STRING_MAX {
        environment.insert("DRYDOCK_TASK".into(), task_json.into());
        (environment, None)
    } else {
        let file = dirs.temp.join(TASK_FILE);
        environment.insert("DRYDOCK_TASK_FILE".into(), file.as_os_str().into());
        (environment, Some(file))
    }
}

/// Returns the file to which a program's name resolves.
pub(crate) fn program_file(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Returns the environment of a shell command.
pub(crate) fn of_shell(env: &BTreeMap<String, String>, temp: &Path) -> Result<Environment, StartError> {
    let mut environment = base(temp);
    for (name, value) in env {
        check_text(name, value).map_err(|reason| StartError::Environment { name: name.clone(), reason })?;
        environment.insert(name.into(), value.into());
    }
    Ok(environment)
}

/// Returns an error for a configured variable that cannot be set or is set by drydock.
pub(crate) fn check_variable(name: &str, value: &str) -> Result<(), &'static str> {
    check_text(name, value)?;
    if OURS.contains(&name) {
        return Err("it is set by drydock");
    }
    Ok(())
}

fn check_text(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name of a variable is empty");
    }
    if name.contains(['=', '\0']) {
        return Err("a name must not contain '=' or NUL");
    }
    if value.contains('\0') {
        return Err("a value must not contain NUL");
    }
    if name.len() + value.len() + 2 > STRING_MAX {
        return Err("Linux passes at most 128 KiB in one variable");
    }
    Ok(())
}
