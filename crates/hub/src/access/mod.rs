//! Access rules: which callers may use which items of which servers. Pure functions over values, without IO.
//!
//! The first rule that matches decides. Without rules everything is allowed; with any rule, an item that no rule allows
//! is denied. A denied item does not exist for the caller: it is not listed, and is answered like an unknown one.
//!
//! An allow rule with scopes that the caller's token lacks does not decide: the rules after it may still allow the item.
//! If none does, the item lacks only a scope: it is listed, and a call of it is refused with the scopes.
//!
//! # Invariants
//!
//! - An item is listed exactly if it is not denied: `lists_have_exactly_the_items_that_are_not_denied`.
//! - An annotation of a server never widens access: `read_only_rules_allow_only_annotated_tools`.
//! - Conditions on the caller depend on its principal and its grant alone, since their result is cached by these.

mod access_cache;
mod caller_access;
mod decision;
mod mismatch;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use trunkline_config::{AccessAction, AccessRule};
use trunkline_server::CallerIdentity;

pub(crate) use self::access_cache::AccessCache;
pub(crate) use self::caller_access::{AccessClass, CallerAccess};
pub use self::decision::{AccessDecision, AccessStep};
pub use self::mismatch::{AccessItem, RuleMismatch};
use self::mismatch::{caller_mismatch, lacks_scope};

/// The access rules of a hub, in their order. Clones share one set.
///
/// ```
/// use trunkline_config::{AccessAction, AccessRule, PatternList};
/// use trunkline_hub::{AccessItem, AccessRules, ItemKind};
/// use trunkline_server::CallerIdentity;
/// use trunkline_session::Principal;
///
/// let mut rule = AccessRule::new(AccessAction::Allow);
/// rule.principal = PatternList::new(["ann"]);
/// rule.servers = PatternList::new(["notes"]);
/// let rules = AccessRules::new([rule]);
/// let item = AccessItem::new("notes", ItemKind::Tool, "add");
/// for (name, is_allowed) in [("ann", true), ("bob", false)] {
///     let principal = Principal::Named(name.into());
///     let decision = rules.decide(CallerIdentity::new(&principal, None), item);
///     assert_eq!(decision.is_allowed(), is_allowed);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules {
    rules: Arc<[LabelledRule]>,
}

/// A rule with its label and scopes.
#[derive(Debug, PartialEq, Eq)]
struct LabelledRule {
    /// The name, or else the number, for audit lines and explanations.
    label: Arc<str>,
    scopes: Arc<[Box<str>]>,
    rule: AccessRule,
}

impl AccessRules {
    /// Prepares rules; without any, everything is allowed.
    pub fn new(rules: impl IntoIterator<Item = AccessRule>) -> Self {
        let rules = rules.into_iter().enumerate().map(|(index, rule)| LabelledRule {
            label: rule.name.as_deref().map_or_else(|| format!("rule {}", index + 1).into(), Arc::from),
            scopes: rule.scope.iter().flatten().map(|scope| scope.as_str().into()).collect(),
            rule,
        });
        Self { rules: rules.collect() }
    }

    /// Reports whether there are no rules, so that everything is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Reports whether two sets have the same rules in the same order.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.rules.len() == other.rules.len()
            && self.rules.iter().zip(&*other.rules).all(|(left, right)| left.rule == right.rule)
    }

    /// Decides whether a caller may use an item.
    pub fn decide(&self, caller: CallerIdentity<'_>, item: AccessItem<'_>) -> AccessDecision {
        self.for_caller(caller).decide(item)
    }

    /// Decides, and returns the result of each rule up to the one that decides.
    pub fn explain(
        &self,
        caller: CallerIdentity<'_>,
        item: AccessItem<'_>,
    ) -> (AccessDecision, Vec<AccessStep>) {
        let decision = self.decide(caller, item);
        let mut steps = Vec::new();
        for rule in &*self.rules {
            let mismatch = caller_mismatch(&rule.rule, caller)
                .or_else(|| mismatch::item_mismatch(&rule.rule, item))
                .or_else(|| lacks_scope(rule, caller).then(|| RuleMismatch::Scope(rule.scopes.clone())));
            let is_last = mismatch.is_none();
            steps.push(AccessStep { rule: rule.label.clone(), action: rule.rule.action, mismatch });
            if is_last {
                break;
            }
        }
        (decision, steps)
    }

    /// Selects the rules that apply to a caller.
    pub(crate) fn for_caller(&self, caller: CallerIdentity<'_>) -> CallerAccess {
        CallerAccess::new(self.clone(), caller)
    }
}

impl LabelledRule {
    fn is_allow(&self) -> bool {
        self.rule.action == AccessAction::Allow
    }
}
