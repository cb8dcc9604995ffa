//! Golden files: text that earlier versions stored or sent, compared with what this version makes of it. With
//! `UPDATE_GOLDEN=1` in the environment a test writes its file instead; read the difference before you commit it.

use std::fs;
use std::path::Path;

/// Compares a text with a golden file.
///
/// # Panics
/// When they differ, with the first line that does.
#[track_caller]
pub fn assert_golden(file: impl AsRef<Path>, actual: &str) {
    let file = file.as_ref();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, actual));
        assert!(made.is_ok(), "could not write {}: {made:?}", file.display());
        return;
    }
    let kept = match fs::read_to_string(file) {
        Ok(kept) => kept,
        Err(error) => panic!("could not read {}: {error}; UPDATE_GOLDEN=1 writes it", file.display()),
    };
    let lines = kept.lines().map(Some).chain([None]).zip(actual.lines().map(Some).chain([None]));
    for (number, (kept, actual)) in (1..).zip(lines) {
        assert!(
            kept == actual,
            "{}:{number} is {kept:?}, now {actual:?}: stored and sent names must not change (UPDATE_GOLDEN=1 rewrites \
             the file, for additions)",
            file.display()
        );
    }
}
