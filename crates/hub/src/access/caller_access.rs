use std::sync::Arc;

use trunkline_server::CallerIdentity;
use trunkline_session::Principal;

use super::mismatch::{KindPatterns, caller_mismatch, item_mismatch, lacks_scope, patterns_for};
use super::{AccessDecision, AccessItem, AccessRules};
use crate::names::ItemKind;

/// The rules that apply to a caller: what it may use follows from them alone.
#[derive(Debug)]
pub(crate) struct CallerAccess {
    rules: AccessRules,
    class: AccessClass,
}

/// The rules that apply to a caller, by index. Callers of one class may use the same items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AccessClass(Box<[ApplicableRule]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ApplicableRule {
    index: usize,
    /// The rule would allow, if the token had its scopes.
    lacks_scope: bool,
}

impl CallerAccess {
    pub(super) fn new(rules: AccessRules, caller: CallerIdentity<'_>) -> Self {
        // A caller without a token cannot get one with more scopes.
        let has_token = matches!(caller.principal, Principal::Named(_));
        let applicable = rules.rules.iter().enumerate().filter_map(|(index, rule)| {
            if caller_mismatch(&rule.rule, caller).is_some() {
                return None;
            }
            let lacks_scope = lacks_scope(rule, caller);
            (!lacks_scope || (rule.is_allow() && has_token)).then_some(ApplicableRule { index, lacks_scope })
        });
        let class = AccessClass(applicable.collect());
        Self { rules, class }
    }

    /// Reports whether these very rules were evaluated.
    pub(crate) fn is_under(&self, rules: &AccessRules) -> bool {
        Arc::ptr_eq(&self.rules.rules, &rules.rules)
    }

    pub(crate) fn class(&self) -> &AccessClass {
        &self.class
    }

    /// Decides whether the caller may use an item.
    pub(crate) fn decide(&self, item: AccessItem<'_>) -> AccessDecision {
        if self.rules.is_empty() {
            return AccessDecision::Unrestricted;
        }
        let mut lacking = None;
        for applicable in &self.class.0 {
            let Some(rule) = self.rules.rules.get(applicable.index) else { continue };
            if item_mismatch(&rule.rule, item).is_some() {
                continue;
            }
            match (applicable.lacks_scope, rule.is_allow()) {
                (true, _) => drop(lacking.get_or_insert(rule)),
                (false, true) => return AccessDecision::Allowed { rule: rule.label.clone() },
                (false, false) => {
                    let denied = AccessDecision::Denied { rule: Some(rule.label.clone()) };
                    return lacking.map_or(denied, needs_scope);
                }
            }
        }
        lacking.map_or(AccessDecision::Denied { rule: None }, needs_scope)
    }

    /// Reports whether the caller may use any item of a server: an item that is not denied is possible.
    pub(crate) fn may_use_server(&self, server: &str) -> bool {
        let kinds = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource];
        kinds.into_iter().any(|kind| self.may_use_kind(server, kind))
    }

    /// Reports whether the caller may use any item of a kind of a server.
    pub(crate) fn may_use_kind(&self, server: &str, kind: ItemKind) -> bool {
        for applicable in &self.class.0 {
            let Some(rule) = self.rules.rules.get(applicable.index) else { continue };
            if rule.rule.servers.as_ref().is_some_and(|servers| !servers.matches(server)) {
                continue;
            }
            match (patterns_for(&rule.rule, kind), rule.is_allow()) {
                (KindPatterns::None, _) | (KindPatterns::Some(_), false) => {}
                (KindPatterns::All | KindPatterns::Some(_), true) => return true,
                (KindPatterns::All, false) => return false,
            }
        }
        self.rules.is_empty()
    }
}

fn needs_scope(rule: &super::LabelledRule) -> AccessDecision {
    AccessDecision::NeedsScope { rule: rule.label.clone(), scopes: rule.scopes.clone() }
}
