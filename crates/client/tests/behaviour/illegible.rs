//! Responses that the client cannot read: illegible, oversized, or of the wrong shape.

use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::protocol::envelope::OversizedMessage;
use trunkline_client::protocol::{RequestId, Revision};
use trunkline_client::transport::ReceiveError;
use trunkline_client::{Client, DroppedMessage, Error};

use crate::hostile::{connect, done, mute};
use crate::support::settle;

#[tokio::test(start_paused = true)]
async fn unreadable_response_fails_only_its_own_call() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let (first, second, ()) = tokio::join!(
        client.call("a", json!({})).into_future(),
        client.call("b", json!({})).into_future(),
        async {
            settle().await;
            let mock = script.newest();
            mock.receive(r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{}}"#);
            mock.receive(done(&json!(3)));
        }
    );
    assert!(matches!(first, Err(Error::Malformed(_))));
    assert_eq!(second.unwrap().text(), "3");
}

#[tokio::test(start_paused = true)]
async fn oversized_message_fails_the_only_call_in_flight() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        script.wait_for("tools/call").await;
        script.newest().fail_receive(ReceiveError::TooLong { limit: 7, message: OversizedMessage::Unknown });
    });
    assert!(matches!(result, Err(Error::TooLong { limit: 7 })));
}

#[tokio::test(start_paused = true)]
async fn end_long_after_an_oversized_message_has_its_own_cause() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let call = || client.call("t", json!({})).into_future();
    let (one, other, ()) = tokio::join!(call(), call(), async {
        settle().await;
        let mock = script.newest();
        mock.fail_receive(ReceiveError::TooLong { limit: 7, message: OversizedMessage::Unknown });
        settle().await;
        mock.end();
    });
    for result in [one, other] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn illegible_response_fails_the_call_that_it_names_and_is_counted() {
    let (script, opener) = mute();
    let counted = Arc::new(Mutex::new(Vec::new()));
    let count = counted.clone();
    let builder = Client::builder().on_dropped(move |kind| count.lock().unwrap().push(kind));
    let client = builder.pin(Revision::V2025_11_25).connect(opener).await.unwrap();
    let call = |name: &str| client.call(name.to_owned(), json!({})).into_future();
    let (not_utf8, not_json, too_long, good, ()) =
        tokio::join!(call("a"), call("b"), call("c"), call("d"), async {
            settle().await;
            let mock = script.newest();
            mock.receive(&b"{\"result\":{\"a\":\"\xff\"},\"jsonrpc\":\"2.0\",\"id\":2}"[..]);
            mock.receive(r#"{"jsonrpc":"2.0","id":3,"result":{"a":NaN}}"#);
            let message = OversizedMessage::Response(RequestId::from_number(4));
            mock.fail_receive(ReceiveError::TooLong { limit: 7, message });
            // Output of a program is no response, whatever its form.
            mock.receive("listening");
            mock.receive(r#"{"level":"info","id":5}"#);
            mock.receive(done(&json!(5)));
        });
    assert!(matches!(not_utf8, Err(Error::Malformed(_))), "{not_utf8:?}");
    assert!(matches!(not_json, Err(Error::Malformed(_))), "{not_json:?}");
    assert!(matches!(too_long, Err(Error::TooLong { limit: 7 })), "{too_long:?}");
    assert_eq!(good.unwrap().text(), "5");
    use DroppedMessage::{TooLong, Unreadable};
    assert_eq!(
        *counted.lock().unwrap(),
        [Unreadable, Unreadable, TooLong { limit: 7 }, Unreadable, Unreadable]
    );
}

#[tokio::test(start_paused = true)]
async fn illegible_response_without_an_id_fails_the_only_call() {
    let (script, opener) = mute();
    let client = connect(opener, Revision::V2025_11_25).await;
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        script.wait_for("tools/call").await;
        script.newest().receive("listening");
        script.newest().receive(r#"{"jsonrpc":"2.0","result":{"a":"#);
    });
    assert!(matches!(result, Err(Error::Malformed(_))), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn notifications_that_reach_nothing_are_counted_by_kind() {
    let (script, opener) = mute();
    let counted = Arc::new(Mutex::new(Vec::new()));
    let count = counted.clone();
    let builder = Client::builder().on_dropped(move |kind| count.lock().unwrap().push(kind));
    let client = builder.pin(Revision::V2025_11_25).connect(opener).await.unwrap();
    let (result, ()) = tokio::join!(client.call("t", json!({})).into_future(), async {
        script.wait_for("tools/call").await;
        let mock = script.newest();
        let notify = |method: &str, params| {
            let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            mock.receive(message.to_string());
        };
        let progress = |token: u64, progress| json!({ "progressToken": token, "progress": progress });
        for done in [json!("half"), json!(2), json!(1)] {
            notify("notifications/progress", progress(2, done));
            // Progress that was not read yet is merged.
            settle().await;
        }
        notify("notifications/progress", progress(99, json!(1)));
        notify("notifications/message", json!({ "level": "loud", "data": "" }));
        notify("notifications/of_another_protocol", json!({}));
        settle().await;
        mock.receive(done(&json!(2)));
    });
    assert_eq!(result.unwrap().text(), "2");
    let counted = counted.lock().unwrap();
    let of = |kind| counted.iter().filter(|counted| **counted == kind).count();
    // Progress that does not grow, of no request, and the unknown one; progress and a log message that cannot be read.
    assert_eq!((of(DroppedMessage::Notification), of(DroppedMessage::Unreadable)), (3, 2), "{counted:?}");
}
