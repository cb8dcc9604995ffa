//! Hooks as configured: `[[hooks]]`, each with a unique name and exactly one command or URL. Error messages never
//! repeat a URL, which may contain a secret.

use drydock_domain::Name;
use drydock_engine::{Hook, HookFilter, HookKind, Pattern, Priority};
use serde::Deserialize;

use super::duration::{HOOK_DEFAULT, hook_timeout};

/// The events of a hook that names none.
const EVENTS_DEFAULT: &str = "alert";

/// A hook as parsed, unchecked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHook {
    name: String,
    events: Option<Vec<String>>,
    #[serde(default)]
    min_priority: Urgency,
    command: Option<Vec<String>>,
    #[serde(default)]
    pass_env: Vec<String>,
    url: Option<String>,
    secret_env: Option<String>,
    timeout: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Urgency {
    #[default]
    Low,
    High,
}

/// Returns the checked hooks, or an error about one of them.
pub(crate) fn resolve(written: Vec<RawHook>) -> Result<Vec<Hook>, String> {
    let mut hooks: Vec<Hook> = Vec::new();
    for one in written {
        let name = one.name.clone();
        let wrong = |reason: String| format!("[[hooks]] name = {name:?}: {reason}");
        let hook = hook(one).map_err(wrong)?;
        if hooks.iter().any(|other| other.name == hook.name) {
            return Err(wrong("another hook has this name".to_owned()));
        }
        hooks.push(hook);
    }
    Ok(hooks)
}

fn hook(written: RawHook) -> Result<Hook, String> {
    let name: Name = written.name.parse().map_err(|error| format!("{error}"))?;
    let events = written.events.unwrap_or_else(|| vec![EVENTS_DEFAULT.to_owned()]);
    if events.is_empty() {
        return Err("events is empty, so nothing would be delivered".to_owned());
    }
    let pattern = |text: &String| text.parse::<Pattern>().map_err(|error| error.to_string());
    let events = events.iter().map(pattern).collect::<Result<_, _>>()?;
    let min_priority = match written.min_priority {
        Urgency::Low => Priority::Low,
        Urgency::High => Priority::High,
    };
    let timeout = written.timeout.map_or(Ok(HOOK_DEFAULT), |text| hook_timeout(&text))?;
    let means = match (written.command, written.url) {
        (Some(argv), None) => program(argv, written.pass_env, written.secret_env)?,
        (None, Some(url)) => webhook(&url, &written.pass_env, written.secret_env)?,
        (None, None) => return Err("it has neither command nor url".to_owned()),
        (Some(_), Some(_)) => return Err("it has both command and url; use two hooks".to_owned()),
    };
    Ok(Hook { name, wants: HookFilter { events, min_priority }, means, timeout })
}

fn program(argv: Vec<String>, pass_env: Vec<String>, secret_env: Option<String>) -> Result<HookKind, String> {
    if argv.first().is_none_or(String::is_empty) {
        return Err("command has no program; write the program and its arguments".to_owned());
    }
    if secret_env.is_some() {
        return Err("secret_env signs requests to a url; for a command, use pass_env".to_owned());
    }
    if let Some(variable) = pass_env.iter().find(|variable| !is_variable(variable)) {
        return Err(format!("pass_env: {variable:?} is not a variable name"));
    }
    Ok(HookKind::Command { argv, pass_env })
}

fn webhook(url: &str, pass_env: &[String], secret_env: Option<String>) -> Result<HookKind, String> {
    if !pass_env.is_empty() {
        return Err("pass_env is for a command; for the signing key of a url, use secret_env".to_owned());
    }
    if let Some(variable) = secret_env.as_ref().filter(|variable| !is_variable(variable)) {
        return Err(format!("secret_env: {variable:?} is not a variable name"));
    }
    let address = url.parse().map_err(|error| format!("url: {error}"))?;
    Ok(HookKind::Webhook { address, secret_env })
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Debug, Deserialize)]
    struct File {
        hooks: Vec<RawHook>,
    }

    fn read(text: &str) -> Result<Vec<Hook>, String> {
        resolve(toml::from_str::<File>(text).map_err(|error| error.message().to_owned())?.hooks)
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let hooks = read("[[hooks]]\nname = 'pager'\ncommand = ['page', 'me']").unwrap();
        let [hook] = hooks.as_slice() else { panic!("{hooks:?}") };
        assert_eq!(hook.timeout, Duration::from_secs(10));
        assert_eq!(
            hook.wants,
            HookFilter { events: vec!["alert".parse().unwrap()], min_priority: Priority::Low }
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name_and_without_the_address() {
        for (text, said) in [
            ("name = 'a'", "neither command nor url"),
            ("name = 'a'\ncommand = ['x']\nurl = 'https://h/s3cret'", "both command and url"),
            ("name = 'a'\ncommand = []", "command has no program"),
            ("name = 'a'\ncommand = ['x']\nsecret_env = 'KEY'", "pass_env"),
            ("name = 'a'\nurl = 'https://h/s3cret'\npass_env = ['KEY']", "secret_env"),
            ("name = 'a'\nurl = 'gopher://s3cret'", "https:// or http://"),
            ("name = 'a'\nurl = 'https://h'\nsecret_env = 'A-B'", "not a variable name"),
            ("name = 'a'\ncommand = ['x']\nevents = []", "nothing would be delivered"),
            ("name = 'a'\ncommand = ['x']\nevents = ['Plan']", "names no events"),
            ("name = 'a'\ncommand = ['x']\ntimeout = '1h'", "1s to 5m"),
            ("name = 'a'\ncommand = ['x']\nmin_priority = 'urgent'", "unknown variant"),
            ("name = ' '\ncommand = ['x']", "not a name"),
            ("name = 'a'\ncommand = ['x']\nurll = 's3cret'", "unknown field `urll`"),
            (
                "name = 'a'\ncommand = ['x']\n[[hooks]]\nname = 'a'\ncommand = ['y']",
                "another hook has this name",
            ),
        ] {
            let refusal = read(&format!("[[hooks]]\n{text}")).expect_err(text);
            assert!(refusal.contains(said) && !refusal.contains("s3cret"), "{text}: {refusal}");
        }
    }
}
