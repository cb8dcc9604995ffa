//! A number and its noun, in the singular or the plural.

use std::fmt::Display;

/// Returns a count with its noun: `1 path`, `2 paths`, `0 entries`. Words before the noun's last one stay as they are:
/// `3 tool calls`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page B19. Breaks when one thing is reported in the plural.
    #[test]
    fn one_is_singular_and_every_other_count_is_plural() {
        let all = [
            counted(1_u64, "path"),
            counted(0_usize, "token"),
            counted(2_u32, "tool call"),
            counted(1_u64, "branch"),
            counted(2_u64, "branch"),
            counted(3_u64, "entry"),
            counted(4_u64, "day"),
        ];
        assert_eq!(
            all,
            ["1 path", "0 tokens", "2 tool calls", "1 branch", "2 branches", "3 entries", "4 days"]
        );
    }
}
