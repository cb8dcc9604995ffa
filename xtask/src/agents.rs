//! Installs real agents for the tests that drive them, with npm below the target directory, at pinned versions.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::say::{self, CommandError};

/// An agent's program, its package and the version that the tests were written for.
struct Agent {
    program: &'static str,
    package: &'static str,
    version: &'static str,
}

const AGENTS: [Agent; 3] = [
    Agent { program: "goose", package: "@aaif/goose", version: "0.20.1" },
    Agent { program: "codex", package: "@openai/codex", version: "0.166.0" },
    Agent { program: "claude", package: "@anthropic-ai/claude-code", version: "2.1.197" },
];

/// Installs missing agents and returns a search path with the agents first.
pub(crate) fn prepare(root: &Path) -> Result<OsString, CommandError> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let place = target.join("agents");
    if !AGENTS.iter().all(|agent| is_installed(&place, agent)) {
        install(&place)?;
    }
    if let Some(missing) = AGENTS.iter().find(|agent| !is_installed(&place, agent)) {
        let Agent { program, package, version } = missing;
        return Err(CommandError::failed(format!(
            "npm installed {package}@{version} without `{program}`; it may not support this kind of machine"
        )));
    }
    let before = env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(programs(&place)).chain(env::split_paths(&before));
    env::join_paths(places)
        .map_err(|error| CommandError::failed(format!("could not add the agents to PATH: {error}")))
}

fn programs(place: &Path) -> PathBuf {
    place.join("node_modules/.bin")
}

/// Returns true if the program exists and its package has exactly this version.
fn is_installed(place: &Path, agent: &Agent) -> bool {
    let manifest = place.join("node_modules").join(agent.package).join("package.json");
    let version = format!("\"version\": \"{}\"", agent.version);
    fs::read_to_string(manifest).is_ok_and(|text| text.contains(&version))
        && programs(place).join(agent.program).exists()
}

fn install(place: &Path) -> Result<(), CommandError> {
    let packages: Vec<String> =
        AGENTS.iter().map(|agent| format!("{}@{}", agent.package, agent.version)).collect();
    say::note(&format!("xtask: installing {} with npm (about 1 GB)", packages.join(", ")));
    fs::create_dir_all(place)
        .map_err(|error| CommandError::failed(format!("could not create {}: {error}", place.display())))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]).arg(place).args(&packages);
    match npm.current_dir(place).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(CommandError::failed(format!("`npm install {}` failed ({status})", packages.join(" "))))
        }
        Err(error) => Err(CommandError::failed(format!(
            "could not run npm to install the agents ({error}); install Node.js 20 or newer"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_another_version_is_not_installed() {
        let place = env::temp_dir().join(format!("drydock-xtask-agents-{}", std::process::id()));
        let [agent, ..] = AGENTS;
        let package = place.join("node_modules").join(agent.package);
        fs::create_dir_all(&package).unwrap();
        fs::create_dir_all(programs(&place)).unwrap();
        let mut seen = Vec::new();
        for version in ["0.0.1", agent.version] {
            fs::write(package.join("package.json"), format!("{{\n  \"version\": \"{version}\"\n}}")).unwrap();
            seen.push(is_installed(&place, &agent));
            fs::write(programs(&place).join(agent.program), "").unwrap();
            seen.push(is_installed(&place, &agent));
            fs::remove_file(programs(&place).join(agent.program)).unwrap();
        }
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(seen, [false, false, false, true]);
    }
}
