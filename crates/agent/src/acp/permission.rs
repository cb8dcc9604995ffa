//! Policy for an agent's permission requests: allow, reject or ask a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Kinds of tools that a configuration can name.
pub(super) const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PermissionPolicy {
    Allow,
    Reject,
    Ask,
}

/// The policy of one agent, configured as `permissions = "allow"`, `"reject"` or `"ask"`, or by kind of tool
/// as `permissions = { read = "allow", execute = "ask", other = "reject" }`. A kind that is not named is
/// treated like `other`; without `other` a person is asked. Default: everything is allowed, because the agent
/// runs in the sandbox and its work is checked before it lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permissions {
    rest: PermissionPolicy,
    by_kind: BTreeMap<String, PermissionPolicy>,
}

impl Default for Permissions {
    fn default() -> Self {
        Self { rest: PermissionPolicy::Allow, by_kind: BTreeMap::new() }
    }
}

impl Permissions {
    pub(super) fn of(&self, kind: &str) -> PermissionPolicy {
        self.by_kind.get(kind).copied().unwrap_or(self.rest)
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum RawPermissions {
            All(PermissionPolicy),
            ByKind(BTreeMap<String, PermissionPolicy>),
        }
        let wrong =
            "permissions is \"allow\", \"reject\", \"ask\", or a table with one of these per kind of tool";
        let written =
            RawPermissions::deserialize(deserializer).map_err(|_| serde::de::Error::custom(wrong))?;
        match written {
            RawPermissions::All(rest) => Ok(Self { rest, by_kind: BTreeMap::new() }),
            RawPermissions::ByKind(by_kind) => {
                match by_kind.keys().find(|kind| !KINDS.contains(&kind.as_str())) {
                    Some(kind) => Err(serde::de::Error::custom(format!(
                        "permissions: unknown kind of tool {kind:?}; use one of {}",
                        KINDS.join(", ")
                    ))),
                    None => Ok(Self {
                        rest: by_kind.get("other").copied().unwrap_or(PermissionPolicy::Ask),
                        by_kind,
                    }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PermissionPolicy, Permissions};

    #[derive(serde::Deserialize)]
    struct Holder {
        permissions: Permissions,
    }

    fn read(text: &str) -> Result<Permissions, String> {
        toml::from_str::<Holder>(&format!("permissions = {text}"))
            .map(|holder| holder.permissions)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn one_word_or_a_table_is_read() {
        assert_eq!(read("'reject'").unwrap().of("edit"), PermissionPolicy::Reject);
        let table = read("{ read = 'allow', execute = 'reject' }").unwrap();
        assert_eq!(
            (table.of("read"), table.of("execute"), table.of("edit")),
            (PermissionPolicy::Allow, PermissionPolicy::Reject, PermissionPolicy::Ask)
        );
        assert_eq!(read("{ other = 'allow', edit = 'ask' }").unwrap().of("fetch"), PermissionPolicy::Allow);
        assert_eq!(Permissions::default().of("execute"), PermissionPolicy::Allow);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        assert!(read("'maybe'").unwrap_err().contains("\"ask\""));
        assert!(read("{ read = 'maybe' }").unwrap_err().contains("\"ask\""));
        assert!(read("{ sing = 'allow' }").unwrap_err().contains("sing"));
    }
}
