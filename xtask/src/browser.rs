//! Prepares the browser for the tests of the page: Debian's chromium with its driver, and axe, which npm installs
//! below the target directory at a pinned version.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Requirement};
use crate::say::{self, CommandError};

const PACKAGE: &str = "axe-core";
const VERSION: &str = "4.11.0";
/// The variable that gives the tests the path of axe.
const AXE: &str = "DRYDOCK_TEST_AXE";

/// Returns the programs that the machine must have; npm only until it has installed axe.
pub(crate) fn needs(root: &Path) -> Vec<Requirement> {
    let npm = (!is_installed(&place(root))).then_some(machine::NPM);
    [machine::CHROMIUM].into_iter().chain(npm).collect()
}

/// Installs missing programs and returns the environment variable for the tests.
pub(crate) fn prepare(root: &Path) -> Result<(&'static str, OsString), CommandError> {
    let place = place(root);
    if !is_installed(&place) {
        install(&place)?;
    }
    if !is_installed(&place) {
        return Err(CommandError::failed(format!(
            "npm installed {PACKAGE}@{VERSION}, but its files are missing"
        )));
    }
    Ok((AXE, script(&place).into()))
}

fn place(root: &Path) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    target.join("axe")
}

fn folder(place: &Path) -> PathBuf {
    place.join("node_modules").join(PACKAGE)
}

fn script(place: &Path) -> PathBuf {
    folder(place).join("axe.min.js")
}

fn is_installed(place: &Path) -> bool {
    let version = format!("\"version\": \"{VERSION}\"");
    fs::read_to_string(folder(place).join("package.json")).is_ok_and(|text| text.contains(&version))
        && script(place).exists()
}

fn install(place: &Path) -> Result<(), CommandError> {
    say::note(&format!("xtask: installing {PACKAGE}@{VERSION} with npm"));
    fs::create_dir_all(place)
        .map_err(|error| CommandError::failed(format!("could not create {}: {error}", place.display())))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]).arg(place);
    match npm.arg(format!("{PACKAGE}@{VERSION}")).current_dir(place).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::failed(format!("`npm install {PACKAGE}` failed ({status})"))),
        Err(error) => Err(CommandError::failed(format!("could not run npm: {error}"))),
    }
}
