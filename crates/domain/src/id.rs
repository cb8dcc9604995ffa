//! Typed ids: a kind prefix and 80 random bits in a lower-case alphabet without look-alikes. The random part
//! comes first, so that a short prefix identifies an object, as in git.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Crockford's base 32. It omits `i`, `l`, `o` and `u`, so that an id read aloud or from paper is not
/// misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGITS: usize = 16;

/// Returned when a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind} id (they look like {prefix}-7k3m9q2x5v8wz4t1)")]
pub struct IdError {
    text: String,
    kind: &'static str,
    prefix: &'static str,
}

fn digits(random: u128) -> String {
    (0..DIGITS).map(|place| char::from(ALPHABET[(random >> (place * 5)) as usize & 31])).collect()
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

macro_rules! id {
    ($name:ident, $kind:literal, $prefix:literal) => {
        #[doc = concat!("The id of a ", $kind, ": `", $prefix, "-` and 16 random characters.")]
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The kind prefix, without the dash.
            pub const PREFIX: &'static str = $prefix;

            /// Returns the id for these random bits; only the low 80 bits are used.
            pub fn from_random(random: u128) -> Self {
                Self(format!("{}-{}", $prefix, digits(random)))
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let rest = text.strip_prefix(concat!($prefix, "-")).filter(|rest| rest.len() == DIGITS);
                match rest {
                    Some(rest) if is_digits(rest) => Ok(Self(text.to_owned())),
                    Some(_) | None => Err(IdError { text: text.to_owned(), kind: $kind, prefix: $prefix }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(PlanId, "plan", "pln");
id!(RunId, "run", "run");
id!(DecisionId, "decision", "dec");
id!(ChangesetId, "changeset", "chg");
id!(LockId, "lock", "lck");
id!(TokenId, "token", "tok");

/// The beginning of an id as a user types it, with or without the kind prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Parses user input as the beginning of an id with the kind prefix `prefix`.
    pub fn parse(text: &str, prefix: &'static str, kind: &'static str) -> Result<Self, IdError> {
        let refused = || IdError { text: text.to_owned(), kind, prefix };
        let lower = text.to_ascii_lowercase();
        let rest = lower.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).unwrap_or(&lower);
        if rest.is_empty() || rest.len() > DIGITS || !is_digits(rest) {
            return Err(refused());
        }
        Ok(Self(format!("{prefix}-{rest}")))
    }

    /// Returns the smallest text that an id with this beginning can equal.
    pub fn first(&self) -> &str {
        &self.0
    }

    /// Returns a text that sorts after every id with this beginning.
    pub fn beyond(&self) -> String {
        // `{` sorts after every character of the alphabet.
        format!("{}{{", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = PlanId::from_random(0x1234_5678_9abc_def0_1122);
        assert_eq!(id.as_str().parse::<PlanId>(), Ok(id.clone()));
        assert!(id.as_str().parse::<RunId>().is_err());
        assert!("pln-".parse::<PlanId>().is_err());
        assert!("pln-7k3m9q2x5v8wz4tu".parse::<PlanId>().is_err());
    }

    #[test]
    fn a_prefix_spans_exactly_the_ids_that_begin_with_it() {
        let prefix = IdPrefix::parse("7K3", "pln", "plan").expect("a valid prefix");
        for (id, inside) in
            [("pln-7k3zzzzzzzzzzzzz", true), ("pln-7k30000000000000", true), ("pln-7k40000000000000", false)]
        {
            assert_eq!(prefix.first() <= id && id < prefix.beyond().as_str(), inside, "{id}");
        }
        assert!(IdPrefix::parse("", "pln", "plan").is_err());
        assert!(IdPrefix::parse("pln-", "pln", "plan").is_err());
        assert!(IdPrefix::parse("%", "pln", "plan").is_err());
    }
}
