//! Edit distance between two words, to suggest the intended name after a typo.

/// Returns the number of letters to add, remove or replace to turn one word into the other.
pub fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (place, goal) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *goal);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!((edits(one, other), edits(other, one)), (count, count));
        }
    }
}
