//! Every feature in every revision, against the real server over channels in memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, ElicitAction, InputRequest, InputResponse,
    ResourceBody, Role, Root,
};
use trunkline_client::protocol::{Era, JsonObject, LoggingLevel, Refusal, Revision};
use trunkline_client::{ChangeEvent, ChangeFilter, Client, CompletionRequest, Error, InputOrigin};
use trunkline_server::{HostOptions, Tool};

use crate::support::{Answers, Life, accept, connect, server, settle, within};

/// Returns a client in each revision, with a function that responds to every input request.
async fn clients(
    answer: impl Fn(&InputRequest) -> Result<InputResponse, Refusal> + Send + Sync + Clone + 'static,
) -> Vec<(Client, Answers, Life)> {
    let mut clients = Vec::new();
    for revision in Revision::ALL {
        let life = Life::default();
        let host = server(&life).host(HostOptions::default()).unwrap();
        let answers = Answers::new(answer.clone()).declaring(but_roots());
        let client = connect(&host, revision, Client::builder().input(answers.clone())).await;
        clients.push((client, answers, life));
    }
    clients
}

/// Everything but roots, for which servers ask at times of their own.
fn but_roots() -> ClientCapabilities {
    ClientCapabilities::default().with_form().with_url().with_sampling_tools()
}

fn nobody(_: &InputRequest) -> Result<InputResponse, Refusal> {
    panic!("nothing should be asked")
}

/// Reports whether a revision has forms.
fn has_forms(client: &Client) -> bool {
    client.server().revision >= Revision::V2025_06_18
}

#[tokio::test(start_paused = true)]
async fn lists_calls_reads_prompts_and_completions_are_the_same_in_every_revision() {
    for (client, ..) in clients(nobody).await {
        let revision = client.server().revision;
        assert_eq!(client.server().identity.as_ref().unwrap().name, "everything");
        let tools = within(client.tools()).await.unwrap();
        assert_eq!(tools.first().map(|tool| tool.name.as_str()), Some("add"), "{revision}");
        assert!(tools.skipped.is_empty() && tools.len() >= 8);
        assert_eq!(tools[0].raw().members().unwrap().text("name").as_deref(), Some("add"));

        let sum = within(client.call("add", json!({ "a": 2, "b": 3 })).into_future()).await.unwrap();
        assert_eq!((sum.text().as_str(), sum.decode::<i64>().unwrap()), ("5", 5), "{revision}");
        let failed = client.call("fail", json!({})).await.unwrap();
        assert!(failed.is_error && failed.text() == "it broke", "{revision}");

        let read = client.read("test://a").await.unwrap();
        assert_eq!(read.contents[0].body, ResourceBody::Text("alpha".to_owned()));
        assert_eq!(client.resources().await.unwrap().len(), 2);
        assert_eq!(client.templates().await.unwrap()[0].uri_template, "test://t/{who}");
        let read = client.read("test://t/ada").await.unwrap();
        assert_eq!(read.contents[0].body, ResourceBody::Text("t of ada".to_owned()));

        assert_eq!(client.prompts().await.unwrap()[0].name, "greet");
        let prompt = client.get_prompt("greet", json!({ "who": "Ada" })).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("Greet Ada."));
        let values = client.complete(CompletionRequest::prompt("greet", "who", "a")).await.unwrap();
        assert_eq!(values.values, ["ada", "alan"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_error_is_returned_with_its_code() {
    for (client, ..) in clients(nobody).await {
        let Err(Error::ErrorResponse(refused)) = client.call("nothing", json!({})).await else { panic!() };
        assert_eq!(refused.code, -32602);
        assert!(refused.message.contains("nothing"), "{refused}");
        let Err(Error::ErrorResponse(refused)) = client.read("test://nothing").await else { panic!() };
        let expected = if client.server().revision.era() == Era::Modern { -32602 } else { -32002 };
        assert_eq!(refused.code, expected);
        let Err(Error::Invalid(_)) = client.call("add", json!([1])).await else { panic!() };
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_caller() {
    for (client, ..) in clients(nobody).await {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        let call = client.call("progress", json!({})).progress(move |progress| {
            told.lock().unwrap().push((progress.progress, progress.message.clone()));
        });
        assert_eq!(within(call.into_future()).await.unwrap().text(), "done");
        let heard = heard.lock().unwrap().clone();
        // Unread progress is merged, so that only the last report is certain.
        let said = (client.server().revision > Revision::V2024_11_05).then(|| "step 3".to_owned());
        assert_eq!(heard.last(), Some(&(3.0, said)));
    }
}

#[tokio::test(start_paused = true)]
async fn log_messages_reach_the_registered_callbacks() {
    for revision in Revision::ALL {
        let host = server(&Life::default()).host(HostOptions::default()).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        let builder = Client::builder()
            .on_log(move |message| told.lock().unwrap().push((message.level, message.data.to_string())));
        let client = connect(&host, revision, builder).await;
        client.set_level(LoggingLevel::Info).await.unwrap();
        assert_eq!(client.call("log", json!({})).await.unwrap().text(), "logged");
        settle().await;
        assert_eq!(
            *heard.lock().unwrap(),
            [(LoggingLevel::Warning, r#"{"loud":true}"#.to_owned())],
            "{revision}"
        );
        // A call may ask for more than the others do, where calls can ask.
        client.call("log", json!({})).log_level(LoggingLevel::Debug).await.unwrap();
        settle().await;
        let expected = if revision.era() == Era::Modern { 3 } else { 2 };
        assert_eq!(heard.lock().unwrap().len(), expected, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_cancelled_at_the_server() {
    for (client, _, life) in clients(nobody).await {
        let running = Arc::new(tokio::sync::Notify::new());
        let began = running.clone();
        let call = client.call("wait", json!({})).progress(move |_| began.notify_one());
        tokio::select! {
            _ = call.into_future() => panic!("it never ends"),
            () = within(running.notified()) => {}
        }
        within(async {
            while life.cancelled.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(life.running.load(Ordering::SeqCst), 0);
        assert_eq!(
            client.call("echo", json!({ "message": "still here" })).await.unwrap().text(),
            "still here"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn silent_call_times_out_and_is_cancelled() {
    for (client, _, life) in clients(nobody).await {
        let error = client.call("wait", json!({})).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }) && error.may_have_run(), "{error}");
        settle().await;
        assert_eq!(life.cancelled.load(Ordering::SeqCst), 1, "{}", client.server().revision);
    }
}

#[tokio::test(start_paused = true)]
async fn elicitation_accept_decline_and_cancel_are_equal_in_both_eras() {
    for (action, said) in [
        (ElicitAction::Accept, "true"),
        (ElicitAction::Decline, "the user declined"),
        (ElicitAction::Cancel, "the user dismissed the question"),
    ] {
        let answer = move |_: &InputRequest| {
            Ok(match action {
                ElicitAction::Accept => accept(&json!({ "confirm": true, "yes": true, "value": true })),
                ElicitAction::Decline => InputResponse::decline(),
                ElicitAction::Cancel => InputResponse::cancel(),
            })
        };
        for (client, answers, _) in clients(answer).await.into_iter().filter(|(client, ..)| has_forms(client))
        {
            let result = within(client.call("confirm", json!({})).into_future()).await.unwrap();
            let InputRequest::Form(form) = &answers.asked()[0].1 else { panic!("it is a form") };
            assert_eq!(form.message, "Sure?");
            let expected = InputOrigin::Call {
                method: trunkline_client::protocol::Method::ToolsCall,
                name: Some("confirm".to_owned()),
            };
            assert_eq!(answers.asked()[0].0, expected);
            assert_eq!(result.text(), said, "{}: {:?}", client.server().revision, form.schema);
        }
    }
}

/// Accepts a form of one boolean, whatever its name is, with what a function makes of the message.
fn booleans(
    answer: impl Fn(&str) -> bool + Send + Sync + Clone + 'static,
) -> impl Fn(&InputRequest) -> Result<InputResponse, Refusal> + Send + Sync + Clone + 'static {
    move |question| {
        let InputRequest::Form(form) = question else { panic!("it is a form") };
        let schema: Value = form.schema.decode().unwrap();
        let name = schema["properties"].as_object().unwrap().keys().next().unwrap().clone();
        Ok(accept(&json!({ name: answer(&form.message) })))
    }
}

#[tokio::test(start_paused = true)]
async fn sequential_and_concurrent_input_requests_are_all_answered() {
    let answer = booleans(|message| matches!(message, "First?" | "B?"));
    for (client, answers, _) in clients(answer).await.into_iter().filter(|(client, ..)| has_forms(client)) {
        let sequence = within(client.call("in_sequence", json!({})).into_future()).await.unwrap();
        assert_eq!(sequence.text(), "true false", "{}", client.server().revision);
        let at_once = within(client.call("at_once", json!({})).into_future()).await.unwrap();
        assert_eq!(at_once.text(), "false true", "{}", client.server().revision);
        assert_eq!(answers.asked().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_with_input_requests_all_complete() {
    for (client, answers, _) in
        clients(booleans(|_| true)).await.into_iter().filter(|(client, ..)| has_forms(client))
    {
        let calls = (0..8).map(|_| client.call("in_sequence", json!({})).into_future());
        for result in within(futures_util::future::join_all(calls)).await {
            assert_eq!(result.unwrap().text(), "true true", "{}", client.server().revision);
        }
        assert_eq!(answers.asked().len(), 16);
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_works_in_every_revision() {
    let answer = |question: &InputRequest| {
        assert!(matches!(question, InputRequest::Sampling(_)));
        Ok(InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content: vec![Content::text("Hello.")],
            model: "m".to_owned(),
            stop_reason: None,
            meta: None,
            rest: JsonObject::new(),
        }))
    };
    for (client, ..) in clients(answer).await {
        let result = within(client.call("sample", json!({})).into_future()).await.unwrap();
        assert_eq!(result.text(), "Hello.", "{}", client.server().revision);
    }
}

#[tokio::test(start_paused = true)]
async fn roots_are_answered_in_every_revision() {
    let answer = |question: &InputRequest| {
        assert!(matches!(question, InputRequest::Roots));
        Ok(InputResponse::Roots(vec![Root { uri: "file:///home".to_owned(), ..Root::default() }]))
    };
    for revision in Revision::ALL {
        let host = server(&Life::default()).host(HostOptions::default()).unwrap();
        let answers = Answers::new(answer).declaring(ClientCapabilities::default().with_roots());
        let client = connect(&host, revision, Client::builder().input(answers)).await;
        let result = within(client.call("roots", json!({})).into_future()).await.unwrap();
        assert_eq!(result.decode::<Vec<String>>().unwrap(), ["file:///home"], "{}", client.server().revision);
        client.roots_changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_elicitation_fails_the_call() {
    for revision in Revision::ALL {
        let host = server(&Life::default()).host(HostOptions::default()).unwrap();
        let client = connect(&host, revision, Client::builder()).await;
        // Our server sends no input request to a client without the capability; the test does not check its message.
        let outcome = within(client.call("confirm", json!({})).into_future()).await;
        assert!(outcome.is_err() || outcome.is_ok_and(|result| result.is_error), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn change_stream_reports_changes_in_both_eras() {
    for revision in Revision::ALL {
        let life = Life::default();
        let server = server(&life);
        let handle = server.handle().unwrap();
        let host = server.host(HostOptions::default()).unwrap();
        let client = connect(&host, revision, Client::builder()).await;
        let mut changes =
            within(client.subscribe(ChangeFilter::all_lists().with_uri("test://a"))).await.unwrap();
        assert_eq!(changes.accepted_filter().uris, ["test://a"]);
        handle.add(Tool::new("late").run(async || "late")).unwrap();
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Tools), "{revision}");
        handle.notify_updated("test://a");
        handle.notify_updated("test://kept");
        assert_eq!(
            within(changes.next()).await,
            Some(ChangeEvent::Resource("test://a".to_owned())),
            "{revision}"
        );
        handle.remove_prompt("greet");
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Prompts), "{revision}");
        drop(changes);
        settle().await;
        // The last subscription has ended, and the next one is a new one.
        handle.notify_updated("test://a");
        let mut changes = within(client.subscribe(ChangeFilter::all_lists())).await.unwrap();
        handle.remove_resource("test://a");
        assert_eq!(within(changes.next()).await, Some(ChangeEvent::Resources), "{revision}");
        client.close().await;
        assert_eq!(within(changes.next()).await, None, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn read_result_is_cached_for_its_ttl_in_the_modern_era() {
    for (client, _, life) in clients(nobody).await {
        let modern = client.server().revision.era() == Era::Modern;
        for _ in 0..3 {
            client.read("test://kept").await.unwrap();
        }
        let expected = if modern { 1 } else { 3 };
        assert_eq!(life.reads.load(Ordering::SeqCst), expected, "{}", client.server().revision);
    }
}

#[tokio::test(start_paused = true)]
async fn ping_is_supported_in_the_legacy_era_only() {
    for (client, ..) in clients(nobody).await {
        match client.ping().await {
            Ok(_) => assert_eq!(client.server().revision.era(), Era::Legacy),
            Err(Error::Unsupported(_)) => assert_eq!(client.server().revision.era(), Era::Modern),
            Err(other) => panic!("{other}"),
        }
    }
}
