//! The configuration file and the places where files are found. What a setting does is said where it is used.

mod duration;
mod file;
mod hook;
mod key;
mod place;
mod profile;

pub(crate) use file::{Config, both, load};
pub(crate) use place::{StorePlace, config_path, store_place};
