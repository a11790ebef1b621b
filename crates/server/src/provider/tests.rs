use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Waker};

use serde_json::{Value, json};
use trunkline_protocol::model::{
    self, CallToolResult, GetPromptResult, PromptArgument, ReadResourceResult, ResourceContents,
};
use trunkline_protocol::{Method, RawJson, Refusal, Revision};

use super::*;
use crate::call::{BoxFuture, Context, Handler as _};
use crate::caller_identity::CallerIdentity;
use crate::change::{ServerChange, SubscriptionFilter};
use crate::error::ToolError;
use crate::server::{Server, ServerHandle};
use crate::testing::{answer_in, assert_refused};
use crate::tool::Tool;

/// A provider with tools, prompts and resources that are names in a list that tests change.
#[derive(Clone, Default)]
struct NamedParts {
    source: &'static str,
    names: Arc<Mutex<Vec<String>>>,
    notifier: Arc<Mutex<Option<ChangeNotifier>>>,
}

impl NamedParts {
    fn new(source: &'static str, names: &[&str]) -> Self {
        let shelf = Self { source, ..Self::default() };
        shelf.set_names(names);
        shelf
    }

    fn set_names(&self, names: &[&str]) {
        *self.names.lock().unwrap() = names.iter().map(|name| (*name).to_owned()).collect();
        let notifier = self.notifier.lock().unwrap().clone();
        if let Some(notifier) = notifier {
            notifier.list_changed();
        }
    }

    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }

    fn store_notifier(&self, notifier: ChangeNotifier) {
        *self.notifier.lock().unwrap() = Some(notifier);
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, ToolError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl ToolProvider for NamedParts {
    fn source(&self) -> String {
        self.source.to_owned()
    }

    fn tools(&self) -> Vec<model::Tool> {
        let schema = json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "x-mcp-header": "Count" } },
        });
        let tool =
            |name| model::Tool { name, input_schema: RawJson::from(&schema), ..model::Tool::default() };
        self.names().into_iter().map(tool).collect()
    }

    fn call(
        &self,
        tool: &str,
        _: Context,
        arguments: RawJson,
    ) -> BoxFuture<'static, Result<CallToolResult, ToolError>> {
        ready(CallToolResult::text(format!(
            "{} {tool} {arguments}",
            self.source,
            arguments = arguments.as_str()
        )))
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.store_notifier(notifier);
    }
}

impl PromptProvider for NamedParts {
    fn source(&self) -> String {
        self.source.to_owned()
    }

    fn prompts(&self) -> Vec<model::Prompt> {
        let topic = || vec![PromptArgument::required("topic")];
        self.names()
            .into_iter()
            .map(|name| model::Prompt { arguments: topic(), ..model::Prompt::new(name) })
            .collect()
    }

    fn get(
        &self,
        prompt: &str,
        _: Context,
        arguments: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<GetPromptResult, ToolError>> {
        let topic = arguments.get("topic").cloned().unwrap_or_default();
        let message = model::PromptMessage::user(model::Content::text(format!("{prompt} on {topic}")));
        ready(GetPromptResult::new(vec![message]))
    }
}

impl ResourceProvider for NamedParts {
    fn source(&self) -> String {
        self.source.to_owned()
    }

    fn resources(&self) -> Vec<model::Resource> {
        self.names().into_iter().map(|name| model::Resource::new(format!("shelf://{name}"), name)).collect()
    }

    fn templates(&self) -> Vec<model::ResourceTemplate> {
        vec![model::ResourceTemplate::new("shelf://deep/{name}", "deep")]
    }

    fn read(
        &self,
        uri: &str,
        _: Context,
    ) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>> {
        let there = !uri.ends_with("gone");
        ready(
            there.then(|| ReadResourceResult::new(vec![ResourceContents::text(uri, format!("read {uri}"))])),
        )
    }

    fn set_notifier(&self, notifier: ChangeNotifier) {
        self.store_notifier(notifier);
    }
}

fn ask(server: &ServerHandle, method: Method, params: &Value) -> Result<Value, Refusal> {
    answer_in(server, Revision::NEWEST, method, params)
}

fn listed(server: &ServerHandle) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = ask(server, Method::ToolsList, &json!({ "cursor": cursor })).unwrap();
        let tools = page["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => return names,
        }
    }
}

fn call(server: &ServerHandle, name: &str, arguments: &Value) -> Result<Value, Refusal> {
    let result = ask(server, Method::ToolsCall, &json!({ "name": name, "arguments": arguments }))?;
    Ok(result["content"][0]["text"].clone())
}

#[test]
fn server_with_only_a_tool_provider_advertises_only_tools() {
    let server = Server::new("test").tools_from(NamedParts::new("web", &["search"])).handle().unwrap();
    assert_eq!(call(&server, "search", &json!({ "count": 1 })).unwrap(), "web search {\"count\":1}");
    assert_refused(call(&server, "other", &json!({})), &Refusal::INVALID_PARAMS, "Unknown tool");
    assert_refused(ask(&server, Method::PromptsList, &json!({})), &Refusal::METHOD_NOT_FOUND, "");
    assert!(server.capabilities().prompts.is_none() && server.capabilities().tools.is_some());
    let empty = Server::new("test").tools_from(NamedParts::new("web", &[])).handle().unwrap();
    assert!(listed(&empty).is_empty(), "a provider with nothing yet is no reason to have no tools");
}

#[test]
fn provider_parts_are_listed_sorted_and_paged_with_the_servers_own() {
    let server = Server::new("test")
        .page_size(2)
        .tools_from(NamedParts::new("web", &["d", "a"]))
        .with(Tool::new("c").run(async || "own"))
        .tools_from(NamedParts::new("files", &["e", "b"]))
        .handle()
        .unwrap();
    assert_eq!(listed(&server), ["a", "b", "c", "d", "e"]);
    assert_eq!(call(&server, "b", &json!({})).unwrap(), "files b {}");
    assert_eq!(call(&server, "c", &json!({})).unwrap(), "own");
}

#[test]
fn provider_tools_are_validated_and_mirrored_like_own_tools() {
    let server = Server::new("test").tools_from(NamedParts::new("web", &["search"])).handle().unwrap();
    let said = call(&server, "search", &json!({ "count": "many" })).unwrap();
    assert!(said.as_str().unwrap().contains("`count`"), "{said}");
    let mirrored = server.mirrored_arguments("search", CallerIdentity::ANONYMOUS).unwrap();
    let absent = mirrored.check(Some(&json!({ "count": 1 })), |_| None::<&[u8]>);
    assert!(absent.is_err(), "the header that the schema names is wanted");
}

#[test]
fn duplicate_names_are_reported_with_both_sources() {
    let own = || Tool::new("search").run(async || "own");
    for (server, expected) in [
        (
            Server::new("test")
                .tools_from(NamedParts::new("web", &["search"]))
                .tools_from(NamedParts::new("files", &["search"])),
            "tool `search`: provider `web` and provider `files` both have it",
        ),
        (
            Server::new("test").tools_from(NamedParts::new("web", &["search"])).with(own()),
            "tool `search`: the server itself and provider `web` both have it",
        ),
        (
            Server::new("test").tools_from(NamedParts::new("web", &["a", "a"])),
            "tool `a`: provider `web` and provider `web` both have it",
        ),
        (Server::new("test").with((own(), own())), "tool `search`: there are two of this name"),
    ] {
        let error = server.handle().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn invalid_provider_tool_is_left_out_alone() {
    let shelf = NamedParts::new("web", &["no name", "search"]);
    let server = Server::new("test")
        .tools_from(shelf.clone())
        .with(Tool::new("own").run(async || "own"))
        .handle()
        .unwrap();
    assert_eq!(listed(&server), ["own", "search"]);
    shelf.set_names(&["search", "no name", "find"]);
    assert_eq!(listed(&server), ["find", "own", "search"]);
}

#[test]
fn tool_prefix_separates_two_providers() {
    let server = Server::new("test")
        .tools_from(NamedParts::new("web", &["search"]))
        .tools_from(PrefixedProvider::new("files_", NamedParts::new("files", &["search"])))
        .handle()
        .unwrap();
    assert_eq!(listed(&server), ["files_search", "search"]);
    assert_eq!(call(&server, "files_search", &json!({})).unwrap(), "files search {}");
}

#[test]
fn changed_provider_list_is_refreshed_and_subscribers_are_notified() {
    let shelf = NamedParts::new("web", &["a", "b"]);
    let server = Server::new("test")
        .tools_from(shelf.clone())
        .with(Tool::new("own").run(async || "own"))
        .handle()
        .unwrap();
    let watch = server.subscribe(SubscriptionFilter::all_lists());
    shelf.set_names(&["b", "c", "own"]);
    assert_eq!(listed(&server), ["b", "c", "own"]);
    assert_eq!(call(&server, "own", &json!({})).unwrap(), "own", "the server's own part stays");
    assert!(watch.poll_change(&mut TaskContext::from_waker(Waker::noop())).is_ready());

    // A part of the server that took a name meanwhile is not the provider's to remove.
    assert!(server.remove_tool("c"));
    server.add(Tool::new("c").run(async || "mine")).unwrap();
    shelf.set_names(&[]);
    assert_eq!(listed(&server), ["c", "own"]);
    let taken = server.add(Tool::new("c").run(async || "again")).unwrap_err().to_string();
    assert!(taken.contains("there are two of this name"), "{taken}");
    drop(server);
    shelf.set_names(&["late"]);
}

#[test]
fn providers_serve_prompts_and_resources() {
    let shelf = NamedParts::new("books", &["one"]);
    let server =
        Server::new("test").prompts_from(shelf.clone()).resources_from(shelf.clone()).handle().unwrap();
    let prompt =
        ask(&server, Method::PromptsGet, &json!({ "name": "one", "arguments": { "topic": "rust" } }))
            .unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "one on rust");
    let missing = ask(&server, Method::PromptsGet, &json!({ "name": "one" }));
    assert_refused(missing, &Refusal::INVALID_PARAMS, "`topic` is missing");

    for (uri, expected) in [
        ("shelf://one", Some("read shelf://one")),
        ("shelf://deep/two", Some("read shelf://deep/two")),
        ("shelf://deep/gone", None),
        ("shelf://two", None),
    ] {
        let read = ask(&server, Method::ResourcesRead, &json!({ "uri": uri }));
        match expected {
            Some(text) => assert_eq!(read.unwrap()["contents"][0]["text"], text),
            None => assert_refused(read, &Refusal::RESOURCE_NOT_FOUND, ""),
        }
    }
    let templates = ask(&server, Method::TemplatesList, &json!({})).unwrap();
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "shelf://deep/{name}");

    let watch = server.subscribe(SubscriptionFilter {
        uris: ["shelf://one".to_owned()].into(),
        ..SubscriptionFilter::default()
    });
    shelf.notifier.lock().unwrap().as_ref().unwrap().resource_updated("shelf://one");
    let change = watch.poll_change(&mut TaskContext::from_waker(Waker::noop()));
    assert_eq!(change, std::task::Poll::Ready(ServerChange::ResourceUpdated("shelf://one".into())));
    shelf.set_names(&["one", "two"]);
    assert!(ask(&server, Method::ResourcesRead, &json!({ "uri": "shelf://two" })).is_ok());
    assert!(ask(&server, Method::ResourcesRead, &json!({ "uri": "shelf://deep/x" })).is_ok());
}

/// A provider that completes the given arguments.
struct CompletingProvider(&'static [&'static str]);

fn suggestion(
    of: &str,
    what: &str,
    typed: &str,
    given: &BTreeMap<String, String>,
) -> BoxFuture<'static, Vec<String>> {
    Box::pin(std::future::ready(vec![format!("{of} {what} {typed} {given:?}")]))
}

impl PromptProvider for CompletingProvider {
    fn source(&self) -> String {
        "completing".to_owned()
    }

    fn prompts(&self) -> Vec<model::Prompt> {
        NamedParts::new("x", &["one", "two"]).prompts()
    }

    fn get(
        &self,
        _: &str,
        _: Context,
        _: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<GetPromptResult, ToolError>> {
        ready(GetPromptResult::new(Vec::new()))
    }

    fn completed_arguments(&self, prompt: &str) -> Vec<String> {
        let of_this = self.0.iter().filter(|_| prompt == "one");
        of_this.map(|argument| (*argument).to_owned()).collect()
    }

    fn complete(
        &self,
        prompt: &str,
        argument: &str,
        typed: String,
        given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Vec<String>> {
        suggestion(prompt, argument, &typed, &given)
    }
}

impl ResourceProvider for CompletingProvider {
    fn source(&self) -> String {
        "completing".to_owned()
    }

    fn resources(&self) -> Vec<model::Resource> {
        Vec::new()
    }

    fn templates(&self) -> Vec<model::ResourceTemplate> {
        vec![model::ResourceTemplate::new("shelf://{row}/{name}", "deep")]
    }

    fn read(&self, _: &str, _: Context) -> BoxFuture<'static, Result<Option<ReadResourceResult>, ToolError>> {
        ready(None)
    }

    fn completed_variables(&self, _: &str) -> Vec<String> {
        self.0.iter().map(|variable| (*variable).to_owned()).collect()
    }

    fn complete(
        &self,
        uri_template: &str,
        variable: &str,
        typed: String,
        given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Vec<String>> {
        suggestion(uri_template, variable, &typed, &given)
    }
}

#[test]
fn providers_complete_their_declared_arguments() {
    let server = Server::new("test")
        .prompts_from(CompletingProvider(&["topic"]))
        .resources_from(CompletingProvider(&["name"]))
        .handle()
        .unwrap();
    assert!(server.capabilities().completions);
    let values = |reference: Value, argument: &str| {
        let params = json!({
            "ref": reference,
            "argument": { "name": argument, "value": "ru" },
            "context": { "arguments": { "other": "1" } },
        });
        ask(&server, Method::Complete, &params).unwrap()["completion"]["values"].take()
    };
    let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
    let template = json!({ "type": "ref/resource", "uri": "shelf://{row}/{name}" });
    assert_eq!(values(prompt("one"), "topic"), json!(["one topic ru {\"other\": \"1\"}"]));
    assert_eq!(values(prompt("two"), "topic"), json!([]), "of the other prompt nothing was said");
    let expected = json!(["shelf://{row}/{name} name ru {\"other\": \"1\"}"]);
    assert_eq!(values(template.clone(), "name"), expected);
    assert_eq!(values(template, "row"), json!([]));
    // A provider without completions does not advertise them.
    let silent = Server::new("test").prompts_from(CompletingProvider(&[])).handle().unwrap();
    assert!(!silent.capabilities().completions);
    // A prompt is left out if its provider completes an argument that it does not have; the others stay.
    let wrong = Server::new("test").prompts_from(CompletingProvider(&["none"])).handle().unwrap();
    let prompts = ask(&wrong, Method::PromptsList, &json!({})).unwrap();
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1);
    assert_eq!(prompts["prompts"][0]["name"], "two");
}
