//! Creates plans: combines an action or a plain task with its arguments, profile and agents into one stored
//! plan.

use std::collections::BTreeMap;

use drydock_domain::{
    Action, ActionArgument, BRANCHES, Budget, BudgetError, CreatePlan, Invariant, InvariantScope, Name,
    Phase, Plan, PlanAgents, PlanId, PlanSpec, Profile, Project, Target, Validation, create_alerting,
    shell_word,
};

use crate::action_file::{render, rule_of};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::look::{AgentSource, ConfiguredAgent};
use crate::task;

/// The action name of a plan that was created from a plain task.
const PLAIN_TASK: &str = "run";
/// How many uncommitted files are named.
const PATHS_NAMED_MAX: usize = 5;

/// A request for a plan.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// The action or task to do.
    pub asked: PlanSource,
    /// The project to work on.
    pub project: String,
    /// The branch to land on; default: the project's.
    pub target: Option<String>,
    /// The profile; default: the action's, else the configured one.
    pub profile: Option<String>,
    /// The agent that replaces the action's.
    pub agent: Option<String>,
    /// Rules for this plan alone.
    pub invariants: Vec<InvariantInput>,
    /// The budget, such as `tokens=200k,wall=30m`. The smallest of this one, the action's and the profile's
    /// applies.
    pub budget: Option<String>,
    /// The id of the plan, if an earlier attempt may have created it; default: a new id.
    pub id: Option<PlanId>,
}

/// The action or task that a plan is asked to do.
#[derive(Debug, Clone)]
pub enum PlanSource {
    /// An action with arguments.
    Action {
        /// The name of the action.
        name: String,
        /// The arguments by name.
        arguments: BTreeMap<String, String>,
    },
    /// A task in words.
    Task(String),
}

/// An invariant as a person enters it.
#[derive(Debug, Clone, Default)]
pub struct InvariantInput {
    /// The name of the invariant.
    pub name: String,
    /// The rule as a CEL expression. Exactly one of `cel`, `command` and `text` must be set.
    pub cel: Option<String>,
    /// The rule as a command.
    pub command: Option<String>,
    /// The rule as text.
    pub text: Option<String>,
    /// The phases before which the rule is enforced; all if empty.
    pub at: Vec<Phase>,
}

impl InvariantInput {
    /// Returns the invariant at a scope, or an error if it is not valid.
    pub(crate) fn at_scope(self, scope: InvariantScope) -> Result<Invariant, EngineError> {
        let refuse = |text: String| EngineError::invalid(text, "see `drydock invariant add --help`");
        let name: Name =
            self.name.parse().map_err(|error: drydock_domain::NameError| refuse(error.to_string()))?;
        let rule = rule_of(&name, self.cel, self.command, self.text).map_err(refuse)?;
        let at = if self.at.is_empty() { Phase::ALL.to_vec() } else { self.at };
        Ok(Invariant { name, scope, rule, at, locked: false })
    }
}

impl Engine {
    /// Creates a plan in `strategize/queued`, with the current tip of its target as the base.
    pub async fn create_plan(&self, request: PlanRequest, by: &str) -> Result<Plan, EngineError> {
        if let Some(id) = &request.id
            && let Some(plan) = self.store().plan_fetch(id).await?
        {
            return Ok(plan);
        }
        let project = self.project(&request.project).await?;
        let id = request.id.clone().unwrap_or_else(|| self.fresh_plan());
        let target = request.target.clone().unwrap_or_else(|| project.target.clone());
        not_of_a_plan(&target, &project.repo)?;
        let base_commit = self.target_tip(&project, &target).await?;
        let mut spec = self.spec(&project, request, &id).await?;
        spec.target = Target::branch(target);
        let repository = self.repository(&project).await?;
        // All reads that can fail come before the commit: a plan that was created is never answered with an
        // error.
        let unseen = task::blocking(move || -> Result<_, EngineError> {
            repository.require_room()?;
            Ok(repository.dirty_paths()?)
        })
        .await?;
        let new = CreatePlan { id, spec, base_commit };
        let hold = self.lock_plan(&new.id, "make the plan").await?;
        let transition = create_alerting(new, not_part_of_it(&unseen), &self.context(by.into()));
        let made = self.store().plan_create(hold.lease(), transition).await;
        hold.release().await;
        Ok(made?)
    }

    async fn spec(
        &self,
        project: &Project,
        request: PlanRequest,
        id: &PlanId,
    ) -> Result<PlanSpec, EngineError> {
        let mut invariants = Vec::new();
        for rule in request.invariants {
            let rule = rule.at_scope(InvariantScope::Plan(id.clone()))?;
            self.refuse_locked(&rule).await?;
            invariants.push(rule);
        }
        let mut spec = match request.asked {
            PlanSource::Task(task) => self.plain_spec(project, task, request.profile)?,
            PlanSource::Action { name, arguments } => {
                let action = self.action(&name).await?;
                self.action_spec(project, action, arguments, request.profile)?
            }
        };
        spec.invariants.extend(invariants);
        spec.budget = spec.budget.smallest(spec.profile.budget);
        if let Some(text) = &request.budget {
            let asked: Budget = text.parse().map_err(|error: BudgetError| {
                EngineError::invalid(error.to_string(), "leave a part out to set no limit")
            })?;
            spec.budget = spec.budget.smallest(asked);
        }
        if let Some(agent) = request.agent {
            spec.agents.execute = Some(agent);
        }
        self.require_agents(&spec.agents)?;
        Ok(spec)
    }

    /// Returns the spec of a subplan. Its profile is the one of its action, or the parent's if the action
    /// names none.
    pub(crate) async fn piece_spec(
        &self,
        project: &Project,
        asked: PlanSource,
        parent: &Profile,
    ) -> Result<PlanSpec, EngineError> {
        let (mut spec, own) = match asked {
            PlanSource::Task(task) => (self.plain_spec(project, task, None)?, false),
            PlanSource::Action { name, arguments } => {
                let action = self.action(&name).await?;
                let own = action.profile.is_some();
                (self.action_spec(project, action, arguments, None)?, own)
            }
        };
        if own {
            // The parent's Apply lands the subplan.
            spec.profile.asks_before.retain(|phase| *phase != Phase::Apply);
            spec.budget = spec.budget.smallest(spec.profile.budget);
        } else {
            spec.profile = Profile { asks_before: Vec::new(), ..parent.clone() };
        }
        Ok(spec)
    }

    fn plain_spec(
        &self,
        project: &Project,
        task: String,
        profile: Option<String>,
    ) -> Result<PlanSpec, EngineError> {
        if task.trim().is_empty() {
            return Err(EngineError::invalid("the task is empty", "describe the task in a sentence"));
        }
        Ok(PlanSpec {
            action: PLAIN_TASK.parse().expect("the constant is a valid name"),
            project: project.name.clone(),
            target: Target::branch(&project.target),
            task,
            definition_of_done: None,
            arguments: BTreeMap::new(),
            profile: self.profile(profile.as_deref())?,
            agents: PlanAgents::default(),
            validations: project.validations.clone(),
            invariants: Vec::new(),
            allow_empty: false,
            budget: Budget::UNLIMITED,
        })
    }

    fn action_spec(
        &self,
        project: &Project,
        action: Action,
        given: BTreeMap<String, String>,
        profile: Option<String>,
    ) -> Result<PlanSpec, EngineError> {
        let arguments = complete(&action.arguments, given, &action.name)?;
        let rendered = |template: &str| {
            render(template, &arguments).map_err(|error| {
                let text =
                    format!("the task template of action {} could not be rendered: {error}", action.name);
                EngineError::invalid(text, "declare the name under [arguments] in the action's file")
            })
        };
        let task = rendered(&action.description)?;
        let definition_of_done = action.definition_of_done.as_deref().map(rendered).transpose()?;
        Ok(PlanSpec {
            project: project.name.clone(),
            target: Target::branch(&project.target),
            task,
            definition_of_done,
            profile: self.profile(profile.or(action.profile).as_deref())?,
            agents: action.agents,
            validations: merged(action.validations, &project.validations),
            invariants: action.invariants,
            allow_empty: action.allow_empty,
            budget: action.budget,
            action: action.name,
            arguments,
        })
    }

    fn profile(&self, name: Option<&str>) -> Result<Profile, EngineError> {
        let name = name.unwrap_or(&self.settings().default_profile);
        let known = &self.settings().profiles;
        known
            .iter()
            .find(|profile| profile.name == name)
            .cloned()
            .ok_or_else(|| EngineError::absent("profile", name))
    }

    /// Returns the agent that does the work of a plan: the one that the plan names, else `[defaults] agent`.
    pub(crate) fn writer<'e>(&'e self, roles: &'e PlanAgents) -> Option<&'e str> {
        roles.execute.as_deref().or(self.settings().default_agent.as_deref())
    }

    /// Refuses a plan without an agent, and agents that the configuration does not have. Whether their
    /// programs are installed is known only on the machine where they run.
    fn require_agents(&self, roles: &PlanAgents) -> Result<(), EngineError> {
        self.known_agents(roles)?;
        match (self.writer(roles), &roles.strategize) {
            (Some(writer), _) => self.known_agent(writer),
            // The subplans of a strategy may name their own agents.
            (None, Some(_)) => Ok(()),
            (None, None) => {
                let usable = |entry: &ConfiguredAgent| entry.found || entry.source == AgentSource::Configured;
                let usable = self.agents().into_iter().filter(usable).map(|entry| entry.name).collect();
                Err(EngineError::NoAgent { usable })
            }
        }
    }

    /// Refuses agents that this process is not configured with.
    pub(crate) fn known_agents(&self, roles: &PlanAgents) -> Result<(), EngineError> {
        let reviewers = roles.reviewers.iter().map(|reviewer| &reviewer.agent);
        roles
            .strategize
            .iter()
            .chain(&roles.execute)
            .chain(reviewers)
            .try_for_each(|name| self.known_agent(name))
    }

    fn known_agent(&self, name: &str) -> Result<(), EngineError> {
        match self.settings().agents.contains_key(name) {
            true => Ok(()),
            false => Err(EngineError::unknown_agent(name)),
        }
    }

    /// Returns the commit at the tip of a branch of the project.
    pub(crate) async fn target_tip(&self, project: &Project, target: &str) -> Result<String, EngineError> {
        let repository = self.repository(project).await?;
        let branch = target.to_owned();
        task::blocking(move || match repository.branch_tip(&branch)? {
            Some(tip) => Ok(tip.to_string()),
            None => Err(EngineError::absent_in("branch", branch, repository.root())),
        })
        .await
    }
}

/// Refuses a target branch that belongs to a plan.
pub(crate) fn not_of_a_plan(target: &str, repo: &str) -> Result<(), EngineError> {
    if target.starts_with(BRANCHES) {
        let hint = format!("name another branch; `git -C {} branch` lists them", shell_word(repo));
        return Err(EngineError::invalid(
            format!("{target} is the branch of a plan, and plans cannot land there"),
            hint,
        ));
    }
    Ok(())
}

/// Returns the alert about uncommitted changes, which are not part of the plan.
fn not_part_of_it(unseen: &[String]) -> Option<String> {
    let named = unseen.iter().take(PATHS_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let text = || format!("{} uncommitted changes are not part of the plan: {named}", unseen.len());
    (!unseen.is_empty()).then(text)
}

/// Returns the arguments with defaults filled in. An unknown or missing argument is an error that lists all
/// arguments of the action.
fn complete(
    declared: &BTreeMap<Name, ActionArgument>,
    given: BTreeMap<String, String>,
    action: &Name,
) -> Result<BTreeMap<String, String>, EngineError> {
    let known = || match declared.keys().map(Name::as_str).collect::<Vec<_>>() {
        names if names.is_empty() => format!("action {action} takes no arguments"),
        names => format!("action {action} takes: {}", names.join(", ")),
    };
    if let Some(unknown) = given.keys().find(|name| declared.keys().all(|key| key.as_str() != name.as_str()))
    {
        return Err(EngineError::invalid(format!("action {action} has no argument {unknown:?}"), known()));
    }
    let mut arguments = given;
    for (name, argument) in declared {
        match (arguments.contains_key(name.as_str()), &argument.default, argument.required) {
            (true, _, _) => {}
            (false, Some(default), _) => {
                arguments.insert(name.to_string(), default.clone());
            }
            (false, None, true) => {
                let text = format!("action {action} needs the argument {name:?}", name = name.as_str());
                return Err(EngineError::invalid(text, format!("add --arg {name}=VALUE; {}", known())));
            }
            (false, None, false) => {
                arguments.insert(name.to_string(), String::new());
            }
        }
    }
    Ok(arguments)
}

/// Returns the action's validations, and those of the project whose names the action does not use.
fn merged(mut validations: Vec<Validation>, project: &[Validation]) -> Vec<Validation> {
    for validation in project {
        if validations.iter().all(|own| own.name != validation.name) {
            validations.push(validation.clone());
        }
    }
    validations
}
