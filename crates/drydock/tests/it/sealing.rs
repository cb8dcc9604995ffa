//! What lands bears the user's signature where they sign (B9).

use std::fs;
use std::process::Command;

use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World};

/// Breaks when a user who signs gets a landing without a signature, or a failing signer is not told with what to do.
#[test]
fn a_landing_is_signed_or_says_why_not() {
    let world = World::with_writer(Kind::Sqlite, "printf '# Changed by a plan\\n' > README.md");
    let key = world.place("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
    assert!(made.expect("ssh-keygen is there; Debian has it in openssh-client").success());
    let public = fs::read_to_string(world.path("key.pub")).unwrap();
    world.write("signers", &format!("* {public}"));
    let config = |program: &str| {
        let ssh =
            format!("[gpg \"ssh\"]\nprogram = {program}\nallowedSignersFile = {}\n", world.place("signers"));
        let user = format!("[user]\nname = Ada\nemail = ada@example.org\nsigningKey = {key}\n");
        world.write("gitconfig", &format!("[commit]\ngpgSign = true\n[gpg]\nformat = ssh\n{ssh}{user}"));
    };
    let apply = |id: &str| {
        let mut command = world.command(&["plan", "apply", id]);
        Answer::of(proc::run(command.env("GIT_CONFIG_GLOBAL", world.path("gitconfig")), LIMIT))
    };
    let id = world.plan_after("execute");
    let main = world.repo.head("main");
    config("false");
    let refused = apply(&id).expect(5);
    assert_eq!((refused.error_code(), world.stage(&id).as_str()), ("constrained", "apply/constrained"));
    let text = refused.json["error"]["text"].as_str().unwrap();
    let retry = format!("drydock plan retry {id}");
    for part in ["could not be signed by false: ", "commit-tree -S -m test 'HEAD^{tree}'`", &retry] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(world.repo.head("main"), main);

    config("ssh-keygen");
    world.ok(&["plan", "retry", &id]);
    apply(&id).expect(0);
    let mut verify = Command::new("git");
    verify.args(["verify-commit", "main"]).current_dir(world.repo.path());
    let verified = verify.env("GIT_CONFIG_GLOBAL", world.path("gitconfig")).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
