//! The access rules of `trunkline.toml`: `[[access]]`, in the order of the file.

mod pattern_list;

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::pattern_list::PatternList;
use crate::limits::MAX_ACCESS_RULES;
use crate::problem::ConfigProblem;
use crate::section::ConfigSection;
use crate::server::NamePattern;

/// Whether an access rule allows or denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessAction {
    /// Callers may see and use the items.
    Allow,
    /// For these callers the items do not exist.
    Deny,
}

/// One access rule: which callers may use which items of which servers.
///
/// Every key that is given has to match; one that is absent matches everything. The first rule that matches decides.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// The name of the rule in the audit log; by default its number.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether the rule allows or denies.
    pub action: AccessAction,
    /// Principals; `anonymous` is a caller without credentials, `process` the one at standard input and output.
    #[serde(default)]
    pub principal: Option<PatternList>,
    /// Authorization servers that issued the token.
    #[serde(default)]
    pub issuer: Option<PatternList>,
    /// OAuth clients that the token was issued to.
    #[serde(default)]
    pub client: Option<PatternList>,
    /// Scopes that the token must have, all of them. An item that lacks only these is listed, and a call of it names
    /// them.
    #[serde(default)]
    pub scope: Option<PatternList>,
    /// Claims of the token, by name or by path (`realm_access.roles`). Of a list one element has to match.
    #[serde(default)]
    pub claim: BTreeMap<String, PatternList>,
    /// Servers, by the name in this file.
    #[serde(default)]
    pub servers: Option<PatternList>,
    /// Tools, by the name that the server gives them. A rule with `tools`, `prompts` or `resources` is only about
    /// these kinds.
    #[serde(default)]
    pub tools: Option<PatternList>,
    /// Prompts, by the name that the server gives them.
    #[serde(default)]
    pub prompts: Option<PatternList>,
    /// Resources and resource templates, by URI.
    #[serde(default)]
    pub resources: Option<PatternList>,
    /// Of tools, only those that their server annotates as read-only; only for rules that allow.
    #[serde(default)]
    pub read_only: bool,
}

impl AccessRule {
    /// Makes a rule for every caller and every item.
    pub fn new(action: AccessAction) -> Self {
        Self {
            name: None,
            action,
            principal: None,
            issuer: None,
            client: None,
            scope: None,
            claim: BTreeMap::new(),
            servers: None,
            tools: None,
            prompts: None,
            resources: None,
            read_only: false,
        }
    }

    /// Finds a mistake: its key, and what is wrong.
    fn find_mistake(&self) -> Option<(&'static str, &'static str)> {
        let is_deny = self.action == AccessAction::Deny;
        if is_deny && self.read_only {
            // Its server could then escape the rule by leaving out the annotation.
            return Some(("read_only", "only a rule that allows can be limited to read-only tools"));
        }
        let is_scope = |text: &str| !text.is_empty() && text.bytes().all(is_scope_byte);
        let scopes = self.scope.iter().flat_map(PatternList::iter);
        if scopes.map(NamePattern::as_str).any(|scope| !is_scope(scope)) {
            return Some(("scope", "a scope has neither spaces nor quotes, and no pattern is possible"));
        }
        None
    }
}

/// Reports whether a byte may occur in a scope (RFC 6749 §3.3). `*` and `?` may, but here they would look like
/// patterns.
fn is_scope_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"\\*?".contains(&byte)
}

/// Reads the rules, in their order.
pub(crate) fn read_rules(section: &ConfigSection) -> Result<Vec<AccessRule>, ConfigProblem> {
    let rules: Vec<AccessRule> = section.read()?;
    if rules.len() > MAX_ACCESS_RULES {
        let what = format!("there are {} access rules; at most {MAX_ACCESS_RULES} are possible", rules.len());
        return Err(section.problem(&[], what));
    }
    let mut names = HashSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let number = index.to_string();
        if let Some((key, what)) = rule.find_mistake() {
            return Err(section.problem(&[&number, key], what));
        }
        if let Some(name) = &rule.name
            && !names.insert(name)
        {
            return Err(section.problem(&[&number, "name"], "there is another rule of this name"));
        }
    }
    Ok(rules)
}
