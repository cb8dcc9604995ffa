//! Profiles as configured: each extends another one and inherits the settings that it does not set.

use std::collections::{BTreeMap, BTreeSet};

use drydock_agent::SandboxMode;
use drydock_domain::{OnDivergence, Phase, Profile, RawBudget};
use serde::Deserialize;

/// One `[profiles.NAME]` as parsed, unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProfile {
    extends: Option<String>,
    on_divergence: Option<OnDivergence>,
    asks_before: Option<Vec<Phase>>,
    sandbox: Option<SandboxMode>,
    budget: Option<RawBudget>,
}

/// Returns the built-in and the configured profiles, with inherited settings filled in.
pub(crate) fn resolve(written: &BTreeMap<String, RawProfile>) -> Result<Vec<Profile>, String> {
    let mut all = Profile::built_in();
    if let Some(name) = written.keys().find(|name| all.iter().any(|known| known.name == **name)) {
        return Err(format!("profile {name:?} is built in; use another name with `extends = {name:?}`"));
    }
    let lesser = |layer: &RawProfile| layer.sandbox.is_some_and(|mode| mode != SandboxMode::Required);
    if let Some((name, _)) = written.iter().find(|(_, layer)| lesser(layer)) {
        return Err(format!(
            "profile {name:?} can only require the sandbox; set `sandbox = \"required\"` or remove the key"
        ));
    }
    let built_in = all.clone();
    for name in written.keys() {
        all.push(one(name, written, &built_in)?);
    }
    Ok(all)
}

/// Returns the profiles that require a sandbox, directly or by inheritance. A profile can only be stricter than the
/// configuration, so any other value for the sandbox is refused.
pub(crate) fn sandboxed(written: &BTreeMap<String, RawProfile>) -> BTreeSet<String> {
    let requires = |name: &String| {
        let mut at = Some(name);
        // `resolve` has refused cycles and unknown names.
        while let Some(layer) = at.and_then(|name| written.get(name)) {
            if layer.sandbox == Some(SandboxMode::Required) {
                return true;
            }
            at = layer.extends.as_ref();
        }
        false
    };
    written.keys().filter(|name| requires(name)).cloned().collect()
}

fn one(name: &str, written: &BTreeMap<String, RawProfile>, built_in: &[Profile]) -> Result<Profile, String> {
    // Walks down to a built-in profile, nearest first. The first profile that sets a value decides.
    let mut chain: Vec<&str> = Vec::new();
    let (mut asks_before, mut on_divergence, mut budget) = (None, None, None);
    let mut at = name;
    let base = loop {
        if let Some(base) = built_in.iter().find(|known| known.name == at) {
            break base;
        }
        let Some(layer) = written.get(at) else {
            let by = chain.last().unwrap_or(&name);
            return Err(format!("profile {by:?} extends {at:?}, which does not exist"));
        };
        if chain.contains(&at) {
            return Err(format!("profile {name:?} extends itself: {} -> {at}", chain.join(" -> ")));
        }
        chain.push(at);
        asks_before = asks_before.or_else(|| layer.asks_before.clone());
        on_divergence = on_divergence.or(layer.on_divergence);
        budget = budget.or(layer.budget.as_ref());
        at = layer.extends.as_deref().unwrap_or(Profile::DEFAULT);
    };
    Ok(Profile {
        name: name.to_owned(),
        asks_before: asks_before.unwrap_or_else(|| base.asks_before.clone()),
        on_divergence: on_divergence.unwrap_or(base.on_divergence),
        budget: match budget {
            Some(written) => written.read().map_err(|error| format!("profile {name:?}: {error}"))?,
            None => base.budget,
        },
        also: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<Vec<Profile>, String> {
        resolve(&toml::from_str(text).unwrap())
    }

    fn named(text: &str, name: &str) -> Profile {
        resolved(text).unwrap().into_iter().find(|profile| profile.name == name).unwrap()
    }

    #[test]
    fn a_profile_takes_what_it_does_not_say_from_what_it_extends() {
        let text = "[a]\nextends = 'b'\non_divergence = 'pause'\n[b]\nextends = 'auto'\nasks_before = ['apply']\n[c]";
        let a = named(text, "a");
        assert_eq!((a.asks_before, a.on_divergence), (vec![Phase::Apply], OnDivergence::Pause));
        assert_eq!(named(text, "b").on_divergence, OnDivergence::Recover);
        assert_eq!(named(text, "c").asks_before, [Phase::Execute, Phase::Apply], "the default is extended");
    }

    #[test]
    fn a_sandbox_is_required_of_all_that_extend_who_requires_it() {
        let text = "[a]\nextends = 'b'\n[b]\nsandbox = 'required'\n[c]\nextends = 'auto'";
        let sandboxed = sandboxed(&toml::from_str(text).unwrap());
        assert_eq!(sandboxed.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_circle_an_unknown_base_and_a_built_in_name_are_refused() {
        for (text, reason) in [
            ("[a]\nextends = 'b'\n[b]\nextends = 'a'", "a -> b -> a"),
            ("[a]\nextends = 'a'", "itself"),
            ("[a]\nextends = 'b'\n[b]\nextends = 'missing'", "profile \"b\" extends \"missing\""),
            ("[auto]\nasks_before = []", "built in"),
            ("[a]\nsandbox = 'off'", "only require"),
            ("[a]\nbudget = { tokens = 0 }", "profile \"a\": budget: tokens=0"),
        ] {
            let refusal = resolved(text).expect_err(text);
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
