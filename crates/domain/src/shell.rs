//! Shell quoting for command lines shown to people, so that a pasted command has the same meaning.

use std::borrow::Cow;

/// Quotes a word for a shell, if it contains characters with a special meaning.
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

    /// Fails if a command that is offered has another meaning when it is pasted (N12).
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
