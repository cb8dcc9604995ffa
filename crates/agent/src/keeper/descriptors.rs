//! Descriptors that drydock inherited from its starter, such as those of `exec 7>>file` in a shell. An agent that got
//! them could write where its sandbox does not let it open anything (F12).
//!
//! Our own descriptors close on `exec`. Marking inherited ones takes their numbers, and safe code can only name
//! descriptors that it opened; so a shell closes them and then becomes the agent. Usually nothing is inherited, and the
//! agent starts without a shell.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// The last descriptor that every program has.
const STANDARD_ERROR: u32 = 2;
/// The flag of a descriptor that closes on `exec`, as the kernel shows it.
const CLOSES_ON_EXEC: u32 = 0o2_000_000;
/// POSIX lets a shell redirect these only.
const POSIX_MAX: u32 = 9;
const POSIX_SHELL: &str = "/bin/sh";
/// Shells that can close the others.
const OTHER_SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/// Returns the descriptors that a program would inherit from this process, beyond the standard ones. Where there is no `/proc` none
/// can be found.
pub(super) fn inherited() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok());
    let mut found: Vec<u32> = names.filter(|fd| *fd > STANDARD_ERROR && stays_open(*fd)).collect();
    found.sort_unstable();
    found
}

/// Returns the words that start a program without these descriptors.
pub(super) fn without(descriptors: &[u32], argv: &[OsString]) -> io::Result<Vec<OsString>> {
    let Some(highest) = descriptors.iter().max() else { return Ok(argv.to_vec()) };
    let other = || OTHER_SHELLS.into_iter().find(|shell| Path::new(shell).exists());
    let shell = if *highest <= POSIX_MAX { Some(POSIX_SHELL) } else { other() };
    let Some(shell) = shell else {
        let text = format!(
            "drydock was started with descriptor {highest} open, which its agent would get: install bash, or start drydock \
             with `{highest}>&-`"
        );
        return Err(io::Error::other(text));
    };
    let closed: Vec<String> = descriptors.iter().map(|descriptor| format!("{descriptor}>&-")).collect();
    let script = format!("exec \"$@\" {}", closed.join(" "));
    let words = [shell, "-c", &script, "drydock"].map(OsString::from);
    Ok(words.into_iter().chain(argv.iter().cloned()).collect())
}

fn stays_open(descriptor: u32) -> bool {
    // One that is closed by now was of this very look.
    let Ok(shown) = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")) else { return false };
    let flags = shown.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & CLOSES_ON_EXEC == 0)
}
