//! Projects as text: one in full, many in a table.

use drydock_api::{Project, Validation};
use jiff::Timestamp;

use super::columns::{Block, Cell, table};
use super::style::{STRONG, paint};
use super::time::ago;

/// Returns a table of projects.
pub(crate) fn list(projects: &[Project]) -> String {
    let rows = projects.iter().map(|project| {
        [
            Cell::styled(STRONG, &project.name),
            Cell::new(&project.target),
            Cell::new(project.remote.as_deref().unwrap_or("-")),
            Cell::new(&project.repo),
        ]
    });
    table(["NAME", "TARGET", "REMOTE", "REPOSITORY"], rows.collect())
}

/// Returns a project in full.
pub(crate) fn show(project: &Project, now: Timestamp) -> String {
    let mut block = Block::default()
        .line(paint(STRONG, &project.name))
        .field("repository", &project.repo)
        .field("target", &project.target)
        .maybe("remote", project.remote.as_ref())
        .maybe("diverged", project.on_divergence.map(|policy| policy.name().to_owned()).as_ref());
    for validation in &project.validations {
        block = block.field("validation", validation_line(validation));
    }
    block.field("added", ago(&project.created_at, now)).done()
}

/// Returns a validation in a line.
pub(crate) fn validation_line(validation: &Validation) -> String {
    let weight = if validation.required { "" } else { " (informational)" };
    format!("{}: {}{weight}", validation.name, validation.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;

    #[test]
    fn a_project_says_what_its_plans_must_pass() {
        let project = Project {
            name: "site".into(),
            repo: "/r".into(),
            target: "main".into(),
            remote: None,
            on_divergence: None,
            validations: vec![Validation {
                name: "tests".into(),
                command: "make test".into(),
                required: false,
                timeout_s: None,
            }],
            created_at: "2026-03-10T11:57:00Z".into(),
        };
        let text = bare(&show(&project, "2026-03-10T12:00:00Z".parse().unwrap()));
        assert!(text.contains("  validation  tests: make test (informational)\n"), "{text}");
        assert!(bare(&list(&[project])).ends_with("site  main    -       /r\n"));
    }
}
