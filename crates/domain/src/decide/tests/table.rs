//! Every kind of stage against every kind of command. The table is written from the contract's list of
//! transitions, not from the code. A stage or command that is missing in it does not compile or does not
//! pass.

use std::collections::BTreeSet;

use super::say::Say;
use super::world::{Seen, World};
use crate::{Complete, Phase, Progress, Settled, Stage, State};

/// A cell is the stage that follows (phase and state: queued, processing, Waiting, complete, errored,
/// cancelled (x), applied, constrained (k)), or `=` already in effect, `!` wrong stage, `?` a person must
/// decide first, `~` not the current run, `c` the decision is closed, `i` a landing is in progress.
///
/// The answer that approves a gate after a phase is `!`, because an advance carries the facts needed to
/// continue.
#[rustfmt::skip]
const TABLE: &[(&str, &[Say], &str)] = &[
    //                         start    complete  fail     diverge  takeover execute  apply    intend         answer   retry
    //                            again     (E)       ask  ask   pause  approve  alone    alone   forgo land constrain  last  revert cancel prompt holdback adopt reconcile rollback postpone exhaust spawn tend woundup call join sync cancelbelow reexamine startover accept
    ("auto",   &[],             "Sp Sp  ~  ~   ~  ~  ~   Se Sw  !  =   !  !  !  !   ~  =  ~  ~   c  c   !  !  Sx Sq  Sq  !  =  !  ~  Sw  !  !  =  !  !  =  Sx !  !  !"),
    ("manual", &[],             "?  ?   ~  ~   ~  ~  ~   Se Sw  !  Sq  !  !  !  !   ~  =  ~  ~   !  Sx  !  !  Sx Sq  =  ?  =  !  ~  ?  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   TAKEN_OVER,      "Sp ~   !  !   !  !  !   Se Sw  !  =   !  !  !  !   !  =  !  !   c  c   =  !  Sx Sq  Sq  Sc =  !  !  Sw  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   POSTPONED,       "Sp ~   !  !   !  !  !   Se Sw  !  =   !  !  !  !   !  =  !  !   c  c   Sq !  Sx Sq  Sq  Sc =  !  =  Sw  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   REVERTED,        "Sp ~   !  !   !  !  !   Se Sw  !  =   !  !  !  !   !  =  !  !   c  c   !  =  Sx Sq  Sq  !  =  !  !  Sw  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   STRATEGIZING,    "!  =   Sc !   Se Se Sw  Se Sw  Sq =   !  !  !  !   !  =  !  !   c  c   !  !  Sx Sp  !  !  !  !  Sq  Sw  !  !  =  !  !  !  Sx !  !  !"),
    ("auto",   S_ASKED,         "?  ?   !  !   !  !  =   Sw Sw  ?  ?   ?  ?  ?  ?   !  =  !  !   Sq Sx  ?  !  Sx Sw  !  ?  ?  !  !  ?  !  !  =  !  !  =  Sx !  ?  ?"),
    ("auto",   S_FAILED,        "!  !   !  !   =  !  !   Se Sw  !  !   !  !  !  !   !  =  !  !   c  c   Sq !  Sx Se  !  Sc !  !  !  !  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   S_DIVERGED,      "?  ?   !  !   =  ?  !   =  Se  !  ?   ?  ?  ?  ?   !  =  !  !   Sq Sx  ?  !  Sx Se  !  ?  ?  !  !  !  !  !  =  !  !  =  Sx !  ?  ?"),
    ("auto",   S_PAUSED,        "?  ?   !  !   !  !  ?   Sw =   ?  ?   ?  ?  ?  ?   !  =  !  !   Sq Sx  ?  !  Sx Sw  !  ?  Sw  !  !  ?  !  !  =  !  !  =  Sx !  ?  ?"),
    ("auto",   STRATEGIZED,     "!  !   =  !   !  !  !   Se Sw  !  !   Eq Eq !  !   !  =  !  !   c  c   !  !  Sx Sc  Sc  Sc !  !  !  !  !  !  =  !  !  =  Sx !  !  !"),
    ("manual", M_STRATEGIZED,   "!  !   =  !   !  !  !   Se Sw  !  !   Eq ?  !  !   !  =  !  !   !  Sx  !  !  Sx Sc  =  Sc !  !  !  !  !  !  =  !  !  =  Sx !  !  !"),
    ("auto",   S_CANCELLED,     "!  !   !  !   !  !  !   !  !   !  !   !  !  !  !   !  =  !  !   c  c   !  !  =  !  !  !  !  !  !  !  !  !  =  !  !  !  =  !  !  !"),

    ("auto",   E_QUEUED,        "Ep ~   !  !   !  !  !   Ee Ew  !  =   =  =  !  !   !  =  !  !   c  c   !  Sq Ex Eq  Eq  !  =  Eq  !  Ew  !  !  =  !  !  =  Ex !  !  !"),
    ("auto",   EXECUTING,       "!  =   !  Ec  Ee Ee Ew  Ee Ew  Eq =   =  =  !  !   !  =  !  !   c  c   !  Sq Ex Ep  !  !  !  !  Eq  Ew  !  !  =  !  !  !  Ex !  !  !"),
    ("auto",   E_ASKED,         "?  ?   !  !   !  !  =   Ew Ew  ?  ?   ?  ?  ?  ?   !  =  !  !   Eq Ex  ?  Sq Ex Ew  !  !  ?  Eq  !  ?  !  !  =  !  !  =  Ex !  ?  ?"),
    ("auto",   E_FAILED,        "!  !   !  !   =  !  !   Ee Ew  !  !   !  !  !  !   !  =  !  !   c  c   Eq Sq Ex Ee  !  !  !  Eq  !  !  !  !  =  !  !  =  Ex !  Eq !"),
    ("auto",   E_DIVERGED,      "?  ?   !  !   =  ?  !   =  Ee  !  ?   ?  ?  ?  ?   !  =  !  !   Eq Ex  ?  Sq Ex Ee  !  !  ?  ?  !  !  !  !  =  !  !  =  Ex !  ?  ?"),
    ("auto",   E_PAUSED,        "?  ?   !  !   !  !  ?   Ew =   ?  ?   ?  ?  ?  ?   !  =  !  !   Eq Ex  ?  Sq Ex Ew  !  !  Ew  ?  !  ?  !  !  =  !  !  =  Ex !  ?  ?"),
    ("auto",   EXECUTED,        "!  !   !  =   !  !  !   Ee Ew  !  !   =  =  Aq Aq  !  =  !  !   c  c   !  Sq Ex Ec  Ec  !  !  Eq  !  !  !  !  =  !  !  =  Ex Eq !  !"),
    ("manual", M_EXECUTED,      "!  !   !  =   !  !  !   Ee Ew  !  !   =  =  Aq ?   !  =  !  !   !  Ex  !  Sq Ex Ec  =  !  !  Eq  !  !  !  !  =  !  !  =  Ex Eq !  !"),
    ("auto",   E_CANCELLED,     "!  !   !  !   !  !  !   !  !   !  !   !  !  !  !   !  =  !  !   c  c   !  !  =  !  !  !  !  !  !  !  !  !  =  !  !  !  =  !  !  !"),

    ("auto",   A_QUEUED,        "Ap ~   !  !   !  !  !   Ae Aw  !  =   !  !  =  =   !  =  !  !   c  c   !  !  Ax Aq  Aq  !  =  Eq  !  !  !  !  =  !  !  =  Ax Eq !  !"),
    ("auto",   APPLYING,        "!  =   !  !   Ae Ae Aw  Ae Aw  Aq =   !  !  =  =   Ap =  !  Ak  c  c   !  !  Ax Ap  !  !  !  !  !  !  !  !  =  !  !  !  Ax !  !  !"),
    ("auto",   INTENDED,        "!  =   !  !   Ae Ae Aw  i  i   Aq =   !  !  =  =   =  Ap Aa i   c  c   !  !  i  Ap  !  !  !  !  !  !  !  !  =  !  !  !  i  !  !  !"),
    ("auto",   I_TAKEN_OVER,    "Ap ~   !  !   !  !  !   i  i   !  =   !  !  =  =   !  Aq !  !   c  c   =  !  i  Aq  Aq  !  =  i  !  !  !  !  =  !  !  =  i  i !  !"),
    ("auto",   A_ASKED,         "?  ?   !  !   !  !  =   Aw Aw  ?  ?   ?  ?  ?  ?   !  =  !  !   Aq Ax  ?  !  Ax Aw  !  !  ?  Eq  !  !  !  !  =  !  !  =  Ax !  ?  ?"),
    ("auto",   A_FAILED,        "!  !   !  !   =  !  !   Ae Aw  !  !   !  !  !  !   !  =  !  !   c  c   Aq Sq Ax Ae  !  !  !  Eq  !  !  !  !  =  !  !  =  Ax !  !  !"),
    ("auto",   A_DIVERGED,      "?  ?   !  !   =  ?  !   =  Ae  !  ?   ?  ?  ?  ?   !  =  !  !   Eq Ax  ?  Sq Ax Ae  !  !  ?  ?  !  !  !  !  =  !  !  =  Ax !  ?  ?"),
    ("auto",   A_PAUSED,        "?  ?   !  !   !  !  ?   Aw =   ?  ?   ?  ?  ?  ?   !  =  !  !   Eq Ax  ?  !  Ax Aw  !  !  Aw  ?  !  !  !  !  =  !  !  =  Ax !  ?  ?"),
    ("auto",   I_LOST_TRACK,    "?  ?   !  !   =  =  !   i  i   !  ?   ?  ?  ?  ?   !  Ae !  !   Aq Ax  ?  i  i  Ae  !  !  ?  i  !  !  !  !  =  !  !  =  i  !  ?  ?"),
    ("auto",   CONSTRAINED,     "!  !   !  !   !  !  !   Ae Aw  !  !   !  !  !  !   !  =  !  =   c  c   Aq Sq Ax Ak  !  !  !  Eq  !  !  !  !  =  !  !  =  Ax !  !  !"),
    ("auto",   APPLIED,         "!  !   !  !   !  !  !   !  !   !  !   !  !  =  =   !  =  =  !   c  c   !  !  !  !  !  !  !  !  !  !  !  !  =  !  !  !  !  !  !  !"),
    ("auto",   A_CANCELLED,     "!  !   !  !   !  !  !   !  !   !  !   !  !  !  !   !  =  !  !   c  c   !  !  =  !  !  !  !  !  !  !  !  !  =  !  !  !  =  !  !  !"),
];

const STRATEGIZING: &[Say] = &[Say::Start];
const TAKEN_OVER: &[Say] = &[Say::Start, Say::TakeOver];
const POSTPONED: &[Say] = &[Say::Start, Say::Postpone];
const REVERTED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Revert];
const S_ASKED: &[Say] = &[Say::Start, Say::Ask];
const S_FAILED: &[Say] = &[Say::Start, Say::Fail];
const S_DIVERGED: &[Say] = &[Say::Start, Say::Recover];
const S_PAUSED: &[Say] = &[Say::Start, Say::Pause];
const STRATEGIZED: &[Say] = &[Say::Start, Say::Strategized];
const M_STRATEGIZED: &[Say] = &[Say::Approve, Say::Start, Say::Strategized];
const S_CANCELLED: &[Say] = &[Say::Start, Say::Cancel];
const E_QUEUED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute];
const EXECUTING: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start];
const E_ASKED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Ask];
const E_FAILED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Fail];
const E_DIVERGED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Recover];
const E_PAUSED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Pause];
const EXECUTED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed];
const M_EXECUTED: &[Say] =
    &[Say::Approve, Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed];
const E_CANCELLED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Cancel];
const A_QUEUED: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed, Say::Apply];

/// The path to `apply/processing`, and on from there.
macro_rules! applying {
    ($($then:ident),*) => {
        &[
            Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed, Say::Apply, Say::Start,
            $(Say::$then),*
        ]
    };
}

const APPLYING: &[Say] = applying!();
const INTENDED: &[Say] = applying!(Intend);
const I_TAKEN_OVER: &[Say] = applying!(Intend, TakeOver);
const A_ASKED: &[Say] = applying!(Ask);
const A_FAILED: &[Say] = applying!(Fail);
const A_DIVERGED: &[Say] = applying!(Recover);
const A_PAUSED: &[Say] = applying!(Pause);
const I_LOST_TRACK: &[Say] = applying!(Intend, FailAsking);
const CONSTRAINED: &[Say] = applying!(Constrain);
const APPLIED: &[Say] = applying!(Intend, Land);
const A_CANCELLED: &[Say] = applying!(Cancel);

/// D6 (a plan that no process runs is not taken over) and all else: fails if any stage accepts a command it
/// must refuse, refuses one it must accept, or reports either as already in effect.
#[test]
fn every_stage_answers_every_command_as_the_contract_says() {
    let mut wrong = Vec::new();
    for (profile, path, cells) in TABLE {
        let cells: Vec<_> = cells.split_whitespace().collect();
        assert_eq!(cells.len(), Say::ALL.len(), "the row of {profile} {path:?}");
        for (say, cell) in Say::ALL.into_iter().zip(cells) {
            let mut world = reach(profile, path);
            let before = world.snapshot.clone();
            let command = say.to(&world);
            assert!(Say::samples(&command).contains(&say));
            let seen = world.give_as(say.authority(), command);
            if seen != expected(cell) {
                wrong.push(format!(
                    "{} after {path:?}: {say:?} is {seen:?}, not {cell}",
                    stage(&before.plan.stage)
                ));
            }
            match seen {
                Seen::Now(..) => assert_eq!(world.plan().revision, before.plan.revision + 1),
                _ => assert_eq!(world.snapshot, before),
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Fails if a stage is added that has no row in the table.
#[test]
fn the_table_has_a_row_for_every_stage_there_is() {
    let rows: BTreeSet<_> =
        TABLE.iter().map(|(profile, path, _)| stage(&reach(profile, path).plan().stage)).collect();
    assert_eq!(rows.len(), STAGES, "{rows:?}");
}

/// Six stages of Strategize, six of Execute, seven of Apply, as matched in `stage`.
const STAGES: usize = 6 + 6 + 7;

/// Names a stage. A new one does not compile here until it is named and counted in `STAGES`.
fn stage(stage: &Stage) -> String {
    let state = match stage {
        Stage::Strategize(Progress::Reached(Complete)) | Stage::Execute(Progress::Reached(Complete)) => {
            "complete"
        }
        Stage::Apply(Progress::Reached(Settled::Applied { .. })) => "applied",
        Stage::Apply(Progress::Reached(Settled::Constrained { .. })) => "constrained",
        Stage::Strategize(common) | Stage::Execute(common) => shared(common),
        Stage::Apply(common) => shared(common),
    };
    assert_eq!(state, stage.state().name());
    format!("{}/{state}", stage.phase())
}

fn shared<D>(progress: &Progress<D>) -> &'static str {
    match progress {
        Progress::Queued => "queued",
        Progress::Processing => "processing",
        Progress::Waiting(_) => "waiting",
        Progress::Errored { .. } => "errored",
        Progress::Cancelled { .. } => "cancelled",
        Progress::Reached(_) => "reached",
    }
}

fn reach(profile: &str, path: &[Say]) -> World {
    let mut world = World::under(profile);
    for say in path {
        let command = say.to(&world);
        let seen = world.give(command);
        assert!(matches!(seen, Seen::Now(..)), "{say:?} on the way {path:?} is {seen:?}");
    }
    world
}

fn expected(cell: &str) -> Seen {
    let mut letters = cell.chars();
    match (letters.next(), letters.next()) {
        (Some('='), None) => Seen::Already,
        (Some('!'), None) => Seen::WrongStage,
        (Some('?'), None) => Seen::Undecided,
        (Some('~'), None) => Seen::StaleRun,
        (Some('c'), None) => Seen::DecisionClosed,
        (Some('i'), None) => Seen::IntentOpen,
        (Some(phase), Some(state)) => Seen::Now(phase_of(phase), state_of(state)),
        (None, _) | (_, None) => panic!("{cell:?} is no cell"),
    }
}

fn phase_of(letter: char) -> Phase {
    match letter {
        'S' => Phase::Strategize,
        'E' => Phase::Execute,
        'A' => Phase::Apply,
        _ => panic!("{letter:?} is no phase"),
    }
}

fn state_of(letter: char) -> State {
    match letter {
        'q' => State::Queued,
        'p' => State::Processing,
        'w' => State::Waiting,
        'c' => State::Complete,
        'e' => State::Errored,
        'x' => State::Cancelled,
        'a' => State::Applied,
        'k' => State::Constrained,
        _ => panic!("{letter:?} is no state"),
    }
}
