//! The configuration of one agent, as written in `[agents.NAME]`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::acp::Permissions;
use crate::ending::Ending;
use crate::error::StartError;
use crate::failure_report::FailurePatterns;
use crate::restart::RestartPolicy;
use crate::sandbox::{RawResources, SandboxMode, Size};
use crate::secret::Secrets;
use crate::{duration, environment, preset};

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30 * 60);
const STALL_DEFAULT: Duration = Duration::from_secs(10 * 60);
const OUTPUT_DEFAULT_MAX: u64 = 16 * 1024 * 1024;
/// An agent that writes this many times its log limit is killed: such a flood costs time and wears out disks.
const FLOOD_FACTOR: u64 = 16;
const MESSAGE_DEFAULT_MAX: usize = 8 * 1024 * 1024;
const MESSAGE_MIN: usize = 1024;

/// One agent: how it is started, its environment and its limits.
///
/// Written as `protocol = "command"` with `command = [program, arguments…]`; as `protocol = "acp"` with the
/// same and `permissions` and `message_max` (default: 8 MiB); or as `protocol = "scripted"` with
/// `script = "file.toml"`.
///
/// All protocols accept `env`, `pass_env`, `timeout` (default: 30m), `stall_after` (default: 10m), `restart`,
/// `output_max` (default: 16 MiB), and `sandbox`, `memory_max`, `processes_max` and `files_max`, which
/// override `[sandbox]`. `home_files` are copied from the user's home into the agent's. `check` contains the
/// arguments with which the program only prints its version. `failure_patterns` are the prefixes of lines in
/// which it reports that its model failed. With `preset`, the table adapts a built-in agent. Unknown keys are
/// rejected.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawAgentSpec")]
pub struct AgentSpec {
    protocol: Protocol,
    env: BTreeMap<String, String>,
    pass_env: Vec<String>,
    /// Variables whose values are hidden although their names do not indicate a secret.
    hide_env: Vec<String>,
    timeout: Duration,
    output_max: u64,
    sandbox: Option<SandboxMode>,
    resources: RawResources,
    home_files: Vec<PathBuf>,
    check: Option<Vec<String>>,
    stall_after: Duration,
    restart: RestartPolicy,
    failure_patterns: FailurePatterns,
}

/// How drydock and the agent communicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protocol {
    Command { argv: Vec<String> },
    Acp { argv: Vec<String>, permissions: Permissions, message_max: usize },
    Scripted { script: PathBuf },
}

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(String);

impl AgentSpec {
    /// Configures a program to run; `argv` is the program and its arguments.
    pub fn command<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Result<Self, SpecError> {
        Self::checked(RawAgentSpec {
            command: Some(argv.into_iter().map(Into::into).collect()),
            ..RawAgentSpec::of(ProtocolName::Command)
        })
    }

    /// Configures a program that uses the Agent Client Protocol.
    pub fn acp<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Result<Self, SpecError> {
        Self::checked(RawAgentSpec {
            command: Some(argv.into_iter().map(Into::into).collect()),
            ..RawAgentSpec::of(ProtocolName::Acp)
        })
    }

    /// Configures a script to run.
    pub fn scripted(script: impl Into<PathBuf>) -> Result<Self, SpecError> {
        Self::checked(RawAgentSpec {
            script: Some(script.into()),
            ..RawAgentSpec::of(ProtocolName::Scripted)
        })
    }

    /// Returns this agent with another time limit.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Default for how much of a run's output is kept, in bytes.
    pub const OUTPUT_MAX: u64 = OUTPUT_DEFAULT_MAX;

    /// Returns this agent with another output limit, in bytes.
    #[must_use]
    pub fn with_output_max(self, output_max: u64) -> Self {
        Self { output_max, ..self }
    }

    /// Returns this agent with its own sandbox mode.
    #[must_use]
    pub fn with_sandbox(self, mode: SandboxMode) -> Self {
        Self { sandbox: Some(mode), ..self }
    }

    /// Returns this agent with an identity for the commits that it makes. Configured variables take
    /// precedence. A name that is not valid in an environment is left out; git then reports a missing
    /// identity as usual.
    #[must_use]
    pub fn as_author(mut self, name: &str, email: &str) -> Self {
        for (variable, value) in [
            ("GIT_AUTHOR_NAME", name),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_AUTHOR_EMAIL", email),
            ("GIT_COMMITTER_EMAIL", email),
        ] {
            if check_variable(variable, value).is_ok() {
                self.env.entry(variable.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        self
    }

    /// Returns this agent with the server of its plan and the token of its run. A server set in the
    /// configuration takes precedence.
    #[must_use]
    pub fn with_pass(mut self, server: &str, token: &str) -> Self {
        self.env.entry("DRYDOCK_SERVER".to_owned()).or_insert_with(|| server.to_owned());
        self.env.insert("DRYDOCK_TOKEN".to_owned(), token.to_owned());
        self
    }

    /// Returns this agent with a relative script path resolved against `directory`, which contains the
    /// configuration.
    #[must_use]
    pub fn resolved_from(mut self, directory: &Path) -> Self {
        if let Protocol::Scripted { script } = &mut self.protocol {
            *script = directory.join(&*script);
        }
        self
    }

    /// Returns the protocol's name as configured.
    pub fn protocol(&self) -> &'static str {
        match self.protocol {
            Protocol::Command { .. } => "command",
            Protocol::Acp { .. } => "acp",
            Protocol::Scripted { .. } => "scripted",
        }
    }

    /// Returns the command line or the script's path, for display.
    pub fn summary(&self) -> String {
        match &self.protocol {
            Protocol::Command { argv } | Protocol::Acp { argv, .. } => argv.join(" "),
            Protocol::Scripted { script } => script.display().to_string(),
        }
    }

    /// Returns the time limit of one run.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the program, or `None` for a script.
    pub fn program(&self) -> Option<&str> {
        match &self.protocol {
            Protocol::Command { argv } | Protocol::Acp { argv, .. } => argv.first().map(String::as_str),
            Protocol::Scripted { .. } => None,
        }
    }

    /// Returns the file that would be run, found by its path or in drydock's own `PATH`.
    pub fn program_file(&self) -> Option<PathBuf> {
        environment::program_file(self.program()?)
    }

    /// Returns this agent as used for a check: its program with the arguments of `check`, if configured.
    pub(crate) fn checking(mut self) -> Self {
        if let (Protocol::Command { argv }, Some(words)) = (&mut self.protocol, &self.check) {
            argv.truncate(1);
            argv.extend(words.iter().cloned());
        }
        self
    }

    /// Returns how long the agent may show no signs of life before it counts as stalled.
    pub fn stall_after(&self) -> Duration {
        self.stall_after
    }

    /// Returns the delay before this agent is restarted after such an end, or `None` if its policy allows no
    /// restart.
    pub fn restart_pause(&self, done: u32, ended: &Result<Ending, StartError>) -> Option<Duration> {
        self.restart.pause(done, ended)
    }

    /// Returns true if a stalled agent is stopped, so that it can be restarted.
    pub fn stops_stalled(&self) -> bool {
        self.restart.stops_stalled()
    }

    pub(crate) fn failure_patterns(&self) -> &FailurePatterns {
        &self.failure_patterns
    }

    pub(crate) fn has_check(&self) -> bool {
        self.check.is_some()
    }

    pub(crate) fn home_files(&self) -> &[PathBuf] {
        &self.home_files
    }

    /// Returns the secrets that the configuration passes to the agent.
    pub(crate) fn secrets(&self) -> Secrets {
        let passed = self.pass_env.iter().filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some((name.as_str(), value.to_string_lossy().into_owned()))
        });
        let set = self.env.iter().map(|(name, value)| (name.as_str(), value.clone()));
        Secrets::of(set.chain(passed), &self.hide_env)
    }

    pub(crate) fn how(&self) -> &Protocol {
        &self.protocol
    }

    pub(crate) fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    pub(crate) fn pass_env(&self) -> &[String] {
        &self.pass_env
    }

    /// Returns how much of a run's output is kept, in bytes.
    pub fn output_max(&self) -> u64 {
        self.output_max
    }

    /// Returns how many bytes the agent may write before it is killed.
    pub(crate) fn flood_max(&self) -> u64 {
        self.output_max.saturating_mul(FLOOD_FACTOR)
    }

    pub(crate) fn sandbox(&self) -> Option<SandboxMode> {
        self.sandbox
    }

    pub(crate) fn resources(&self) -> RawResources {
        self.resources
    }

    pub(crate) fn checked(written: RawAgentSpec) -> Result<Self, SpecError> {
        let written = match &written.preset {
            Some(name) => {
                let base = preset::written(name).map_err(SpecError)?;
                written.over(base)
            }
            None => written,
        };
        if let Some(path) = written.home_files.iter().find(|path| !is_below(path)) {
            return refused(&format!("home_files: {path:?} is not a path below the home directory"));
        }
        let protocol = protocol(&written)?;
        for (name, value) in &written.env {
            check_variable(name, value)?;
        }
        for name in written.pass_env.iter().chain(&written.hide_env) {
            check_variable(name, "")?;
        }
        let timeout = match written.timeout {
            Some(text) => duration::parse(&text).map_err(|reason| SpecError(format!("timeout: {reason}")))?,
            None => TIMEOUT_DEFAULT,
        };
        let output_max = match written.output_max {
            Some(Size(0)) => return refused("output_max must be at least 1"),
            Some(Size(bytes)) => bytes,
            None => OUTPUT_DEFAULT_MAX,
        };
        let resources = RawResources::checked(written.memory_max, written.processes_max, written.files_max)
            .map_err(SpecError)?;
        let (env, pass_env, sandbox) = (written.env, written.pass_env, written.sandbox);
        let (home_files, check) = (written.home_files, written.check);
        let stall_after = match &written.stall_after {
            Some(text) => {
                duration::parse(text).map_err(|reason| SpecError(format!("stall_after: {reason}")))?
            }
            None => STALL_DEFAULT,
        };
        Ok(Self {
            protocol,
            env,
            pass_env,
            hide_env: written.hide_env,
            timeout,
            output_max,
            sandbox,
            resources,
            home_files,
            check,
            stall_after,
            restart: written.restart.unwrap_or_default(),
            failure_patterns: written.failure_patterns.unwrap_or_default(),
        })
    }
}

/// The table as parsed, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAgentSpec {
    preset: Option<String>,
    protocol: Option<ProtocolName>,
    command: Option<Vec<String>>,
    script: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    hide_env: Vec<String>,
    timeout: Option<String>,
    stall_after: Option<String>,
    restart: Option<RestartPolicy>,
    output_max: Option<Size>,
    permissions: Option<Permissions>,
    message_max: Option<usize>,
    sandbox: Option<SandboxMode>,
    memory_max: Option<Size>,
    processes_max: Option<u64>,
    files_max: Option<u64>,
    #[serde(default)]
    home_files: Vec<PathBuf>,
    check: Option<Vec<String>>,
    failure_patterns: Option<FailurePatterns>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProtocolName {
    Acp,
    Command,
    Scripted,
}

impl RawAgentSpec {
    fn of(protocol: ProtocolName) -> Self {
        Self {
            preset: None,
            protocol: Some(protocol),
            command: None,
            script: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            hide_env: Vec::new(),
            timeout: None,
            stall_after: None,
            restart: None,
            output_max: None,
            permissions: None,
            message_max: None,
            sandbox: None,
            memory_max: None,
            processes_max: None,
            files_max: None,
            home_files: Vec::new(),
            check: None,
            failure_patterns: None,
        }
    }

    /// Returns the preset with these values in place of its own; variables and files are added to the
    /// preset's.
    fn over(self, base: RawAgentSpec) -> RawAgentSpec {
        let mut env = base.env;
        env.extend(self.env);
        RawAgentSpec {
            preset: None,
            protocol: self.protocol.or(base.protocol),
            command: self.command.or(base.command),
            script: self.script.or(base.script),
            env,
            pass_env: [base.pass_env, self.pass_env].concat(),
            hide_env: [base.hide_env, self.hide_env].concat(),
            timeout: self.timeout.or(base.timeout),
            stall_after: self.stall_after.or(base.stall_after),
            restart: self.restart.or(base.restart),
            output_max: self.output_max.or(base.output_max),
            permissions: self.permissions.or(base.permissions),
            message_max: self.message_max.or(base.message_max),
            sandbox: self.sandbox.or(base.sandbox),
            memory_max: self.memory_max.or(base.memory_max),
            processes_max: self.processes_max.or(base.processes_max),
            files_max: self.files_max.or(base.files_max),
            home_files: [base.home_files, self.home_files].concat(),
            check: self.check.or(base.check),
            failure_patterns: self.failure_patterns.or(base.failure_patterns),
        }
    }
}

impl TryFrom<RawAgentSpec> for AgentSpec {
    type Error = SpecError;

    fn try_from(written: RawAgentSpec) -> Result<Self, SpecError> {
        Self::checked(written)
    }
}

/// Determines the protocol. Returns an error for a key of another protocol.
fn protocol(written: &RawAgentSpec) -> Result<Protocol, SpecError> {
    let Some(named) = written.protocol else {
        return refused("an agent needs `protocol` (\"command\", \"acp\" or \"scripted\") or `preset`");
    };
    if named != ProtocolName::Acp && (written.permissions.is_some() || written.message_max.is_some()) {
        return refused("`permissions` and `message_max` belong to protocol \"acp\"");
    }
    match (named, &written.command, &written.script) {
        (ProtocolName::Command, Some(argv), None) => {
            check_argv(argv)?;
            Ok(Protocol::Command { argv: argv.clone() })
        }
        (ProtocolName::Acp, Some(argv), None) => {
            check_argv(argv)?;
            let message_max = written.message_max.unwrap_or(MESSAGE_DEFAULT_MAX);
            if message_max < MESSAGE_MIN {
                return refused("message_max must be at least 1024");
            }
            let permissions = written.permissions.clone().unwrap_or_default();
            Ok(Protocol::Acp { argv: argv.clone(), permissions, message_max })
        }
        (ProtocolName::Scripted, None, Some(script)) => Ok(Protocol::Scripted { script: script.clone() }),
        (ProtocolName::Command, None, _) => {
            refused("protocol \"command\" needs `command = [program, arguments…]`")
        }
        (ProtocolName::Acp, None, _) => refused("protocol \"acp\" needs `command = [program, arguments…]`"),
        (ProtocolName::Command | ProtocolName::Acp, Some(_), Some(_)) => {
            refused("`script` belongs to protocol \"scripted\", and `command` to the others")
        }
        (ProtocolName::Scripted, _, None) => refused("protocol \"scripted\" needs `script = \"file.toml\"`"),
        (ProtocolName::Scripted, Some(_), Some(_)) => {
            refused("`command` belongs to protocol \"command\" or \"acp\", and this is \"scripted\"")
        }
    }
}

fn refused<T>(reason: &str) -> Result<T, SpecError> {
    Err(SpecError(reason.to_owned()))
}

/// Returns true if a path stays below the directory to which it is joined.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_))) && path.file_name().is_some()
}

fn check_argv(argv: &[String]) -> Result<(), SpecError> {
    if argv.first().is_none_or(String::is_empty) {
        return refused("`command` must begin with the name of a program");
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return refused("`command` must not contain NUL characters");
    }
    Ok(())
}

fn check_variable(name: &str, value: &str) -> Result<(), SpecError> {
    environment::check_variable(name, value)
        .map_err(|reason| SpecError(format!("environment variable {name:?}: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::{AgentSpec, Protocol};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    fn refusal(text: &str) -> String {
        toml::from_str::<AgentSpec>(text).expect_err(text).to_string()
    }

    #[test]
    fn a_full_table_is_read() {
        let spec: AgentSpec = toml::from_str(
            "protocol = 'command'\ncommand = ['sh', '-c', 'true']\nenv = { A = 'b' }\npass_env = ['TERM']\n\
             timeout = '20m'\noutput_max = '1MiB'\n",
        )
        .unwrap();
        assert_eq!((spec.protocol(), spec.summary().as_str()), ("command", "sh -c true"));
        assert_eq!((spec.timeout(), spec.output_max()), (Duration::from_secs(1200), 1 << 20));
        assert_eq!((spec.env()["A"].as_str(), spec.pass_env()), ("b", &["TERM".to_owned()][..]));
    }

    #[test]
    fn a_preset_is_adapted_by_what_is_written() {
        let spec: AgentSpec = toml::from_str(
            "preset = 'goose'\ntimeout = '1h'\nenv = { GOOSE_MODEL = 'x' }\npass_env = ['MY_KEY']",
        )
        .unwrap();
        assert_eq!((spec.protocol(), spec.program()), ("acp", Some("goose")));
        assert_eq!(spec.timeout(), Duration::from_secs(3600));
        assert_eq!((spec.env()["GOOSE_MODE"].as_str(), spec.env()["GOOSE_MODEL"].as_str()), ("approve", "x"));
        assert!(spec.pass_env().contains(&"MY_KEY".to_owned()) && spec.pass_env().len() > 1);
    }

    #[test]
    fn a_relative_script_is_found_beside_its_configuration() {
        let spec = AgentSpec::scripted("demo.toml").unwrap().resolved_from(Path::new("/etc/drydock"));
        assert_eq!(*spec.how(), Protocol::Scripted { script: PathBuf::from("/etc/drydock/demo.toml") });
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_reason() {
        for (text, reason) in [
            ("command = ['a']", "protocol"),
            ("preset = 'nobody'", "use one of aider, claude"),
            ("preset = 'codex'\nhome_files = ['../x']", "below the home"),
            ("preset = 'codex'\npermissions = 'ask'", "belong to protocol \"acp\""),
            ("protocol = 'telepathy'", "telepathy"),
            ("protocol = 'command'", "needs `command"),
            ("protocol = 'command'\ncommand = []", "name of a program"),
            ("protocol = 'command'\ncommand = ['']", "name of a program"),
            ("protocol = 'command'\ncommand = ['a']\nscript = 's'", "scripted"),
            ("protocol = 'scripted'", "needs `script"),
            ("protocol = 'scripted'\nscript = 's'\ncommand = ['a']", "belongs to protocol \"command\""),
            ("protocol = 'command'\ncommand = ['a']\ntimeout = '5'", "timeout: \"5\""),
            ("protocol = 'command'\ncommand = ['a']\noutput_max = 0", "at least 1"),
            ("protocol = 'command'\ncommand = ['a']\nenv = { 'A=B' = 'x' }", "A=B"),
            ("protocol = 'command'\ncommand = ['a']\nenv = { DRYDOCK_TASK = 'x' }", "set by drydock"),
            ("protocol = 'command'\ncommand = ['a']\npass_env = ['DRYDOCK_TOKEN']", "set by drydock"),
            ("protocol = 'command'\ncommand = ['a']\ncolour = 'red'", "colour"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
