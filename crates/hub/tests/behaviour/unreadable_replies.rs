//! Replies of a server that cannot be read: the call fails at once, the error names the server, and it is counted.

use bytes::Bytes;
use serde_json::{Value, json};
use trunkline_client::ClientCall;
use trunkline_client::transport::ReceiveError;
use trunkline_server::UpstreamItem;
use trunkline_server::protocol::envelope::OversizedMessage;

use crate::refusing::{hub, outcome};
use crate::support::{NEW, OLD, ScriptReply, plain_client};

/// What comes instead of the response to a request with an id.
#[derive(Clone, Copy, Debug)]
enum Reply {
    NotUtf8,
    NotJson,
    TooDeep,
    TooLong,
}

impl Reply {
    fn bytes(self, id: &Value) -> Result<Bytes, ReceiveError> {
        let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        let result: Vec<u8> = match self {
            Self::NotUtf8 => b"{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}}".to_vec(),
            Self::NotJson => b"{\"content\":[}}".to_vec(),
            Self::TooDeep => format!("{}{}}}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(),
            Self::TooLong => {
                let message = OversizedMessage::Unknown;
                return Err(ReceiveError::TooLong { limit: 7, message });
            }
        };
        Ok([begin.into_bytes(), result].concat().into())
    }
}

#[tokio::test]
async fn unreadable_reply_fails_its_call_at_once_and_names_the_server() {
    for up in [OLD, NEW] {
        for reply in [Reply::NotUtf8, Reply::NotJson, Reply::TooDeep, Reply::TooLong] {
            let before = UpstreamItem::ResultRejected.counted();
            let (server, _servers, hub) = hub(up, |_| ScriptReply::Nothing).await;
            let client = plain_client(&hub, OLD).await;
            let call =
                tokio::spawn(async move { outcome(&client, ClientCall::tool("a__t", json!({}))).await });
            let sent = server.received("tools/call", 1).await;
            match reply.bytes(&sent[0]["id"]) {
                Ok(bytes) => server.newest().receive(bytes),
                Err(error) => server.newest().fail_receive(error),
            }
            let failed = call.await.unwrap();
            let message = failed["message"].as_str().unwrap_or_default();
            assert!(message.contains("`a`"), "{reply:?} of {up}: {failed}");
            assert_eq!(failed["data"]["upstream"], "a", "{reply:?} of {up}: {failed}");
            assert!(UpstreamItem::ResultRejected.counted() > before, "{reply:?} of {up}: {failed}");
        }
    }
}
