//! Detection of literal secrets, so that they can be redacted.

use crate::server::{ServerConfig, ServerLocation};
use crate::text::ConfigText;

/// Parts of names that usually have secret values.
const SECRET_NAME_PARTS: &[&str] = &[
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
const SECRET_PREFIXES: &[&str] = &[
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

/// The deepest nesting of words within words, such as the variable of an option within a shell command.
const MAX_NESTING: u8 = 4;

impl ServerConfig {
    /// Names the values that look like literal secrets and are no variables, such as `env TOKEN`. It never returns
    /// the values.
    pub fn literal_secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut note = |kind: &str, name: &str| found.push(format!("{kind} {name}"));
        match &self.location {
            ServerLocation::Program(program) => {
                for (name, value) in &program.env {
                    if is_secret(name, value.as_written()) || masked("", value.as_written()).is_some() {
                        note("env", name);
                    }
                }
                let masked = masked_words(program.args.iter().map(ConfigText::as_written));
                for (index, _) in masked.iter().enumerate().filter(|(_, masked)| masked.is_some()) {
                    note("args", &(index + 1).to_string());
                }
            }
            ServerLocation::Endpoint(endpoint) => {
                for (name, value) in &endpoint.headers {
                    if is_secret(name, value.as_written()) {
                        note("header", name);
                    }
                }
                let url = endpoint.url.as_written();
                let query = url.split_once('?').map_or("", |(_, query)| query);
                secret_parameters(query).for_each(|name| note("url", name));
                for (key, text) in self.auth.texts() {
                    if text.is_some_and(|text| is_secret(key, text.as_written())) {
                        note("auth", key);
                    }
                }
            }
        }
        found
    }
}

/// Returns the redacted form of each argument that holds a secret, and `None` for the others.
pub(crate) fn masked_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<Option<String>> {
    // An option has its value after `=`, or in the next argument.
    let mut option = "";
    let mut mask = |word: &'a str| {
        let masked = masked(std::mem::take(&mut option), word);
        if word.starts_with('-') && !word.contains('=') {
            option = word;
        }
        masked
    };
    words.into_iter().map(&mut mask).collect()
}

/// Returns the redacted form of an argument that holds a secret: its name stays visible.
fn masked(option: &str, word: &str) -> Option<String> {
    masked_to(MAX_NESTING, option, word)
}

fn masked_to(depth: u8, option: &str, word: &str) -> Option<String> {
    // An option is never the value of the option before it.
    let option = if word.starts_with('-') { "" } else { option };
    if is_secret(option, word) {
        return Some("…".to_owned());
    }
    let depth = depth.checked_sub(1)?;
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name))
        && (is_secret(name, value) || masked_to(depth, name, value).is_some())
    {
        return Some(format!("{name}=…"));
    }
    if let Some((name, value)) = header(option, word).filter(|(name, _)| is_secret_name(name)) {
        return is_secret(name, value).then(|| format!("{name}: …"));
    }
    if let Some((before, query)) = word.split_once(['?', '#'])
        && is_address(before)
        && secret_parameters(query).next().is_some()
    {
        return Some(format!("{before}?…"));
    }
    contains_secret(depth, word).then(|| "…".to_owned())
}

/// Reports whether a text is a single URL.
fn is_address(text: &str) -> bool {
    text.contains("://") && !text.contains(is_separator)
}

/// Splits a header. Without a space after its colon it may be a tag or a path, unless the option is for headers.
fn header<'a>(option: &str, word: &'a str) -> Option<(&'a str, &'a str)> {
    let (name, value) = word.split_once(':').filter(|(name, _)| is_name(name))?;
    let is_called_so = ["-H", "--header", "--headers"].contains(&option);
    (is_called_so || value.starts_with(' ')).then(|| (name, value.trim_start()))
}

/// Names the query parameters with values that look like secrets.
fn secret_parameters(query: &str) -> impl Iterator<Item = &str> {
    let pairs = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, value)| is_secret(name, value)).map(|(name, _)| name)
}

/// Reports whether a character is between words.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "\"'`,;".contains(c)
}

/// Reports whether a text of several words, such as a shell command or JSON, contains a secret.
fn contains_secret(depth: u8, text: &str) -> bool {
    if !text.contains(is_separator) {
        return false;
    }
    let mut option = "";
    text.split(is_separator).filter(|word| !word.is_empty()).any(|word| {
        // The authentication scheme precedes the secret.
        if ["Bearer", "Basic"].contains(&word) {
            option = if is_secret_name(option) { option } else { word };
            return false;
        }
        let found = masked_to(depth, std::mem::take(&mut option), word).is_some();
        if (word.starts_with('-') && !word.contains('=')) || word.ends_with(':') {
            option = word;
        }
        found
    })
}

/// Reports whether a text can be the name of an option, a variable or a header.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

fn is_secret(name: &str, value: &str) -> bool {
    if value.is_empty() || value.contains("${") {
        return false;
    }
    SECRET_PREFIXES.iter().any(|beginning| value.len() > beginning.len() + 8 && value.starts_with(beginning))
        || (is_secret_name(name) && value.len() > 3)
        || has_password(value)
}

/// Reports whether a text is a URL with a password.
fn has_password(value: &str) -> bool {
    let authority =
        value.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

/// Reports whether a value of this name is usually secret. Case and punctuation separate the words of a name.
fn is_secret_name(name: &str) -> bool {
    // Marks each beginning of a word, and then splits there.
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
    let is_named = |word: &str| {
        SECRET_NAME_PARTS.iter().any(|known| word.trim_end_matches('s') == known.trim_end_matches('s'))
    };
    let pairs = words.windows(2).map(<[&str]>::concat);
    words.iter().any(|word| is_named(word)) || pairs.into_iter().any(|pair| is_named(&pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{LocalProgram, RemoteEndpoint, ServerName};

    #[test]
    fn secrets_are_detected_by_name_and_prefix() {
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
            assert_eq!(is_secret(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn literal_secrets_are_reported_by_name_without_values() {
        let mut program = LocalProgram::new("run");
        program.args =
            ["--api-key", "canary-1234", "--token=canary-1234", "--port", "80"].map(ConfigText::new).into();
        program.env.insert("T".into(), ConfigText::new("x"));
        program.env.insert("MY_SECRET".into(), ConfigText::new("canary"));
        let name = ServerName::parse("s").unwrap();
        let server = ServerConfig::new(name.clone(), ServerLocation::Program(program));
        assert_eq!(server.literal_secrets(), ["env MY_SECRET", "args 2", "args 3"]);
        let mut endpoint = RemoteEndpoint::new("https://h/mcp?units=metric&api_key=canary");
        endpoint.headers.insert("x-api-key".into(), ConfigText::new("canary"));
        let server = ServerConfig::new(name, ServerLocation::Endpoint(endpoint));
        assert_eq!(server.literal_secrets(), ["header x-api-key", "url api_key"]);
    }

    #[test]
    fn argument_with_a_secret_is_redacted_to_its_name() {
        let table: &[(&[&str], &[&str])] = &[
            (&["-e", "GITHUB_TOKEN=canary-1"], &["-e", "GITHUB_TOKEN=…"]),
            (&["--env=GITHUB_TOKEN=canary-1"], &["--env=…"]),
            (&["-e", "GITHUB_TOKEN", "-e", "LEVEL=debug"], &["-e", "GITHUB_TOKEN", "-e", "LEVEL=debug"]),
            (&["-e", "GITHUB_TOKEN=${T}"], &["-e", "GITHUB_TOKEN=${T}"]),
            (&["--header", "Authorization: Bearer canary"], &["--header", "Authorization: …"]),
            (&["--header", "Authorization:Bearer canary"], &["--header", "Authorization: …"]),
            (&["-H", "X-Api-Key:canary"], &["-H", "X-Api-Key: …"]),
            (&["--header", "Authorization: Bearer ${T}"], &["--header", "Authorization: Bearer ${T}"]),
            (
                &["auth-server:latest", "ghcr.io/a/auth:latest"],
                &["auth-server:latest", "ghcr.io/a/auth:latest"],
            ),
            (&["KEY=1", "API_KEY=canary", "cmd"], &["KEY=1", "API_KEY=…", "cmd"]),
            (&["https://h/mcp?units=m&api_key=canary"], &["https://h/mcp?…"]),
            (&["--url=https://h/mcp?api_key=canary"], &["--url=…"]),
            (&["https://h/mcp#access_token=canary"], &["https://h/mcp?…"]),
            (&["https://auth.h/mcp?units=metric"], &["https://auth.h/mcp?units=metric"]),
            (&["https://ann:canary@h/mcp?api_key=canary"], &["…"]),
            (&["--token", "--port", "8080"], &["--token", "--port", "8080"]),
            (&["-e", "DB_AUTH=user:${PW}"], &["-e", "DB_AUTH=user:${PW}"]),
            (
                &["-c", "DB_AUTH=user:${PW} run --no-auth --port 80"],
                &["-c", "DB_AUTH=user:${PW} run --no-auth --port 80"],
            ),
            (&["--token", "canary=="], &["--token", "…"]),
            (&["-c", "API_KEY='canary' run"], &["-c", "API_KEY=…"]),
            (&["-c", "curl https://h/?a=1 --token canary"], &["-c", "…"]),
            (&["-c", "run --token canary https://h/?api_key=canary"], &["-c", "…"]),
            (&["note: run --token canary"], &["…"]),
            (&["-c", "docker run --env=API_KEY=canary x"], &["-c", "…"]),
            (&["-c", "run --token canary"], &["-c", "…"]),
            (&["-c", "run -H 'Authorization: Basic canary'"], &["-c", "…"]),
            (&["-c", "run -H 'Authorization: Bearer ${T}'"], &["-c", "run -H 'Authorization: Bearer ${T}'"]),
            (&["-c", "echo the author of it"], &["-c", "echo the author of it"]),
            (&["{\"Authorization\":\"Bearer canary\"}"], &["…"]),
        ];
        let chain = "a=".repeat(1 << 16) + ",";
        assert_eq!(masked_words([&*chain]), [None], "nobody looks into it without end");
        for (words, expected) in table {
            let masked = masked_words(words.iter().copied());
            let shown: Vec<&str> =
                words.iter().zip(&masked).map(|(word, masked)| masked.as_deref().unwrap_or(word)).collect();
            assert_eq!(shown, *expected, "{words:?}");
        }
    }
}
