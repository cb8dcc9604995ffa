//! The configuration file: read once and checked as a whole. An invalid entry is refused with the file, the line and
//! the reason; nothing is guessed or skipped.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use drydock_agent::{AgentSpec, Sandbox, presets};
use drydock_api::{Code, HttpTransport, Problem};
use drydock_domain::Profile;
use drydock_engine::{CaptureBounds, Hook, PhaseLimits, Settings, SubplanLimits};
use serde::Deserialize;

use super::capture;
use super::duration::{TTL_DEFAULT, lock_ttl};
use super::hook;
use super::key::{explain, line_of};
use super::place::{StoreLocation, config_path, store_place};
use super::profile;
use super::server::ServeConfig;
use super::subplan;
use super::telemetry::Telemetry;

/// The configuration, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// The agents by name, including built-in ones.
    pub(crate) agents: BTreeMap<String, AgentSpec>,
    /// The built-in agents that are not configured, with a hint how to install each.
    pub(crate) presets: BTreeMap<String, String>,
    /// The built-in and the configured profiles.
    pub(crate) profiles: Vec<Profile>,
    /// The sandbox of agents, validations and command invariants.
    pub(crate) sandbox: Sandbox,
    /// The profiles whose plans run nothing outside a full sandbox.
    pub(crate) sandboxed_profiles: BTreeSet<String>,
    /// The agent of a plan that names none.
    pub(crate) default_agent: Option<String>,
    /// The profile of a plan that names none.
    pub(crate) default_profile: String,
    /// How long a lock lives without renewal.
    pub(crate) lock_ttl: Duration,
    /// The maximum number of connections to PostgreSQL, if configured.
    pub(crate) connections: Option<usize>,
    /// The hooks that receive events.
    pub(crate) hooks: Vec<Hook>,
    /// Limits on the width and depth of subplans.
    pub(crate) subplans: SubplanLimits,
    /// The maximum number of phases that run at the same time.
    pub(crate) limits: PhaseLimits,
    /// Limits on the changed files that a capture takes.
    pub(crate) capture: CaptureBounds,
    /// How many days the logs of a plan are kept after it has ended.
    pub(crate) logs_keep_days: u32,
    /// Settings of `drydock serve`.
    pub(crate) server: ServeConfig,
    /// Settings of traces.
    pub(crate) telemetry: Telemetry,
}

impl Default for Config {
    fn default() -> Self {
        let (agents, presets) = with_presets(BTreeMap::new());
        Self {
            agents,
            presets,
            profiles: Profile::built_in(),
            sandbox: Sandbox::default(),
            sandboxed_profiles: BTreeSet::new(),
            default_agent: None,
            default_profile: Profile::DEFAULT.to_owned(),
            lock_ttl: TTL_DEFAULT,
            connections: None,
            hooks: Vec::new(),
            subplans: SubplanLimits::default(),
            limits: PhaseLimits::default(),
            capture: CaptureBounds::default(),
            logs_keep_days: Settings::LOGS_KEEP_DAYS,
            server: ServeConfig::default(),
            telemetry: Telemetry::default(),
        }
    }
}

/// Adds the built-in agents that are not configured. Returns those, with a hint how to install each.
fn with_presets(
    mut agents: BTreeMap<String, AgentSpec>,
) -> (BTreeMap<String, AgentSpec>, BTreeMap<String, String>) {
    let mut added = BTreeMap::new();
    for preset in presets() {
        if let Entry::Vacant(free) = agents.entry(preset.name.clone()) {
            free.insert(preset.spec);
            added.insert(preset.name, preset.install);
        }
    }
    (agents, added)
}

/// The parsed file, unchecked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    #[serde(default)]
    agents: BTreeMap<String, AgentSpec>,
    #[serde(default)]
    profiles: BTreeMap<String, profile::RawProfile>,
    #[serde(default)]
    sandbox: Sandbox,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    locks: RawLocks,
    #[serde(default)]
    store: StoreTable,
    #[serde(default)]
    hooks: Vec<hook::RawHook>,
    #[serde(default)]
    subplans: subplan::RawSubplanLimits,
    #[serde(default)]
    limits: subplan::RawPhaseLimits,
    #[serde(default)]
    capture: capture::Written,
    #[serde(default)]
    logs: RawLogs,
    #[serde(default)]
    server: ServeConfig,
    #[serde(default)]
    telemetry: Telemetry,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    agent: Option<String>,
    profile: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLocks {
    ttl: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreTable {
    connections: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLogs {
    keep_days: Option<u32>,
}

impl RawLogs {
    /// The longest time that can be named: ten years, as for tokens.
    const KEEP_DAYS_MAX: u32 = 3_650;

    fn keep_days(&self) -> Result<u32, String> {
        match self.keep_days {
            Some(days) if days > Self::KEEP_DAYS_MAX => {
                Err(format!("[logs] keep_days = {days} is not between 0 and {}", Self::KEEP_DAYS_MAX))
            }
            days => Ok(days.unwrap_or(Settings::LOGS_KEEP_DAYS)),
        }
    }
}

/// The allowed number of connections to PostgreSQL.
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000;

impl StoreTable {
    fn connections(&self) -> Result<Option<usize>, String> {
        match self.connections {
            Some(count) if !CONNECTIONS.contains(&count) => {
                let (least, most) = (CONNECTIONS.start(), CONNECTIONS.end());
                Err(format!("[store] connections = {count} is not between {least} and {most}"))
            }
            count => Ok(count),
        }
    }
}

/// Returns the store and the configuration for these options.
pub(crate) fn both(
    store: Option<&str>,
    file: Option<&Path>,
) -> Result<(StoreLocation, Config), Box<Problem>> {
    Ok((store_place(store)?, load(file, config_path().as_deref())?))
}

/// Reads the named file, or the default one if it exists.
pub(crate) fn load(named: Option<&Path>, default: Option<&Path>) -> Result<Config, Box<Problem>> {
    let Some(path) = named.or(default) else { return Ok(Config::default()) };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Config::default());
        }
        Err(error) => {
            let text = format!("could not read the configuration file {}: {error}", path.display());
            return Err(Box::new(
                Problem::new(Code::ConfigInvalid, text).hint("choose another file with --config FILE"),
            ));
        }
    };
    parse(&text, path.parent().unwrap_or(Path::new("."))).map_err(|refusal| {
        let place = match refusal.line {
            Some(line) => format!("{}:{line}", path.display()),
            None => path.display().to_string(),
        };
        let problem = Problem::new(Code::ConfigInvalid, format!("{place}: {}", refusal.reason))
            .hint("fix the file, or choose another with --config FILE")
            .with("file", path.display().to_string());
        Box::new(match refusal.line {
            Some(line) => problem.with("line", line),
            None => problem,
        })
    })
}

#[derive(Debug)]
struct ConfigError {
    line: Option<usize>,
    reason: String,
}

impl From<String> for ConfigError {
    fn from(reason: String) -> Self {
        Self { line: None, reason }
    }
}

fn parse(text: &str, directory: &Path) -> Result<Config, ConfigError> {
    let written: RawConfig = toml::from_str(text).map_err(|error| ConfigError {
        line: error.span().map(|span| line_of(text, span.start)),
        reason: explain(error.message()),
    })?;
    let profiles = profile::resolve(&written.profiles)?;
    let default_profile = written.defaults.profile.unwrap_or_else(|| Profile::DEFAULT.to_owned());
    if !profiles.iter().any(|profile| profile.name == default_profile) {
        let known: Vec<_> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let known = known.join(", ");
        return Err(format!("[defaults] profile = {default_profile:?} is not one of {known}").into());
    }
    let lock_ttl = match &written.locks.ttl {
        Some(text) => lock_ttl(text).map_err(|reason| format!("[locks] {reason}"))?,
        None => TTL_DEFAULT,
    };
    if let Some(url) = &written.server.url {
        HttpTransport::new(url).map_err(|error| format!("[server] url: {error}"))?;
    }
    let hooks = hook::resolve(written.hooks)?;
    let (subplans, limits) = (written.subplans.resolve()?, written.limits.resolve()?);
    let agents = written.agents.into_iter().map(|(name, spec)| (name, spec.resolved_from(directory)));
    let (agents, presets) = with_presets(agents.collect());
    if let Some(agent) = &written.defaults.agent
        && !agents.contains_key(agent)
    {
        return Err(format!("[defaults] agent = {agent:?} is not configured; add [agents.{agent}]").into());
    }
    Ok(Config {
        agents,
        presets,
        profiles,
        sandbox: written.sandbox,
        sandboxed_profiles: profile::sandboxed(&written.profiles),
        default_agent: written.defaults.agent,
        default_profile,
        lock_ttl,
        connections: written.store.connections()?,
        hooks,
        subplans,
        limits,
        capture: written.capture.resolve()?,
        logs_keep_days: written.logs.keep_days()?,
        server: written.server,
        telemetry: written.telemetry.check()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, text).unwrap();
        load(Some(&path), None).expect_err(text).to_string()
    }

    #[test]
    fn the_example_of_the_contract_is_read() {
        let text = "[agents.writer]\nprotocol = 'command'\ncommand = ['sh', '-c', 'true']\ntimeout = '20m'\n\
                    [profiles.mine]\nextends = 'trusted'\non_divergence = 'pause'\n\
                    [defaults]\nagent = 'writer'\nprofile = 'mine'\n[locks]\nttl = '90s'\n";
        let config = parse(text, Path::new("/")).unwrap();
        assert_eq!(config.agents["writer"].timeout(), Duration::from_secs(1200));
        assert_eq!(
            (config.default_agent.as_deref(), config.default_profile.as_str()),
            (Some("writer"), "mine")
        );
        assert_eq!(config.lock_ttl, Duration::from_secs(90));
        assert_eq!(config.profiles.len(), 5);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_what_was_meant() {
        for (text, said) in [
            ("[defaults]\n\nagnet = 'x'\n", "config.toml:3: unknown key `agnet`; did you mean `agent`?"),
            ("\n[agent.x]\n", "config.toml:2: unknown key `agent`; did you mean `agents`?"),
            ("[agents.w]\nprotocol = 'command'\ncommand = ['a']\ntmeout = '1s'\n", "did you mean `timeout`?"),
            ("[profiles.p]\ncolour = 1\n", "config.toml:2: unknown key `colour`; known here: extends"),
            ("[locks]\nttl = 5\n", "config.toml:2: "),
            ("[server]\ntokens = 'maybe'\n", "config.toml:2: "),
            ("[locks\n", "config.toml:1: "),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(said), "{text}: {refusal}");
        }
    }

    #[test]
    fn what_points_nowhere_is_refused() {
        for (text, said) in [
            ("[defaults]\nagent = 'x'", "add [agents.x]"),
            ("[defaults]\nprofile = 'x'", "is not one of manual, supervised, trusted, auto"),
            ("[logs]\nkeep_days = 3651", "[logs] keep_days = 3651 is not between 0 and 3650"),
            ("[logs]\nkeep_days = -1", "config.toml:2: "),
            ("[locks]\nttl = '1s'", "5s to 1h"),
            ("[store]\nconnections = 0", "between 1 and 1000"),
            ("[capture]\nfiles_max = 0", "would allow no changes"),
            ("[capture]\nfile_max = '1GB'", "write a whole number and KiB, MiB or GiB"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(said), "{text}: {refusal}");
        }
    }

    /// Breaks if a binary built without traces silently accepts a configuration that asks for them.
    #[cfg(not(feature = "otel"))]
    #[test]
    fn traces_that_were_not_built_in_are_refused_with_how_to_get_them() {
        let refusal = refusal("[telemetry]\notlp = 'http://127.0.0.1:4318'");
        assert!(refusal.contains("--features otel"), "{refusal}");
    }

    #[test]
    fn a_missing_file_is_an_error_only_when_it_was_named() {
        let path = Path::new("/nowhere/at/all.toml");
        assert_eq!(load(None, Some(path)).unwrap(), Config::default());
        assert_eq!(load(None, None).unwrap(), Config::default());
        assert!(load(Some(path), None).unwrap_err().to_string().contains("/nowhere/at/all.toml"));
    }
}
