//! Default paths of the configuration and the store: the directories of the XDG specification.

use std::env;
use std::path::{Path, PathBuf};

use drydock_api::{Code, Problem};

/// The location of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// Given by the user: a path or `postgres://…`. The directory of a file must exist.
    Named(String),
    /// The default path. The file and its directories are created if they are missing.
    Default(PathBuf),
}

/// Returns the store named by `--store` or `DRYDOCK_STORE`, or the default one.
pub(crate) fn store_place(named: Option<&str>) -> Result<StoreLocation, Box<Problem>> {
    match named {
        Some(named) => Ok(StoreLocation::Named(named.to_owned())),
        None => base("XDG_DATA_HOME", ".local/share")
            .map(|base| StoreLocation::Default(base.join("drydock/drydock.db")))
            .ok_or_else(|| homeless("the store", "--store FILE")),
    }
}

/// Returns the default path of the configuration file, if the base directory is known.
pub(crate) fn config_path() -> Option<PathBuf> {
    base("XDG_CONFIG_HOME", ".config").map(|base| base.join("drydock/config.toml"))
}

/// Returns the default path of the token that the command line sends, if the base directory is known.
pub(crate) fn token_path() -> Option<PathBuf> {
    base("XDG_CONFIG_HOME", ".config").map(|base| base.join("drydock/token"))
}

/// Returns the directory in which servers on this machine write tokens for their own user, if the base directory is
/// known.
pub(crate) fn servers_path() -> Option<PathBuf> {
    base("XDG_STATE_HOME", ".local/state").map(|base| base.join("drydock/servers"))
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    base_of(env::var_os(variable).map(PathBuf::from), env::home_dir(), below_home)
}

/// The specification requires relative paths to be ignored.
fn base_of(named: Option<PathBuf>, home: Option<PathBuf>, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| Path::is_absolute(path);
    named.filter(absolute).or_else(|| home.filter(absolute).map(|home| home.join(below_home)))
}

fn homeless(what: &str, option: &str) -> Box<Problem> {
    let text = format!("cannot find {what}: neither HOME nor an XDG directory is set");
    Box::new(Problem::new(Code::Usage, text).hint(format!("set HOME, or use {option}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_in_the_environment_is_ignored() {
        let home = || Some(PathBuf::from("/h"));
        let found = |named: &str, home| base_of(Some(PathBuf::from(named)), home, ".config");
        assert_eq!(found("/x", home()), Some(PathBuf::from("/x")));
        assert_eq!(found("x", home()), Some(PathBuf::from("/h/.config")));
        assert_eq!(found("", home()), Some(PathBuf::from("/h/.config")));
        assert_eq!(found("", None), None);
    }
}
