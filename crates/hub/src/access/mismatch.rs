use std::sync::Arc;

use serde_json::Value;
use trunkline_config::{AccessRule, PatternList};
use trunkline_server::CallerIdentity;
use trunkline_session::Principal;

use super::LabelledRule;
use crate::names::ItemKind;

/// An item that a caller wants to use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AccessItem<'a> {
    /// The server that has it.
    pub server: &'a str,
    /// What it is.
    pub kind: ItemKind,
    /// Its name at the server; of a resource the URI, of a template its text.
    pub name: &'a str,
    /// Whether its server annotates it as read-only; only tools are annotated.
    pub is_read_only: bool,
}

impl<'a> AccessItem<'a> {
    /// Makes an item without annotations.
    pub fn new(server: &'a str, kind: ItemKind, name: &'a str) -> Self {
        Self { server, kind, name, is_read_only: false }
    }

    /// Sets whether the server annotates it as read-only.
    #[must_use]
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }
}

/// Why a rule does not match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleMismatch {
    /// It is for other principals.
    #[error("is for other principals")]
    Principal,
    /// It is for tokens of another issuer.
    #[error("is for tokens of another issuer")]
    Issuer,
    /// It is for tokens of another OAuth client.
    #[error("is for tokens of another client")]
    Client,
    /// A claim of the token is absent or different.
    #[error("needs another value of the claim `{0}`")]
    Claim(String),
    /// It is for other servers.
    #[error("is for other servers")]
    Server,
    /// It is for other items.
    #[error("is for other items")]
    Item,
    /// It is for read-only tools.
    #[error("is for tools that their server annotates as read-only")]
    ReadOnly,
    /// The token lacks a scope.
    #[error("needs the scope: {}", .0.join(" "))]
    Scope(Arc<[Box<str>]>),
}

/// Returns why a rule does not apply to a caller; scopes are checked by [`lacks_scope`].
pub(super) fn caller_mismatch(rule: &AccessRule, caller: CallerIdentity<'_>) -> Option<RuleMismatch> {
    // All keys are listed, so that a new one cannot be left out: what is not checked would match everyone.
    let AccessRule {
        principal,
        issuer,
        client,
        claim: wanted_claims,
        // Checked by `lacks_scope` and `item_mismatch`.
        scope: _,
        servers: _,
        tools: _,
        prompts: _,
        resources: _,
        read_only: _,
        // Not conditions.
        name: _,
        action: _,
    } = rule;
    let differs = |patterns: &Option<PatternList>, value: Option<&str>| match patterns {
        Some(patterns) => !value.is_some_and(|value| patterns.matches(value)),
        None => false,
    };
    if principal.as_ref().is_some_and(|patterns| !matches_principal(patterns, caller.principal)) {
        return Some(RuleMismatch::Principal);
    }
    if differs(issuer, caller.grant.and_then(|grant| grant.issuer.as_deref())) {
        return Some(RuleMismatch::Issuer);
    }
    if differs(client, caller.grant.and_then(|grant| grant.client_id.as_deref())) {
        return Some(RuleMismatch::Client);
    }
    if wanted_claims.is_empty() {
        return None;
    }
    let claims: Option<Value> =
        caller.grant.and_then(|grant| grant.claims.as_ref()).and_then(|claims| claims.decode().ok());
    let has = |name: &str, patterns: &PatternList| {
        claims
            .as_ref()
            .and_then(|claims| claim(claims, name))
            .is_some_and(|value| matches_claim(patterns, value))
    };
    let missing = wanted_claims.iter().find(|(name, patterns)| !has(name, patterns));
    missing.map(|(name, _)| RuleMismatch::Claim(name.clone()))
}

/// Reports whether a pattern matches a principal. The words `anonymous` and `process` mean these callers, and not a
/// token of that name.
fn matches_principal(patterns: &PatternList, principal: &Principal) -> bool {
    match principal {
        Principal::Named(name) => patterns.iter().any(|pattern| {
            let is_kind = matches!(pattern.as_str(), "anonymous" | "process");
            !is_kind && pattern.matches(name)
        }),
        other => patterns.matches(&other.to_string()),
    }
}

/// Finds a claim by its name, or else by the path that the name is.
fn claim<'v>(claims: &'v Value, name: &str) -> Option<&'v Value> {
    let by_path = || name.split('.').try_fold(claims, |value, key| value.get(key));
    claims.get(name).or_else(by_path)
}

fn matches_claim(patterns: &PatternList, value: &Value) -> bool {
    match value {
        Value::String(text) => patterns.matches(text),
        Value::Bool(_) | Value::Number(_) => patterns.matches(&value.to_string()),
        Value::Array(elements) => {
            elements.iter().any(|element| !element.is_array() && matches_claim(patterns, element))
        }
        Value::Null | Value::Object(_) => false,
    }
}

/// Reports whether the caller's token lacks a scope of the rule.
pub(super) fn lacks_scope(rule: &LabelledRule, caller: CallerIdentity<'_>) -> bool {
    let has = |scope: &str| caller.grant.is_some_and(|grant| grant.has_scope(scope));
    !rule.scopes.iter().all(|scope| has(scope))
}

/// Returns why a rule is not about an item.
pub(super) fn item_mismatch(rule: &AccessRule, item: AccessItem<'_>) -> Option<RuleMismatch> {
    if rule.servers.as_ref().is_some_and(|servers| !servers.matches(item.server)) {
        return Some(RuleMismatch::Server);
    }
    let names = match patterns_for(rule, item.kind) {
        KindPatterns::All => true,
        KindPatterns::None => false,
        KindPatterns::Some(patterns) => patterns.matches(item.name),
    };
    if !names {
        return Some(RuleMismatch::Item);
    }
    let is_unannotated = rule.read_only && item.kind == ItemKind::Tool && !item.is_read_only;
    is_unannotated.then_some(RuleMismatch::ReadOnly)
}

/// The items of one kind that a rule is about.
pub(super) enum KindPatterns<'r> {
    All,
    None,
    Some(&'r PatternList),
}

/// Returns which items of a kind a rule is about. A rule that names no kind is about all.
pub(super) fn patterns_for(rule: &AccessRule, kind: ItemKind) -> KindPatterns<'_> {
    let patterns = match kind {
        ItemKind::Tool => &rule.tools,
        ItemKind::Prompt => &rule.prompts,
        ItemKind::Resource | ItemKind::Template => &rule.resources,
    };
    let names_a_kind = rule.tools.is_some() || rule.prompts.is_some() || rule.resources.is_some();
    match patterns {
        Some(patterns) if patterns.matches_everything() => KindPatterns::All,
        Some(patterns) => KindPatterns::Some(patterns),
        None if names_a_kind => KindPatterns::None,
        None => KindPatterns::All,
    }
}
