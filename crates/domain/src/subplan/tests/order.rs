//! The order of subplans.

use proptest::prelude::*;

use super::world::piece;
use crate::{FanoutError, arrange};

#[test]
fn a_piece_that_waits_for_itself_by_way_of_others_is_refused_with_their_names() {
    let pieces = vec![piece("a", &["c"]), piece("b", &["a"]), piece("c", &["b"]), piece("d", &[])];
    let error = arrange(pieces, 10).unwrap_err();
    assert_eq!(error.to_string(), "subplans wait for each other: a, b, c");
}

#[test]
fn names_must_be_known_and_unique_and_few_enough() {
    let unknown = arrange(vec![piece("a", &["z"])], 10).unwrap_err();
    assert_eq!(unknown.to_string(), "subplan a comes after z, which does not exist");
    assert_eq!(
        arrange(vec![piece("a", &[]), piece("a", &[])], 10),
        Err(FanoutError::Twice("a".parse().unwrap()))
    );
    assert_eq!(
        arrange(vec![piece("a", &[]), piece("b", &[])], 1),
        Err(FanoutError::TooWide { given: 2, max: 1 })
    );
}

#[test]
fn pieces_keep_their_order_except_where_one_waits_for_another() {
    let pieces = vec![piece("a", &["c"]), piece("b", &[]), piece("c", &[])];
    let names: Vec<_> =
        arrange(pieces, 10).unwrap().into_iter().map(|piece| piece.name.to_string()).collect();
    assert_eq!(names, ["b", "c", "a"]);
}

proptest! {
    /// Fails if a cycle is not reported, or if a subplan is arranged before one that it waits for.
    #[test]
    fn what_is_arranged_never_stands_before_what_it_waits_for(edges in prop::collection::vec((0_usize..8, 0_usize..8), 0..20)) {
        let names: Vec<String> = (0..8).map(|n| format!("p{n}")).collect();
        let after = |n: usize| edges.iter().filter(|(from, _)| *from == n).map(|(_, to)| names[*to].as_str()).collect::<Vec<_>>();
        let pieces: Vec<_> = (0..8).map(|n| piece(&names[n], &after(n))).collect();
        if let Ok(arranged) = arrange(pieces, 8) {
            prop_assert_eq!(arranged.len(), 8);
            for (at, piece) in arranged.iter().enumerate() {
                for name in &piece.after {
                    prop_assert!(arranged[..at].iter().any(|before| before.name == *name));
                }
            }
        }
    }
}
