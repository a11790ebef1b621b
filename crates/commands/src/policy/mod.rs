//! Policies: which commands callers may see and run.
//!
//! A denied command is hidden: it is not listed, and a call of it is answered like a call of an unknown name.

mod pattern;
mod presets;

use std::fmt;
use std::str::FromStr;

use self::pattern::CommandPattern;

/// Ordered rules over the words of a command's path; the first that matches decides.
///
/// If none matches, a command is allowed, unless there is an `allow` rule: then only commands that are explicitly
/// allowed are.
///
/// A pattern is a list of words, each of which may have `*` for any number of characters and `?` for one. It has to
/// match the whole path: `profile` does not match `profile add`, and `profile *` does not match `profiler run`. A
/// lone `*` is one word, at the end any number of words, and `**` is any number of words anywhere.
///
/// ```
/// # use trunkline_commands::Policy;
/// let policy: Policy = "deny cloud token *\nallow cloud *".parse()?;
/// assert!(policy.decide(&["cloud", "project", "list"]).is_allowed());
/// assert!(!policy.decide(&["cloud", "token", "new"]).is_allowed());
/// assert!(!policy.decide(&["profile", "list"]).is_allowed());
/// # Ok::<(), trunkline_commands::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<PolicyRule>,
    /// A policy that has to allow the command too.
    outer: Option<Box<Policy>>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    effect: RuleEffect,
    pattern: CommandPattern,
    preset: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleEffect {
    Allow,
    Deny,
}

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {number} of the policy, `{rule}`, {reason}")]
pub struct PolicyError {
    /// The number of the rule, from 1.
    pub number: usize,
    /// The rule as it was written.
    pub rule: String,
    reason: String,
}

impl Policy {
    /// Creates a policy that allows everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a policy that hides what golem's server hides: profiles, tokens, grants and accounts.
    pub fn golem() -> Self {
        let rules = presets::GOLEM_PATTERNS.iter().filter_map(|pattern| {
            let pattern = CommandPattern::parse(pattern).ok()?;
            Some(PolicyRule { effect: RuleEffect::Deny, pattern, preset: Some("golem") })
        });
        Self { rules: rules.collect(), outer: None }
    }

    /// Parses rules, one per text: `allow PATTERN`, `deny PATTERN` or `preset golem`.
    ///
    /// # Errors
    /// [`PolicyError`] for the first invalid rule.
    pub fn from_rules<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Result<Self, PolicyError> {
        let mut policy = Self::new();
        for (at, text) in rules.into_iter().enumerate() {
            let text = text.as_ref().trim();
            policy.add(text).map_err(|reason| PolicyError {
                number: at + 1,
                rule: text.to_owned(),
                reason,
            })?;
        }
        Ok(policy)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let effect = match word {
            "allow" => RuleEffect::Allow,
            "deny" => RuleEffect::Deny,
            "preset" if rest.trim() == "golem" => {
                self.rules.extend(Self::golem().rules);
                return Ok(());
            }
            "preset" => return Err("names no preset; there is `golem`".to_owned()),
            _ => return Err("must begin with `allow`, `deny` or `preset`".to_owned()),
        };
        self.rules.push(PolicyRule { effect, pattern: CommandPattern::parse(rest)?, preset: None });
        Ok(())
    }

    /// Restricts the policy to what another policy allows too.
    #[must_use]
    pub fn intersect(mut self, other: Self) -> Self {
        self.outer = Some(Box::new(match self.outer.take() {
            Some(outer) => outer.intersect(other),
            None => other,
        }));
        self
    }

    /// Warns of rules that match none of these commands: a misspelt rule hides nothing.
    pub(crate) fn warn_unused_rules(&self, commands: &[Vec<String>]) {
        for rule in self.unused_rules(commands) {
            tracing::warn!("policy rule `{rule}` matches no command");
        }
    }

    /// Returns the rules that match none of these commands; those of a preset need not.
    fn unused_rules(&self, commands: &[Vec<String>]) -> Vec<&PolicyRule> {
        let matches = |rule: &PolicyRule| {
            commands
                .iter()
                .any(|words| rule.pattern.matches(&words.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        let own = self.rules.iter().filter(|rule| rule.preset.is_none() && !matches(rule));
        own.chain(self.outer.iter().flat_map(|outer| outer.unused_rules(commands))).collect()
    }

    /// Decides on a command by the words of its path.
    pub fn decide<S: AsRef<str>>(&self, words: &[S]) -> PolicyDecision<'_> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let rule = self.rules.iter().find(|rule| rule.pattern.matches(&words));
        let allowed = match rule {
            Some(rule) => rule.effect == RuleEffect::Allow,
            None => self.rules.iter().all(|rule| rule.effect == RuleEffect::Deny),
        };
        match &self.outer {
            Some(outer) if allowed => outer.decide(&words),
            _ => PolicyDecision { allowed, rule },
        }
    }
}

/// Parses rules, one per line; empty lines and those that begin with `#` are skipped.
impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let rules = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        Self::from_rules(rules)
    }
}

impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = if self.effect == RuleEffect::Allow { "allow" } else { "deny" };
        write!(f, "{effect} {}", self.pattern)?;
        match self.preset {
            Some(preset) => write!(f, " (preset {preset})"),
            None => Ok(()),
        }
    }
}

/// The decision of a policy on a command, with the deciding rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyDecision<'p> {
    allowed: bool,
    rule: Option<&'p PolicyRule>,
}

impl PolicyDecision<'_> {
    /// Reports whether the command may be seen and run.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }
}

impl fmt::Display for PolicyDecision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.allowed, self.rule) {
            (true, Some(rule)) => write!(f, "allowed by `{rule}`"),
            (true, None) => f.write_str("allowed, since no rule denies it"),
            (false, Some(rule)) => write!(f, "denied by `{rule}`"),
            (false, None) => f.write_str("denied, since no rule allows it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decide(rules: &[&str], path: &str) -> String {
        let policy = Policy::from_rules(rules).unwrap();
        policy.decide(&path.split(' ').collect::<Vec<_>>()).to_string()
    }

    #[test]
    fn first_matching_rule_decides() {
        let open = "allowed, since no rule denies it";
        let closed = "denied, since no rule allows it";
        for (rules, path, expected) in [
            (&[][..], "any thing", open),
            (&["deny profile *"], "profile add", "denied by `deny profile *`"),
            (&["deny profile *"], "profile config set-format", "denied by `deny profile *`"),
            (&["deny profile *"], "profile", "denied by `deny profile *`"),
            (&["deny profile *"], "profiler run", open),
            (&["deny profile *"], "Profile add", open),
            (&["deny profile"], "profile add", open),
            (&["deny cloud * grant"], "cloud project grant", "denied by `deny cloud * grant`"),
            (&["deny cloud * grant"], "cloud grant", open),
            (&["deny cloud * grant"], "cloud a b grant", open),
            (&["deny ** grant"], "cloud a b grant", "denied by `deny ** grant`"),
            (&["deny ** grant"], "grant", "denied by `deny ** grant`"),
            (&["deny cloud tok?n"], "cloud token", "denied by `deny cloud tok?n`"),
            (&["deny *-delete"], "user-delete", "denied by `deny *-delete`"),
            (&["allow component *"], "component list", "allowed by `allow component *`"),
            (&["allow component *"], "worker list", closed),
            (
                &["deny component delete", "allow component *"],
                "component delete",
                "denied by `deny component delete`",
            ),
            (
                &["allow component *", "deny component delete"],
                "component delete",
                "allowed by `allow component *`",
            ),
            (&["preset golem"], "cloud token", "denied by `deny cloud token *` (preset golem)"),
            (&["preset golem"], "component list", open),
        ] {
            let expected = expected.replace("` (preset golem)", " (preset golem)`");
            assert_eq!(decide(rules, path), expected, "{rules:?} {path}");
        }
    }

    #[test]
    fn intersected_policies_allow_what_both_allow() {
        let policy = |rules: &[&str]| Policy::from_rules(rules).unwrap();
        let both = policy(&["deny a b"]).intersect(policy(&["allow a *"])).intersect(policy(&["deny a c"]));
        for (path, allowed) in
            [(&["a", "d"], true), (&["a", "b"], false), (&["x", "d"], false), (&["a", "c"], false)]
        {
            assert_eq!(both.decide(path).is_allowed(), allowed, "{path:?}");
        }
    }

    #[test]
    fn unused_policy_rules_are_reported() {
        let commands = ["component delete", "worker list"];
        let commands: Vec<Vec<String>> =
            commands.iter().map(|words| words.split(' ').map(str::to_owned).collect()).collect();
        let policy = |rules: &[&str]| Policy::from_rules(rules).unwrap();
        let both = policy(&["deny component rm", "allow worker *", "preset golem"])
            .intersect(policy(&["deny *", "deny w"]));
        let idle: Vec<String> = both.unused_rules(&commands).iter().map(ToString::to_string).collect();
        assert_eq!(idle, ["deny component rm", "deny w"]);
    }

    #[test]
    fn invalid_policy_rule_is_reported_with_its_number() {
        for (rules, expected) in [
            (&["allow"][..], "rule 1 of the policy, `allow`, names no command"),
            (&["allow a", "a *"], "rule 2 of the policy, `a *`, must begin with `allow`, `deny` or `preset`"),
            (&["preset gold"], "rule 1 of the policy, `preset gold`, names no preset; there is `golem`"),
        ] {
            assert_eq!(Policy::from_rules(rules).unwrap_err().to_string(), expected);
        }
        let file = "# who may what\n\ndeny a *\n  allow b\n";
        assert_eq!(file.parse::<Policy>().unwrap(), Policy::from_rules(["deny a *", "allow b"]).unwrap());
    }

    #[test]
    fn golem_preset_hides_its_sixteen_patterns() {
        let policy = Policy::golem();
        assert_eq!(policy.rules.len(), 16);
        for hidden in [
            "profile add",
            "profile",
            "cloud token new",
            "cloud account grant",
            "cloud project grant",
            "cloud project policy add",
            "account get",
            "account add",
            "grant new",
        ] {
            assert!(!policy.decide(&hidden.split(' ').collect::<Vec<_>>()).is_allowed(), "{hidden}");
        }
        for shown in
            ["profiler run", "cloud project list", "component get", "granted", "account list", "--version"]
        {
            assert!(policy.decide(&shown.split(' ').collect::<Vec<_>>()).is_allowed(), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn literal_pattern_matches_only_itself(
            words in prop::collection::vec("[^\\s*?\u{0}]{1,8}", 1..5),
            other in prop::collection::vec("[^\\s*?]{1,8}", 1..5),
        ) {
            let policy = Policy::from_rules([format!("deny {}", words.join(" "))]).unwrap();
            prop_assert!(!policy.decide(&words).is_allowed());
            prop_assert_eq!(policy.decide(&other).is_allowed(), words != other);
        }

        #[test]
        fn trailing_star_matches_only_paths_with_the_same_prefix(
            head in prop::collection::vec("[a-zé;$`|&-]{1,6}", 1..4),
            path in prop::collection::vec("[a-zé;$`|&-]{1,6}", 0..5),
        ) {
            let policy = Policy::from_rules([format!("deny {} *", head.join(" "))]).unwrap();
            let below: Vec<String> = head.iter().chain(&path).cloned().collect();
            prop_assert!(!policy.decide(&below).is_allowed());
            prop_assert_eq!(policy.decide(&path).is_allowed(), !path.starts_with(&head));
            let mut longer = head.clone();
            longer.last_mut().unwrap().push('x');
            prop_assert!(policy.decide(&longer).is_allowed());
        }
    }
}
