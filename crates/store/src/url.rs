//! The location of a store. A password in a URL is never shown, not even when the URL is rejected.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The location of a store.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, `postgres://…`.
    Postgres(String),
}

/// Returned for a URL that is not a store. It names only the scheme, because the rest may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{scheme}:// is not a supported store address")]
pub struct UnknownScheme {
    scheme: String,
}

impl UnknownScheme {
    /// Returns advice for the user.
    pub fn hint(&self) -> &'static str {
        "use a path or postgres://user@host/database"
    }
}

impl FromStr for StoreUrl {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            return Ok(StoreUrl::Sqlite(PathBuf::from(text)));
        };
        let word = scheme.to_ascii_lowercase();
        match (word.as_str(), rest.strip_prefix("//")) {
            ("postgres" | "postgresql", Some(rest)) => Ok(StoreUrl::Postgres(format!("{word}://{rest}"))),
            ("sqlite", Some(path)) => Ok(StoreUrl::Sqlite(PathBuf::from(path))),
            ("sqlite", None) => Ok(StoreUrl::Sqlite(PathBuf::from(rest))),
            (_, Some(_)) | ("postgres" | "postgresql", None) => {
                Err(UnknownScheme { scheme: scheme.to_owned() })
            }
            // A file name may contain a colon.
            (_, None) => Ok(StoreUrl::Sqlite(PathBuf::from(text))),
        }
    }
}

fn is_scheme(word: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(inner)
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(f, "{}", path.display()),
            StoreUrl::Postgres(address) => f.write_str(&without_password(address)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn without_password(address: &str) -> String {
    let (front, options) = match address.split_once('?') {
        Some((front, options)) => (front, Some(options)),
        None => (address, None),
    };
    let (scheme, rest) = front.split_once("://").unwrap_or(("postgres", front));
    // The last `@`, because a password may contain an unescaped one.
    let shown = match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
            None => front.to_owned(),
        },
        None => front.to_owned(),
    };
    let Some(options) = options else { return shown };
    let options: Vec<_> = options
        .split('&')
        .map(|option| match option.split_once('=') {
            Some(("password", _)) => "password=***",
            Some(_) | None => option,
        })
        .collect();
    format!("{shown}?{}", options.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (given, shown) in [
            ("postgres://u:s3cret@h:5/d", "postgres://u:***@h:5/d"),
            ("postgres://u:s3@cret@h/d?sslmode=require", "postgres://u:***@h/d?sslmode=require"),
            ("postgresql://u@h/d?password=s3cret&a=b", "postgresql://u@h/d?password=***&a=b"),
            ("postgres://h/d", "postgres://h/d"),
        ] {
            let url: StoreUrl = given.parse().unwrap();
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }

    #[test]
    fn what_is_not_a_server_is_a_file() {
        for text in ["a/b.db", "sqlite:a/b.db", "sqlite://a/b.db", "SQLite://a/b.db"] {
            assert_eq!(text.parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        }
        for odd in ["a:b.db", "./x://y", "é://y", "://y"] {
            assert_eq!(odd.parse(), Ok(StoreUrl::Sqlite(odd.into())));
        }
    }

    #[test]
    fn a_scheme_is_known_in_any_case_and_an_unknown_one_is_refused_without_the_rest() {
        let known: StoreUrl = "PostgreSQL://u@h/D".parse().unwrap();
        assert_eq!(known, StoreUrl::Postgres("postgresql://u@h/D".to_owned()));
        let refused = "mysql://u:s3cret@h/d".parse::<StoreUrl>().unwrap_err();
        assert_eq!(refused.to_string(), "mysql:// is not a supported store address");
        assert!(!format!("{refused:?}").contains("s3cret"));
        assert!(refused.hint().contains("postgres://user@host/database"));
        assert!("postgres:d".parse::<StoreUrl>().is_err(), "no file is called that by intent");
    }
}
