//! The environment of everything we start: built from nothing, so that no secret of drydock's own leaks into it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::StartError;
use crate::mcp::{SECRET, SOCKET};
use crate::spec::AgentSpec;
use crate::task::{RunDirs, Task};

/// A complete environment; nothing is inherited beside it.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The longest `NAME=value` with its closing NUL that Linux passes to a program (`MAX_ARG_STRLEN`).
const STRING_MAX: usize = 128 * 1024;

/// Where programs are looked up when drydock itself has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// The name of the file that carries a task too long for a variable.
const TASK_FILE: &str = "drydock-task.json";

/// The variable by which everything below a keeper can be recognised when the keeper itself was killed.
pub const KEEPER: &str = "DRYDOCK_KEEPER";

/// Variables with a meaning of ours, which a configuration therefore cannot set.
const OURS: [&str; 10] = [
    "DRYDOCK_TASK",
    "DRYDOCK_TASK_FILE",
    "DRYDOCK_PLAN",
    "DRYDOCK_RUN",
    "DRYDOCK_PHASE",
    "DRYDOCK_WORKTREE",
    // That of its run, and never a person's word.
    "DRYDOCK_TOKEN",
    KEEPER,
    SOCKET,
    SECRET,
];

/// Returns what every process of ours gets.
///
/// `HOME` is the temporary directory, so git and other tools find neither the credentials nor the settings of the
/// person who runs drydock; the system's git settings, which may name a credential helper, are left out for the same
/// reason, and git never waits for a password. It also takes no lock just to look, because a confined run may not.
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

/// Returns the environment of an agent, and the file that must hold the task when it is too long for a variable.
///
/// What the configuration sets wins over the base, so an agent that needs the real `HOME` can be given it.
pub(crate) fn of_agent(
    spec: &AgentSpec,
    task: &Task,
    task_json: &str,
    dirs: &RunDirs,
) -> (Environment, Option<PathBuf>) {
    let mut environment = base(&dirs.temp);
    for name in spec.pass_env() {
        // A variable that drydock does not have is left out, as a shell would leave it.
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

/// Returns the file that a program's name leads to.
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

/// Refuses a configured variable that cannot be set or is set by us.
pub(crate) fn check_variable(name: &str, value: &str) -> Result<(), &'static str> {
    check_text(name, value)?;
    if OURS.contains(&name) {
        return Err("it is set by drydock");
    }
    Ok(())
}

fn check_text(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("a variable needs a name");
    }
    if name.contains(['=', '\0']) {
        return Err("a name contains neither '=' nor NUL");
    }
    if value.contains('\0') {
        return Err("a value contains no NUL");
    }
    if name.len() + value.len() + 2 > STRING_MAX {
        return Err("Linux passes at most 128 KiB in one variable");
    }
    Ok(())
}
