//! The page of a plan: its current activity, why it waits, the available actions, its question, its tree, and
//! its history.

use drydock_api::{
    Backup, BackupQuery, Changeset, ChangesetQuery, Checkpoint, Event, EventQuery, LogLine, LogQuery,
    NumberedChoice, Phase, Plan, Project, State, Tree, Why,
};
use drydock_domain::counted;
use maud::{Markup, html};

use super::ask::{PageClient, PagePath};
use super::mark::{self, icon};
use super::question::Spot;
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{escaped, first_line, sentence, short_id, title};
use super::{act, facts, question, timeline};

/// The maximum number of events read.
pub(super) const EVENTS_MAX: u32 = 2_000;

/// How much of the end of a log is searched for the last line of output, in bytes.
const PRINTED_MAX: i64 = 4 * 1024;

/// The maximum indentation of choices.
const DEPTH_MAX: usize = 5;

/// The part of a plan that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Overview,
    Changes,
    Log,
}

/// The data of the overview.
pub(super) struct PlanOverview {
    pub(super) plan: Plan,
    pub(super) why: Why,
    pub(super) tree: Tree,
    pub(super) events: Vec<Event>,
    /// The last line of output, if a run is in progress.
    pub(super) printed: Option<LogLine>,
    /// None if the repository cannot be read.
    pub(super) checkpoints: Option<Vec<Checkpoint>>,
    pub(super) changesets: Vec<Changeset>,
    pub(super) backups: Vec<Backup>,
    /// None if it was removed.
    pub(super) project: Option<Project>,
}

pub(super) async fn show(ask: PageClient, PagePath(id): PagePath<String>) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let whole = PlanOverview::read(&ask, &id).await?;
    let plan = &whole.plan;
    let main = html! {
        (head(plan, Tab::Overview))
        div.plan {
            div.plan-main {
                (standing(&whole))
                @if let Some(decision) = &whole.why.decision { (question::card(decision, Some(plan), Spot::ItsPlan)) }
                (task(plan))
                (strategy(&whole.tree))
                (timeline::section(&whole.events))
            }
            aside.plan-side aria-label="About this plan" { (facts::all(&whole)) }
        }
    };
    Ok(document(&frame, title(plan), NavItem::Plans, RefreshOn::Plan(&plan.id), main))
}

impl PlanOverview {
    async fn read(ask: &PageClient, id: &str) -> Result<Self, PageError> {
        let client = ask.client();
        let plan = client.plan(id).await?;
        let id = plan.id.clone();
        let events = EventQuery { plan: Some(id.clone()), newest: Some(EVENTS_MAX), ..EventQuery::default() };
        let changesets = ChangesetQuery { plan: Some(id.clone()) };
        let backups = BackupQuery { plan: Some(id.clone()) };
        let printed = last_printed(ask, &plan);
        let (why, tree, events, checkpoints, changesets, backups, project, printed) = tokio::join!(
            client.plan_why(&id),
            client.plan_tree(&id),
            client.events(&events),
            client.checkpoints(&id),
            client.changesets(&changesets),
            client.backups(&backups),
            client.project(&plan.project),
            printed,
        );
        Ok(PlanOverview {
            why: why?,
            printed,
            plan,
            tree: tree?,
            events: events?.events,
            // A missing repository must not hide the data in the store; `why` reports it.
            checkpoints: checkpoints.ok().map(|page| page.checkpoints),
            changesets: changesets?.changesets,
            backups: backups.map(|page| page.backups).unwrap_or_default(),
            project: project.ok(),
        })
    }
}

/// Returns the last line of output of the plan's run, while the run is in progress.
async fn last_printed(ask: &PageClient, plan: &Plan) -> Option<LogLine> {
    let run = plan.run.clone().filter(|_| plan.state == State::Processing)?;
    let query = LogQuery { run: Some(run), offset: Some(-PRINTED_MAX), wait_ms: None };
    let page = ask.client().plan_log(&plan.id, &query).await.ok()?;
    let says = |line: &LogLine| ![LogLine::NOTICE, LogLine::MESSAGE].contains(&line.stream.as_str());
    page.lines.into_iter().rfind(|line| says(line) && !line.text.trim().is_empty())
}

/// Returns the head that all pages of a plan share.
pub(super) fn head(plan: &Plan, tab: Tab) -> Markup {
    let link = |to: Tab, path: &str, name: &str, key: &str| {
        html! {
            a href={ "/plans/" (plan.id) (path) } aria-current=[(to == tab).then_some("page")] data-key=(key) { (name) }
        }
    };
    html! {
        header.top.plan-top {
            p.crumbs {
                a href="/" { "Board" } " / " a href={ "/?project=" (escaped(&plan.project)) } { (plan.project) }
                @if let Some(parent) = &plan.parent { " / " a href={ "/plans/" (parent) } { "subplan of " (short_id(parent)) } }
            }
            h1 { (title(plan)) }
            p.plan-line {
                (mark::of(plan))
                (steps(plan))
                code.id { (plan.id) }
            }
            nav.tabs aria-label="Views of this plan" {
                (link(Tab::Overview, "", "Overview", "o"))
                (link(Tab::Changes, "/diff", "Changes", "d"))
                (link(Tab::Log, "/log", "Log", "e"))
            }
        }
    }
}

/// Returns the three phases, with the current one marked.
fn steps(plan: &Plan) -> Markup {
    html! {
        span.steps {
            span.unseen { "Phase: " (mark::phase(plan.phase)) }
            @for phase in [Phase::Strategize, Phase::Execute, Phase::Apply] {
                span aria-hidden="true" .step .here[phase == plan.phase] { (mark::phase(phase)) }
            }
        }
    }
}

fn standing(whole: &PlanOverview) -> Markup {
    let PlanOverview { plan, why, .. } = whole;
    let now =
        (plan.state == State::Processing).then(|| timeline::latest(&whole.events, whole.printed.as_ref()));
    let now = now.flatten();
    // The question has its own card below, the summary of a run names its process, and the tree shows subplans.
    let is_said = |held: &str| {
        (why.decision.is_some() && held.starts_with("decision "))
            || (now.is_some() && held.starts_with("its lock "))
            || (!whole.tree.subplans.is_empty() && held.starts_with("subplan "))
    };
    let holds: Vec<_> = why.holds.iter().filter(|held| !is_said(held)).collect();
    html! {
        section.standing data-tone=(mark::tone_of(plan)) aria-labelledby="standing" {
            h2 id="standing" { (sentence(&why.summary)) }
            @if let Some(now) = now { p.now data-now { (icon("agent")) (now) } }
            @if !holds.is_empty() { ul.holds { @for held in holds { li { (sentence(held)) } } } }
            div.row { (act::on_plan(plan, whole.project.as_ref().and_then(|project| project.remote.as_deref()))) }
            @if let Some(way) = why.can_act.iter().find(|way| !way.command.is_empty()) {
                p.no-script.hint { "Without JavaScript this page is read-only. Run " code { (way.command) } }
            }
        }
    }
}

fn task(plan: &Plan) -> Markup {
    html! {
        section aria-labelledby="task" {
            h2 id="task" { "Task" }
            p.prose { (plan.task) }
            @if let Some(done) = &plan.definition_of_done { p.prose { strong { "Done when: " } (done) } }
            @for text in &plan.feedback { p.prose.guidance { strong { "Guidance: " } (text) } }
        }
    }
}

fn strategy(tree: &Tree) -> Markup {
    if tree.choices.is_empty() && tree.subplans.is_empty() {
        return html! {};
    }
    let (over, all) = settled(tree);
    html! {
        section aria-labelledby="strategy" {
            h2 id="strategy" { "Strategy" @if all > 0 { span.hint { " " (over) " of " (counted(all, "subplan")) " over" } } }
            (branch(tree))
        }
    }
}

fn branch(tree: &Tree) -> Markup {
    html! {
        ul.tree {
            @for choice in &tree.choices {
                li data-depth=(choice.number.matches('.').count().min(DEPTH_MAX)) { (chosen(choice)) }
            }
            @for sub in &tree.subplans { (subplan(sub)) }
        }
    }
}

fn subplan(sub: &Tree) -> Markup {
    html! {
        li.subplan data-id=(sub.plan) data-tone=(mark::tone(sub.state)) {
            p.subplan-head {
                a href={ "/plans/" (sub.plan) } data-item { (sub.name.as_deref().unwrap_or_else(|| short_id(&sub.plan))) }
                (mark::state(sub.state))
                @if let Some(fate) = sub.fate.as_deref().and_then(fate) { span.hint { (fate) } }
                @if !sub.after.is_empty() { span.hint { "after " (sub.after.join(", ")) } }
            }
            p.subplan-task { (first_line(&sub.task)) }
            @if let Some(waits) = &sub.waits_for { p.hint { "Waiting for " (waits) } }
            @if !sub.choices.is_empty() || !sub.subplans.is_empty() { (branch(sub)) }
        }
    }
}

/// Returns the status of a subplan in its parent, if the subplan's state does not show it.
fn fate(fate: &str) -> Option<&'static str> {
    match fate {
        "ready" => Some("lands together with this plan"),
        "handed" => Some("another subplan resolves its conflict"),
        "dropped" => Some("skipped"),
        "earlier" => Some("from an earlier strategy"),
        _ => None,
    }
}

/// Returns the number of ended subplans and of all subplans, at any depth.
fn settled(tree: &Tree) -> (usize, usize) {
    let of = |sub: &Tree| {
        let (over, all) = settled(sub);
        (over + usize::from(matches!(sub.state, State::Applied | State::Cancelled)), all + 1)
    };
    tree.subplans.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn chosen(choice: &NumberedChoice) -> Markup {
    html! {
        p.choice { span.number { (choice.number) } " " span.hint { (choice.question) } " " strong { (choice.chosen) }
            @if let Some(sure) = choice.confidence { span.hint { " " (format!("{:.0} % sure", sure * 100.0)) } }
        }
        @if !choice.alternatives.is_empty() { p.hint { "not " (choice.alternatives.join(", ")) } }
        @if let Some(reason) = &choice.rationale { p.prose { (reason) } }
    }
}
