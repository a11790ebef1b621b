//! Telling what looks like a secret that is written in full, so that it is not spread further.

use crate::server::{Reach, ServerConfig};
use crate::text::Text;

/// Parts of names whose values are secret as a rule.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "auth",
    "cookie",
    "session",
    "bearer",
    "pat",
];

/// How the secrets of well-known services begin.
const BEGINNINGS: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "hf_",
    "ntn_",
    "secret_",
    "lin_api_",
    "Bearer ",
    "Basic ",
];

impl ServerConfig {
    /// Names what looks like a secret that is written in full, and not as a variable: `env TOKEN`, for one. It says
    /// nothing of the values.
    pub fn literal_secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut note = |kind: &str, name: &str| found.push(format!("{kind} {name}"));
        match &self.reach {
            Reach::Program(program) => {
                for (name, value) in &program.env {
                    if is_secret(name, value) {
                        note("env", name);
                    }
                }
                for index in secret_words(&program.args) {
                    note("args", &(index + 1).to_string());
                }
            }
            Reach::Endpoint(endpoint) => {
                for (name, value) in &endpoint.headers {
                    if is_secret(name, value) {
                        note("header", name);
                    }
                }
                let url = endpoint.url.as_written();
                let query = url.split_once('?').map_or("", |(_, query)| query);
                for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                    if is_secret(name, &Text::new(value)) {
                        note("url", name);
                    }
                }
            }
        }
        found
    }
}

/// Returns which arguments look like secrets, or hold one behind a `=`.
pub(crate) fn secret_words(args: &[Text]) -> Vec<usize> {
    let mut found = Vec::new();
    // An option has its value within itself, or in the word behind it.
    let mut option = "";
    for (index, word) in args.iter().map(Text::as_written).enumerate() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value),
            _ if word.starts_with('-') => (word, ""),
            _ => (std::mem::take(&mut option), word),
        };
        option = if value.is_empty() { name } else { "" };
        if is_secret(name, &Text::new(value)) {
            found.push(index);
        }
    }
    found
}

fn is_secret(name: &str, value: &Text) -> bool {
    let value = value.as_written();
    if value.is_empty() || value.contains("${") {
        return false;
    }
    BEGINNINGS.iter().any(|beginning| value.len() > beginning.len() + 8 && value.starts_with(beginning))
        || (names_a_secret(name) && value.len() > 3)
        || has_password(value)
}

/// Tells whether a text is an address with a password in it.
fn has_password(value: &str) -> bool {
    let authority =
        value.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

/// Tells whether a value of this name is secret as a rule. Words of a name are told apart by case and by signs.
fn names_a_secret(name: &str) -> bool {
    // Marked where a word begins, and then split there.
    let mut marked = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            marked.push('-');
        }
        marked.extend(c.to_lowercase());
        was_lower = c.is_lowercase();
    }
    let words: Vec<&str> = marked.split(|c: char| !c.is_alphanumeric()).collect();
    let is_named =
        |word: &str| NAMES.iter().any(|known| word.trim_end_matches('s') == known.trim_end_matches('s'));
    let pairs = words.windows(2).map(<[&str]>::concat);
    words.iter().any(|word| is_named(word)) || pairs.into_iter().any(|pair| is_named(&pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Endpoint, Program, ServerName};

    #[test]
    fn secrets_are_known_by_their_names_and_by_how_they_begin() {
        let table = [
            ("GITHUB_TOKEN", "x1y2z3a4", true),
            ("githubToken", "x1y2z3a4", true),
            ("API_KEY", "x1y2z3a4", true),
            ("apikey", "x1y2z3a4", true),
            ("X-Api-Key", "x1y2z3a4", true),
            ("Authorization", "Basic eDp5", true),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}", false),
            ("Authorization", "Bearer ${T}", false),
            ("GITHUB_TOKEN", "", false),
            ("WHATEVER", "ghp_0123456789abcdef", true),
            ("DATABASE_URI", "postgresql://ann:pw@localhost/shop", true),
            ("DATABASE_URI", "postgresql://localhost/shop", false),
            ("PATH", "/usr/bin:/bin", false),
            ("LOG_LEVEL", "debug", false),
            ("AUTHOR", "ann", false),
            ("KEYBOARD", "german", false),
            ("TOKENIZER", "fast", false),
        ];
        for (name, value, expected) in table {
            assert_eq!(is_secret(name, &Text::new(value)), expected, "{name}={value}");
        }
    }

    #[test]
    fn secrets_are_found_wherever_a_server_can_have_them_and_told_without_their_values() {
        let mut program = Program::new("run");
        program.args =
            ["--api-key", "canary-1234", "--token=canary-1234", "--port", "80"].map(Text::new).into();
        program.env.insert("T".into(), Text::new("x"));
        program.env.insert("MY_SECRET".into(), Text::new("canary"));
        let name = ServerName::parse("s").unwrap();
        let server = ServerConfig::new(name.clone(), Reach::Program(program));
        assert_eq!(server.literal_secrets(), ["env MY_SECRET", "args 2", "args 3"]);
        let mut endpoint = Endpoint::new("https://h/mcp?units=metric&api_key=canary");
        endpoint.headers.insert("x-api-key".into(), Text::new("canary"));
        let server = ServerConfig::new(name, Reach::Endpoint(endpoint));
        assert_eq!(server.literal_secrets(), ["header x-api-key", "url api_key"]);
    }
}
