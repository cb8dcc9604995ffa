//! Signing of landings: by the user's configuration, never by the repository's (B9).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use drydock_worktree::{CommitId, Signed};

use crate::fixture::{Fixture, ada, write};

impl Fixture {
    fn global(&self, key: &str, value: &str) {
        self.user(&["config", "--global", key, value], &self.repo());
    }

    /// Creates a key, and configures the user to sign with it.
    fn sign_by_ssh(&self, passphrase: &str) {
        let key = self.path("home/key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", passphrase, "-f", key.to_str().unwrap()])
            .status()
            .expect("ssh-keygen is there; Debian has it in openssh-client");
        assert!(made.success());
        let signers = self.path("home/signers");
        write(
            &signers,
            &format!("ada@example.org {}", fs::read_to_string(self.path("home/key.pub")).unwrap()),
        );
        self.global("commit.gpgSign", "true");
        self.global("gpg.format", "ssh");
        self.global("user.signingKey", "~/key");
        self.global("gpg.ssh.allowedSignersFile", signers.to_str().unwrap());
    }

    fn program(&self, name: &str, script: &str) -> String {
        let path = self.path(name);
        write(&path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn signed(&self) -> Signed {
        let (repository, base) = (self.open(), self.tip("main"));
        let tree = self.user(&["rev-parse", "main^{tree}"], &self.repo()).parse().unwrap();
        repository.commit_signed(&tree, &[base], "lands", &ada()).unwrap()
    }

    fn is_good(&self, commit: &CommitId) -> bool {
        self.user_command(
            &["-c", "gpg.ssh.program=ssh-keygen", "verify-commit", commit.as_str()],
            &self.repo(),
        )
        .output()
        .unwrap()
        .status
        .success()
    }
}

#[track_caller]
fn written(signed: Signed) -> CommitId {
    match signed {
        Signed::Written(commit) => commit,
        Signed::Refused { .. } => panic!("{signed:?}"),
    }
}

#[track_caller]
fn refused(signed: Signed, by: &str, words: &str) {
    match signed {
        Signed::Refused { ref program, ref reason } => {
            assert!(program == by && reason.contains(words), "{signed:?}");
            assert!(!reason.contains("[GNUPG:]") && !reason.contains('\n'), "{reason}");
        }
        Signed::Written(_) => panic!("{signed:?}"),
    }
}

/// Breaks when a landing of a user who signs is not signed, or is signed by a program, format or key from the
/// repository's configuration.
#[test]
fn the_users_key_signs_and_what_the_repository_names_does_not_run() {
    let fixture = Fixture::new();
    assert!(!fixture.is_good(&written(fixture.signed())), "nobody asked for it");
    fixture.sign_by_ssh("");
    assert!(fixture.is_good(&written(fixture.signed())));

    let witness = fixture.path("ran");
    let evil = fixture.program("evil", &format!("echo ran >> {}; exit 1", witness.display()));
    let programs = [
        "gpg.program",
        "gpg.openpgp.program",
        "gpg.x509.program",
        "gpg.ssh.program",
        "gpg.ssh.defaultKeyCommand",
    ];
    for key in programs {
        fixture.user(&["config", key, &evil], &fixture.repo());
    }
    for (key, value) in [("gpg.format", "openpgp"), ("user.signingKey", "other"), ("commit.gpgSign", "false")]
    {
        fixture.user(&["config", key, value], &fixture.repo());
    }
    assert!(fixture.is_good(&written(fixture.signed())));

    fixture.user(&["config", "--global", "--unset", "user.signingKey"], &fixture.repo());
    refused(fixture.signed(), "ssh-keygen", "user.signingKey is not set in the user's");
    fixture.global("commit.gpgSign", "false");
    fixture.user(&["config", "commit.gpgSign", "true"], &fixture.repo());
    written(fixture.signed());
    assert!(!witness.exists());
}

/// Breaks when the message of a failing signer is lost, or when a signer that prompts blocks.
#[test]
fn a_signer_that_fails_is_quoted_and_is_not_given_a_prompt() {
    let fixture = Fixture::new();
    fixture.sign_by_ssh("a passphrase");
    refused(fixture.signed(), "ssh-keygen", "incorrect passphrase supplied to decrypt private key");

    fixture.global("gpg.format", "openpgp");
    let failing =
        fixture.program("gpg", "echo 'gpg: no key for you' >&2; echo '[GNUPG:] FAILURE sign 17' >&2; exit 2");
    fixture.global("gpg.program", &failing);
    let signed = fixture.signed();
    match &signed {
        // Git 2.39 does not print gpg's message; the command in the reason prints it.
        Signed::Refused { reason, .. } if reason.starts_with("error: gpg failed to sign the data; ") => {
            let (_, shown) = reason.split_once(": '").unwrap();
            let ran = Command::new("sh").args(["-c", &format!("'{shown}")]).output().unwrap();
            assert!(String::from_utf8_lossy(&ran.stderr).contains("gpg: no key for you"), "{reason}");
        }
        _ => refused(signed, &failing, "gpg: no key for you"),
    }
    fixture.global("gpg.program", "/nowhere/gpg");
    refused(fixture.signed(), "/nowhere/gpg", "No such file");
    fixture.global("commit.gpgSign", "maybe");
    refused(fixture.signed(), "/nowhere/gpg", "neither true nor false");
}
