//! Why a run could not be started. How a started run ends is `Ending`, not an error.

use std::io;
use std::path::PathBuf;

/// A run that never started; nothing of it is alive.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No file of that name was found.
    #[error("could not start {program}: there is no such program")]
    ProgramMissing {
        /// The first word of the command.
        program: String,
    },
    /// The file is there and the system will not run it.
    #[error("could not start {program}: {reason}")]
    NotExecutable {
        /// The first word of the command.
        program: String,
        /// What the system said, in words.
        reason: String,
    },
    /// The system refused for a reason that is not the program's, such as too many processes.
    #[error("could not start {program}: {reason}")]
    Refused {
        /// The first word of the command.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The script of a scripted agent cannot be used.
    #[error("could not use the script {}: {reason}", path.display())]
    Script {
        /// The script.
        path: PathBuf,
        /// What is wrong with it, naming the step where one is to blame.
        reason: String,
    },
    /// A directory or file of the run cannot be used.
    #[error("could not prepare {} for the run", path.display())]
    Directory {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A variable cannot be put into an environment.
    #[error("could not set the environment variable {name:?}: {reason}")]
    Environment {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The sandbox that the run must have cannot be made.
    #[error("could not make the sandbox: {reason}")]
    Sandbox {
        /// What is missing.
        reason: String,
    },
    /// Drydock's own keeper process did not come up.
    #[error("could not start the keeper {launcher}: {reason}")]
    Keeper {
        /// The program that should have become the keeper.
        launcher: String,
        /// What happened instead.
        reason: String,
    },
}

impl StartError {
    /// Says what the reader can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::ProgramMissing { program } if program.contains('/') => {
                format!("check the path {program}; a relative path is looked up in the worktree")
            }
            Self::ProgramMissing { program } => {
                format!(
                    "install {program}, or write its full path in `command`; drydock looks in its own PATH"
                )
            }
            Self::NotExecutable { program, .. } => {
                format!(
                    "check that {program} is executable (chmod +x) and that the interpreter in its first line exists"
                )
            }
            Self::Refused { .. } => {
                "look at the limits of this machine (ulimit -a, free memory) and try again".into()
            }
            Self::Script { path, .. } => format!("correct {} and try again", path.display()),
            Self::Directory { path, .. } => {
                format!("check that {} exists and that drydock may write there", path.display())
            }
            Self::Environment { .. } => "correct `env` in the configuration".into(),
            Self::Sandbox { .. } => {
                "`drydock doctor` says what this kernel can do; `sandbox` in the configuration says what is asked"
                    .into()
            }
            Self::Keeper { launcher, .. } => {
                format!(
                    "check that {launcher} is still the drydock that is running, and the limits of this machine"
                )
            }
        }
    }
}
