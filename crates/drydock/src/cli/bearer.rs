//! The token sent with requests to a server. This module finds it and checks that other users cannot read the file it
//! is in. Messages never contain the token.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use drydock_api::{Code, Problem};

const VARIABLE: &str = "DRYDOCK_TOKEN";
/// Longer than any token. A file that exceeds it does not hold a token.
const BYTES_MAX: u64 = 4096;

/// Returns the token to send: from the named file, else from the environment, else from the default file.
pub(crate) fn find(named: Option<&Path>, kept: Option<&Path>) -> Result<Option<String>, Box<Problem>> {
    if let Some(path) = named {
        return self::kept(path).map(Some);
    }
    if let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
        return token(&text.to_string_lossy(), VARIABLE).map(Some);
    }
    kept.filter(|path| path.exists()).map(self::kept).transpose()
}

/// Returns the token in a file.
pub(super) fn kept(path: &Path) -> Result<String, Box<Problem>> {
    read(path).and_then(|text| token(&text, &path.display().to_string()))
}

/// Returns true if the environment holds a token.
pub(super) fn is_in_environment() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|text| !text.is_empty())
}

/// Reads a file that only its owner may read. A pipe needs no such check: no other process can open it.
fn read(path: &Path) -> Result<String, Box<Problem>> {
    let failed = |error: io::Error| {
        let text = format!("could not read the token in {}: {error}", path.display());
        Box::new(
            Problem::new(Code::Usage, text).hint("name another file with --token-file, or set DRYDOCK_TOKEN"),
        )
    };
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_file() && about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        let text = format!("other users can read the token file {} (mode {mode:03o})", path.display());
        let hint = format!("chmod 600 {}; revoke the token if it may have leaked", path.display());
        return Err(Box::new(Problem::new(Code::Usage, text).hint(hint)));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn token(text: &str, place: &str) -> Result<String, Box<Problem>> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    let problem = Problem::new(Code::Usage, format!("no token in {place}"));
    Err(Box::new(problem.hint("it must contain only the secret that `drydock token create` printed")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Breaks if a token file that other users can read is accepted, or if a message contains the token.
    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "dry_human_s3cret\n").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o660, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refusal = find(Some(&path), None).unwrap_err();
            let said = format!("{refusal} {:?}", refusal.hint);
            assert!(said.contains("chmod 600") && !said.contains("s3cret"), "{mode:o}: {said}");
            assert!(find(None, Some(&path)).is_err(), "{mode:o}");
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(find(Some(&path), None).unwrap().as_deref(), Some("dry_human_s3cret"));
        }
        assert!(find(Some(&folder.path().join("none")), None).is_err(), "a file that is named must be there");
        assert_eq!(find(None, Some(&folder.path().join("none"))).unwrap(), None);
        for wrong in ["", "\n", "two words", "two\nlines", "caf\u{e9}"] {
            fs::write(folder.path().join("wrong"), wrong).unwrap();
            fs::set_permissions(folder.path().join("wrong"), Permissions::from_mode(0o600)).unwrap();
            let refusal = find(Some(&folder.path().join("wrong")), None).unwrap_err().to_string();
            assert!(wrong.len() < 3 || !refusal.contains(wrong), "{refusal}");
        }
    }
}
