//! Where a store is. A password in an address is never shown.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, `postgres://…`.
    Postgres(String),
}

impl FromStr for StoreUrl {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreUrl::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
        Ok(StoreUrl::Sqlite(PathBuf::from(path)))
    }
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
    // The last `@`, since an unescaped one may stand in a password.
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
        for text in ["a/b.db", "sqlite:a/b.db", "sqlite://a/b.db"] {
            assert_eq!(text.parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        }
    }
}
