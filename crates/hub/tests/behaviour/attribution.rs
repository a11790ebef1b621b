//! Whose a question is that a server asks over a channel, where nothing says to which call it belongs.

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use trunkline_client::Client;
use trunkline_client::protocol::Revision;
use trunkline_client::protocol::model::{Answer, ClientCapabilities, Question};
use trunkline_config::Attribution;
use trunkline_hub::Hub;

use crate::support::{
    Answers, NEW, OLD, Says, Script, Town, client, front, lazy, said, say, script, somebody, until, within,
};

const BOTH: [Revision; 2] = [OLD, NEW];

/// A legacy server whose calls end when the test says so.
async fn patient(attribution: Attribution) -> (Script, Town, Hub) {
    let town = Town::default();
    let (heard, opener) = script(|_, message| match message["method"].as_str() {
        Some("tools/call") => Says::Nothing,
        _ => Says::AsUsual,
    });
    town.script("a", opener, OLD);
    let hub = town.hub();
    let mut config = lazy("a");
    config.attribution = attribution;
    within(hub.set_servers(vec![config])).await;
    (heard, town, hub)
}

/// Somebody who says yes to every form.
fn agreeable() -> Answers {
    Answers::new(|_| Ok(Answer::accept(Some(json!({ "ok": true }).into()))))
        .declaring(ClientCapabilities::default().with_form())
}

async fn connect(hub: &Hub, who: &str, down: Revision, answers: &Answers) -> Client {
    client(&front(hub), Client::builder().pin(down).input(answers.clone()), somebody(who)).await
}

fn call(client: &Client) -> JoinHandle<String> {
    let client = client.clone();
    tokio::spawn(async move { say(&client, "a__t").await })
}

fn question(id: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    let params = json!({ "message": id, "requestedSchema": schema });
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })
}

#[tokio::test]
async fn a_question_goes_to_the_only_call_or_to_the_oldest_that_was_not_asked_yet() {
    for down in BOTH {
        let (heard, _town, hub) = patient(Attribution::Oldest).await;
        let answers = [agreeable(), agreeable()];
        let first = call(&connect(&hub, "ada", down, &answers[0]).await);
        heard.received("tools/call", 1).await;
        heard.say(&question("alone"));
        let answer = heard.answered(&json!("alone")).await;
        assert_eq!(answer["result"], json!({ "action": "accept", "content": { "ok": true } }), "{down}");
        let second = call(&connect(&hub, "ada", down, &answers[1]).await);
        let calls = heard.received("tools/call", 2).await;
        heard.say(&question("older"));
        heard.answered(&json!("older")).await;
        assert_eq!(answers.each_ref().map(|answers| answers.asked().len()), [2, 0], "{down}");
        heard.answer(&calls[0], said("first"));
        assert_eq!(within(first).await.unwrap(), "first");
        heard.say(&question("left"));
        heard.answered(&json!("left")).await;
        assert_eq!(answers.each_ref().map(|answers| answers.asked().len()), [2, 1], "{down}");
        heard.answer(&calls[1], said("second"));
        assert_eq!(within(second).await.unwrap(), "second");
    }
}

#[tokio::test]
async fn exact_attribution_has_one_call_at_a_time_that_may_be_asked() {
    for down in BOTH {
        let (heard, _town, hub) = patient(Attribution::Exact).await;
        let answers = agreeable();
        let clients =
            [connect(&hub, "ada", down, &answers).await, connect(&hub, "ada", down, &answers).await];
        let first = call(&clients[0]);
        let calls = heard.received("tools/call", 1).await;
        let second = call(&clients[1]);
        until(|| hub.status_of("a").unwrap().calls == 2).await;
        assert_eq!(heard.of("tools/call").len(), 1, "{down}: the other waits for its turn");
        heard.answer(&calls[0], said("first"));
        assert_eq!(within(first).await.unwrap(), "first");
        let calls = heard.received("tools/call", 2).await;
        heard.say(&question("second"));
        heard.answered(&json!("second")).await;
        heard.answer(&calls[1], said("second"));
        assert_eq!(within(second).await.unwrap(), "second");
        // Whoever gives up while it waits takes no turn, and whoever gives up its turn hands it on.
        let (first, second, third) = (call(&clients[0]), call(&clients[1]), call(&clients[0]));
        heard.received("tools/call", 3).await;
        until(|| hub.status_of("a").unwrap().calls == 3).await;
        [first, second].iter().for_each(JoinHandle::abort);
        until(|| hub.status_of("a").unwrap().calls == 1).await;
        let calls = heard.received("tools/call", 4).await;
        calls.iter().for_each(|call| heard.answer(call, said("third")));
        assert_eq!(within(third).await.unwrap(), "third", "{down}");
    }
}

#[tokio::test]
async fn callers_who_can_be_asked_nothing_never_wait_for_a_turn() {
    let (heard, _town, hub) = patient(Attribution::Exact).await;
    let mute = Answers::at(&[]).declaring(ClientCapabilities::default());
    let client = connect(&hub, "ada", NEW, &mute).await;
    let calls = [call(&client), call(&client), call(&client)];
    for sent in heard.received("tools/call", 3).await {
        heard.answer(&sent, said("done"));
    }
    for call in calls {
        assert_eq!(within(call).await.unwrap(), "done");
    }
}

#[tokio::test]
async fn a_question_never_reaches_another_principal_however_long_it_has_been_waiting() {
    for down in BOTH {
        let (heard, _town, hub) = patient(Attribution::Oldest).await;
        let (bobs, adas) = (agreeable(), agreeable());
        let bob = call(&connect(&hub, "bob", down, &bobs).await);
        heard.received("tools/call", 1).await;
        let bobs_connection = heard.newest();
        let ada = call(&connect(&hub, "ada", down, &adas).await);
        let calls = heard.received("tools/call", 2).await;
        // The newest connection is that of ada.
        heard.say(&question("for ada"));
        heard.answered(&json!("for ada")).await;
        assert_eq!((bobs.asked().len(), adas.asked().len()), (0, 1), "{down}");
        let own = |sent: &Value| calls.iter().position(|call| call["id"] == sent["id"]).is_some();
        assert!(calls.iter().all(own));
        bobs_connection
            .receive(json!({ "jsonrpc": "2.0", "id": calls[0]["id"], "result": said("b") }).to_string());
        heard.answer(&calls[1], said("a"));
        assert_eq!((within(bob).await.unwrap(), within(ada).await.unwrap()), ("b".into(), "a".into()));
    }
}

#[tokio::test]
async fn what_a_server_asks_while_nobody_calls_is_refused_in_the_words_that_its_kind_has() {
    for down in BOTH {
        let (heard, _town, hub) = patient(Attribution::Oldest).await;
        let all = Answers::new(|question: &Question| panic!("nobody should be asked: {question:?}"));
        let client = connect(&hub, "ada", down, &all).await;
        let done = call(&client);
        let calls = heard.received("tools/call", 1).await;
        heard.answer(&calls[0], said("done"));
        assert_eq!(within(done).await.unwrap(), "done");
        until(|| hub.status_of("a").unwrap().calls == 0).await;
        let sample = json!({ "messages": [], "maxTokens": 1 });
        let page =
            json!({ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "m" });
        for (id, method, params, key, expected) in [
            (
                "form",
                "elicitation/create",
                question("x")["params"].clone(),
                "/result/action",
                json!("cancel"),
            ),
            ("page", "elicitation/create", page, "/result/action", json!("cancel")),
            ("model", "sampling/createMessage", sample, "/error/code", json!(-1)),
            ("ping", "ping", json!({}), "/result", json!({})),
            ("unknown", "tasks/get", json!({}), "/error/code", json!(-32601)),
            ("unheard", "x/y", json!({}), "/error/code", json!(-32601)),
        ] {
            heard.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
            let answer = heard.answered(&json!(id)).await;
            assert_eq!(answer.pointer(key), Some(&expected), "{down}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_question_that_the_caller_did_not_declare_is_refused_with_the_right_code() {
    let form = || ClientCapabilities::default().with_form();
    let url = || ClientCapabilities::default().with_url();
    let sampling = || ClientCapabilities::default().with_sampling();
    let page = json!({ "mode": "url", "elicitationId": "e", "url": "https://x.example/", "message": "m" });
    let with_tools = json!({ "messages": [], "maxTokens": 1,
        "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] });
    for (can, method, params, code) in [
        (ClientCapabilities::default(), "elicitation/create", question("x")["params"].clone(), -32601),
        (form(), "elicitation/create", page, -32602),
        (url(), "elicitation/create", question("x")["params"].clone(), -32602),
        (form(), "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 }), -32601),
        (sampling(), "sampling/createMessage", with_tools, -32602),
        (form(), "roots/list", json!({}), -32601),
    ] {
        for down in BOTH {
            let (heard, _town, hub) = patient(Attribution::Oldest).await;
            let nobody = Answers::new(|question: &Question| panic!("nobody should be asked: {question:?}"));
            let running = call(&connect(&hub, "ada", down, &nobody.declaring(can.clone())).await);
            let calls = heard.received("tools/call", 1).await;
            heard.say(&json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params }));
            let answer = heard.answered(&json!("q")).await;
            assert_eq!(answer["error"]["code"], code, "{down}, {method}: {answer}");
            heard.answer(&calls[0], said("went on"));
            assert_eq!(within(running).await.unwrap(), "went on");
        }
    }
}
