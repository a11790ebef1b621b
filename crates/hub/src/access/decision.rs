use std::fmt;
use std::sync::Arc;

use trunkline_config::AccessAction;
use trunkline_protocol::Refusal;

use super::RuleMismatch;

/// Whether a caller may use an item, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    /// It may; there are no rules.
    Unrestricted,
    /// It may.
    Allowed {
        /// The rule that allows it: its name, or its number.
        rule: Arc<str>,
    },
    /// It lacks only a scope: the item is listed, and a call of it is refused with the scopes.
    NeedsScope {
        /// The rule that would allow it.
        rule: Arc<str>,
        /// All scopes of the rule.
        scopes: Arc<[Box<str>]>,
    },
    /// It may not: the item does not exist for the caller.
    Denied {
        /// The rule that denies it; `None` if no rule allows it.
        rule: Option<Arc<str>>,
    },
}

impl AccessDecision {
    /// Reports whether the item may be used.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Unrestricted | Self::Allowed { .. })
    }

    /// Reports whether the item is listed.
    pub fn is_listed(&self) -> bool {
        !matches!(self, Self::Denied { .. })
    }

    /// Returns the name or number of the deciding rule.
    pub fn rule(&self) -> Option<&str> {
        match self {
            Self::Allowed { rule } | Self::NeedsScope { rule, .. } => Some(rule),
            Self::Denied { rule } => rule.as_deref(),
            Self::Unrestricted => None,
        }
    }

    /// Returns the refusal of a call that lacks only a scope.
    pub(crate) fn scope_refusal(&self) -> Option<Refusal> {
        match self {
            Self::NeedsScope { scopes, .. } => Some(Refusal::insufficient_scope(scopes)),
            _ => None,
        }
    }
}

impl fmt::Display for AccessDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrestricted => f.write_str("allowed, since there are no access rules"),
            Self::Allowed { rule } => write!(f, "allowed by `{rule}`"),
            Self::NeedsScope { rule, scopes } => {
                write!(f, "needs the scope {} for `{rule}`", scopes.join(" "))
            }
            Self::Denied { rule: Some(rule) } => write!(f, "denied by `{rule}`"),
            Self::Denied { rule: None } => f.write_str("denied, since no rule allows it"),
        }
    }
}

/// The result of one rule in a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessStep {
    /// The name of the rule, or its number.
    pub rule: Arc<str>,
    /// What it does.
    pub action: AccessAction,
    /// Why it does not match; `None` for the rule that decides.
    pub mismatch: Option<RuleMismatch>,
}
