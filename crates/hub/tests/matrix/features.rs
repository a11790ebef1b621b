//! What a pair of revisions has to carry, one check for each.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::protocol::model::{Answer, Content, Question, ResourceBody, Role, SampleResult};
use trunkline_client::protocol::{Level, Members, Revision};
use trunkline_client::{BoxFuture, Change, Completion, Error, Watch};
use trunkline_server::Tool;

use crate::pair::{Pair, within};

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
    pub(crate) check: for<'p> fn(&'p Pair) -> BoxFuture<'p, Cell>,
}

const ALWAYS: Revision = Revision::V2024_11_05;
const FORMS: Revision = Revision::V2025_06_18;

macro_rules! features {
    ($($name:literal, $since:ident, $lacking:literal, $check:ident;)*) => {
        pub(crate) const FEATURES: &[Feature] = &[$(Feature {
            name: $name,
            since: $since,
            lacking: $lacking,
            check: |pair| Box::pin($check(pair)),
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
        match within($what, $future).await {
            Ok(given) => given,
            Err(error) => return refused($what, &error),
        }
    };
}

fn refused(what: &str, error: &Error) -> Cell {
    match error {
        Error::Refused(refused) => Cell::Refused(refused.message.clone()),
        other => Cell::Fail(format!("{what}: {other:?}")),
    }
}

async fn description(pair: &Pair) -> Cell {
    let info = pair.client.server();
    let identity = info.identity.clone().map(|identity| (identity.name, identity.version));
    expect!(identity == Some(("far".to_owned(), "1.2.3".to_owned())), "{identity:?}");
    expect!(info.instructions.as_deref() == Some("Be kind."), "{:?}", info.instructions);
    let offers = &info.capabilities;
    expect!(offers.tools.is_some() && offers.prompts.is_some() && offers.logging, "{offers:?}");
    expect!(offers.resources.is_some_and(|resources| resources.subscribe), "{offers:?}");
    Cell::Pass
}

async fn list(pair: &Pair) -> Cell {
    let tools = given!("tools", pair.client.tools());
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    expect!(names.first() == Some(&"add") && names.len() == 11, "{names:?}");
    expect!(tools.left_out.is_empty(), "{:?}", tools.left_out);
    let prompts = given!("prompts", pair.client.prompts());
    let resources = given!("resources", pair.client.resources());
    let templates = given!("templates", pair.client.templates());
    expect!(prompts.iter().map(|prompt| &*prompt.name).eq(["greet"]), "{prompts:?}");
    expect!(resources.iter().map(|resource| &*resource.uri).eq(["test://a"]), "{resources:?}");
    expect!(templates.iter().map(|it| &*it.uri_template).eq(["test://t/{who}"]), "{templates:?}");
    Cell::Pass
}

async fn call(pair: &Pair) -> Cell {
    let sum = given!("add", pair.client.call("add", json!({ "a": 2, "b": 3 })));
    expect!(sum.text() == "5" && !sum.is_error, "{sum:?}");
    Cell::Pass
}

async fn failing_call(pair: &Pair) -> Cell {
    let failed = given!("fail", pair.client.call("fail", json!({})));
    expect!(failed.is_error && failed.text() == "it broke", "{failed:?}");
    let Err(Error::Refused(unknown)) = within("nothing", pair.client.call("nothing", json!({}))).await else {
        return Cell::Fail("an unknown tool was called".to_owned());
    };
    expect!(unknown.code == -32602, "{unknown:?}");
    Cell::Pass
}

async fn read(pair: &Pair) -> Cell {
    for (uri, expected) in [("test://a", "alpha"), ("test://t/ada", "t of ada")] {
        let read = given!("read", pair.client.read(uri));
        let bodies: Vec<_> = read.contents.iter().map(|contents| contents.body.clone()).collect();
        expect!(bodies == [ResourceBody::Text(expected.to_owned())], "{bodies:?}");
    }
    Cell::Pass
}

async fn missing_resource(pair: &Pair) -> Cell {
    let Err(Error::Refused(refused)) = within("read", pair.client.read("test://nothing")).await else {
        return Cell::Fail("a resource that is not there was read".to_owned());
    };
    let expected = if pair.client.server().keeps_sessions() { -32002 } else { -32602 };
    expect!(refused.code == expected, "{refused:?}");
    Cell::Pass
}

async fn get_prompt(pair: &Pair) -> Cell {
    let prompt = given!("prompt", pair.client.get_prompt("greet", json!({ "who": "Ada" })));
    let texts: Vec<_> = prompt.messages.iter().filter_map(|message| message.content.as_text()).collect();
    expect!(texts == ["Greet Ada."], "{texts:?}");
    Cell::Pass
}

async fn complete(pair: &Pair) -> Cell {
    let values = given!("complete", pair.client.complete(Completion::prompt("greet", "who", "a")));
    expect!(values.values == ["ada", "alan"], "{:?}", values.values);
    Cell::Pass
}

async fn progress(pair: &Pair) -> Cell {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    let call = pair.client.call("progress", json!({})).progress(move |progress| {
        told.lock().unwrap().push((progress.progress, progress.total, progress.message.clone()));
    });
    let done = given!("progress", call);
    expect!(done.text() == "done", "{done:?}");
    let heard = heard.lock().unwrap().clone();
    // Progress that nobody has read yet is merged, so that only the last is certain.
    let last = heard.last().cloned();
    expect!(last.as_ref().map(|(done, total, _)| (*done, *total)) == Some((3.0, Some(3.0))), "{heard:?}");
    expect!(heard.windows(2).all(|two| two[0].0 < two[1].0), "{heard:?}");
    Cell::Pass
}

async fn log(pair: &Pair) -> Cell {
    given!("level", pair.client.set_level(Level::Info));
    pair.heard.lock().unwrap().clear();
    let done = given!("log", pair.client.call("log", json!({})));
    expect!(done.text() == "logged", "{done:?}");
    let heard = pair.heard.lock().unwrap().clone();
    expect!(heard == [(Level::Warning, r#"{"loud":true}"#.to_owned())], "{heard:?}");
    Cell::Pass
}

async fn cancel_by_client(pair: &Pair) -> Cell {
    let before = pair.life.cancelled.load(Ordering::SeqCst);
    let running = Arc::new(tokio::sync::Notify::new());
    let began = running.clone();
    let call = pair.client.call("wait", json!({})).progress(move |_| began.notify_one());
    tokio::select! {
        ended = call.into_future() => return Cell::Fail(format!("it never ends, but {ended:?}")),
        () = within("progress of a call that waits", running.notified()) => {}
    }
    within("the end of a call that was given up", async {
        while pair.life.cancelled.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    expect!(pair.life.running.load(Ordering::SeqCst) == 0, "it still runs");
    call_after(pair).await
}

async fn cancel_by_server(pair: &Pair) -> Cell {
    // Whoever is asked in the modern era hears only with the next request that nobody waits any more.
    pair.answers.after(Duration::from_secs(10), |_| confirm(true));
    let done = given!("impatient", pair.client.call("impatient", json!({})));
    expect_said(&done, "gave up")
}

async fn accepted(pair: &Pair) -> Cell {
    pair.answers.by(|_| confirm(true));
    let done = given!("confirm", pair.client.call("confirm", json!({})));
    let cell = expect_said(&done, "true");
    expect!(cell != Cell::Pass || pair.answers.asked() == 1, "asked {} times", pair.answers.asked());
    cell
}

async fn declined(pair: &Pair) -> Cell {
    pair.answers.by(|_| Answer::decline());
    let done = given!("confirm", pair.client.call("confirm", json!({})));
    if done.is_error && done.text() == "the user declined" { Cell::Pass } else { expect_said(&done, "-") }
}

async fn in_sequence(pair: &Pair) -> Cell {
    pair.answers.by(|question| confirm(message(question) == "First?"));
    let done = given!("in_sequence", pair.client.call("in_sequence", json!({})));
    expect_said(&done, "true false")
}

async fn at_once(pair: &Pair) -> Cell {
    pair.answers.by(|question| confirm(message(question) == "B?"));
    let done = given!("at_once", pair.client.call("at_once", json!({})));
    expect_said(&done, "false true")
}

async fn sampling(pair: &Pair) -> Cell {
    pair.answers.by(|_| {
        Answer::Sample(SampleResult {
            role: Role::Assistant,
            content: vec![Content::text("Hello.")],
            model: "m".to_owned(),
            stop_reason: None,
            meta: None,
            rest: Members::new(),
        })
    });
    let done = given!("sample", pair.client.call("sample", json!({})));
    expect_said(&done, "Hello.")
}

async fn roots(pair: &Pair) -> Cell {
    let done = given!("roots", pair.client.call("roots", json!({})));
    expect_said(&done, r#"["file:///home"]"#)
}

async fn change_notices(pair: &Pair) -> Cell {
    let mut changes = given!("changes", pair.client.subscribe(Watch::lists()));
    let added = pair.far.add(Tool::new("late").run(async || "late"));
    expect!(added.is_ok(), "{added:?}");
    let change = within("a change", changes.next()).await;
    expect!(change == Some(Change::Tools), "{change:?}");
    let late = given!("late", pair.client.call("late", json!({})));
    pair.far.remove_tool("late");
    let change = within("a change back", changes.next()).await;
    expect!(change == Some(Change::Tools), "{change:?}");
    expect_said(&late, "late")
}

async fn resource_subscription(pair: &Pair) -> Cell {
    let mut changes = given!("a subscription", pair.client.subscribe(Watch::default().and("test://a")));
    pair.far.notify_updated("test://a");
    let change = within("an update", changes.next()).await;
    expect!(change == Some(Change::Resource("test://a".to_owned())), "{change:?}");
    call_after(pair).await
}

async fn call_after(pair: &Pair) -> Cell {
    call(pair).await
}

type Result = trunkline_client::Received<trunkline_client::protocol::model::CallToolResult>;

fn expect_said(done: &Result, expected: &str) -> Cell {
    match done.text() {
        said if said == expected && !done.is_error => Cell::Pass,
        said if done.is_error => Cell::Refused(said),
        said => Cell::Fail(format!("`{said}` instead of `{expected}`")),
    }
}

fn confirm(yes: bool) -> Answer {
    Answer::accept(Some(json!({ "confirm": yes }).into()))
}

fn message(question: &Question) -> &str {
    match question {
        Question::Form(form) => &form.message,
        other => panic!("{other:?}"),
    }
}

/// Writes a row for programs.
pub(crate) fn row(down: Revision, up: Revision, feature: &Feature, cell: &str) -> Value {
    json!({ "client": down.as_str(), "server": up.as_str(), "feature": feature.name, "cell": cell })
}
