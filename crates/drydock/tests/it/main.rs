//! The promises, seen from outside: the real binary, real git, both stores, other processes as observers.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop, and prints its seed")]

#[macro_use]
mod world;

mod alerting;
mod calling;
mod cancelling;
mod capture;
mod crowding;
mod diverging;
mod freezing;
mod keying;
mod killing;
mod landing;
mod presets;
mod racing;
mod receiver;
mod recovering;
mod refusing;
mod reviewing;
mod sandboxing;
mod shared;
mod signals;
mod speaking;
mod steering;
mod streaming;
mod supervising;
mod tokens;
mod transitions;
mod validating;
mod working;
