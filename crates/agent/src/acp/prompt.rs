//! The task as prompt text, for agents that take text.

use serde_json::Value;

use crate::task::{AgentTask, Proposal};

/// Returns a task as text. Empty parts are left out.
pub(crate) fn prompt_text(task: &AgentTask) -> String {
    let mut text = format!("{}\n", task.task.trim());
    let mut part = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{heading}\n"));
            lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        }
    };
    let done: Vec<String> = task.definition_of_done.iter().map(|done| done.trim().to_owned()).collect();
    part("Definition of done:", &done);
    part("Rules that must hold:", &task.invariants);
    part("Decisions already made:", &task.choices.iter().map(choice).collect::<Vec<_>>());
    part("Feedback on earlier attempts and answers to questions:", &task.feedback);
    text.push_str(&format!(
        "\nWork only in the directory {}, which is a git worktree. Change files; do not commit, stash, \
         switch branches or push: your changes are collected automatically.\n",
        task.worktree
    ));
    if let Some(Proposal { version, commit }) = &task.proposal {
        text.push_str(&format!(
            "\nDo not do the work: it is done and proposed as version {version} (commit {commit}, checked \
             out here). Review it against the task, change nothing, and end with a separate line that \
             contains exactly this JSON, filled in: \
             {{\"drydock\":\"verdict\",\"verdict\":\"ack\" or \"refuse\",\"version\":{version},\"reason\":\"why\"}}\n",
        ));
    }
    if task.phase == "strategize" {
        text.push_str(
            "\nDo not do the work yet, and change no file except `.drydock/strategy.json`: analyse the \
             task and decide how to do it. Write each decision to that file as \
             {\"choices\":[{\"question\",\"chosen\",\"alternatives\",\
             \"rationale\",\"confidence\",\"under\"}]}, where `under` is the question of the choice that this one depends on, if any.\n",
        );
    }
    text
}

/// Returns a task as text for an agent that resumes an earlier session. It contains everything again: some
/// parts are new, and the agent's memory of the files may be outdated.
pub(crate) fn words_again(task: &AgentTask) -> String {
    format!(
        "You have worked on this before; continue now. The directory may be a different one, and your \
         earlier changes may not be in it: check before you rely on them. The task, with all feedback \
         since then:\n\n{}",
        prompt_text(task)
    )
}

fn choice(choice: &Value) -> String {
    match (choice["question"].as_str(), choice["chosen"].as_str()) {
        (Some(question), Some(chosen)) => format!("{question} {chosen}"),
        _ => choice.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::prompt_text;
    use crate::task::AgentTask;
    use std::collections::BTreeMap;

    #[test]
    fn everything_that_was_said_is_in_the_words_and_nothing_empty_is() {
        let mut task = AgentTask {
            plan: "pln".into(),
            run: "run".into(),
            phase: "execute".into(),
            role: "writer".into(),
            task: "Fix the door".into(),
            definition_of_done: Some("it opens".into()),
            arguments: BTreeMap::new(),
            invariants: vec!["small: diff.lines_changed < 50".into()],
            choices: vec![serde_json::json!({"question": "Which hinge?", "chosen": "steel"})],
            feedback: vec!["the hinge too".into()],
            worktree: "/w".into(),
            base: "abc".into(),
            session: None,
            permitted: Default::default(),
            proposal: None,
        };
        let said = prompt_text(&task);
        for part in
            ["Fix the door\n", "- it opens", "- small: ", "- Which hinge? steel", "- the hinge too", "/w"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("strategy.json"));
        task.feedback.clear();
        task.phase = "strategize".into();
        assert!(
            !prompt_text(&task).contains("earlier attempts") && prompt_text(&task).contains("strategy.json")
        );
        task.proposal = Some(crate::task::Proposal { version: 2, commit: "def".into() });
        assert!(prompt_text(&task).contains(r#""version":2,"#));
    }
}
