//! Making plans: an action or a plain task, its arguments, profile and agents become one stored plan.

use std::collections::BTreeMap;

use drydock_domain::{
    Action, AgentRoles, Argument, BRANCHES, Budget, BudgetError, Invariant, InvariantScope, Name, NewPlan,
    Phase, Plan, PlanId, Profile, Project, Spec, Target, Validation, create_alerting, shell_word,
};

use crate::action_file::{render, rule_of};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::look::{AgentEntry, AgentSource};
use crate::task;

/// The action's name of a plan that was made from a plain task.
const PLAIN_TASK: &str = "run";
/// How many uncommitted files are named.
const PATHS_NAMED_MAX: usize = 5;

/// A request for a plan.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is to be done.
    pub asked: Asked,
    /// On which project.
    pub project: String,
    /// To land on which branch; else the project's.
    pub target: Option<String>,
    /// With which profile; else the action's, else the configured default.
    pub profile: Option<String>,
    /// With which agent, instead of the action's.
    pub agent: Option<String>,
    /// Rules for this plan alone.
    pub invariants: Vec<NewInvariant>,
    /// What it may use, such as `tokens=200k,wall=30m`; the smallest of this, the action's and the profile's holds.
    pub budget: Option<String>,
    /// The id that it gets, when it may have been made before; else a fresh one.
    pub id: Option<PlanId>,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Asked {
    /// An action with arguments.
    Action {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: BTreeMap<String, String>,
    },
    /// A task in words.
    Task(String),
}

/// A rule as a person gives it.
#[derive(Debug, Clone, Default)]
pub struct NewInvariant {
    /// Its name.
    pub name: String,
    /// A CEL expression, or
    pub cel: Option<String>,
    /// a command, or
    pub command: Option<String>,
    /// words.
    pub text: Option<String>,
    /// Before which phases; all when none is named.
    pub at: Vec<Phase>,
}

impl NewInvariant {
    /// Returns the invariant at a scope, or says what is wrong with it.
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
    /// Makes a plan: `strategize/queued`, its base pinned to the tip of its target.
    pub async fn use_action(&self, request: Request, by: &str) -> Result<Plan, EngineError> {
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
        // All that can fail is looked at before the plan is made: one that was made is never answered with an error.
        let unseen = task::blocking(move || -> Result<_, EngineError> {
            repository.require_room()?;
            Ok(repository.dirty_paths()?)
        })
        .await?;
        let new = NewPlan { id, spec, base_commit };
        let hold = self.hold(&new.id, "make the plan").await?;
        let transition = create_alerting(new, not_part_of_it(&unseen), &self.context(by.into()));
        let made = self.store().plan_create(hold.lease(), transition).await;
        hold.release().await;
        Ok(made?)
    }

    async fn spec(&self, project: &Project, request: Request, id: &PlanId) -> Result<Spec, EngineError> {
        let mut invariants = Vec::new();
        for rule in request.invariants {
            let rule = rule.at_scope(InvariantScope::Plan(id.clone()))?;
            self.refuse_locked(&rule).await?;
            invariants.push(rule);
        }
        let mut spec = match request.asked {
            Asked::Task(task) => self.plain_spec(project, task, request.profile)?,
            Asked::Action { name, arguments } => {
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

    /// Returns what a piece of a strategy asks for by itself, under its action's profile; under its parent's where that
    /// names none.
    pub(crate) async fn piece_spec(
        &self,
        project: &Project,
        asked: Asked,
        parent: &Profile,
    ) -> Result<Spec, EngineError> {
        let (mut spec, own) = match asked {
            Asked::Task(task) => (self.plain_spec(project, task, None)?, false),
            Asked::Action { name, arguments } => {
                let action = self.action(&name).await?;
                let own = action.profile.is_some();
                (self.action_spec(project, action, arguments, None)?, own)
            }
        };
        if own {
            // Its parent's Apply is what lands it.
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
    ) -> Result<Spec, EngineError> {
        if task.trim().is_empty() {
            return Err(EngineError::invalid("the task is empty", "say in a sentence what is to be done"));
        }
        Ok(Spec {
            action: PLAIN_TASK.parse().expect("the constant is a valid name"),
            project: project.name.clone(),
            target: Target::branch(&project.target),
            task,
            definition_of_done: None,
            arguments: BTreeMap::new(),
            profile: self.profile(profile.as_deref())?,
            agents: AgentRoles::default(),
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
    ) -> Result<Spec, EngineError> {
        let arguments = complete(&action.arguments, given, &action.name)?;
        let rendered = |template: &str| {
            render(template, &arguments).map_err(|error| {
                let text = format!("the task of action {} could not be written: {error}", action.name);
                EngineError::invalid(text, "declare the name under [arguments] in the action's file")
            })
        };
        let task = rendered(&action.description)?;
        let definition_of_done = action.definition_of_done.as_deref().map(rendered).transpose()?;
        Ok(Spec {
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

    /// Returns the agent that does the work of a plan: the one that it names, else `[defaults] agent`.
    pub(crate) fn writer<'e>(&'e self, roles: &'e AgentRoles) -> Option<&'e str> {
        roles.execute.as_deref().or(self.settings().default_agent.as_deref())
    }

    /// Refuses a plan that no agent would work on, and names of agents that the configuration does not have. Whether
    /// their programs are installed is known only where they run.
    fn require_agents(&self, roles: &AgentRoles) -> Result<(), EngineError> {
        self.known_agents(roles)?;
        match (self.writer(roles), &roles.strategize) {
            (Some(writer), _) => self.known_agent(writer),
            // The pieces of a strategy may name agents of their own.
            (None, Some(_)) => Ok(()),
            (None, None) => {
                let usable = |entry: &AgentEntry| entry.found || entry.source == AgentSource::Configured;
                let usable = self.agents().into_iter().filter(usable).map(|entry| entry.name).collect();
                Err(EngineError::NoAgent { usable })
            }
        }
    }

    /// Refuses agents that this process is not configured with.
    pub(crate) fn known_agents(&self, roles: &AgentRoles) -> Result<(), EngineError> {
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

    /// Returns the commit that a branch of the project points to.
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

/// Refuses to land on a branch that plans work on.
pub(crate) fn not_of_a_plan(target: &str, repo: &str) -> Result<(), EngineError> {
    if target.starts_with(BRANCHES) {
        let hint = format!("name another branch; `git -C {} branch` lists them", shell_word(repo));
        return Err(EngineError::invalid(
            format!("{target} is a branch of a plan, and nothing lands there"),
            hint,
        ));
    }
    Ok(())
}

/// Returns what to say about uncommitted changes, which a plan does not begin with.
fn not_part_of_it(unseen: &[String]) -> Option<String> {
    let named = unseen.iter().take(PATHS_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let text = || format!("{} uncommitted changes are not part of the plan: {named}", unseen.len());
    (!unseen.is_empty()).then(text)
}

/// Returns the arguments with defaults filled in; unknown and missing ones are errors that name all there are.
fn complete(
    declared: &BTreeMap<Name, Argument>,
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

/// Returns the action's validations and those of the project that it does not name itself.
fn merged(mut validations: Vec<Validation>, project: &[Validation]) -> Vec<Validation> {
    for validation in project {
        if validations.iter().all(|own| own.name != validation.name) {
            validations.push(validation.clone());
        }
    }
    validations
}
