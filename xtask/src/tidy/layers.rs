//! The rule about dependencies between crates: `domain` and `trust` at the bottom, then `store`, `worktree` and
//! `agent` side by side, then `engine`, and the binary on top. The test kit is for tests only.

use super::rules::Violation;
use super::tree::{SourceTree, crate_of};

/// The folder of each crate, and the crates it may depend on. A crate that is not listed is refused too.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("trust", &[]),
    ("store", &["domain", "trust"]),
    ("worktree", &["domain"]),
    ("agent", &["domain"]),
    ("engine", &["domain", "store", "worktree", "agent", "trust"]),
    ("api", &["domain", "trust"]),
    ("drydock", &["domain", "store", "worktree", "agent", "engine", "api"]),
    ("testkit", &["domain", "store", "worktree", "agent", "engine", "api"]),
    ("xtask", &["domain", "store", "worktree", "agent", "engine", "api", "drydock", "testkit"]),
];

const TEST_KIT: &str = "testkit";

/// Crates depend only on the layers below them.
pub(crate) fn crates_depend_downwards(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.texts().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Some(name) = crate_of(&file.path) else { continue };
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            found.push(Violation::new(&file.path, 1, format!("`{name}` has no layer")));
            continue;
        };
        let wrong = dependencies(&file.text).into_iter().filter(|dependency| !permitted(dependency, allowed));
        found.extend(wrong.map(|dependency| {
            let text = format!("`{name}` may not depend on `{}`{}", dependency.on, dependency.kind.shown());
            Violation::new(&file.path, dependency.line, text)
        }));
    }
    found
}

fn permitted(dependency: &Dependency<'_>, allowed: &[&str]) -> bool {
    match dependency.kind {
        DependencyKind::Normal => allowed.contains(&dependency.on),
        DependencyKind::Dev => allowed.contains(&dependency.on) || dependency.on == TEST_KIT,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DependencyKind {
    Normal,
    Dev,
}

impl DependencyKind {
    fn shown(self) -> &'static str {
        match self {
            Self::Normal => "",
            Self::Dev => ", not even in its tests",
        }
    }
}

struct Dependency<'a> {
    on: &'a str,
    kind: DependencyKind,
    line: usize,
}

/// Returns the dependencies on our own crates: any mention in a table of dependencies, including renamed ones.
fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut table = None;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim_start().starts_with('[') {
            table = table_kind(line);
        }
        let Some(kind) = table else { continue };
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        let ours =
            words.filter_map(|word| word.strip_prefix("drydock-").or((word == "drydock").then_some(word)));
        // `path = "../store"` beside the name is the same dependency.
        let mut on: Vec<&str> = ours.collect();
        on.dedup();
        found.extend(on.into_iter().map(|on| Dependency { on, kind, line: index + 1 }));
    }
    found
}

/// Returns the kind of dependencies that a table lists, if any.
fn table_kind(heading: &str) -> Option<DependencyKind> {
    if heading.contains("dev-dependencies") {
        Some(DependencyKind::Dev)
    } else {
        heading.contains("dependencies").then_some(DependencyKind::Normal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result if no line is refused.
    const NONE: [usize; 0] = [];

    fn refused(name: &str, manifest: &str) -> Vec<usize> {
        let path =
            if name == "xtask" { "xtask/Cargo.toml".to_owned() } else { format!("crates/{name}/Cargo.toml") };
        let found = crates_depend_downwards(&SourceTree::of(&[(&path, manifest)]));
        found.into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_dependency_upwards_or_sideways_is_refused() {
        for (name, on) in [
            ("domain", "store"),
            ("store", "worktree"),
            ("worktree", "agent"),
            ("agent", "store"),
            ("api", "engine"),
            ("engine", "api"),
            ("engine", "drydock"),
        ] {
            let on = if on == "drydock" { on.to_owned() } else { format!("drydock-{on}") };
            assert_eq!(
                refused(name, &format!("[dependencies]\n{on}.workspace = true\n")),
                [2],
                "{name} on {on}"
            );
            assert_eq!(refused(name, &format!("[dependencies]\nx = {{ package = \"{on}\" }}\n")), [2]);
            assert_eq!(refused(name, &format!("[dependencies.{on}]\nworkspace = true\n")), [1]);
            assert_eq!(
                refused(name, &format!("[target.'cfg(unix)'.dependencies]\n{on} = {{ path = \"..\" }}\n")),
                [2]
            );
            assert_eq!(refused(name, &format!("[dev-dependencies]\n{on}.workspace = true\n")), [2]);
        }
    }

    #[test]
    fn the_kit_for_tests_is_refused_outside_tests() {
        assert_eq!(refused("drydock", "[dependencies]\ndrydock-testkit.workspace = true\n"), [2]);
        assert_eq!(refused("store", "[dev-dependencies]\ndrydock-testkit.workspace = true\n"), NONE);
        assert_eq!(refused("xtask", "[dependencies]\ndrydock-testkit.workspace = true\n"), NONE);
    }

    #[test]
    fn a_dependency_downwards_and_the_package_itself_are_fine() {
        let manifest = "[package]\nname = \"drydock-engine\"\n[dependencies]\ndrydock-domain.workspace = true # drydock\n";
        assert_eq!(refused("engine", manifest), NONE);
    }

    #[test]
    fn a_crate_without_a_place_is_refused() {
        assert_eq!(refused("extra", "[package]\nname = \"drydock-extra\"\n"), [1]);
    }
}
