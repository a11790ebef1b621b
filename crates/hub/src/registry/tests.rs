use trunkline_config::{NamePattern, ServerName, ToolRules};
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool};

use proptest::prelude::*;
use trunkline_config::{AccessAction, AccessRule, PatternList};
use trunkline_protocol::model::ToolAnnotations;
use trunkline_server::CallerIdentity;
use trunkline_session::Principal;

use super::*;
use crate::access::{AccessItem, AccessRules};
use crate::names::ItemKind;
use crate::names::NameTemplate;

fn name(text: &str) -> ServerName {
    ServerName::parse(text).unwrap()
}

fn offer(server: &'static str, listing: UpstreamListing) -> UpstreamOffer<&'static str> {
    UpstreamOffer {
        server: name(server),
        owner: server,
        rules: ToolRules::default(),
        listing: Arc::new(listing),
        instructions: None,
        keeps_original_names: false,
        is_login: false,
    }
}

fn tools(names: &[&str]) -> UpstreamListing {
    let tools = names.iter().map(|name| Tool { name: (*name).to_owned(), ..Tool::default() });
    UpstreamListing { tools: Arc::new(tools.collect()), ..UpstreamListing::default() }
}

fn resources(uris: &[&str], templates: &[&str]) -> UpstreamListing {
    let template = |text: &&str| ResourceTemplate {
        uri_template: (*text).to_owned(),
        name: "t".to_owned(),
        ..ResourceTemplate::default()
    };
    UpstreamListing {
        resources: Arc::new(uris.iter().map(|uri| Resource::new(*uri, "r")).collect()),
        templates: Arc::new(templates.iter().map(template).collect()),
        has_resources: true,
        ..UpstreamListing::default()
    }
}

fn build(offers: &[UpstreamOffer<&'static str>]) -> HubRegistry<&'static str> {
    HubRegistry::build(&NameTemplate::hub(), ResourceTools::Disabled, offers)
}

fn names<T>(named: &NamedMap<T>) -> Vec<&str> {
    named.keys().map(|name| &**name).collect()
}

#[test]
fn tools_that_require_tasks_are_hidden() {
    let with_support = |support: &str| {
        let mut tool = Tool { name: support.to_owned(), ..Tool::default() };
        let execution = format!(r#"{{"taskSupport":"{support}"}}"#);
        tool.rest.set("execution", trunkline_protocol::RawJson::parse(execution).unwrap());
        tool
    };
    let all = ["required", "optional", "forbidden"].map(with_support).to_vec();
    let listing = UpstreamListing { tools: Arc::new(all), ..UpstreamListing::default() };
    assert_eq!(names(&build(&[offer("a", listing)]).tools), ["a__forbidden", "a__optional"]);
}

#[test]
fn tool_is_routed_by_exposed_name_and_called_by_its_upstream_name() {
    let registry = build(&[offer("b", tools(&["x.y", "z"])), offer("a", tools(&["z"]))]);
    assert_eq!(names(&registry.tools), ["a__z", "b__x_y", "b__z"]);
    assert_eq!(registry.tools["b__x_y"].target, ToolTarget::Upstream("b", "x.y".into()));
    assert_eq!(registry.tools["b__x_y"].tool().name, "b__x_y");
    assert!(registry.collisions.is_empty());
}

#[test]
fn in_process_server_keeps_its_tool_names_without_a_prefix() {
    let own = |names: &[&str]| UpstreamOffer { keeps_original_names: true, ..offer("own", tools(names)) };
    let registry = build(&[own(&["z", "x.y"]), offer("a", tools(&["z"]))]);
    assert_eq!(names(&registry.tools), ["a__z", "x.y", "z"]);
    assert_eq!(registry.tools["z"].target, ToolTarget::Upstream("own", "z".into()));
    let registry = build(&[own(&["a__z"]), offer("a", tools(&["z"]))]);
    assert_eq!(registry.collisions.len(), 1, "{:?}", registry.collisions);
    assert!(!registry.tools.contains_key("a__z"), "nobody guesses whose it is");
}

#[test]
fn tool_rules_hide_rename_and_redescribe_tools() {
    let mut offered = offer("s", tools(&["get", "delete", "list"]));
    offered.rules = ToolRules {
        deny: vec![NamePattern::new("del*")],
        rename: [("get".to_owned(), "fetch".to_owned())].into(),
        describe: [("list".to_owned(), "Lists.".to_owned())].into(),
        ..ToolRules::default()
    };
    let registry = build(&[offered]);
    assert_eq!(names(&registry.tools), ["s__fetch", "s__list"]);
    assert_eq!(registry.tools["s__fetch"].target, ToolTarget::Upstream("s", "get".into()));
    assert_eq!(registry.tools["s__list"].tool().description.as_deref(), Some("Lists."));
}

#[test]
fn servers_with_a_common_name_prefix_keep_their_own_items() {
    let both = [offer("a", tools(&["x"])), offer("a__b", tools(&["y"]))];
    assert_eq!(names(&build(&both).tools), ["a__b__y", "a__x"]);
    assert_eq!(names(&build(&both[1..]).tools), ["a__b__y"]);
}

#[test]
fn prompts_are_named_like_tools() {
    let listing =
        UpstreamListing { prompts: Arc::new(vec![Prompt::new("p q")]), ..UpstreamListing::default() };
    let registry = build(&[offer("s", listing)]);
    assert_eq!(names(&registry.prompts), ["s__p_q"]);
    assert_eq!(&*registry.prompts["s__p_q"].upstream_name, "p q");
}

#[test]
fn resource_belongs_to_the_first_server_that_claims_it() {
    let registry = build(&[
        offer("a", resources(&["x:1", "x:both"], &["a:{id}", "same:{id}"])),
        offer("b", resources(&["x:2", "x:both", "a:7", "same:8"], &["b:{id}", "same:{id}", "{+any}"])),
        offer("c", resources(&["x:both", "z:1"], &["same:{id}"])),
    ]);
    for (uri, expected) in [
        ("x:1", Some(&"a")),
        ("x:2", Some(&"b")),
        ("x:both", Some(&"a")),
        ("a:7", Some(&"a")),
        ("b:7", Some(&"b")),
        ("same:7", Some(&"a")),
        ("z:1", Some(&"c")),
        ("other:7", Some(&"b")),
    ] {
        assert_eq!(registry.owner_of(uri), expected, "{uri}");
        assert_eq!(registry.claiming_owner(uri), expected.filter(|_| uri != "other:7"), "{uri}");
    }
    assert_eq!(names(&registry.resources), ["x:1", "x:2", "x:both", "z:1"]);
    assert_eq!(registry.resources["x:both"].owner, "a");
    assert_eq!(names(&registry.templates), ["a:{id}", "b:{id}", "same:{id}", "{+any}"]);
    assert_eq!(registry.templates["same:{id}"].owner, "a");
    let told: Vec<_> = registry.collisions.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "resource `a:7` is served by `a` only; `b` also has it",
            "resource `same:8` is served by `a` only; `b` also has it",
            "resource `x:both` is served by `a` only; `b` and `c` also have it",
            "resource template `same:{id}` is served by `a` only; `b` and `c` also have it",
        ]
    );
    let pointing = |servers: &[&str]| servers.iter().map(|server| name(server)).collect::<Vec<_>>();
    assert_eq!(registry.first_with_resources(&pointing(&["c", "b", "gone"])), Some(&"b"));
    assert_eq!(registry.first_with_resources(&pointing(&["gone"])), None);
}

#[test]
fn unlisted_resource_belongs_to_the_only_server_with_resources() {
    let registry = build(&[offer("a", resources(&[], &[])), offer("b", tools(&["t"]))]);
    assert_eq!(registry.owner_of("any:thing"), Some(&"a"));
    assert_eq!(registry.with_resources_named("a"), Some(&"a"));
    assert_eq!(registry.with_resources_named("b"), None);
}

#[test]
fn resource_tools_are_exposed_while_a_server_has_resources() {
    let with = |offers: &[UpstreamOffer<&'static str>]| {
        let registry = HubRegistry::build(&NameTemplate::agent(), ResourceTools::Enabled, offers);
        registry.tools.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(with(&[offer("a", tools(&["t"]))]), ["mcp__a__t"]);
    assert_eq!(with(&[offer("a", resources(&[], &[]))]), ["list_mcp_resources", "read_mcp_resource"]);
}

#[test]
fn registry_diff_reports_only_changed_lists() {
    let before = build(&[offer("a", tools(&["t"]))]);
    let same = build(&[offer("a", tools(&["t"]))]);
    assert_eq!(same.diff(&before), ListDifferences::default());
    let more = build(&[offer("a", tools(&["t", "u"]))]);
    assert_eq!(more.diff(&before), ListDifferences { tools: true, ..ListDifferences::default() });
    let mut described = offer("a", tools(&["t"]));
    described.rules.describe = [("t".to_owned(), "new".to_owned())].into();
    assert!(build(&[described]).diff(&before).tools);
    assert!(build(&[offer("a", resources(&["x:1"], &[]))]).diff(&before).resources);
}

#[test]
fn instructions_are_joined_under_the_names_of_their_servers() {
    let advised = |server, text: &str| UpstreamOffer {
        instructions: Some(text.to_owned()),
        ..offer(server, UpstreamListing::default())
    };
    assert_eq!(build(&[advised("a", "Be kind.")]).instructions.as_deref(), Some("Be kind."));
    let both = build(&[advised("a", "Be kind."), advised("b", " "), advised("c", "Be brief.")]);
    assert_eq!(both.instructions.as_deref(), Some("# a\n\nBe kind.\n\n# c\n\nBe brief."));
    assert_eq!(build(&[offer("a", UpstreamListing::default())]).instructions, None);
}

#[test]
fn listings_of_one_server_are_merged_without_duplicates() {
    let both = tools(&["a", "b"]).merge(&tools(&["b", "c"]));
    let names: Vec<_> = both.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

/// Writes a rule of random patterns.
fn any_access_rule() -> impl Strategy<Value = AccessRule> {
    let patterns = |texts: Vec<&'static str>| prop::option::of(prop::sample::select(texts));
    let keys = (
        patterns(vec!["ann", "bob", "*"]),
        patterns(vec!["s"]),
        patterns(vec!["a", "b", "*"]),
        patterns(vec!["get_*", "*", "set"]),
        patterns(vec!["p", "*"]),
        patterns(vec!["x:*", "x:1", "*"]),
    );
    (any::<bool>(), any::<bool>(), keys).prop_map(|(allows, read_only, keys)| {
        let list = |text: Option<&str>| text.and_then(|text| PatternList::new([text]));
        let mut rule = AccessRule::new(if allows { AccessAction::Allow } else { AccessAction::Deny });
        rule.read_only = allows && read_only;
        rule.principal = list(keys.0);
        rule.scope = list(keys.1);
        rule.servers = list(keys.2);
        rule.tools = list(keys.3);
        rule.prompts = list(keys.4);
        rule.resources = list(keys.5);
        rule
    })
}

fn whole_listing() -> UpstreamListing {
    let hints = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
    let tool = |name: &str, annotations| Tool { name: name.to_owned(), annotations, ..Tool::default() };
    UpstreamListing {
        tools: Arc::new(vec![tool("get_x", Some(hints)), tool("get_y", None), tool("set", None)]),
        prompts: Arc::new(
            ["p", "q"].map(|name| Prompt { name: name.to_owned(), ..Prompt::default() }).into(),
        ),
        ..resources(&["x:1", "x:2", "y:1"], &["x:{id}", "z:{id}"])
    }
}

proptest! {
    #[test]
    fn lists_have_exactly_the_items_that_are_not_denied(
        rules in prop::collection::vec(any_access_rule(), 1..6),
        who in prop::sample::select(vec!["ann", "bob", "carl"]),
    ) {
        let offers = [offer("a", whole_listing()), offer("b", whole_listing())];
        let whole = HubRegistry::build(&NameTemplate::hub(), ResourceTools::Enabled, &offers);
        let principal = Principal::Named(who.into());
        let caller = CallerIdentity::new(&principal, None);
        let rules = AccessRules::new(rules);
        let seen = whole.restricted(&Arc::new(rules.for_caller(caller)), |server| server);
        let listed = |item: AccessItem<'_>| rules.decide(caller, item).is_listed();
        for (name, tool) in &whole.tools {
            let Some(item) = tool.access_item(|server| server) else {
                // The hub's own tools are there for callers that may see a resource, and only for them.
                let any = !seen.resources.is_empty() || !seen.templates.is_empty();
                prop_assert!(seen.tools.contains_key(name) || !any);
                continue;
            };
            prop_assert_eq!(seen.tools.contains_key(name), listed(item), "{}", name);
        }
        for (name, prompt) in &whole.prompts {
            let item = AccessItem::new(prompt.owner, ItemKind::Prompt, &prompt.upstream_name);
            prop_assert_eq!(seen.prompts.contains_key(name), listed(item), "{}", name);
        }
        for (uri, resource) in &whole.resources {
            let item = AccessItem::new(resource.owner, ItemKind::Resource, uri);
            prop_assert_eq!(seen.resources.contains_key(uri), listed(item), "{}", uri);
            prop_assert_eq!(seen.is_visible(item), listed(item));
            prop_assert_eq!(seen.owner_of(uri), whole.owner_of(uri), "owners stay the same");
        }
        for (text, template) in &whole.templates {
            let item = AccessItem::new(template.owner, ItemKind::Template, text);
            prop_assert_eq!(seen.templates.contains_key(text), listed(item), "{}", text);
        }
        let sizes = |registry: &HubRegistry<&'static str>| {
            [registry.tools.len(), registry.prompts.len(), registry.resources.len(), registry.templates.len()]
        };
        prop_assert!(sizes(&seen).iter().zip(sizes(&whole)).all(|(part, all)| *part <= all));
    }
}
