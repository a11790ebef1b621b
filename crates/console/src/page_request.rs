//! MCP requests that the page makes: to the hub, within the process.
//!
//! A page does not call the MCP endpoint itself: that may need a token, and may be on another address. Its requests take the
//! same way as those of any client of 2026-07-28, with the same rules and limits, and are in the event stream like them.

use std::future::poll_fn;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use trunkline_server::http::{McpResponseBody, RequestBody};
use trunkline_server::protocol::{JsonObject, JsonWriter, RawJson, RequestId, Revision, emit, meta};
use trunkline_server::session::Principal;
use trunkline_server::transport::{Channel as _, MemoryChannel};

use crate::api::{ApiRequest, read_body};
use crate::console::ConsoleInner;
use crate::event_lines::StreamPermit;
use crate::limits::{KEEP_ALIVE, MAX_REQUEST_BYTES};
use crate::line_body::LineBody;
use crate::responses::{refusal, response};
use crate::sessions::ConsoleSession;

/// How the requests of the page name their client.
const CLIENT_NAME: &str = "trunkline console";

/// What the page can answer.
const CAPABILITIES: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;

/// The log messages that the page wants.
const LOG_LEVEL: &str = "info";

impl ApiRequest<'_> {
    /// Makes the request `{"method": …, "params": …}`, and answers with its messages, one line of JSON each.
    pub(crate) async fn make_request(
        &self,
        session: &ConsoleSession,
        body: RequestBody,
    ) -> Response<McpResponseBody> {
        let inner = &self.console.inner;
        let Some(host) = inner.options.caller.as_ref().and_then(|caller| caller.host.upgrade()) else {
            return refusal(StatusCode::NOT_FOUND, "this console has no hub");
        };
        // Before the body, which may be large.
        let Some(permit) = inner.requests.admit() else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many requests of the console are running");
        };
        let body = read_body(body, MAX_REQUEST_BYTES).await;
        let Some(message) = body.and_then(|body| message_of(&body, inner.options.version)) else {
            return refusal(StatusCode::BAD_REQUEST, "the body has no `method` and `params`");
        };
        let principal = inner.options.caller.as_ref().map_or(Principal::Anonymous, |it| it.principal.clone());
        let exchange = host.exchange(principal, session.client, &message);
        let lines = message_lines(exchange, session.clone(), inner, permit);
        response(StatusCode::OK, "application/x-ndjson", McpResponseBody::streaming(lines))
    }
}

/// Makes the message of a request: what describes the client is the console's own.
fn message_of(body: &Bytes, version: &str) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let request = RawJson::parse(text.to_owned()).ok()?.members().ok()?;
    let method = request.text("method")?;
    let mut params = match request.get("params") {
        Some(params) => params.members().ok()?,
        None => JsonObject::new(),
    };
    params.set("_meta", client_meta(version));
    Some(emit::request(&RequestId::from_number(1), &method, Some(&params.to_raw())))
}

fn client_meta(version: &str) -> RawJson {
    let mut writer = JsonWriter::with_capacity(320);
    writer.open_object();
    writer.plain_key(meta::PROTOCOL_VERSION);
    writer.string(Revision::NEWEST.as_str());
    writer.plain_key(meta::CLIENT_INFO);
    writer.open_object();
    writer.plain_key("name");
    writer.string(CLIENT_NAME);
    writer.plain_key("version");
    writer.string(version);
    writer.close_object();
    writer.plain_key(meta::CLIENT_CAPABILITIES);
    writer.verbatim(CAPABILITIES);
    writer.plain_key(meta::LOG_LEVEL);
    writer.string(LOG_LEVEL);
    writer.plain_key(meta::PROGRESS_TOKEN);
    writer.unsigned(1);
    writer.close_object();
    writer.into_raw()
}

/// Where an exchange is.
struct OpenExchange<E> {
    channel: MemoryChannel,
    end: E,
    has_ended: bool,
    _permit: StreamPermit,
}

/// Writes the messages of an exchange up to its response. The exchange is cancelled with the response of the API.
fn message_lines(
    channel: MemoryChannel,
    session: ConsoleSession,
    inner: &ConsoleInner,
    permit: StreamPermit,
) -> LineBody {
    let stopping = inner.options.shutdown.clone();
    let end = Box::pin(async move {
        tokio::select! {
            () = session.over() => {}
            () = stopping.draining() => {}
        }
    });
    let exchange = OpenExchange { channel, end, has_ended: false, _permit: permit };
    LineBody::new(stream::unfold(exchange, async |mut exchange| {
        if exchange.has_ended {
            return None;
        }
        let line = tokio::select! {
            biased;
            () = &mut exchange.end => return None,
            received = poll_fn(|cx| exchange.channel.poll_receive(cx)) => {
                let message = received?.ok()?;
                exchange.has_ended = is_response(&message);
                line_of(&message)
            }
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b"\n"),
        };
        Some((line, exchange))
    }))
}

/// The members by which a response differs from a notification.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
}

fn is_response(message: &[u8]) -> bool {
    serde_json::from_slice::<MessageHead>(message)
        .is_ok_and(|head| head.id.is_some() && head.method.is_none())
}

/// Writes a message on one line. In JSON an end of a line is only ever space between tokens.
fn line_of(message: &[u8]) -> Bytes {
    let mut line: Vec<u8> =
        message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(body: &str) -> Option<Value> {
        message_of(&Bytes::copy_from_slice(body.as_bytes()), "1.2.3")
            .map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn request_of_a_page_has_the_consoles_own_description_of_the_client() {
        let forged = json!({ "io.modelcontextprotocol/clientInfo": { "name": "forged" }, "x": 1 });
        let body = json!({ "method": "tools/call", "params": { "name": "a", "_meta": forged }, "id": 7 });
        let made = message(&body.to_string()).unwrap();
        assert_eq!((&made["method"], &made["id"]), (&json!("tools/call"), &json!(1)));
        let meta = &made["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], CLIENT_NAME);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"]["url"].is_object());
        assert!(meta.get("x").is_none());
        assert!(message(r#"{"method":"tools/list"}"#).is_some());
    }

    #[test]
    fn numbers_of_a_request_are_passed_on_as_written() {
        let body =
            r#"{"method":"tools/call","params":{"arguments":{"n":123456789012345678901234567890.10}}}"#;
        let text = message_of(&Bytes::copy_from_slice(body.as_bytes()), "1").unwrap();
        assert!(text.contains("123456789012345678901234567890.10"), "{text}");
    }

    #[test]
    fn bodies_without_a_method_or_with_other_params_are_refused() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"method":1}"#,
            r#"{"method":"a","params":[]}"#,
            r#"{"method":"a","method":"b"}"#,
        ] {
            assert_eq!(message(body), None, "{body}");
        }
    }

    #[test]
    fn messages_are_written_on_one_line_and_end_with_the_response() {
        assert_eq!(&line_of(b"{\n\"a\":\r\n1}")[..], b"{ \"a\":  1}\n");
        for (message, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, true),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}"#, false),
        ] {
            assert_eq!(is_response(message.as_bytes()), expected, "{message}");
        }
    }
}
