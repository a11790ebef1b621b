//! An operator answers input requests in the place of legacy clients; and clients within the process.

use serde_json::{Value, json};
use trunkline_server::protocol::RawJson;
use trunkline_server::session::{Principal, SessionId};
use trunkline_server::transport::Channel as _;
use trunkline_server::{Confirm, Context, OperatorAnswerError, Server, Tool, ToolError, ask, open_url};

use crate::input_rounds::accept;
use crate::support::{Client, ModernRequest, Peer, host, legacy_tool, response, text, tool_text};

/// More than any of these tests opens.
const ALL: usize = 100;

fn server() -> Server {
    Server::new("asker")
        .with(Tool::new("confirm").run(async |cx: Context| -> Result<String, ToolError> {
            let answer = cx.ask(ask::<Confirm>("Sure?").key("sure")).await?.0;
            Ok(format!("{answer}, of the operator: {}", cx.is_operator_answer("sure")))
        }))
        .with(Tool::new("page").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(format!("{:?}", cx.ask(open_url("Log in", "https://example.com/login")).await?.action))
        }))
        .with(Tool::new("roots").run(async |cx: Context| -> Result<String, ToolError> {
            Ok(cx.ask(trunkline_server::roots()).await?.len().to_string())
        }))
}

fn raw(value: &Value) -> RawJson {
    RawJson::from(value)
}

#[tokio::test(start_paused = true)]
async fn first_answer_counts_and_the_client_is_notified_of_the_operators() {
    let host = host(&server());
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = Client::new(&host).initialized(revision).await;
        let mut stream = client.post(&legacy_tool(1, "confirm")).await;
        let asked = stream.message().await.unwrap();
        let [open] = &host.open_input_requests(ALL)[..] else { panic!("one question is open") };
        assert_eq!((open.name.as_deref(), open.client.revision.as_str()), (Some("confirm"), revision));
        assert_eq!((&open.client.principal, open.is_answerable()), (&Principal::Anonymous, true));
        // What does not fit leaves it open.
        let wrong = host.answer_input_request(open.number, raw(&json!({ "action": "maybe" })));
        assert!(matches!(wrong, Err(OperatorAnswerError::Malformed(_))), "{wrong:?}");
        assert_eq!(
            host.answer_input_request(open.number + 1, raw(&accept(true))),
            Err(OperatorAnswerError::Gone)
        );

        host.answer_input_request(open.number, raw(&accept(true))).unwrap();
        assert_eq!(host.open_input_requests(ALL).len(), 0);
        let cancelled = stream.message().await.unwrap();
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], asked["id"]);
        // The client answers all the same, too late.
        assert_eq!(client.post(&response(&asked, accept(false))).await.status, 202);
        let messages = stream.rest().await;
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(tool_text(&messages[0]), "true, of the operator: true");
        assert_eq!(
            host.answer_input_request(open.number, raw(&accept(true))),
            Err(OperatorAnswerError::Gone)
        );
    }
    assert_eq!(host.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn answer_of_the_client_leaves_nothing_for_the_operator() {
    let host = host(&server());
    let mut peer = Peer::initialized(&host, "2025-06-18").await;
    peer.send(&legacy_tool("c", "confirm")).await;
    let asked = peer.receive().await;
    let number = host.open_input_requests(ALL)[0].number;
    peer.send(&response(&asked, accept(false))).await;
    assert_eq!(tool_text(&peer.receive().await), "false, of the operator: false");
    assert_eq!(host.answer_input_request(number, raw(&accept(true))), Err(OperatorAnswerError::Gone));
    assert!(peer.received().await.is_empty(), "nothing is cancelled");
    // An abandoned call takes its question with it.
    peer.send(&legacy_tool("d", "confirm")).await;
    peer.receive().await;
    assert_eq!(host.open_input_requests(ALL).len(), 1);
    drop(peer);
    crate::support::settle().await;
    assert_eq!(host.open_input_requests(ALL).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn urls_and_roots_are_answered_by_the_client_alone() {
    let host = host(&server());
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "roots": {} });
    let mut peer = Peer::initialized_with(&host, "2025-11-25", capabilities).await;
    for (tool, answer) in [("page", json!({ "action": "accept" })), ("roots", json!({ "roots": [] }))] {
        peer.send(&legacy_tool(tool, tool)).await;
        let asked = peer.receive().await;
        let [open] = &host.open_input_requests(ALL)[..] else { panic!("{tool} asks") };
        assert!(!open.is_answerable());
        let refused = host.answer_input_request(open.number, raw(&answer));
        assert_eq!(refused, Err(OperatorAnswerError::ClientOnly));
        peer.send(&response(&asked, answer)).await;
        assert!(peer.receive().await["result"]["isError"].as_bool() != Some(true));
    }
}

#[tokio::test(start_paused = true)]
async fn modern_calls_have_no_questions_for_an_operator() {
    let host = host(&server());
    let client = Client::new(&host);
    let asked = client.post(&ModernRequest::tool("confirm").value()).await.answer().await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert_eq!(host.open_input_requests(ALL).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn client_within_the_process_makes_a_request_and_cancels_by_dropping_it() {
    let host = host(&server());
    let request = ModernRequest::tool("confirm").value().to_string();
    let mut exchange = host.exchange(Principal::Process, SessionId::random(), &request);
    let received = std::future::poll_fn(|cx| exchange.poll_receive(cx)).await.unwrap().unwrap();
    let answer: Value = serde_json::from_slice(&received).unwrap();
    assert_eq!(answer["result"]["resultType"], "input_required", "{}", text(&answer));
    drop(exchange);
    crate::support::settle().await;
    assert_eq!(host.load().0, 0);
    let weak = host.downgrade();
    assert!(weak.upgrade().is_some());
}
