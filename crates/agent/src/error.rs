//! Errors that prevent the start of a run. The end of a started run is an `Ending`, not an error.

use std::io;
use std::path::PathBuf;

/// The run did not start; no process of it is alive.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program was not found.
    #[error("could not start {program}: program not found")]
    ProgramMissing {
        /// The first word of the command.
        program: String,
    },
    /// The file exists, but the system cannot execute it.
    #[error("could not start {program}: {reason}")]
    NotExecutable {
        /// The first word of the command.
        program: String,
        /// The system's error message.
        reason: String,
    },
    /// The system rejected the start for a reason unrelated to the program, such as too many processes.
    #[error("could not start {program}: {reason}")]
    Refused {
        /// The first word of the command.
        program: String,
        /// The system's error message.
        reason: String,
    },
    /// The script of a scripted agent is invalid.
    #[error("could not use the script {}: {reason}", path.display())]
    Script {
        /// Path of the script.
        path: PathBuf,
        /// The cause, with the step that contains it.
        reason: String,
    },
    /// A directory or file of the run cannot be used.
    #[error("could not prepare {} for the run", path.display())]
    Directory {
        /// Path of the directory or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An environment variable cannot be set.
    #[error("could not set the environment variable {name:?}: {reason}")]
    Environment {
        /// Name of the variable.
        name: String,
        /// Why it cannot be set.
        reason: &'static str,
    },
    /// The sandbox required for the run cannot be created.
    #[error("could not set up the sandbox: {reason}")]
    Sandbox {
        /// The missing feature or path.
        reason: String,
    },
    /// Drydock's own keeper process did not start.
    #[error("could not start the keeper {launcher}: {reason}")]
    Keeper {
        /// The program that should have become the keeper.
        launcher: String,
        /// Why it did not start.
        reason: String,
    },
}

impl StartError {
    /// Returns the next step for the user.
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
                    "check that {program} is executable (chmod +x) and that the interpreter in its first \
                     line exists"
                )
            }
            Self::Refused { .. } => {
                "check the limits of this machine (ulimit -a, free memory) and try again".into()
            }
            Self::Script { path, .. } => format!("correct {} and try again", path.display()),
            Self::Directory { path, .. } => {
                format!("check that {} exists and that drydock may write there", path.display())
            }
            Self::Environment { .. } => "correct `env` in the configuration".into(),
            Self::Sandbox { .. } => {
                "see `drydock doctor` for what this kernel supports, and `sandbox` in the configuration \
                 for what is required"
                    .into()
            }
            Self::Keeper { launcher, .. } => {
                format!(
                    "check that {launcher} is still the program of the running drydock, and check the limits of this machine"
                )
            }
        }
    }
}
