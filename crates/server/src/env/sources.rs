use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use trunkline_protocol::{Refusal, shorten};

use super::{Env, EnvPolicy, EnvVariable, Secret};

/// The prefix of the headers that carry variables.
const HEADER_PREFIX: &str = "x-env-";

/// The largest value that a header may carry.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// The most variables that one request may carry.
const MAX_VARIABLES: usize = 32;

/// The most headers that are warned of by name; further ones are ignored silently.
const MAX_WARNINGS: usize = 64;

/// The variables that callers may have, and their sources.
#[derive(Debug)]
pub(crate) struct EnvSources {
    process: Env,
    headers: Vec<Arc<str>>,
    warned: Mutex<BTreeSet<String>>,
}

impl EnvSources {
    pub(crate) fn new(policy: &EnvPolicy) -> Self {
        let named = |names: &[String]| -> Vec<Arc<str>> {
            let (good, bad): (Vec<&String>, Vec<&String>) =
                names.iter().partition(|name| EnvPolicy::is_name(name));
            for name in bad {
                tracing::warn!(name = shorten(name), "this cannot name an environment variable");
            }
            let good: BTreeSet<&str> = good.into_iter().map(String::as_str).collect();
            good.into_iter().map(Arc::from).collect()
        };
        let process = named(&policy.from_process).into_iter().filter_map(|name| {
            let value = std::env::var(&*name).ok()?;
            Some((name, Secret::new(value)))
        });
        Self {
            process: Env::new(process.collect()),
            headers: unique_names(named(&policy.from_headers)),
            warned: Mutex::default(),
        }
    }

    /// Returns the allowed variables of this process, as they were when the host was made.
    pub(crate) fn process(&self) -> Env {
        self.process.clone()
    }

    /// Reports whether any caller can have a variable, so that the check is skipped where none can.
    pub(crate) fn has_any(&self) -> bool {
        !self.headers.is_empty() || !self.process.is_empty()
    }

    /// Reports whether headers are read.
    pub(crate) fn reads_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Reports whether a header carries an allowed variable.
    pub(crate) fn allows_header(&self, header: &HeaderName) -> bool {
        let suffix = header.as_str().strip_prefix(HEADER_PREFIX);
        suffix.is_some_and(|suffix| self.headers.iter().any(|name| matches_name(suffix, name)))
    }

    /// Reads the variables that a request carries.
    ///
    /// # Errors
    /// An allowed variable is repeated, is too large, or is not plain text; or there are too many.
    pub(crate) fn read(&self, headers: &HeaderMap, is_private: bool) -> Result<Env, Refusal> {
        let mut values: Vec<EnvVariable> = Vec::new();
        for (header, value) in headers {
            let Some(suffix) = header.as_str().strip_prefix(HEADER_PREFIX) else { continue };
            let Some(name) = self.headers.iter().find(|name| matches_name(suffix, name)) else {
                self.warn(suffix, "it is not allowed");
                continue;
            };
            if !is_private {
                self.warn(suffix, "it came neither over the loopback nor over TLS");
                continue;
            }
            let text = plain_text(value.as_bytes())
                .ok_or_else(|| refuse(suffix, "is not plain text, or too long"))?;
            if values.iter().any(|(known, _)| known == name) {
                return Err(refuse(suffix, "comes twice"));
            }
            values.push((name.clone(), Secret::new(text)));
        }
        if values.len() > MAX_VARIABLES {
            return Err(Refusal::INVALID_REQUEST.with_message("too many X-Env headers"));
        }
        Ok(Env::new(values))
    }

    /// Warns once of a header that is ignored, by its name alone.
    fn warn(&self, suffix: &str, why: &str) {
        let mut warned = self.warned.lock();
        if warned.len() < MAX_WARNINGS && warned.insert(shorten(suffix)) {
            tracing::warn!(header = %format_args!("{HEADER_PREFIX}{}", shorten(suffix)), "ignored a variable: {why}");
        }
    }
}

/// Removes names that differ from an earlier one only in case, since header names are case-insensitive.
fn unique_names(all: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut kept: Vec<Arc<str>> = Vec::with_capacity(all.len());
    for name in all {
        match kept.iter().find(|kept| kept.eq_ignore_ascii_case(&name)) {
            None => kept.push(name),
            Some(first) => {
                tracing::warn!(%first, second = %name, "headers have no case: only the first counts");
            }
        }
    }
    kept
}

/// Reports whether a header names a variable. Header names are case-insensitive, and some proxies drop those with a
/// `_`.
fn matches_name(suffix: &str, name: &str) -> bool {
    suffix.len() == name.len()
        && suffix.bytes().zip(name.bytes()).all(|(byte, name)| {
            let byte = if byte == b'-' { b'_' } else { byte };
            byte.eq_ignore_ascii_case(&name)
        })
}

fn plain_text(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    (text.len() <= MAX_VALUE_BYTES && !text.chars().any(char::is_control)).then_some(text)
}

fn refuse(suffix: &str, why: &str) -> Refusal {
    Refusal::INVALID_REQUEST.with_message(format!("the header X-Env-{} {why}", shorten(suffix)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn sources(names: &[&str]) -> EnvSources {
        let from_headers = names.iter().map(|name| (*name).to_owned()).collect();
        EnvSources::new(&EnvPolicy { from_headers, ..EnvPolicy::default() })
    }

    fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn env_headers_match_allowed_names_in_any_case() {
        let sources = sources(&["OPENAI_API_KEY", "lower"]);
        for (name, variable) in [
            ("X-Env-OPENAI_API_KEY", Some("OPENAI_API_KEY")),
            ("x-env-openai_api_key", Some("OPENAI_API_KEY")),
            ("X-Env-Openai-Api-Key", Some("OPENAI_API_KEY")),
            ("X-Env-LOWER", Some("lower")),
            ("X-Env-OTHER", None),
            ("X-Env-", None),
            ("X-Env-OPENAI_API_KEY2", None),
            ("Env-OPENAI_API_KEY", None),
        ] {
            let env = sources.read(&headers(&[(name, b"value")]), true).unwrap();
            assert_eq!(env.names().next(), variable, "{name}");
            assert_eq!(variable.and_then(|name| env.get(name)), variable.map(|_| Secret::new("value")));
        }
    }

    #[test]
    fn env_name_listed_twice_is_one_variable() {
        for names in [&["A_B", "A_B"][..], &["A_B", "a_b"], &["A_B", "a_b", "A_B", "A_b"]] {
            let env = sources(names).read(&headers(&[("X-Env-A_B", b"value")]), true).unwrap();
            assert_eq!(env.names().collect::<Vec<_>>(), ["A_B"], "{names:?}");
        }
    }

    #[test]
    fn malformed_env_header_is_refused_without_repeating_its_value() {
        let long = vec![b'x'; MAX_VALUE_BYTES + 1];
        let one = sources(&["A_B"]);
        for pairs in [
            &[("X-Env-A_B", &b"one"[..]), ("X-Env-A_B", b"one")][..],
            &[("X-Env-A_B", b"one"), ("x-env-a-b", b"two")],
            &[("X-Env-A_B", b"sentinel\ttab")],
            &[("X-Env-A_B", b"sentinel\xff")],
            &[("X-Env-A_B", &long)],
        ] {
            let refusal = one.read(&headers(pairs), true).unwrap_err();
            assert!(refusal.is_same_kind(&Refusal::INVALID_REQUEST));
            assert!(!refusal.message().contains("sentinel"), "{}", refusal.message());
        }
        let many: Vec<String> = (0..=MAX_VARIABLES).map(|n| format!("V{n}")).collect();
        let names: Vec<&str> = many.iter().map(String::as_str).collect();
        let spelled: Vec<String> = many.iter().map(|name| format!("x-env-{name}")).collect();
        let pairs: Vec<(&str, &[u8])> = spelled.iter().map(|name| (name.as_str(), &b"1"[..])).collect();
        assert!(sources(&names).read(&headers(&pairs), true).is_err());
    }

    #[test]
    fn env_headers_on_an_unprotected_connection_are_ignored() {
        let sources = sources(&["A_B"]);
        assert!(sources.read(&headers(&[("X-Env-A_B", b"one")]), false).unwrap().is_empty());
    }

    #[test]
    fn warnings_about_ignored_env_headers_are_bounded() {
        let sources = sources(&["A_B"]);
        for n in 0..1000 {
            let name = format!("x-env-other{n}");
            sources.read(&headers(&[(&name, b"1")]), true).unwrap();
        }
        assert_eq!(sources.warned.lock().len(), MAX_WARNINGS);
    }
}
