//! The order of pieces: who waits for whom, and that it can come to an end. Refused before anything starts.

use std::collections::BTreeSet;

use crate::{Name, Piece};

/// Why pieces cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FanoutError {
    /// A name stands twice.
    #[error("two subplans are called {0}")]
    Twice(Name),
    /// A piece waits for one that is not there.
    #[error("subplan {piece} comes after {after}, and there is no such subplan")]
    Unknown {
        /// Which one.
        piece: Name,
        /// What it waits for.
        after: Name,
    },
    /// Pieces wait for each other.
    #[error("subplans wait for each other: {}", .0.iter().map(Name::as_str).collect::<Vec<_>>().join(", "))]
    Cycle(Vec<Name>),
    /// There are too many.
    #[error("{given} subplans are more than the limit of {max}")]
    TooWide {
        /// How many there are.
        given: usize,
        /// How many there may be.
        max: usize,
    },
    /// They would be too deep.
    #[error("these subplans would be {depth} levels deep, and the limit is {max}")]
    TooDeep {
        /// How deep they would be.
        depth: u32,
        /// How deep they may be.
        max: u32,
    },
}

/// Returns the pieces in the order in which they join: none before those it waits for, and otherwise as they were given.
pub fn arrange(pieces: Vec<Piece>, width_max: usize) -> Result<Vec<Piece>, FanoutError> {
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
