//! The promises, seen from outside: the real binary, real git, both stores, other processes as observers.

#[macro_use]
mod world;

mod cancelling;
mod capture;
mod freezing;
mod killing;
mod landing;
mod racing;
mod recovering;
mod signals;
mod steering;
mod transitions;
mod validating;
mod working;
