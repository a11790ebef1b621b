//! Sets of scopes, and which of them to request.

use std::fmt;

/// The number of scopes that a set may have; further ones are dropped.
pub const MAX_SCOPES: usize = 256;

/// The scope that lets an authorization server issue a refresh token (OpenID Connect Core §11).
pub const OFFLINE_ACCESS: &str = "offline_access";

/// Scopes without duplicates, in the order in which they were added.
///
/// Texts that are no scope by [RFC 6749 §3.3](https://www.rfc-editor.org/rfc/rfc6749#section-3.3) are dropped.
///
/// ```
/// use trunkline_auth::scopes::ScopeSet;
///
/// let requested = ScopeSet::parse("mcp:read").union(&ScopeSet::parse("mcp:write mcp:read"));
/// assert_eq!(requested.to_string(), "mcp:read mcp:write");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet {
    scopes: Vec<String>,
}

impl ScopeSet {
    /// Parses scopes separated by spaces.
    pub fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().collect()
    }

    /// Adds a scope behind the others, unless it is there.
    pub fn insert(&mut self, scope: &str) {
        let is_scope_char = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        let is_valid = !scope.is_empty() && scope.bytes().all(is_scope_char);
        if is_valid && self.scopes.len() < MAX_SCOPES && !self.contains(scope) {
            self.scopes.push(scope.to_owned());
        }
    }

    /// Reports whether a scope is in the set.
    pub fn contains(&self, scope: &str) -> bool {
        self.scopes.iter().any(|other| other == scope)
    }

    /// Returns this set followed by what only the other has.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// Reports whether every scope of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|scope| other.contains(scope))
    }

    /// Reports whether there is no scope.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Returns the scopes in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<&'a str> for ScopeSet {
    fn from_iter<T: IntoIterator<Item = &'a str>>(scopes: T) -> Self {
        let mut set = Self::default();
        scopes.into_iter().for_each(|scope| set.insert(scope));
        set
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.scopes.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{scope}")?;
        }
        Ok(())
    }
}

/// Whether the client can use a refresh token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefreshSupport {
    /// The grant yields refresh tokens, and the client stores them.
    #[default]
    Possible,
    /// The grant has no refresh tokens.
    Impossible,
}

/// What is known about scopes when a request for authorization is made.
#[derive(Clone, Debug, Default)]
pub struct ScopeSources<'a> {
    /// Scopes that earlier requests for the same resource had.
    pub previous: Option<&'a ScopeSet>,
    /// Scopes of the challenge.
    pub challenge: Option<&'a ScopeSet>,
    /// `scopes_supported` of the protected resource metadata.
    pub resource: Option<&'a ScopeSet>,
    /// `scopes_supported` of the authorization server metadata.
    pub server: Option<&'a ScopeSet>,
    /// Whether a refresh token is of use.
    pub refresh: RefreshSupport,
}

impl ScopeSources<'_> {
    /// Chooses the scopes to request; an empty set means to omit the parameter.
    ///
    /// The challenge comes first, then what the resource lists (MCP, Scope Selection Strategy). Earlier requested
    /// scopes are kept, so that a step-up for one operation does not take away what another needs. `offline_access`
    /// is appended only if the authorization server lists it, and never alone: a request without scopes yields the
    /// server's default, which a single scope would replace.
    pub fn select(&self) -> ScopeSet {
        let none = ScopeSet::default();
        let wanted = self.challenge.filter(|scopes| !scopes.is_empty()).or(self.resource).unwrap_or(&none);
        let mut selected = self.previous.unwrap_or(&none).union(wanted);
        let is_offered = self.server.is_some_and(|scopes| scopes.contains(OFFLINE_ACCESS));
        if self.refresh == RefreshSupport::Possible && is_offered && !selected.is_empty() {
            selected.insert(OFFLINE_ACCESS);
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_ordered_unique_and_valid() {
        let table = [
            ("", ""),
            ("  a\tb  a ", "a b"),
            ("b a", "b a"),
            ("a\"b c\\d e\u{e9} f", "f"),
            ("mcp:read https://h/scope.x", "mcp:read https://h/scope.x"),
        ];
        for (text, expected) in table {
            assert_eq!(ScopeSet::parse(text).to_string(), expected, "{text}");
        }
        let many: String = (0..1000).map(|n| format!("s{n} ")).collect();
        assert_eq!(ScopeSet::parse(&many).iter().count(), MAX_SCOPES);
    }

    #[test]
    fn scope_union_keeps_the_earlier_order() {
        let union = ScopeSet::parse("c a").union(&ScopeSet::parse("b a d"));
        assert_eq!(union.to_string(), "c a b d");
        assert!(ScopeSet::parse("d c").is_subset(&union) && !ScopeSet::parse("e").is_subset(&union));
    }

    #[test]
    fn scopes_are_selected_by_precedence() {
        // previous, challenge, resource, server, expected
        let table = [
            ("", "mcp:basic", "x y", "", "mcp:basic"),
            ("", "", "x y", "", "x y"),
            ("", "", "", "", ""),
            ("", "", "", "offline_access z", ""),
            ("", "mcp:basic", "x", "mcp:basic z", "mcp:basic"),
            ("", "mcp:basic", "x", "offline_access", "mcp:basic offline_access"),
            ("", "", "offline_access", "", "offline_access"),
            ("mcp:basic", "mcp:write", "decoy", "", "mcp:basic mcp:write"),
        ];
        for (previous, challenge, resource, server, expected) in table {
            let set = |text: &str| Some(ScopeSet::parse(text)).filter(|set| !set.is_empty());
            let (previous, challenge) = (set(previous), set(challenge));
            let (resource, server) = (set(resource), set(server));
            let mut sources = ScopeSources {
                previous: previous.as_ref(),
                challenge: challenge.as_ref(),
                resource: resource.as_ref(),
                server: server.as_ref(),
                refresh: RefreshSupport::Possible,
            };
            assert_eq!(sources.select().to_string(), expected);
            sources.refresh = RefreshSupport::Impossible;
            assert!(!sources.select().contains(OFFLINE_ACCESS) || resource.is_some());
        }
    }
}
