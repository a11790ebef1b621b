use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// Which tools of a server are exposed, and how they are presented.
///
/// Rules are about the names that the server gives its tools, not about the new ones. Debug output has no texts that may
/// have come from a variable.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRules {
    /// Patterns of the tools to offer; without any, all are.
    #[serde(default)]
    pub allow: Vec<NamePattern>,
    /// Patterns of the tools not to offer, whatever is allowed.
    #[serde(default)]
    pub deny: Vec<NamePattern>,
    /// New names for tools.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// New descriptions for tools.
    #[serde(default)]
    pub describe: BTreeMap<String, String>,
}

impl fmt::Debug for ToolRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRules")
            .field("allow", &self.allow.len())
            .field("deny", &self.deny.len())
            .field("rename", &self.rename.keys())
            .field("describe", &self.describe.keys())
            .finish()
    }
}

impl ToolRules {
    /// Reports whether a tool is exposed.
    pub fn allows(&self, tool: &str) -> bool {
        let any = |patterns: &[NamePattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        !any(&self.deny) && (self.allow.is_empty() || any(&self.allow))
    }

    /// Returns the name under which a tool is offered.
    pub fn exposed_name<'a>(&'a self, tool: &'a str) -> &'a str {
        self.rename.get(tool).map_or(tool, String::as_str)
    }

    /// Returns the description of a tool, if it has a new one.
    pub fn description_of(&self, tool: &str) -> Option<&str> {
        self.describe.get(tool).map(String::as_str)
    }

    /// Reports whether there are no rules.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Finds an invalid rule: its key, and what is wrong.
    pub(crate) fn find_invalid_rule(&self) -> Option<([&str; 2], String)> {
        let mut taken = BTreeMap::new();
        for (old, new) in &self.rename {
            let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if !(1..=128).contains(&new.len()) || !new.chars().all(legal) {
                let what = "a tool's name has 1 to 128 letters, digits, `_`, `-` and `.`".to_owned();
                return Some((["rename", old], what));
            }
            if let Some(other) = taken.insert(new, old) {
                return Some((["rename", old], format!("the tool `{other}` is renamed to `{new}` as well")));
            }
        }
        None
    }
}

/// A pattern for names: `*` matches any characters, `?` matches one, and any other character matches itself.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct NamePattern(String);

impl NamePattern {
    /// Creates a pattern; every text is valid.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether a name matches, in a time of at most the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut name) = (self.0.chars(), name.chars());
        // Where to continue if the last `*` has to match one character more.
        let mut retry = None;
        loop {
            match (pattern.next(), name.clone().next()) {
                (Some('*'), _) => retry = Some((pattern.clone(), name.clone())),
                (Some('?'), Some(_)) => drop(name.next()),
                (Some(wanted), Some(found)) if wanted == found => drop(name.next()),
                (None, None) => return true,
                _ => {
                    let Some((after_star, from)) = &mut retry else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    pattern = after_star.clone();
                    name = from.clone();
                }
            }
        }
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let table = [
            ("get_issue", "get_issue", true),
            ("get_issue", "get_issues", false),
            ("get_*", "get_", true),
            ("get_*", "get_issue", true),
            ("get_*", "forget_issue", false),
            ("*_issue", "get_issue", true),
            ("*_issue", "get_issue_issue", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("?", "é", true),
            ("?", "", false),
            ("a?c", "abc", true),
            ("*", "", true),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
            ("[ab]", "a", false),
        ];
        for (pattern, name, matches) in table {
            assert_eq!(NamePattern::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn pattern_with_many_stars_matches_in_polynomial_time() {
        let pattern = NamePattern::new("*a".repeat(64) + "b");
        assert!(!pattern.matches(&"a".repeat(4096)));
    }

    #[test]
    fn denied_tools_are_hidden_and_others_need_a_matching_allow_rule() {
        let rules = |allow: &[&str], deny: &[&str]| ToolRules {
            allow: allow.iter().map(|text| NamePattern::new(*text)).collect(),
            deny: deny.iter().map(|text| NamePattern::new(*text)).collect(),
            ..ToolRules::default()
        };
        let table = [
            (rules(&[], &[]), true),
            (rules(&["get_*"], &[]), true),
            (rules(&["list_*"], &[]), false),
            (rules(&[], &["get_*"]), false),
            (rules(&["get_issue"], &["get_*"]), false),
            (rules(&["get_*"], &["get_secret"]), true),
        ];
        for (rules, offered) in table {
            assert_eq!(rules.allows("get_issue"), offered, "{rules:?}");
        }
    }
}
