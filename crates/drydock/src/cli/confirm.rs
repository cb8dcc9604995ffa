//! Questions at the prompt, read as plain lines. They work on any terminal, and Ctrl-C is an ordinary signal.

use std::io;

use drydock_api::{Code, Problem};

use super::screen::Screen;

/// A person's answer at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateAnswer {
    Yes,
    No,
    /// Show the diff, then ask again.
    Diff,
}

/// Asks a person. Anything but a clear yes counts as no.
pub(crate) async fn ask(screen: &Screen, question: &str) -> Result<GateAnswer, Box<Problem>> {
    screen.error(&format!("{question} "));
    // Reading blocks, and the event loop must keep running to receive signals.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let failed = |error: String| Problem::new(Code::Internal, format!("could not read the answer: {error}"));
    let line = line.await.map_err(|error| failed(error.to_string()))?;
    Ok(understood(&line.map_err(|error| failed(error.to_string()))?))
}

fn understood(line: &str) -> GateAnswer {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => GateAnswer::Yes,
        "d" | "diff" => GateAnswer::Diff,
        _ => GateAnswer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (line, answer) in [
            ("y\n", GateAnswer::Yes),
            ("YES\n", GateAnswer::Yes),
            ("d\n", GateAnswer::Diff),
            ("\n", GateAnswer::No),
            ("", GateAnswer::No),
            ("yo\n", GateAnswer::No),
        ] {
            assert_eq!(understood(line), answer, "{line:?}");
        }
    }
}
