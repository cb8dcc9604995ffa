//! The few files of a person's home that an agent needs to know who it works for, such as its login. They are copied into
//! the agent's own home, because it may not write to the real one, and removed when it is done.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::StartError;
use crate::spec::AgentSpec;

/// The largest file that is copied.
const FILE_MAX: u64 = 1024 * 1024;

/// Copied files; dropping this removes them.
#[derive(Debug, Default)]
pub(crate) struct HomeFiles {
    copies: Vec<PathBuf>,
}

impl HomeFiles {
    /// Copies what the agent names and what is there. An agent that is given the real home needs no copies.
    pub(crate) async fn copied(spec: &AgentSpec, home: &Path) -> Result<Self, StartError> {
        let own_home = spec.env().contains_key("HOME") || spec.pass_env().iter().any(|name| name == "HOME");
        let Some(real) = std::env::home_dir().filter(|_| !own_home) else { return Ok(Self::default()) };
        let (files, home) = (spec.home_files().to_vec(), home.to_owned());
        let copying = tokio::task::spawn_blocking(move || {
            let mut copied = Self::default();
            for file in files {
                let (from, to) = (real.join(&file), home.join(&file));
                match copy(&from, &to) {
                    Ok(()) => copied.copies.push(to),
                    // Not everybody has every file.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(StartError::Directory { path: from, source }),
                }
            }
            Ok(copied)
        });
        copying.await.unwrap_or_else(|error| {
            Err(StartError::Directory { path: PathBuf::from("home_files"), source: io::Error::other(error) })
        })
    }
}

impl Drop for HomeFiles {
    fn drop(&mut self) {
        for copy in &self.copies {
            if let Err(error) = fs::remove_file(copy) {
                tracing::debug!(%error, path = %copy.display(), "a copied file is gone already");
            }
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut content = Vec::new();
    fs::File::open(from)?.take(FILE_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_MAX {
        return Err(io::Error::other(format!("it is larger than {FILE_MAX} bytes")));
    }
    if let Some(above) = to.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    file.write_all(&content)
}
