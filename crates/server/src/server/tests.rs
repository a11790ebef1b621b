use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{CacheHint, CacheScope, Icon};
use trunkline_protocol::{JsonWriter, Method, Refusal, Revision};

use crate::call::{Context, Handler};
use crate::caller_identity::CallerIdentity;
use crate::change::{ChangeSubscription, ServerChange, SubscriptionFilter};
use crate::error::CallError;
use crate::prompt::Prompt;
use crate::resource::{Resource, ResourceTemplate};
use crate::server::{Server, ServerHandle};
use crate::testing::{answer, answer_in, assert_refused, call_text};
use crate::tool::Tool;

fn tool(name: &str) -> Tool {
    Tool::new(name).run(|| async { "done" })
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name).get(|| async { "" })
}

fn resource(uri: &str) -> Resource {
    Resource::new(uri, "r").text("")
}

fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::new(uri, "t").read(|| async { "" })
}

fn told(subscription: &ChangeSubscription) -> Vec<ServerChange> {
    let next = || poll_fn(|cx| Poll::Ready(subscription.poll_change(cx))).now_or_never();
    std::iter::from_fn(|| match next() {
        Some(Poll::Ready(change)) => Some(change),
        _ => None,
    })
    .collect()
}

fn watch_everything(server: &ServerHandle) -> ChangeSubscription {
    server.subscribe(SubscriptionFilter {
        uris: ["x:".to_owned(), "x:a".to_owned()].into(),
        ..SubscriptionFilter::all_lists()
    })
}

#[test]
fn extensions_and_experimental_features_are_sent_in_revisions_with_them() {
    let server = Server::new("test")
        .extension("com.example/tables", json!({ "rows": 7 }))
        .extension("com.example/charts", json!({}))
        .experimental("echo", json!({ "loud": true }))
        .handle()
        .unwrap();
    let extensions = json!({ "com.example/tables": { "rows": 7 }, "com.example/charts": {} });
    for (revision, has_extensions) in [
        (Revision::V2024_11_05, false),
        (Revision::V2025_03_26, false),
        (Revision::V2025_06_18, true),
        (Revision::V2025_11_25, true),
        (Revision::V2026_07_28, true),
    ] {
        let mut writer = JsonWriter::with_capacity(64);
        server.capabilities().write(Dialect::of(revision), &mut writer);
        let told: Value = writer.into_raw().decode().unwrap();
        assert_eq!(told["experimental"], json!({ "echo": { "loud": true } }), "{revision}");
        assert_eq!(
            told["extensions"],
            if has_extensions { extensions.clone() } else { Value::Null },
            "{revision}"
        );
    }
    let silent = Server::new("test").handle().unwrap().capabilities();
    assert_eq!((silent.extensions, silent.experimental), (None, None));
    let odd = Server::new("test").extension("com.example/odd", json!([])).handle().unwrap_err().to_string();
    assert!(odd.contains("the settings of `com.example/odd` are not an object"), "{odd}");
}

#[test]
fn build_error_has_every_problem_of_every_part() {
    let server =
        Server::new("test").with((tool("a"), tool("a"), tool("b c"))).with(vec![prompt(""), prompt("p")]);
    let error = server.handle().unwrap_err();
    assert_eq!(error.problems().len(), 3, "{error}");
    assert_eq!(error.to_string().lines().count(), 3);
    assert!(error.to_string().contains("tool `a`: there are two of this name"), "{error}");
    let called = server.call("a", json!({})).now_or_never().unwrap();
    assert!(matches!(called, Err(CallError::Build(same)) if same == error));
}

#[test]
fn server_is_rebuilt_only_after_a_change() {
    let server = Server::new("test").with(tool("a"));
    server.handle().unwrap().add(tool("b")).unwrap();
    assert_eq!(call_text(&server, "b", &Value::Null), "done");
    let changed = server.with(tool("c"));
    let names = answer(&changed, Method::ToolsList, &json!({})).unwrap();
    assert_eq!(names["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn methods_are_available_only_with_their_capability() {
    let completer = |_: String, _: BTreeMap<String, String>| async { Vec::new() };
    let completing = || template("x:{v}").complete("v", completer);
    let cases = [
        (Server::new("test"), [false; 4]),
        (Server::new("test").with(tool("t")), [true, false, false, false]),
        (Server::new("test").with(prompt("p")), [false, true, false, false]),
        (Server::new("test").with(resource("x:a")), [false, false, true, false]),
        (Server::new("test").with(template("x:{v}")), [false, false, true, false]),
        (Server::new("test").with(completing()), [false, false, true, true]),
        (Server::new("test").advertise_tools().advertise_prompts(), [true, true, false, false]),
        (Server::new("test").advertise_resources().advertise_completions(), [false, false, true, true]),
    ];
    for (server, offered) in cases {
        let capabilities = server.handle().unwrap().capabilities();
        let declared = [
            capabilities.tools.is_some_and(|tools| tools.list_changed),
            capabilities.prompts.is_some_and(|prompts| prompts.list_changed),
            capabilities.resources.is_some_and(|resources| resources.list_changed && resources.subscribe),
            capabilities.completions,
        ];
        assert_eq!(declared, offered);
        assert!(capabilities.logging);
        let methods = [
            (Method::ToolsList, offered[0]),
            (Method::ToolsCall, offered[0]),
            (Method::PromptsList, offered[1]),
            (Method::PromptsGet, offered[1]),
            (Method::ResourcesList, offered[2]),
            (Method::TemplatesList, offered[2]),
            (Method::ResourcesRead, offered[2]),
            (Method::Complete, offered[3]),
        ];
        for (method, offered) in methods {
            let outcome = answer(&server, method, &json!({}));
            let found = !outcome.is_err_and(|refusal| refusal.is_same_kind(&Refusal::METHOD_NOT_FOUND));
            assert_eq!(found, offered, "{method:?}");
        }
    }
}

#[test]
fn protocol_methods_are_not_dispatched_to_parts() {
    let server = Server::new("test").with(tool("t"));
    for method in [Method::Initialize, Method::Ping, Method::Discover, Method::SetLevel, Method::Listen] {
        assert_refused(answer(&server, method, &json!({})), &Refusal::METHOD_NOT_FOUND, "");
    }
}

#[test]
fn every_server_change_notifies_subscribers_once() {
    let server = Server::new("test").handle().unwrap();
    let watching = watch_everything(&server);
    server.add(vec![tool("a"), tool("b")]).unwrap();
    assert_eq!(told(&watching), [ServerChange::Tools]);
    server.add((prompt("p"), resource("x:a"), template("x:{v}"))).unwrap();
    assert_eq!(told(&watching), [ServerChange::Prompts, ServerChange::Resources]);
    server.notify_updated("x:a");
    server.notify_updated("y:a");
    assert_eq!(told(&watching), [ServerChange::ResourceUpdated("x:a".into())]);
    let remove: [(&dyn Fn() -> bool, ServerChange); 4] = [
        (&|| server.remove_tool("a"), ServerChange::Tools),
        (&|| server.remove_prompt("p"), ServerChange::Prompts),
        (&|| server.remove_resource("x:a"), ServerChange::Resources),
        (&|| server.remove_template("x:{v}"), ServerChange::Resources),
    ];
    for (remove, change) in remove {
        assert!(remove());
        assert_eq!(told(&watching), [change]);
        assert!(!remove());
        assert_eq!(told(&watching), []);
    }
}

#[test]
fn parts_are_added_all_or_none() {
    let server = Server::new("test").with(tool("a")).handle().unwrap();
    let watching = watch_everything(&server);
    let error = server.add((tool("b"), tool("a"), prompt(""))).unwrap_err();
    assert_eq!(error.problems().len(), 2, "{error}");
    assert_eq!(told(&watching), []);
    let refused = server.call("b", json!({})).now_or_never().unwrap();
    assert_refused(refused, &Refusal::INVALID_PARAMS, "Unknown tool");
    assert!(server.capabilities().prompts.is_none());
}

#[test]
fn capability_stays_advertised_after_its_last_part_is_removed() {
    let handle = Server::new("test").with((tool("a"), template("x:{v}"))).handle().unwrap();
    assert!(handle.remove_tool("a") && handle.remove_template("x:{v}"));
    let list = answer_in(&handle, Revision::NEWEST, Method::ToolsList, &json!({})).unwrap();
    assert_eq!(list["tools"], json!([]));
    let read = answer_in(&handle, Revision::NEWEST, Method::ResourcesRead, &json!({ "uri": "x:1" }));
    assert_refused(read, &Refusal::RESOURCE_NOT_FOUND, "");
}

#[test]
fn handler_can_change_its_own_server() {
    let server = Server::new("test").with(Tool::new("replace").run(|context: Context| async move {
        let server = context.server().unwrap();
        server.remove_tool("replace");
        server.add(tool("new")).map_err(crate::ToolError::from)?;
        Ok::<_, crate::ToolError>("replaced")
    }));
    assert_eq!(call_text(&server, "replace", &Value::Null), "replaced");
    assert_eq!(call_text(&server, "new", &Value::Null), "done");
}

#[test]
fn lists_have_cache_hints() {
    let cache = CacheHint { ttl_ms: 5_000, scope: CacheScope::Public };
    for (server, ttl, scope) in [
        (Server::new("test").with(tool("t")), 0, "private"),
        (Server::new("test").with(tool("t")).cache(cache), 5_000, "public"),
    ] {
        let list = answer(&server, Method::ToolsList, &json!({})).unwrap();
        assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(ttl), &json!(scope)));
    }
}

#[test]
fn server_info_has_every_configured_field() {
    let server = Server::new("demo")
        .version("1.2.3")
        .title("Demo")
        .description("Shows.")
        .website("https://example.com")
        .icon(Icon::new("https://example.com/i.png"))
        .instructions("Be kind.");
    let handle = server.handle().unwrap();
    let mut writer = JsonWriter::default();
    handle.identity().write(Dialect::NEWEST, &mut writer);
    let expected = json!({
        "name": "demo",
        "version": "1.2.3",
        "title": "Demo",
        "description": "Shows.",
        "websiteUrl": "https://example.com",
        "icons": [{ "src": "https://example.com/i.png" }],
    });
    assert_eq!(writer.into_raw().decode::<Value>().unwrap(), expected);
    assert_eq!(handle.instructions(CallerIdentity::ANONYMOUS).as_deref(), Some("Be kind."));
}

#[test]
fn tool_aliases_are_callable_and_not_listed() {
    let say = |text: &'static str| Tool::new(text).run(move || async move { text });
    let server = Server::new("test")
        .with((say("list").alias("component list").alias("ls"), say("other").alias("ls").alias("list")))
        .handle()
        .unwrap();
    let call = |name: &str| {
        let answer = answer_in(&server, Revision::NEWEST, Method::ToolsCall, &json!({ "name": name }));
        answer.map(|result| result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    };
    for (name, expected) in [("list", "list"), ("component list", "list"), ("ls", "list"), ("other", "other")]
    {
        assert_eq!(call(name).unwrap(), expected, "{name}");
    }
    let listed = answer_in(&server, Revision::NEWEST, Method::ToolsList, &json!({})).unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 2);
    assert!(server.has_tool("component list") && !server.has_tool("component"));
    assert!(server.remove_tool("list"));
    assert!(call("component list").is_err() && call("ls").is_err(), "the names go with the tool");
}
