//! The program's own log: off unless `DRYDOCK_LOG` names what to tell, because setting it up costs every start.

use std::io;

use tracing_subscriber::EnvFilter;

/// Begins to log to stderr when `DRYDOCK_LOG` is set, e.g. to `drydock=debug`.
pub(crate) fn begin() {
    let Some(wanted) = std::env::var_os("DRYDOCK_LOG") else { return };
    let filter = EnvFilter::new(wanted.to_string_lossy());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
}
