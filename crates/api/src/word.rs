//! Enums whose variants are one word of JSON each.

/// A word that the enum does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not one of {known}")]
pub struct UnknownWord {
    given: String,
    known: String,
}

impl UnknownWord {
    pub(crate) fn new(given: &str, known: &[&str]) -> Self {
        Self { given: given.to_owned(), known: known.join(", ") }
    }
}

/// Declares an enum together with its words, so that JSON, the command line and messages use the same ones.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Returns the word used in JSON and on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::UnknownWord;

            fn from_str(text: &str) -> Result<Self, crate::UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(crate::UnknownWord::new(text, &[$($word,)+])),
                }
            }
        }
    };
}

pub(crate) use words;
