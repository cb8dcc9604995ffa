//! The promises, seen from outside: the real binary, real git, both stores, other processes as observers.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop, and prints its seed")]

#[macro_use]
mod world;

mod abandoning;
mod agent_evidence;
mod alerting;
mod asking;
mod attacks;
mod calling;
mod cancelling;
mod capture;
mod choosing;
mod crowding;
mod diverging;
mod dying;
mod elsewhere;
mod fanning;
mod faulting;
mod filling;
mod following;
mod freezing;
mod hostile;
mod idling;
mod inheriting;
mod interrupting;
mod keeping;
mod keying;
mod killing;
mod landing;
mod limiting;
mod logging;
#[path = "../../benches/promises/measure.rs"]
#[allow(dead_code, reason = "the bench needs more of it")]
mod measure;
mod measuring;
mod offering;
mod old_store;
mod operating;
mod outage;
mod pinning;
mod presets;
mod private;
mod publishing;
mod racing;
mod reaping;
mod receiver;
mod recovering;
mod reexamining;
mod refusing;
mod remembering;
mod restarting;
mod reviewing;
mod revoking;
mod sandboxing;
mod sealing;
mod seeing;
mod shared;
mod showing;
mod signals;
mod signing;
mod speaking;
mod spending;
mod steering;
mod streaming;
mod supervising;
mod targeting;
mod telling;
mod tokens;
#[cfg(feature = "otel")]
mod traces;
mod transitions;
mod validating;
mod vitals;
mod week;
mod working;
