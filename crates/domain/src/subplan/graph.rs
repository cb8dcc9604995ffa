//! The order of subplans. Checks that the dependencies exist and have no cycle, before anything starts.

use std::collections::BTreeSet;

use crate::{Name, Subplan};

/// Why subplans cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FanoutError {
    /// Two subplans have the same name.
    #[error("two subplans are named {0}")]
    Twice(Name),
    /// A subplan waits for one that does not exist.
    #[error("subplan {piece} comes after {after}, which does not exist")]
    Unknown {
        /// The subplan.
        piece: Name,
        /// The missing dependency.
        after: Name,
    },
    /// Subplans wait for each other.
    #[error("subplans wait for each other: {}", .0.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))]
    Cycle(Vec<Name>),
    /// There are too many subplans.
    #[error("{given} subplans requested, limit {max}")]
    TooWide {
        /// Number of subplans.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// The subplans would be nested too deeply.
    #[error("subplans would be nested {depth} levels deep, limit {max}")]
    TooDeep {
        /// Their depth in the plan tree.
        depth: u32,
        /// The limit.
        max: u32,
    },
}

/// Returns the subplans in join order: a stable topological sort, so that each comes after the ones it waits
/// for.
pub fn arrange(pieces: Vec<Subplan>, width_max: usize) -> Result<Vec<Subplan>, FanoutError> {
    if pieces.len() > width_max {
        return Err(FanoutError::TooWide { given: pieces.len(), max: width_max });
    }
    let mut names = BTreeSet::new();
    if let Some(piece) = pieces.iter().find(|piece| !names.insert(piece.name.clone())) {
        return Err(FanoutError::Twice(piece.name.clone()));
    }
    for piece in &pieces {
        if let Some(after) = piece.after.iter().find(|after| !names.contains(*after)) {
            return Err(FanoutError::Unknown { piece: piece.name.clone(), after: after.clone() });
        }
    }
    let mut waiting = pieces;
    let (mut arranged, mut placed) = (Vec::with_capacity(waiting.len()), BTreeSet::new());
    while !waiting.is_empty() {
        let free = waiting.iter().position(|piece| piece.after.iter().all(|name| placed.contains(name)));
        let Some(free) = free else {
            return Err(FanoutError::Cycle(waiting.into_iter().map(|piece| piece.name).collect()));
        };
        let piece = waiting.remove(free);
        placed.insert(piece.name.clone());
        arranged.push(piece);
    }
    Ok(arranged)
}
