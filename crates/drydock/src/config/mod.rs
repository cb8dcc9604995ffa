//! The configuration file and the default paths. The effect of a setting is documented where it is used.

mod capture;
mod duration;
mod file;
mod hook;
mod key;
mod place;
mod profile;
mod server;
mod subplan;
mod telemetry;

pub(crate) use file::{Config, both, load};
pub(crate) use place::{StoreLocation, config_path, servers_path, store_place, token_path};
pub(crate) use server::{ServeConfig, TokenPolicy};
