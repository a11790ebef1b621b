use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use trunkline_protocol::model::{CacheHint, CacheScope, ResourceContents};
use trunkline_protocol::{Method, Refusal};

use crate::call::Context;
use crate::error::ToolError;
use crate::json::Json;
use crate::resource::{Resource, ResourceTemplate};
use crate::server::Server;
use crate::testing::{answer, assert_refused};

#[derive(Deserialize)]
struct UserVariables {
    id: u64,
}

fn resources() -> Vec<Resource> {
    vec![
        Resource::new("x:text", "text").mime("text/plain").text("hello"),
        Resource::new("x:blob", "blob").blob(vec![0_u8, 255]),
        Resource::new("x:uri", "uri").read(|uri: String| async move { uri }),
        Resource::new("x:both", "both").read(|_: Context, uri: String| async move { uri.into_bytes() }),
        Resource::new("x:json", "json").read(|| async { Json(json!({ "a": 1 })) }),
        Resource::new("x:several", "several").read(|| async {
            vec![ResourceContents::text("", "1"), ResourceContents::text("x:2", "2").mime("text/html")]
        }),
        Resource::new("x:empty", "empty").read(|| async { Vec::<ResourceContents>::new() }),
        Resource::new("x:none", "none").read(|| async { None::<String> }),
        Resource::new("x:failing", "failing")
            .read(|_: Context| async { Err::<String, _>(ToolError::new("no disk")) }),
        Resource::new("x:refusing", "refusing").read(|| async { Err::<String, _>(Refusal::TOO_MANY) }),
    ]
}

fn server() -> Server {
    Server::new("test")
        .with(resources)
        .with(
            ResourceTemplate::new("users:{id}", "user")
                .mime("text/x")
                .read(|user: UserVariables| async move { format!("user {}", user.id) }),
        )
        .with(
            ResourceTemplate::new("users:{name}", "name")
                .read(|_: Context, given: BTreeMap<String, String>| async move { format!("{given:?}") }),
        )
        .with(ResourceTemplate::new("x:{any}", "any").read(|| async { "any" }))
}

fn read(uri: &str) -> Result<Value, Refusal> {
    let mut result = answer(&server(), Method::ResourcesRead, &json!({ "uri": uri }))?;
    Ok(result["contents"].take())
}

#[test]
fn resource_contents_follow_the_handlers_return_type() {
    for (uri, contents) in [
        ("x:text", json!([{ "uri": "x:text", "mimeType": "text/plain", "text": "hello" }])),
        ("x:blob", json!([{ "uri": "x:blob", "blob": "AP8=" }])),
        ("x:uri", json!([{ "uri": "x:uri", "text": "x:uri" }])),
        ("x:both", json!([{ "uri": "x:both", "blob": "eDpib3Ro" }])),
        ("x:json", json!([{ "uri": "x:json", "mimeType": "application/json", "text": "{\"a\":1}" }])),
        (
            "x:several",
            json!([{ "uri": "x:several", "text": "1" }, { "uri": "x:2", "mimeType": "text/html", "text": "2" }]),
        ),
        // A template with a type that does not fit leaves the URI to those that were added after it.
        ("users:7", json!([{ "uri": "users:7", "mimeType": "text/x", "text": "user 7" }])),
        ("users:ann%20b", json!([{ "uri": "users:ann%20b", "text": "{\"name\": \"ann b\"}" }])),
        ("x:other", json!([{ "uri": "x:other", "text": "any" }])),
    ] {
        assert_eq!(read(uri), Ok(contents), "{uri}");
    }
}

#[test]
fn values_that_leave_their_folder_reach_only_raw_templates() {
    for uri in
        ["p:%2e%2e%2fetc", "p:..%2Fetc", "p:a%2F..", "p:..", "p:%2e.%5Cetc", "p:a%00b", "q:../x", "q:a/../b"]
    {
        let server = |raw: bool| {
            let template = |uri: &str| {
                let template = ResourceTemplate::new(uri, "t");
                let template = if raw { template.raw_variables() } else { template };
                template.read(|given: BTreeMap<String, String>| async move { given.into_values().next() })
            };
            Server::new("s").with((template("p:{v}"), template("q:{+v}")))
        };
        let refusal = answer(&server(false), Method::ResourcesRead, &json!({ "uri": uri })).unwrap_err();
        assert!(refusal.is_same_kind(&Refusal::RESOURCE_NOT_FOUND), "{uri}: {refusal:?}");
        let read = answer(&server(true), Method::ResourcesRead, &json!({ "uri": uri })).unwrap();
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("..") || text.contains('\0'), "{uri}: {text}");
        for fine in ["p:a..b", "p:...", "p:.hidden", "q:a/b", "p:a%2Fb"] {
            answer(&server(false), Method::ResourcesRead, &json!({ "uri": fine })).unwrap();
        }
    }
}

#[test]
fn unknown_resource_is_refused_with_its_uri() {
    for uri in ["y:text", "users:", "users:a/b", "x:empty", "x:none", ""] {
        let refusal = read(uri).unwrap_err();
        assert!(refusal.is_same_kind(&Refusal::RESOURCE_NOT_FOUND), "{uri}: {refusal:?}");
        assert_eq!(refusal.data().unwrap().decode::<Value>().unwrap(), json!({ "uri": uri }));
    }
}

#[test]
fn resource_handler_errors_are_refusals() {
    assert_refused(read("x:failing"), &Refusal::INTERNAL, "no disk");
    assert_refused(read("x:refusing"), &Refusal::TOO_MANY, "");
    let without_uri = answer(&server(), Method::ResourcesRead, &json!({}));
    assert_refused(without_uri, &Refusal::INVALID_PARAMS, "`uri` is missing");
}

#[test]
fn resource_reads_have_cache_hints() {
    let cache = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    let server = Server::new("test").with((
        Resource::new("x:a", "a").cache(cache).text(""),
        Resource::new("x:b", "b").text(""),
        ResourceTemplate::new("y:{v}", "c").cache(cache).read(|| async { "" }),
    ));
    for (uri, ttl, scope) in [("x:a", 60_000, "public"), ("x:b", 0, "private"), ("y:1", 60_000, "public")] {
        let result = answer(&server, Method::ResourcesRead, &json!({ "uri": uri })).unwrap();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!(scope)), "{uri}");
    }
}

#[test]
fn lists_describe_resources_and_templates() {
    let server = Server::new("test")
        .with(Resource::new("x:a", "a").title("A").description("An a.").mime("text/plain").text("é"))
        .with(ResourceTemplate::new("x:{v}", "v").title("V").description("A v.").read(|| async { "" }));
    let resources = answer(&server, Method::ResourcesList, &json!({})).unwrap();
    assert_eq!(
        resources["resources"],
        json!([{
            "uri": "x:a", "name": "a", "title": "A", "description": "An a.", "mimeType": "text/plain", "size": 2,
        }])
    );
    let templates = answer(&server, Method::TemplatesList, &json!({})).unwrap();
    assert_eq!(
        templates["resourceTemplates"],
        json!([{ "uriTemplate": "x:{v}", "name": "v", "title": "V", "description": "A v." }])
    );
}

#[test]
fn resource_problems_are_reported_when_the_server_is_built() {
    let nothing = |_: String, _: BTreeMap<String, String>| async { Vec::new() };
    let template = |uri: &str| ResourceTemplate::new(uri, "t").read(|| async { "" });
    for (server, problem) in [
        (Server::new("s").with(Resource::new("x:a", "a")), "resource `x:a`: has no content and no handler"),
        (Server::new("s").with(Resource::new("a", "a").text("")), "resource `a`: is not a URI with a scheme"),
        (Server::new("s").with(Resource::new("x:a", "").text("")), "its name is empty"),
        (
            Server::new("s").with(Resource::new("x:a", "a").text("").read(|| async { "" })),
            "has two sources; give one of `text`, `blob` and `read`",
        ),
        (Server::new("s").with(template("x:{")), "resource template `x:{`: "),
        (Server::new("s").with(template("x:a")), "has no variables"),
        (Server::new("s").with(ResourceTemplate::new("x:{v}", "t")), "has no handler"),
        (Server::new("s").with(template("x:{v}").read(|| async { "" })), "has two handlers"),
        (
            Server::new("s").with(template("x:{v}").complete("w", nothing)),
            "completes `w`, which it does not have",
        ),
    ] {
        let error = server.handle().unwrap_err();
        assert_eq!(error.problems().len(), 1, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}
