//! Lists that never end.

use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::{Client, ClientLimits, Error};

use crate::peer::{ERAS, ScriptedChannel, call, connect_with, soon};

/// Makes a page of its number.
type PageScript = fn(usize) -> Value;

/// Connects to a server that makes its pages by a function of their number.
async fn connect(era: Revision, limits: ClientLimits, page: PageScript, pause: Duration) -> Client {
    let builder = Client::builder().limits(limits);
    let script = async move |mut peer: ScriptedChannel| {
        for number in 0.. {
            let Some(message) = peer.next().await else { return };
            match message["method"].as_str() {
                Some("tools/list") => {
                    tokio::time::sleep(pause).await;
                    peer.answer(&message["id"], page(number)).await;
                }
                Some("tools/call") => peer.answer_text(&message["id"], "well").await,
                _ => {}
            }
        }
    };
    connect_with(builder, era, script).await.unwrap()
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn page(cursor: &Value) -> Value {
    json!({ "resultType": "complete", "tools": [tool("a")], "nextCursor": cursor })
}

#[tokio::test(start_paused = true)]
async fn endless_list_is_an_error_and_calls_still_work() {
    // The function of the pages, and the error message.
    let table: &[(PageScript, &str)] = &[
        (|_| page(&json!("same")), "in a circle"),
        (|number| page(&json!(format!("c{}", number % 3))), "in a circle"),
        (|_| page(&json!("")), "in a circle"),
        (|number| page(&json!(format!("{number}"))), "more than 50 pages"),
        (
            |_| json!({ "resultType": "complete", "tools": vec![tool("a"); 101], "nextCursor": null }),
            "more than 100 items",
        ),
        (
            |number| json!({ "resultType": "complete", "tools": vec![tool("a"); 9], "nextCursor": format!("{number}") }),
            "more than 100 items",
        ),
        (|_| page(&json!(7)), "`nextCursor` must be a string"),
        (|_| page(&json!({ "a": 1 })), "`nextCursor` must be a string"),
        (|_| json!({ "resultType": "complete" }), "`tools` is missing"),
        (|_| json!({ "resultType": "complete", "tools": {} }), "`tools` must be an array"),
    ];
    for era in ERAS {
        for (page, expected) in table {
            let limits = ClientLimits { pages: 50, items: 100, ..ClientLimits::default() };
            let client = connect(era, limits, *page, Duration::ZERO).await;
            let error = soon("the list", client.tools()).await.unwrap_err();
            assert!(
                matches!(&error, Error::Malformed(problem) if problem.contains(expected)),
                "{era}: {error}"
            );
            assert_eq!(call(&client, "a").await.unwrap(), "well");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn list_with_slow_pages_ends_at_the_total_timeout() {
    for era in ERAS {
        let limits = ClientLimits { max_total_timeout: Duration::from_secs(600), ..ClientLimits::default() };
        let client =
            connect(era, limits, |number| page(&json!(format!("{number}"))), Duration::from_secs(50)).await;
        let began = tokio::time::Instant::now();
        let error = soon("the list", client.tools()).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{era}: {error}");
        assert!(began.elapsed() <= Duration::from_secs(700), "{era}: {:?}", began.elapsed());
        assert_eq!(call(&client, "a").await.unwrap(), "well");
    }
}

#[tokio::test(start_paused = true)]
async fn list_with_huge_pages_stops_at_the_byte_limit() {
    // Each page is within the limit for messages, and a thousand of them are not within any memory.
    fn huge(number: usize) -> Value {
        let mut tool = tool("a");
        tool["description"] = json!("x".repeat(900_000));
        json!({ "resultType": "complete", "tools": [tool], "nextCursor": format!("{number}") })
    }
    let limits = ClientLimits { list_bytes: 8 << 20, ..ClientLimits::default() };
    let client = connect(ERAS[1], limits, huge, Duration::ZERO).await;
    let error = soon("the list", client.tools()).await.unwrap_err();
    assert!(matches!(&error, Error::Malformed(problem) if problem.contains("8388608 bytes")), "{error}");
    assert_eq!(call(&client, "a").await.unwrap(), "well");
}
