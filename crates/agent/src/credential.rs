//! Finds the secret part of an environment variable: the whole value if the name indicates a secret,
//! otherwise credentials inside the value. Model names, hosts and addresses are not secrets; hiding them
//! would make a log unreadable.

/// A name that contains one of these is the name of a secret.
const IN_NAME: [&str; 10] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "PRIVATE",
    "COOKIE",
    "WEBHOOK",
];
/// A name with one of these as a word (`OPENAI_API_KEY`) is the name of a secret; as a part of a word they
/// mean other things.
const WORD_OF_NAME: [&str; 14] = [
    "KEY",
    "KEYS",
    "PASS",
    "PWD",
    "PAT",
    "PIN",
    "AUTH",
    "OAUTH",
    "AUTHORIZATION",
    "BEARER",
    "JWT",
    "HEADER",
    "HEADERS",
    "SIGNATURE",
];
/// Prefixes of tokens of well-known services.
const TOKEN_PREFIXES: [&str; 15] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
];
/// Shorter words with such a prefix are ordinary words.
const TOKEN_MIN: usize = 16;
/// Shorter values occur in ordinary text.
const SECRET_MIN: usize = 8;
/// Words that precede a credential in a header.
const SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// Returns true if a variable's name indicates a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_word = |word: &str| WORD_OF_NAME.contains(&word) || word.ends_with("KEY");
    IN_NAME.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_word)
}

/// Returns the texts to hide if the whole value is a secret: the value, and each of its lines, because output
/// is handled line by line.
pub(crate) fn whole(value: &str) -> Vec<String> {
    // A path is a location; hiding it would make every message about a file unreadable.
    if value.len() < SECRET_MIN || value.starts_with('/') {
        return credentials(value);
    }
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SECRET_MIN && *line != value);
    std::iter::once(value).chain(lines).map(str::to_owned).collect()
}

/// Returns the credentials inside a value that is not a secret as a whole.
pub(crate) fn credentials(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for word in
        value.split(|c: char| c.is_whitespace() || ",;'\"".contains(c)).filter(|word| !word.is_empty())
    {
        let is_token =
            TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) && word.len() >= TOKEN_MIN;
        let is_sent = SCHEMES.iter().any(|scheme| before.eq_ignore_ascii_case(scheme));
        if is_token || (is_sent && word.len() >= SECRET_MIN) {
            found.push(word.to_owned());
        }
        if let Some((_, rest)) = word.split_once("://") {
            found.extend(in_address(rest));
        }
        before = word;
    }
    found
}

/// Returns the credentials of an address without its scheme: `user:password@`, and parameters with the name
/// of a secret.
fn in_address(address: &str) -> Vec<String> {
    let mut found = Vec::new();
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((login, _)) = authority.rsplit_once('@') {
        let password = login.split_once(':').map(|(_, password)| password);
        // A login with a password is hidden regardless of its length. A password or a user name alone is
        // hidden only if it is long: a long user name may be a token.
        let is_long = |text: &&str| text.len() >= SECRET_MIN;
        match password {
            Some(password) => {
                found.extend([Some(login), Some(password).filter(is_long)].into_iter().flatten())
            }
            None => found.extend(Some(login).filter(is_long)),
        }
    }
    let parameters = address.split(['?', '&', '#']).skip(1).filter_map(|part| part.split_once('='));
    found.extend(
        parameters
            .filter(|(name, value)| is_secret_name(name) && value.len() >= SECRET_MIN)
            .map(|(_, value)| value),
    );
    let decoded: Vec<String> = found.iter().filter_map(|text| decoded(text)).collect();
    found.into_iter().map(str::to_owned).chain(decoded).collect()
}

/// Returns a text without percent-encoding, as a program may print it; `None` if it has none.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((plain, encoded)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        bytes.push(u8::from_str_radix(encoded.get(..2)?, 16).ok()?);
        rest = &encoded[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok().filter(|decoded| decoded != text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Agents 11: breaks when the name of a model or host is treated as a secret, or the name of a key is
    /// not.
    #[test]
    fn a_secret_is_known_by_its_name() {
        for name in [
            "OPENAI_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "MYSQL_PWD",
            "GH_PAT",
            "GOOGLE_CREDENTIALS",
            "ANTHROPIC_CUSTOM_HEADERS",
            "SLACK_WEBHOOK_URL",
            "myApiKey",
            "NPM_AUTH",
            "SSHKEY",
            "KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "AIDER_MODEL",
            "GOOSE_MODEL",
            "GOOSE_PROVIDER",
            "OPENAI_HOST",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_BASE",
            "GIT_AUTHOR_NAME",
            "KEYBOARD",
            "MONKEYS",
            "COMPASS",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    /// Breaks when a credential leaks because the name of its variable does not indicate a secret.
    #[test]
    fn credentials_inside_a_value_are_found() {
        for (value, hidden) in [
            ("https://api.example.org/v1", vec![]),
            ("openai/claude-sonnet-4-5-20250929", vec![]),
            ("http://user:pw@proxy:3128", vec!["user:pw"]),
            (
                "https://me:correct%20horse@host/v1",
                vec!["me:correct%20horse", "correct%20horse", "me:correct horse", "correct horse"],
            ),
            ("https://abcdefgh1234@host", vec!["abcdefgh1234"]),
            ("https://git@host/x@y", vec![]),
            ("https://host/v1?model=gpt-5-large&api_key=abcdefgh1", vec!["abcdefgh1"]),
            ("x-team: a, Authorization: Bearer abcdefgh", vec!["abcdefgh"]),
            ("use sk-abcdefghijklmnop please", vec!["sk-abcdefghijklmnop"]),
            ("https://a:b@one/,https://c:d@two/", vec!["a:b", "c:d"]),
            ("50%:7@://%zz@", vec![]),
        ] {
            assert_eq!(credentials(value), hidden, "{value}");
        }
    }

    #[test]
    fn each_line_of_a_secret_is_one() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----";
        assert_eq!(whole(key), [key, "-----BEGIN KEY-----", "MIIEvQIBADAN", "-----END KEY-----"]);
        assert_eq!((whole("short"), whole("/a/key/file")), (vec![], vec![]));
    }
}
