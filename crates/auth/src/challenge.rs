//! The challenges of `WWW-Authenticate` headers ([RFC 9110 §11.6.1](https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1)).
//!
//! A response may have several such headers, each with several challenges, and servers in the field deviate from the
//! grammar: values that should be quoted are not, and commas are missing. The parser therefore accepts more than the
//! grammar and skips what it cannot read; it never fails.

use http::{HeaderMap, header};

use crate::scopes::ScopeSet;

/// The number of challenges that are read from one response; further ones are ignored.
pub const MAX_CHALLENGES: usize = 16;

/// The number of parameters that are read from one challenge; further ones are ignored.
pub const MAX_CHALLENGE_PARAMETERS: usize = 32;

/// One challenge: a scheme with parameters or a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemeChallenge {
    scheme: String,
    token68: Option<String>,
    parameters: Vec<(String, String)>,
}

impl SchemeChallenge {
    /// Returns the scheme as it was sent.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Reports whether the challenge is of a scheme, which has no case.
    pub fn is_scheme(&self, name: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(name)
    }

    /// Returns the token that stands in the place of parameters, as `Negotiate` has it.
    pub fn token68(&self) -> Option<&str> {
        self.token68.as_deref()
    }

    /// Returns the first parameter of a name, which has no case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns all parameters in their order.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// All challenges of one response.
///
/// The accessors read the `Bearer` and `DPoP` challenges only; the first that has the parameter wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChallengeList {
    challenges: Vec<SchemeChallenge>,
}

impl ChallengeList {
    /// Parses every `WWW-Authenticate` header.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let mut list = Self::default();
        for value in headers.get_all(header::WWW_AUTHENTICATE) {
            list.read(&String::from_utf8_lossy(value.as_bytes()));
        }
        list
    }

    /// Parses the value of one header.
    pub fn parse(value: &str) -> Self {
        let mut list = Self::default();
        list.read(value);
        list
    }

    /// Returns the challenges in their order.
    pub fn iter(&self) -> impl Iterator<Item = &SchemeChallenge> {
        self.challenges.iter()
    }

    /// Returns the first `Bearer` challenge (RFC 6750 §3).
    pub fn bearer(&self) -> Option<&SchemeChallenge> {
        self.iter().find(|challenge| challenge.is_scheme("Bearer"))
    }

    /// Returns the first `DPoP` challenge (RFC 9449 §7.1).
    pub fn dpop(&self) -> Option<&SchemeChallenge> {
        self.iter().find(|challenge| challenge.is_scheme("DPoP"))
    }

    /// Returns the URL of the protected resource metadata (RFC 9728 §5.1).
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// Returns the scopes that the request needs, if the server named any.
    pub fn scope(&self) -> Option<ScopeSet> {
        self.parameter("scope").map(ScopeSet::parse).filter(|scopes| !scopes.is_empty())
    }

    /// Returns the error code, such as `insufficient_scope`.
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Returns the server's explanation, which is text of the peer.
    pub fn error_description(&self) -> Option<&str> {
        self.parameter("error_description")
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let is_token_scheme =
            |challenge: &&SchemeChallenge| challenge.is_scheme("Bearer") || challenge.is_scheme("DPoP");
        self.iter().filter(is_token_scheme).find_map(|challenge| challenge.parameter(name))
    }

    fn read(&mut self, value: &str) {
        let mut cursor = ValueCursor { rest: value };
        let mut current: Option<SchemeChallenge> = None;
        while cursor.skip_separators() {
            let token = cursor.take_while(is_token_char);
            if token.is_empty() {
                cursor.skip_one();
                continue;
            }
            if let Some(value) = cursor.parameter_value() {
                if let Some(challenge) = &mut current
                    && challenge.parameters.len() < MAX_CHALLENGE_PARAMETERS
                {
                    challenge.parameters.push((token.to_owned(), value));
                }
                continue;
            }
            self.push(current.take());
            let token68 = cursor.token68();
            current = Some(SchemeChallenge { scheme: token.to_owned(), token68, parameters: Vec::new() });
        }
        self.push(current);
    }

    fn push(&mut self, challenge: Option<SchemeChallenge>) {
        if self.challenges.len() < MAX_CHALLENGES {
            self.challenges.extend(challenge);
        }
    }
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn is_token68_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/".contains(c)
}

fn is_space(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// The unread rest of a header's value.
struct ValueCursor<'a> {
    rest: &'a str,
}

impl<'a> ValueCursor<'a> {
    /// Skips spaces and commas, and reports whether anything follows.
    fn skip_separators(&mut self) -> bool {
        self.rest = self.rest.trim_start_matches(|c| is_space(c) || c == ',');
        !self.rest.is_empty()
    }

    fn skip_one(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Reads `= value` if the name before it is that of a parameter.
    fn parameter_value(&mut self) -> Option<String> {
        let rest = self.rest.trim_start_matches(is_space).strip_prefix('=')?;
        self.rest = rest.trim_start_matches(is_space);
        match self.rest.strip_prefix('"') {
            Some(quoted) => Some(self.quoted(quoted)),
            // A URL without quotes is no token, but what was meant is clear.
            None => Some(self.take_while(|c| c != ',' && !is_space(c)).to_owned()),
        }
    }

    /// Reads a quoted string behind its first quote. One that does not end takes the rest.
    fn quoted(&mut self, text: &'a str) -> String {
        let mut value = String::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        self.rest = chars.as_str();
        value
    }

    /// Reads a token in the place of parameters, which ends the challenge.
    fn token68(&mut self) -> Option<String> {
        let text = self.rest.trim_start_matches(is_space);
        if text.len() == self.rest.len() {
            return None;
        }
        let body = text.trim_start_matches(is_token68_char);
        let after = body.trim_start_matches('=');
        let token = text.strip_suffix(after).filter(|_| body.len() < text.len())?;
        let next = after.trim_start_matches(is_space);
        if next.is_empty() || next.starts_with(',') {
            self.rest = after;
            return Some(token.to_owned());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        let list = ChallengeList::parse(value);
        let lines: Vec<String> = list
            .iter()
            .map(|challenge| {
                let mut line = challenge.scheme().to_owned();
                line.extend(challenge.token68().map(|token| format!(" [{token}]")));
                line.extend(challenge.parameters().map(|(name, value)| format!(" {name}={value}")));
                line
            })
            .collect();
        assert_eq!(lines, expected, "{value}");
    }

    #[test]
    fn challenges_are_parsed_in_every_form_of_the_grammar() {
        check("Bearer", &["Bearer"]);
        check("Bearer realm=\"a, b\", scope=\"x y\"", &["Bearer realm=a, b scope=x y"]);
        check("Bearer error=invalid_token,scope=\"a\"", &["Bearer error=invalid_token scope=a"]);
        check("Bearer realm = \"a\" , b=c", &["Bearer realm=a b=c"]);
        check(r#"Bearer d="a \"b\" \\ c""#, &[r#"Bearer d=a "b" \ c"#]);
        check("Negotiate YWJj==, Bearer a=b", &["Negotiate [YWJj==]", "Bearer a=b"]);
        check(
            "Negotiate, Basic realm=\"x\", DPoP algs=\"ES256\"",
            &["Negotiate", "Basic realm=x", "DPoP algs=ES256"],
        );
        check("Bearer scope=\"\"", &["Bearer scope="]);
    }

    #[test]
    fn challenges_beyond_the_grammar_are_read_as_far_as_possible() {
        check("", &[]);
        check(" , ,, ", &[]);
        check("Bearer a=\"open", &["Bearer a=open"]);
        check("Bearer a=\"open\\", &["Bearer a=open"]);
        check("Bearer a=b DPoP c=d", &["Bearer a=b", "DPoP c=d"]);
        check(
            "Bearer resource_metadata=https://h/.well-known/x, scope=a",
            &["Bearer resource_metadata=https://h/.well-known/x scope=a"],
        );
        check("a=b, Bearer c=d", &["Bearer c=d"]);
        check("(Bearer) ü a=b", &["Bearer a=b"]);
        check("Bearer realm=\"a\"scope=\"b\"", &["Bearer realm=a scope=b"]);
    }

    #[test]
    fn challenge_accessors_look_at_token_schemes_only() {
        let mut headers = HeaderMap::new();
        headers.append("www-authenticate", "Basic realm=\"r\", scope=\"no\"".parse().unwrap());
        headers.append("www-authenticate", "DPoP algs=\"ES256\", error=\"use_dpop_nonce\"".parse().unwrap());
        let bearer = "bearer Resource_Metadata=\"https://h/prm\", scope=\"a  b a\", error_description=\"no\"";
        headers.append("www-authenticate", bearer.parse().unwrap());
        let list = ChallengeList::from_headers(&headers);
        assert_eq!(list.resource_metadata(), Some("https://h/prm"));
        assert_eq!(list.scope().unwrap().to_string(), "a b");
        assert_eq!((list.error(), list.error_description()), (Some("use_dpop_nonce"), Some("no")));
        assert!(list.bearer().is_some() && list.dpop().is_some());
        assert_eq!(ChallengeList::parse("Bearer scope=\"\"").scope(), None);
    }

    #[test]
    fn challenges_and_parameters_are_bounded() {
        let many = "Bearer a=b, ".repeat(100);
        assert_eq!(ChallengeList::parse(&many).iter().count(), MAX_CHALLENGES);
        let wide = format!("Bearer {}", "a=b, ".repeat(100));
        let list = ChallengeList::parse(&wide);
        assert_eq!(list.bearer().unwrap().parameters().count(), MAX_CHALLENGE_PARAMETERS);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in "\\PC{0,200}") {
            let list = ChallengeList::parse(&text);
            prop_assert!(list.iter().count() <= MAX_CHALLENGES);
        }

        #[test]
        fn quoted_values_round_trip(value in "[ -~]{0,40}", scheme in "[A-Za-z]{1,8}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let list = ChallengeList::parse(&format!("{scheme} a=\"x\",p=\"{quoted}\", Other b=c"));
            let first = list.iter().next().unwrap();
            prop_assert_eq!(first.parameter("p"), Some(value.as_str()));
            prop_assert_eq!(list.iter().count(), 2);
        }
    }
}
