//! Built-in agents. They are defined as configuration too, in a table beside this file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::spec::{AgentSpec, RawAgentSpec};

const TABLE: &str = include_str!("presets.toml");

/// An agent that is available without configuration.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Name of the agent.
    pub name: String,
    /// Configuration of the agent.
    pub spec: AgentSpec,
    /// Instruction for installing it.
    pub install: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPreset {
    install: String,
    agent: RawAgentSpec,
}

/// Returns the built-in agents, by name.
pub fn presets() -> Vec<Preset> {
    let preset = |(name, entry): (String, RawPreset)| Preset {
        name,
        spec: AgentSpec::checked(entry.agent).expect("a test reads every preset"),
        install: entry.install,
    };
    table().into_iter().map(preset).collect()
}

/// Returns the raw configuration of a preset, to be adapted.
pub(crate) fn written(name: &str) -> Result<RawAgentSpec, String> {
    let mut table = table();
    match table.remove(name) {
        Some(entry) => Ok(entry.agent),
        None => {
            let known: Vec<String> = table.into_keys().collect();
            Err(format!("unknown preset {name:?}; use one of {}", known.join(", ")))
        }
    }
}

fn table() -> BTreeMap<String, RawPreset> {
    toml::from_str(TABLE).expect("a test reads every preset")
}

#[cfg(test)]
mod tests {
    use super::presets;

    #[test]
    fn every_preset_can_be_used_and_says_how_to_get_it() {
        let presets = presets();
        let names: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, ["aider", "claude", "codex", "gemini", "goose", "opencode"]);
        for preset in presets {
            assert!(preset.install.starts_with("install "), "{preset:?}");
            assert_eq!(preset.spec.program(), Some(preset.name.as_str()));
        }
    }
}
