//! One invocation: its backend, its screen, and the plan it follows.

use std::sync::{Mutex, OnceLock};

use drydock_api::{Client, Code, HttpTransport, Problem};
use jiff::Timestamp;

use super::args::Global;
use super::backend::{Backend, OpenEmbedded, RemoteBackend, Renewal};
use super::bearer;
use super::interrupt::Interrupt;
use super::screen::Screen;
use crate::{config, local_token};

/// One invocation of the program.
pub(crate) struct Invocation {
    backend: Box<dyn Backend>,
    screen: Screen,
    started: Timestamp,
    driver: Driver,
    server: Option<String>,
    driving: Mutex<Option<FollowedPlan>>,
    interrupted: OnceLock<Interrupt>,
}

/// The plan being followed, for the message after an interruption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedPlan {
    pub(crate) plan: String,
    pub(crate) by: Driver,
    /// The command that continues it.
    pub(crate) resume: String,
}

/// Where a followed plan is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    ThisProcess,
    Server,
    /// A worker on the same store.
    Worker,
    /// Nowhere: a person is being asked.
    Person,
    /// Nowhere: the plan waits for a rate limit or a remote.
    Waiting,
}

impl Invocation {
    /// Connects to the named server, or opens the store in this process.
    pub(crate) async fn open(
        global: &Global,
        screen: Screen,
        started: Timestamp,
        embedded: OpenEmbedded,
    ) -> Result<Self, Box<Problem>> {
        let (backend, driver): (Box<dyn Backend>, _) = match &global.server {
            Some(url) => {
                let remote = HttpTransport::new(url).map_err(|error| {
                    Problem::new(Code::Usage, error.to_string()).hint("write it as http://HOST:PORT")
                })?;
                let own = local_token::find(url);
                let renewal = match &own {
                    Some(_) if global.token_file.is_none() && !bearer::is_in_environment() => {
                        Renewal::Own(url.clone())
                    }
                    Some(_) | None => Renewal::Never,
                };
                let kept = own.or_else(config::token_path);
                let token = bearer::find(global.token_file.as_deref(), kept.as_deref())?;
                let remote = match token {
                    Some(token) => remote.with_token(&token).expect("a token that was found is plain text"),
                    None => remote,
                };
                (Box::new(RemoteBackend::new(remote, renewal)), Driver::Server)
            }
            None => {
                let place = config::store_place(global.store.as_deref())?;
                let path = config::config_path();
                let config = config::load(global.config.as_deref(), path.as_deref())?;
                (embedded(place, config).await?, Driver::ThisProcess)
            }
        };
        let server = global.server.clone();
        let (driving, interrupted) = (Mutex::new(None), OnceLock::new());
        Ok(Self { backend, screen, started, driver, server, driving, interrupted })
    }

    pub(crate) fn client(&self) -> Client<'_> {
        Client::new(self.backend.transport())
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Returns the current time, for relative times.
    pub(crate) fn now(&self) -> Timestamp {
        self.started
    }

    /// Returns the address of the server, if one is used.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Returns where plans are worked on.
    pub(crate) fn driver(&self) -> Driver {
        self.driver
    }

    /// Stores the plan being followed; none when following has ended.
    pub(crate) fn set_driving(&self, driving: Option<FollowedPlan>) {
        *self.driving.lock().expect("nothing panics while it holds this lock") = driving;
    }

    /// Records that another driver now works on the followed plan.
    pub(crate) fn driven_by(&self, by: Driver) {
        if let Some(driving) = &mut *self.driving.lock().expect("nothing panics while it holds this lock") {
            driving.by = by;
        }
    }

    /// Records a signal. Work that is polled after it only shuts down and starts nothing.
    pub(crate) fn interrupt(&self, interrupt: Interrupt) {
        // The first signal determines the exit code; a second one ends the process.
        self.interrupted.get_or_init(|| interrupt);
    }

    /// Returns the signal that was received, if any.
    pub(crate) fn interrupted(&self) -> Option<Interrupt> {
        self.interrupted.get().copied()
    }

    /// Returns the plan being followed.
    pub(crate) fn driving(&self) -> Option<FollowedPlan> {
        self.driving.lock().expect("nothing panics while it holds this lock").clone()
    }
}
