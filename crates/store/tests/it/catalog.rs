//! Projects, actions and invariants.

use std::collections::BTreeMap;

use drydock_domain::{Action, Invariant, InvariantScope, Phase, PlanAgents, Project, Rule};
use drydock_store::{AddOutcome, RemoveOutcome};

use crate::world::{command, now, plan_id, queued};

on_both! {
    /// S2.1: fails if a name can be used twice, or if another connection still sees a removed entry.
    async fn projects_and_actions_are_kept_by_name(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let project = |name: &str, repo: &str| Project {
            name: name.parse().unwrap(),
            repo: repo.to_owned(),
            target: "main".to_owned(),
            remote: None,
            on_divergence: None,
            validations: Vec::new(),
            created_at: now(),
        };
        let (boat, canoe) = (project("boat", "/src/boat"), project("canoe", "/src/boat"));
        assert_eq!(store.project_add(&boat).await.unwrap(), AddOutcome::Added);
        assert_eq!(store.project_add(&project("boat", "/elsewhere")).await.unwrap(), AddOutcome::Exists);
        assert_eq!(other.project_fetch(&boat.name).await.unwrap(), Some(boat.clone()));
        store.project_add(&canoe).await.unwrap();
        assert_eq!(other.project_list().await.unwrap(), [boat.clone(), canoe.clone()]);
        assert_eq!(store.project_remove(&canoe.name).await.unwrap(), RemoveOutcome::Removed);
        assert_eq!(store.project_remove(&canoe.name).await.unwrap(), RemoveOutcome::Missing);
        assert_eq!(other.project_fetch(&canoe.name).await.unwrap(), None);

        let action = Action {
            name: "fix".parse().unwrap(),
            description: "Fix {{ what }}".to_owned(),
            definition_of_done: None,
            profile: None,
            arguments: BTreeMap::new(),
            agents: PlanAgents::default(),
            validations: Vec::new(),
            invariants: Vec::new(),
            allow_empty: false,
            budget: drydock_domain::Budget::UNLIMITED,
            created_at: now(),
        };
        assert_eq!(store.action_add(&action).await.unwrap(), AddOutcome::Added);
        assert_eq!(store.action_add(&action).await.unwrap(), AddOutcome::Exists);
        assert_eq!(other.action_list().await.unwrap(), std::slice::from_ref(&action));
        assert_eq!(other.action_fetch(&action.name).await.unwrap(), Some(action.clone()));
        assert_eq!(store.action_remove(&action.name).await.unwrap(), RemoveOutcome::Removed);
        assert_eq!(store.action_remove(&action.name).await.unwrap(), RemoveOutcome::Missing);
        assert_eq!(other.action_fetch(&action.name).await.unwrap(), None);
    }
}

on_both! {
    /// Fails if a project is removed while a plan still needs it.
    async fn a_project_in_use_is_not_removed(world: World) {
        let store = world.open().await;
        let name = "boat".parse().unwrap();
        let project = Project {
            name,
            repo: "/src/boat".to_owned(),
            target: "main".to_owned(),
            remote: Some("origin".to_owned()),
            on_divergence: None,
            validations: Vec::new(),
            created_at: now(),
        };
        store.project_add(&project).await.unwrap();
        let (lease, plan) = queued(&store, "a").await;
        assert_eq!(store.project_remove(&project.name).await.unwrap(), RemoveOutcome::InUse(vec![plan.id]));
        command(&store, &lease, drydock_domain::Command::Cancel { reason: "no".to_owned() }).await.unwrap();
        assert_eq!(store.project_remove(&project.name).await.unwrap(), RemoveOutcome::Removed);
    }
}

on_both! {
    /// Fails if an invariant of one scope hides, or is confused with, another scope's.
    async fn invariants_are_kept_by_scope_and_name(world: World) {
        let store = world.open().await;
        let plan = plan_id();
        let scopes = ["global", "project:boat", "action:fix", "project:canoe", "action:paint"];
        let scopes = scopes.map(|scope| scope.parse::<InvariantScope>().unwrap());
        let scopes: Vec<_> = scopes.into_iter().chain([InvariantScope::Plan(plan.clone())]).collect();
        let invariant = |scope: &InvariantScope| Invariant {
            name: "dry".parse().unwrap(),
            scope: scope.clone(),
            rule: Rule::Cel(scope.to_string()),
            at: Phase::ALL.to_vec(),
            locked: false,
        };
        for scope in &scopes {
            assert_eq!(store.invariant_add(&invariant(scope)).await.unwrap(), AddOutcome::Added);
            assert_eq!(store.invariant_add(&invariant(scope)).await.unwrap(), AddOutcome::Exists);
            assert_eq!(store.invariant_list(Some(scope)).await.unwrap(), [invariant(scope)]);
        }
        assert_eq!(store.invariant_list(None).await.unwrap().len(), scopes.len());
        let (boat, fix) = ("boat".parse().unwrap(), "fix".parse().unwrap());
        let candidates = |found: Vec<Invariant>| found.into_iter().map(|one| one.scope.to_string()).collect::<Vec<_>>();
        let of_plan = store.invariant_candidates(&boat, &fix, Some(&plan)).await.unwrap();
        assert_eq!(candidates(of_plan), ["action:fix".to_owned(), "global".to_owned(), format!("plan:{plan}"), "project:boat".to_owned()]);
        let of_none = store.invariant_candidates(&boat, &fix, None).await.unwrap();
        assert_eq!(candidates(of_none), ["action:fix", "global", "project:boat"]);
        let name = "dry".parse().unwrap();
        assert_eq!(store.invariant_remove(&name, &scopes[0]).await.unwrap(), RemoveOutcome::Removed);
        assert_eq!(store.invariant_remove(&name, &scopes[0]).await.unwrap(), RemoveOutcome::Missing);
        assert_eq!(store.invariant_list(None).await.unwrap().len(), scopes.len() - 1);
    }
}
