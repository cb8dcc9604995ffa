//! Quotes the words of a command that a person is shown, so that the pasted command does the same.

use std::borrow::Cow;

/// Returns a word as a shell reads it back: unchanged where it has no meaning to a shell, else in quotes.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    /// Breaks when a command that is offered does something else once it is pasted (N12).
    #[test]
    fn what_means_something_to_a_shell_is_quoted() {
        for (word, shown) in [
            ("/srv/a/site", "/srv/a/site"),
            ("", "''"),
            ("my site", "'my site'"),
            ("it's", r"'it'\''s'"),
            ("$(rm x)", "'$(rm x)'"),
            ("~a", "'~a'"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }
}
