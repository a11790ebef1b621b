//! What a bridge has to carry, one check for each.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::json;
use trunkline_client::protocol::model::{
    Content, CreateMessageResult, InputRequest, InputResponse, ResourceBody, Role,
};
use trunkline_client::protocol::{JsonObject, LoggingLevel, Revision};
use trunkline_client::{BoxFuture, ChangeEvent, ChangeFilter, CompletionRequest, Error};

use crate::driver::MatrixClient;

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// It works as it does without a bridge.
    Pass,
    /// It was refused, with these words.
    Refused(String),
    /// Something else happened.
    Fail(String),
}

/// One feature: its name, what the older of two revisions must be for it, and why, and its check.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    pub(crate) since: Revision,
    pub(crate) lacking: &'static str,
    pub(crate) check: for<'p> fn(&'p MatrixClient) -> BoxFuture<'p, Cell>,
}

const ALWAYS: Revision = Revision::V2024_11_05;
const FORMS: Revision = Revision::V2025_06_18;

macro_rules! features {
    ($($name:literal, $since:ident, $lacking:literal, $check:ident;)*) => {
        pub(crate) const FEATURES: &[Feature] = &[$(Feature {
            name: $name,
            since: $since,
            lacking: $lacking,
            check: |driver| Box::pin($check(driver)),
        }),*];
    };
}

features! {
    "description", ALWAYS, "", description;
    "list", ALWAYS, "", list;
    "call", ALWAYS, "", call;
    "call that fails", ALWAYS, "", failing_call;
    "read", ALWAYS, "", read;
    "resource that is not there", ALWAYS, "", missing_resource;
    "get prompt", ALWAYS, "", get_prompt;
    "complete", ALWAYS, "", complete;
    "progress", ALWAYS, "", progress;
    "log", ALWAYS, "", log;
    "cancel by the client", ALWAYS, "", cancel_by_client;
    "cancel by the server", FORMS, "elicitation", cancel_by_server;
    "elicitation, accepted", FORMS, "elicitation", accepted;
    "elicitation, declined", FORMS, "elicitation", declined;
    "two elicitations in sequence", FORMS, "elicitation", in_sequence;
    "two elicitations at once", FORMS, "elicitation", at_once;
    "sampling", ALWAYS, "", sampling;
    "roots", ALWAYS, "", roots;
    "change notices", ALWAYS, "", change_notices;
    "resource subscription", ALWAYS, "", resource_subscription;
}

macro_rules! expect {
    ($condition:expr, $($said:tt)*) => {
        if !$condition {
            return Cell::Fail(format!($($said)*));
        }
    };
}

macro_rules! given {
    ($what:literal, $future:expr) => {
        match $future.await {
            Ok(given) => given,
            Err(error) => return refused($what, &error),
        }
    };
}

fn refused(what: &str, error: &Error) -> Cell {
    match error {
        Error::ErrorResponse(refused) => Cell::Refused(refused.message.clone()),
        other => Cell::Fail(format!("{what}: {other:?}")),
    }
}

async fn description(driver: &MatrixClient) -> Cell {
    let info = driver.client.server();
    let identity = info.identity.clone().map(|identity| (identity.name, identity.version));
    expect!(identity == Some(("far".to_owned(), "1.2.3".to_owned())), "{identity:?}");
    expect!(info.instructions.as_deref() == Some("Be kind."), "{:?}", info.instructions);
    let offers = &info.capabilities;
    expect!(offers.tools.is_some() && offers.prompts.is_some() && offers.logging, "{offers:?}");
    expect!(offers.resources.is_some_and(|resources| resources.subscribe), "{offers:?}");
    Cell::Pass
}

async fn list(driver: &MatrixClient) -> Cell {
    let tools = given!("tools", driver.client.tools());
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    expect!(names.first() == Some(&"add") && names.len() == 15, "{names:?}");
    expect!(tools.skipped.is_empty(), "{:?}", tools.skipped);
    let prompts = given!("prompts", driver.client.prompts());
    let resources = given!("resources", driver.client.resources());
    let templates = given!("templates", driver.client.templates());
    expect!(prompts.iter().map(|prompt| &*prompt.name).eq(["greet"]), "{prompts:?}");
    expect!(resources.iter().map(|resource| &*resource.uri).eq(["test://a"]), "{resources:?}");
    expect!(templates.iter().map(|it| &*it.uri_template).eq(["test://t/{who}"]), "{templates:?}");
    Cell::Pass
}

async fn call(driver: &MatrixClient) -> Cell {
    let sum = given!("add", driver.client.call("add", json!({ "a": 2, "b": 3 })));
    expect!(sum.text() == "5" && !sum.is_error, "{sum:?}");
    Cell::Pass
}

async fn failing_call(driver: &MatrixClient) -> Cell {
    let failed = given!("fail", driver.client.call("fail", json!({})));
    expect!(failed.is_error && failed.text() == "it broke", "{failed:?}");
    let Err(Error::ErrorResponse(unknown)) = driver.client.call("nothing", json!({})).await else {
        return Cell::Fail("an unknown tool was called".to_owned());
    };
    expect!(unknown.code == -32602, "{unknown:?}");
    Cell::Pass
}

async fn read(driver: &MatrixClient) -> Cell {
    for (uri, expected) in [("test://a", "alpha"), ("test://t/ada", "t of ada")] {
        let read = given!("read", driver.client.read(uri));
        let bodies: Vec<_> = read.contents.iter().map(|contents| contents.body.clone()).collect();
        expect!(bodies == [ResourceBody::Text(expected.to_owned())], "{bodies:?}");
    }
    Cell::Pass
}

async fn missing_resource(driver: &MatrixClient) -> Cell {
    let Err(Error::ErrorResponse(refused)) = driver.client.read("test://nothing").await else {
        return Cell::Fail("a resource that is not there was read".to_owned());
    };
    let expected = if driver.client.server().is_stateful() { -32002 } else { -32602 };
    expect!(refused.code == expected, "{refused:?}");
    Cell::Pass
}

async fn get_prompt(driver: &MatrixClient) -> Cell {
    let prompt = given!("prompt", driver.client.get_prompt("greet", json!({ "who": "Ada" })));
    let texts: Vec<_> = prompt.messages.iter().filter_map(|message| message.content.as_text()).collect();
    expect!(texts == ["Greet Ada."], "{texts:?}");
    Cell::Pass
}

async fn complete(driver: &MatrixClient) -> Cell {
    let values = given!("complete", driver.client.complete(CompletionRequest::prompt("greet", "who", "a")));
    expect!(values.values == ["ada", "alan"], "{:?}", values.values);
    Cell::Pass
}

async fn progress(driver: &MatrixClient) -> Cell {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    let call = driver.client.call("progress", json!({})).progress(move |progress| {
        told.lock().unwrap().push((progress.progress, progress.total, progress.message.clone()));
    });
    let done = given!("progress", call);
    expect!(done.text() == "done", "{done:?}");
    let heard = heard.lock().unwrap().clone();
    // Unread progress is merged, so that only the last report is certain.
    let last = heard.last().cloned();
    expect!(last.as_ref().map(|(done, total, _)| (*done, *total)) == Some((3.0, Some(3.0))), "{heard:?}");
    expect!(heard.windows(2).all(|two| two[0].0 < two[1].0), "{heard:?}");
    Cell::Pass
}

async fn log(driver: &MatrixClient) -> Cell {
    given!("level", driver.client.set_level(LoggingLevel::Info));
    driver.heard.lock().unwrap().clear();
    let done = given!("log", driver.client.call("log", json!({})));
    expect!(done.text() == "logged", "{done:?}");
    let heard = driver.heard.lock().unwrap().clone();
    expect!(heard == [(LoggingLevel::Warning, r#"{"loud":true}"#.to_owned())], "{heard:?}");
    Cell::Pass
}

async fn cancel_by_client(driver: &MatrixClient) -> Cell {
    let key = json!({ "key": MatrixClient::unique() });
    let running = Arc::new(tokio::sync::Notify::new());
    let began = running.clone();
    let call = driver.client.call("wait", key.clone()).progress(move |_| began.notify_one());
    tokio::select! {
        ended = call.into_future() => return Cell::Fail(format!("it never ends, but {ended:?}")),
        () = running.notified() => {}
    }
    let over = given!("waited", driver.client.call("waited", key));
    expect!(over.text() == "it is over", "{over:?}");
    call_after(driver).await
}

async fn cancel_by_server(driver: &MatrixClient) -> Cell {
    let key = json!({ "key": MatrixClient::unique() });
    // In the modern era the client learns only from its next request that the call no longer waits.
    driver.answers.after_call("hurry", key.clone(), |_| confirm(true));
    let done = given!("impatient", driver.client.call("impatient", key));
    expect_said(&done, "gave up")
}

async fn accepted(driver: &MatrixClient) -> Cell {
    driver.answers.by(|_| confirm(true));
    let done = given!("confirm", driver.client.call("confirm", json!({})));
    let cell = expect_said(&done, "true");
    expect!(cell != Cell::Pass || driver.answers.asked() == 1, "asked {} times", driver.answers.asked());
    cell
}

async fn declined(driver: &MatrixClient) -> Cell {
    driver.answers.by(|_| InputResponse::decline());
    let done = given!("confirm", driver.client.call("confirm", json!({})));
    if done.is_error && done.text() == "the user declined" { Cell::Pass } else { expect_said(&done, "-") }
}

async fn in_sequence(driver: &MatrixClient) -> Cell {
    driver.answers.by(|question| confirm(message(question) == "First?"));
    let done = given!("in_sequence", driver.client.call("in_sequence", json!({})));
    expect_said(&done, "true false")
}

async fn at_once(driver: &MatrixClient) -> Cell {
    driver.answers.by(|question| confirm(message(question) == "B?"));
    let done = given!("at_once", driver.client.call("at_once", json!({})));
    expect_said(&done, "false true")
}

async fn sampling(driver: &MatrixClient) -> Cell {
    driver.answers.by(|_| {
        InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content: vec![Content::text("Hello.")],
            model: "m".to_owned(),
            stop_reason: None,
            meta: None,
            rest: JsonObject::new(),
        })
    });
    let done = given!("sample", driver.client.call("sample", json!({})));
    expect_said(&done, "Hello.")
}

async fn roots(driver: &MatrixClient) -> Cell {
    let done = given!("roots", driver.client.call("roots", json!({})));
    expect_said(&done, r#"["file:///home"]"#)
}

async fn change_notices(driver: &MatrixClient) -> Cell {
    let mut changes = given!("changes", driver.client.subscribe(ChangeFilter::all_lists()));
    given!("change", driver.client.call("change", json!({})));
    let change = changes.next().await;
    expect!(change == Some(ChangeEvent::Tools), "{change:?}");
    let late = given!("late", driver.client.call("late", json!({})));
    given!("change back", driver.client.call("change", json!({})));
    let change = changes.next().await;
    expect!(change == Some(ChangeEvent::Tools), "{change:?}");
    expect_said(&late, "late")
}

async fn resource_subscription(driver: &MatrixClient) -> Cell {
    let mut changes =
        given!("a subscription", driver.client.subscribe(ChangeFilter::default().with_uri("test://a")));
    given!("touch", driver.client.call("touch", json!({})));
    let change = changes.next().await;
    expect!(change == Some(ChangeEvent::Resource("test://a".to_owned())), "{change:?}");
    call_after(driver).await
}

async fn call_after(driver: &MatrixClient) -> Cell {
    call(driver).await
}

type ToolCallResult = trunkline_client::WithRaw<trunkline_client::protocol::model::CallToolResult>;

fn expect_said(done: &ToolCallResult, expected: &str) -> Cell {
    match done.text() {
        said if said == expected && !done.is_error => Cell::Pass,
        said if done.is_error => Cell::Refused(said),
        said => Cell::Fail(format!("`{said}` instead of `{expected}`")),
    }
}

fn confirm(yes: bool) -> InputResponse {
    InputResponse::accept(Some(json!({ "confirm": yes }).into()))
}

fn message(question: &InputRequest) -> &str {
    match question {
        InputRequest::Form(form) => &form.message,
        other => panic!("{other:?}"),
    }
}
