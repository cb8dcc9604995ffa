//! Object ids as types, so that a branch name or an abbreviated id cannot be used as a commit.

use std::fmt;
use std::str::FromStr;

/// The text is not a full object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a full object name (40 or 64 lower-case hexadecimal digits)")]
pub struct BadId {
    text: String,
}

/// Full object id of a commit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

/// Full object id of a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(String);

/// A commit or a tree; any two of them can be compared.
pub trait Treeish: sealed::Sealed {
    /// Returns the full object id.
    fn object(&self) -> &str;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::CommitId {}
    impl Sealed for super::TreeId {}
}

macro_rules! object_name {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                if is_object_name(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(BadId { text: text.to_owned() })
                }
            }
        }

        impl $name {
            /// Returns the object id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl Treeish for $name {
            fn object(&self) -> &str {
                &self.0
            }
        }
    };
}

object_name!(CommitId);
object_name!(TreeId);

/// Object ids have 40 digits with SHA-1 and 64 with SHA-256; git prints both in lower case.
pub(crate) fn is_object_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::{CommitId, TreeId};

    #[test]
    fn only_full_lower_case_names_are_ids() {
        for good in ["a".repeat(40), "0".repeat(64)] {
            assert_eq!(good.parse::<CommitId>().unwrap().as_str(), good);
        }
        for bad in ["", "HEAD", "-x", &"a".repeat(39), &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert!(bad.parse::<TreeId>().is_err(), "{bad}");
        }
    }
}
