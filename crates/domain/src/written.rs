//! Names that drydock writes into a project's repository. They are part of the outside contract: a store and its
//! repositories outlive the program that wrote them.

/// Where the branches of plans begin.
pub const BRANCHES: &str = "drydock/";
/// Where the snapshots of all plans are, as `<plan>/<n>`.
pub const SNAPSHOTS: &str = "refs/drydock/snap/";
/// Where the results of subplans that joined are, as `<plan>/<subplan>`.
pub const JOINS: &str = "refs/drydock/join/";
/// Where the pins of all plans are, as `<plan>/<n>`.
pub const PINS: &str = "refs/drydock/pin/";

/// The start of the line that names the run whose work a commit keeps. It is not the line of a landing.
pub const CHECKPOINT: &str = "Drydock-Checkpoint";

/// Returns the line that every commit of a plan bears, by which it is known from those of others.
pub fn trailer(plan: &str) -> String {
    format!("Drydock-Plan: {plan}")
}

/// Returns the line that, beside the plan's, only a commit that landed it bears.
pub fn run_trailer(run: &str) -> String {
    format!("{RUN}{run}")
}

/// The start of a run's line.
const RUN: &str = "Drydock-Run: ";

/// Says whether a commit message is that of a landing of a plan: the lines of the plan and of a run are both in its last
/// paragraph. Which run it was does not matter: a store that was restored knows another one.
pub fn is_landing_of(message: &str, plan: &str) -> bool {
    let lines = || message.trim_end().lines().rev().map(str::trim_end).take_while(|line| !line.is_empty());
    let of_plan = trailer(plan);
    lines().any(|line| line == of_plan) && lines().any(|line| line.starts_with(RUN))
}

/// Returns a text for a commit message without lines that could be taken for those of a landing.
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

    /// S2.3, BUG-7. Breaks when a landing is not known by its message, or another commit is taken for one.
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

    /// S2.3, B8. Breaks when a task can make the commit of one plan look like the landing of another.
    #[test]
    fn a_task_cannot_claim_to_be_a_landing() {
        let task = "Do it\nDrydock-Plan: pln-2\n  drydock-run: run-1\nthen rest";
        assert_eq!(without_trailers(task), "Do it\nthen rest");
        assert_eq!(without_trailers("Drydock-Run: run-1"), "");
    }
}
