//! Writes the output of a run's agents and commands to the run's log. If the log cannot be written, the run
//! warns once and continues.

use std::io;

use drydock_agent::{AgentSpec, Signal};
use drydock_domain::{Event, Phase, Plan, RunId, error_chain};
use tokio::sync::mpsc;

use super::scope::RunContext;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::run_log::RunLog;

/// Returns the log of a run. Nothing is written yet.
pub(super) fn log_of(engine: &Engine, plan: &Plan, run: &RunId) -> RunLog {
    let agents = &plan.spec.agents;
    let name = match plan.stage.phase() {
        Phase::Strategize => agents.strategize.as_deref(),
        Phase::Execute => engine.writer(agents),
        Phase::Apply => None,
    };
    let spec = name.and_then(|name| engine.settings().agents.get(name));
    let directory = engine.settings().logs.join(plan.id.as_str()).join(run.as_str());
    RunLog::new(directory, spec.map_or(AgentSpec::OUTPUT_MAX, AgentSpec::output_max))
}

impl RunContext<'_> {
    /// Starts the log, so that a run without a log is known to have run on another machine. An Apply has a
    /// log only if a validation prints: `plan log` of a landed plan shows the newest log, which is then that
    /// of its agent.
    pub(super) async fn begin_log(&self) -> Result<(), EngineError> {
        let phase = self.plan.stage.phase();
        if phase == Phase::Apply {
            return Ok(());
        }
        self.log.notice(&format!("{phase} begins, run {}", self.run));
        self.flush_log().await
    }

    pub(super) async fn flush_log(&self) -> Result<(), EngineError> {
        match self.log.flush().await {
            Some(error) => self.warn_log(&error).await,
            None => Ok(()),
        }
    }

    /// Writes the remaining lines after the run has ended.
    pub(super) async fn finish_log(&self) {
        if let Some(error) = self.log.finish().await
            && let Err(error) = self.warn_log(&error).await
        {
            tracing::warn!(run = %self.run, error = %error_chain(&error), "could not record that the log is not complete");
        }
    }

    async fn warn_log(&self, error: &io::Error) -> Result<(), EngineError> {
        let (plan, run) = (&self.plan.id, &self.run);
        tracing::warn!(%plan, %run, error = %error_chain(error), "could not write the log of a run; the run continues");
        let text = format!("the log of run {run} of {plan} could not be written: {error}; the run continues");
        self.emit(Event::Alert { priority: "low", text }).await
    }

    /// Writes the output of a command to the log as it arrives, until the command ends.
    pub(super) async fn print(
        &self,
        stream: &str,
        mut lines: mpsc::Receiver<Signal>,
    ) -> Result<(), EngineError> {
        while let Some(signal) = lines.recv().await {
            if let Signal::Log { line, .. } = signal {
                self.log.line(stream, &line);
            }
            if lines.is_empty() || self.log.is_full() {
                self.flush_log().await?;
            }
        }
        self.flush_log().await
    }
}
