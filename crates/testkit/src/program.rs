//! The programs of this crate, for tests of other crates: cargo gives the path of a program only to its own package.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Returns the test agent for the Agent Client Protocol, and builds it if needed.
#[track_caller]
pub fn acp_agent() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        // The path of a test is <target>/<profile>/deps/<name>.
        let test = std::env::current_exe().expect("a test has a path");
        let profile = test.ancestors().nth(2).expect("a test lies below the target directory").to_owned();
        let target = profile.parent().expect("a profile's directory lies in the target directory");
        let mut build = Command::new(option_env!("CARGO").unwrap_or("cargo"));
        build.args(["build", "--quiet", "--offline", "--package", "drydock-testkit", "--bin", "acp-agent"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let done = build.arg("--target-dir").arg(target).current_dir(root).output();
        let done = done.expect("cargo is there, it runs the tests");
        assert!(
            done.status.success(),
            "could not build acp-agent: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        profile.join("acp-agent").to_str().expect("the target directory is text").to_owned()
    })
}
