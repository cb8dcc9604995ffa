//! Spawns child plans for subplans: determines the spec of each and the parts inherited from the parent. All
//! children are created in one commit.

use drydock_domain::{
    Command, ErrorClass, Failure, Fanout, Inherited, NewChild, Plan, PlanSpec, Remains, SpawnChild, Subplan,
    SubplanStatus, SubplanTask, SubplanUpdate, Target,
};

use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::make::PlanSource;
use crate::rule::effective_for;

impl Engine {
    /// Spawns a child for each subplan that has none; returns true if there were any. If the remaining budget
    /// is too small for all of them, a person is asked once, instead of once per child with an empty budget.
    pub(super) async fn spawn_children(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        fanout: &Fanout,
    ) -> Result<bool, EngineError> {
        let unborn = |piece: &&Subplan| piece.fate == SubplanStatus::Open && piece.child.is_none();
        if !fanout.pieces.iter().any(|piece| unborn(&piece)) {
            return Ok(false);
        }
        if !plan.left().suffices_for(plan.parts()) {
            self.issue(hold, Command::Exhaust { run: None, work: Remains::Work(None) }, WORKER).await?;
            return Ok(true);
        }
        let count = fanout.unspawned().count();
        let inherited = Inherited::of(plan, effective_for(self, plan).await?, count);
        let (mut births, mut stillborn) = (Vec::new(), Vec::new());
        for (index, piece) in fanout.pieces.iter().enumerate().filter(|(_, piece)| unborn(piece)) {
            match self.child_spec(plan, piece).await {
                Ok(spec) => {
                    let child = NewChild { id: self.fresh_plan(), spec, inherited: inherited.clone() };
                    births.push(SpawnChild { piece: index, child });
                }
                // An action, project or agent named by the strategy existed when the strategy was adopted,
                // and has been removed since.
                Err(error @ (EngineError::Absent(_) | EngineError::Invalid { .. })) => {
                    let failure = Failure::new(ErrorClass::SubplanFailed, error.to_string());
                    stillborn.push(SubplanUpdate::Failed { piece: index, run: None, failure });
                }
                Err(error) => return Err(error),
            }
        }
        if !births.is_empty() {
            self.issue(hold, Command::Spawn(births), WORKER).await?;
        }
        if !stillborn.is_empty() {
            self.issue(hold, Command::Tend(stillborn), WORKER).await?;
        }
        Ok(true)
    }

    /// Returns the spec of the child plan that does a subplan.
    pub(super) async fn child_spec(&self, parent: &Plan, piece: &Subplan) -> Result<PlanSpec, EngineError> {
        let project = piece.project.as_ref().unwrap_or(&parent.spec.project);
        let mut project = self.project(project.as_str()).await?;
        // The project's validations apply to the merged result, not to a single subplan. The validations of
        // the subplan's own action apply to the subplan.
        if piece.project.is_none() {
            project.validations = Vec::new();
        }
        let asked = match &piece.task {
            SubplanTask::Words(task) => PlanSource::Task(task.clone()),
            SubplanTask::Action { name, arguments } => {
                PlanSource::Action { name: name.clone(), arguments: arguments.clone() }
            }
        };
        let in_words = matches!(asked, PlanSource::Task(_));
        let mut spec = self.piece_spec(&project, asked, &parent.spec.profile).await?;
        if let Some(agent) = &piece.agent {
            spec.agents.execute = Some(agent.clone());
        } else if in_words {
            spec.agents.execute.clone_from(&parent.spec.agents.execute);
        }
        self.known_agents(&spec.agents)?;
        spec.target = Target::branch(parent.target(&project));
        spec.allow_empty = true;
        Ok(spec)
    }
}
