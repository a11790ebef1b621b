use proptest::prelude::*;
use serde_json::json;
use trunkline_config::PatternList;
use trunkline_protocol::RawJson;
use trunkline_server::AccessGrant;
use trunkline_session::Principal;

use super::*;
use crate::names::ItemKind;

/// Reads rules as `trunkline.toml` has them.
fn rules(toml: &str) -> AccessRules {
    let variables = trunkline_config::ConfigVariables::fixed([("", ""); 0]);
    let file = trunkline_config::ConfigFile::parse("trunkline.toml", toml, variables).unwrap();
    AccessRules::new(file.access_rules().unwrap())
}

fn named(name: &str) -> Principal {
    Principal::Named(name.into())
}

fn grant(scopes: &[&str]) -> Arc<AccessGrant> {
    let claims = json!({
        "groups": ["staff", "finance-eu"], "level": 3, "vip": true,
        "realm_access": { "roles": ["admin"] }, "https://x.example/role": "owner",
    });
    let grant = AccessGrant::new().with_scopes(scopes.iter().copied());
    Arc::new(
        grant.with_issuer("https://id.example").with_client_id("cursor").with_claims(RawJson::from(claims)),
    )
}

/// Decides on the tool `get_user` of `crm`, for Ann with the scope `crm:read`.
#[track_caller]
fn check(toml: &str, expected: &str) {
    let (ann, grant) = (named("ann"), grant(&["crm:read"]));
    let item = AccessItem::new("crm", ItemKind::Tool, "get_user").read_only(true);
    let caller = CallerIdentity::new(&ann, Some(&grant));
    let rules = rules(toml);
    assert_eq!(rules.decide(caller, item).to_string(), expected, "{toml}");
    let (decision, steps) = rules.explain(caller, item);
    assert_eq!(decision.to_string(), expected);
    if let AccessDecision::Allowed { rule } = decision {
        assert_eq!(steps.last().map(|step| (&step.rule, &step.mismatch)), Some((&rule, &None)));
    }
}

/// Writes a rule that allows, with further keys.
fn allow(keys: &str) -> String {
    format!("[[access]]\naction = 'allow'\n{keys}\n")
}

fn deny(keys: &str) -> String {
    format!("[[access]]\naction = 'deny'\n{keys}\n")
}

const CLOSED: &str = "denied, since no rule allows it";
const FIRST: &str = "allowed by `rule 1`";

#[test]
fn first_access_rule_that_matches_decides() {
    check("", "allowed, since there are no access rules");
    check(&allow(""), FIRST);
    check(&deny(""), "denied by `rule 1`");
    check(&(deny("tools = 'get_*'") + &allow("")), "denied by `rule 1`");
    check(&(allow("tools = 'get_*'") + &deny("")), FIRST);
    check(&(deny("tools = 'set_*'") + &allow("name = 'rest'")), "allowed by `rest`");
    check(&deny("tools = 'set_*'"), CLOSED);
}

#[test]
fn access_rule_matches_only_if_every_key_does() {
    for (keys, matches) in [
        ("principal = 'ann'", true),
        ("principal = ['bob', 'a?n']", true),
        ("principal = '*'", true),
        ("principal = 'anonymous'", false),
        ("issuer = 'https://id.example'", true),
        ("issuer = 'https://*.evil'", false),
        ("client = 'cursor*'", true),
        ("client = 'other'", false),
        ("scope = 'crm:read'", true),
        ("claim = { groups = 'finance-*' }", true),
        ("claim = { groups = ['admins', 'staff'] }", true),
        ("claim = { groups = 'finance' }", false),
        ("claim = { level = '3', vip = 'true' }", true),
        ("claim = { level = '3', vip = 'false' }", false),
        ("claim = { absent = '*' }", false),
        ("claim = { realm_access = '*' }", false),
        ("claim = { \"realm_access.roles\" = 'admin' }", true),
        ("claim = { \"https://x.example/role\" = 'owner' }", true),
        ("servers = 'c*'", true),
        ("servers = 'files'", false),
        ("tools = ['get_*', 'list_*']", true),
        ("tools = 'set_*'", false),
        ("prompts = '*'", false),
        ("resources = '*'", false),
        ("prompts = '*'\ntools = '*'", true),
        ("read_only = true", true),
        ("principal = 'ann'\nservers = 'files'", false),
    ] {
        check(&allow(keys), if matches { FIRST } else { CLOSED });
    }
}

#[test]
fn read_only_rules_allow_only_annotated_tools() {
    let rules = rules(&allow("read_only = true"));
    let ann = named("ann");
    let caller = CallerIdentity::new(&ann, None);
    for (kind, is_annotated, is_allowed) in [
        (ItemKind::Tool, true, true),
        (ItemKind::Tool, false, false),
        (ItemKind::Prompt, false, true),
        (ItemKind::Resource, false, true),
        (ItemKind::Template, false, true),
    ] {
        let item = AccessItem::new("crm", kind, "x").read_only(is_annotated);
        assert_eq!(rules.decide(caller, item).is_allowed(), is_allowed, "{kind:?} {is_annotated}");
    }
}

#[test]
fn missing_scope_is_named_unless_another_rule_decides() {
    let write = allow("name = 'w'\nscope = ['crm:write', 'crm:admin']");
    let needs = "needs the scope crm:write crm:admin for `w`";
    check(&write, needs);
    check(&(write.clone() + &deny("")), needs);
    check(&(write.clone() + &allow("tools = 'get_*'")), "allowed by `rule 2`");
    check(&(deny("tools = 'get_*'") + &write), "denied by `rule 1`");
    check(&allow("scope = 'crm:write'\nservers = 'files'"), CLOSED);
    check(&(deny("scope = 'crm:write'") + &allow("")), "allowed by `rule 2`");
    check(&(deny("scope = 'crm:read'") + &allow("")), "denied by `rule 1`");
    // A caller without a token cannot get one with the scope.
    let item = AccessItem::new("crm", ItemKind::Tool, "get_user");
    for (principal, is_listed) in
        [(Principal::Anonymous, false), (Principal::Process, false), (named("ann"), true)]
    {
        let decision = rules(&write).decide(CallerIdentity::new(&principal, None), item);
        assert_eq!(decision.is_listed(), is_listed, "{principal:?}");
        assert!(!decision.is_allowed());
    }
}

#[test]
fn names_of_callers_without_credentials_match_no_token() {
    for word in ["anonymous", "process"] {
        let rules = rules(&allow(&format!("principal = '{word}'")));
        let item = AccessItem::new("crm", ItemKind::Tool, "x");
        let allows =
            |principal: &Principal| rules.decide(CallerIdentity::new(principal, None), item).is_allowed();
        assert!(!allows(&named(word)));
        assert_eq!(allows(&Principal::Anonymous), word == "anonymous");
        assert_eq!(allows(&Principal::Process), word == "process");
    }
}

#[test]
fn servers_without_possible_items_are_recognised() {
    let access = |toml: &str| rules(toml).for_caller(CallerIdentity::ANONYMOUS);
    for (toml, may_use, may_read) in [
        (allow("servers = 'a'"), true, true),
        (allow("servers = 'b'"), false, false),
        (allow("tools = 'x'"), true, false),
        (deny("servers = 'a'") + &allow(""), false, false),
        (deny("tools = '*'") + &allow(""), true, true),
        (deny("resources = 'x:*'") + &allow(""), true, true),
        (deny("resources = '*'") + &allow(""), true, false),
        (allow("principal = 'ann'"), false, false),
    ] {
        let access = access(&toml);
        assert_eq!(access.may_use_server("a"), may_use, "{toml}");
        assert_eq!(access.may_use_kind("a", ItemKind::Resource), may_read, "{toml}");
    }
}

/// A reference implementation: the decision in one sentence, without indices and classes.
fn reference(rules: &[AccessRule], caller: CallerIdentity<'_>, item: AccessItem<'_>) -> (bool, bool) {
    let with = |scopes: &AccessGrant| {
        let granted = Arc::new(scopes.clone());
        let caller = CallerIdentity::new(caller.principal, Some(&granted));
        let decides = |rule: &&AccessRule| {
            let all = rule.scope.iter().flatten().all(|scope| granted.has_scope(scope.as_str()));
            all && caller_mismatch(rule, caller).is_none() && mismatch::item_mismatch(rule, item).is_none()
        };
        rules.iter().find(decides).map(|rule| rule.action)
    };
    let own = caller.grant.map(|grant| AccessGrant::clone(grant)).unwrap_or_default();
    let is_allowed = rules.is_empty() || with(&own) == Some(AccessAction::Allow);
    // With the scopes of one allow rule, that rule or an earlier one that allows decides.
    let could = rules.iter().filter(|rule| rule.action == AccessAction::Allow).any(|rule| {
        let before: Vec<_> = rules.iter().take_while(|other| !std::ptr::eq(*other, rule)).cloned().collect();
        let denied_before = {
            let first = before.iter().find(|other| {
                let all = other.scope.iter().flatten().all(|scope| own.has_scope(scope.as_str()));
                all && caller_mismatch(other, caller).is_none()
                    && mismatch::item_mismatch(other, item).is_none()
            });
            first.is_some_and(|first| first.action == AccessAction::Deny)
        };
        !denied_before
            && caller_mismatch(rule, caller).is_none()
            && mismatch::item_mismatch(rule, item).is_none()
    });
    let has_token = matches!(caller.principal, Principal::Named(_));
    (is_allowed, is_allowed || (has_token && could))
}

prop_compose! {
    fn any_rule()(
        allows in any::<bool>(),
        principal in prop::option::of(prop::sample::select(vec!["ann", "b*", "*", "anonymous"])),
        scope in prop::option::of(prop::sample::select(vec!["s1", "s2"])),
        servers in prop::option::of(prop::sample::select(vec!["a", "b", "*"])),
        tools in prop::option::of(prop::sample::select(vec!["get_*", "*", "set"])),
        resources in prop::option::of(prop::sample::select(vec!["x:*", "*"])),
        read_only in any::<bool>(),
    ) -> AccessRule {
        let list = |text: Option<&str>| text.and_then(|text| PatternList::new([text]));
        let mut rule = AccessRule::new(if allows { AccessAction::Allow } else { AccessAction::Deny });
        rule.principal = list(principal);
        rule.scope = list(scope);
        rule.servers = list(servers);
        rule.tools = list(tools);
        rule.resources = list(resources);
        rule.read_only = allows && read_only;
        rule
    }
}

proptest! {
    #[test]
    fn decisions_are_those_of_the_reference_and_hidden_servers_have_no_items(
        raw in prop::collection::vec(any_rule(), 0..6),
        who in prop::sample::select(vec!["ann", "bob", "carl", ""]),
        scopes in prop::collection::vec(prop::sample::select(vec!["s1", "s2"]), 0..3),
        server in prop::sample::select(vec!["a", "b", "c"]),
        kind in prop::sample::select(vec![ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource]),
        name in prop::sample::select(vec!["get_x", "set", "x:1", "y:1"]),
        is_read_only in any::<bool>(),
    ) {
        let principal = if who.is_empty() { Principal::Anonymous } else { named(who) };
        let grant = (!who.is_empty()).then(|| Arc::new(AccessGrant::new().with_scopes(scopes)));
        let caller = CallerIdentity::new(&principal, grant.as_ref());
        let item = AccessItem::new(server, kind, name).read_only(is_read_only);
        let rules = AccessRules::new(raw.clone());
        let decision = rules.decide(caller, item);
        let (is_allowed, is_listed) = reference(&raw, caller, item);
        prop_assert_eq!((decision.is_allowed(), decision.is_listed()), (is_allowed, is_listed), "{:?}", raw);
        let access = rules.for_caller(caller);
        if !access.may_use_kind(server, kind) {
            prop_assert!(!decision.is_listed());
        }
        if !access.may_use_server(server) {
            prop_assert!(!access.may_use_kind(server, kind));
        }
    }
}
