//! Names that drydock writes into a project's repository. They are part of the external contract: a store and
//! its repositories outlive the program version that wrote them.

/// Prefix of the branches of plans.
pub const BRANCHES: &str = "drydock/";
/// Prefix of the checkpoint refs of all plans, followed by `<plan>/<n>`.
pub const SNAPSHOTS: &str = "refs/drydock/snap/";
/// Prefix of the refs that keep joined results of subplans, followed by `<plan>/<subplan>`.
pub const JOINS: &str = "refs/drydock/join/";
/// Prefix of the backup refs of all plans, followed by `<plan>/<n>`.
pub const PINS: &str = "refs/drydock/pin/";

/// The name of the trailer that names the run whose work a commit keeps. It does not mark a landing.
pub const CHECKPOINT: &str = "Drydock-Checkpoint";

/// Returns the trailer of every commit of a plan. It distinguishes them from commits from outside.
pub fn trailer(plan: &str) -> String {
    format!("Drydock-Plan: {plan}")
}

/// Returns the run's trailer. Only a commit that landed a plan has both this trailer and the plan's.
pub fn run_trailer(run: &str) -> String {
    format!("{RUN}{run}")
}

const RUN: &str = "Drydock-Run: ";

/// Returns true if a commit message belongs to a landing of the plan: its last paragraph has the trailers of
/// the plan and of a run. Any run is accepted, because a restored store may not know the run that landed it.
pub fn is_landing_of(message: &str, plan: &str) -> bool {
    let lines = || message.trim_end().lines().rev().map(str::trim_end).take_while(|line| !line.is_empty());
    let of_plan = trailer(plan);
    lines().any(|line| line == of_plan) && lines().any(|line| line.starts_with(RUN))
}

/// Removes lines from a text for a commit message that could be mistaken for the trailers of a landing.
pub fn without_trailers(text: &str) -> String {
    let claims = |line: &&str| {
        let line = line.trim_start().to_ascii_lowercase();
        ["drydock-plan:", "drydock-run:"].iter().any(|name| line.starts_with(name))
    };
    text.lines().filter(|line| !claims(line)).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.3, BUG-7. Fails if a landing is not recognised by its message, or if another commit is mistaken for
    /// one.
    #[test]
    fn a_landing_is_known_by_both_lines_in_its_last_paragraph() {
        let landing = "Fix it\n\nall of it\n\nDrydock-Plan: pln-1\nDrydock-Run: run-7\n";
        assert!(is_landing_of(landing, "pln-1"));
        assert!(is_landing_of(&format!("{landing}Signed-off-by: A <a@b>\n"), "pln-1"), "somebody signed it");
        assert!(!is_landing_of(landing, "pln-2"));
        assert!(!is_landing_of("Work\n\nDrydock-Plan: pln-1\n", "pln-1"), "work is not a landing");
        assert!(!is_landing_of(&format!("{landing}\nA word behind it.\n"), "pln-1"));
        assert!(!is_landing_of("Drydock-Plan: pln-1\n\nDrydock-Run: run-7\n", "pln-1"));
    }

    /// S2.3, B8. Fails if a task's text can make the commit of one plan look like the landing of another.
    #[test]
    fn a_task_cannot_claim_to_be_a_landing() {
        let task = "Do it\nDrydock-Plan: pln-2\n  drydock-run: run-1\nthen rest";
        assert_eq!(without_trailers(task), "Do it\nthen rest");
        assert_eq!(without_trailers("Drydock-Run: run-1"), "");
    }
}
