//! Questions to clients of the hub: input requests that legacy clients were sent and have not answered yet.

use http::{Response, StatusCode};
use trunkline_hub::events::HubEvents;
use trunkline_server::http::{McpResponseBody, RequestBody};
use trunkline_server::protocol::model::InputRequest;
use trunkline_server::protocol::{JsonWriter, RawJson};
use trunkline_server::{Host, OperatorAnswerError, UnansweredInput};

use crate::api::{ApiRequest, read_body};
use crate::limits::{MAX_QUESTIONS, MAX_REQUEST_BYTES};
use crate::responses::{json_response, refusal, response};

impl ApiRequest<'_> {
    /// Lists the questions that clients have not answered.
    pub(crate) fn questions(&self) -> Response<McpResponseBody> {
        let open = self.host().map(|host| host.open_input_requests(MAX_QUESTIONS)).unwrap_or_default();
        let mut writer = JsonWriter::with_capacity(256 * open.len() + 16);
        writer.open_object();
        writer.plain_key("questions");
        writer.open_array();
        open.iter().for_each(|question| write_question(question, &mut writer));
        writer.close_array();
        writer.close_object();
        let body = McpResponseBody::whole(writer.into_string());
        response(StatusCode::OK, "application/json", body)
    }

    /// Answers a question in the place of its client: `{"number": …, "response": …}`.
    pub(crate) async fn answer(&self, body: RequestBody) -> Response<McpResponseBody> {
        let Some((number, answer)) =
            read_body(body, MAX_REQUEST_BYTES).await.and_then(|body| answer_of(&body))
        else {
            return refusal(StatusCode::BAD_REQUEST, "the body has no `number` and `response`");
        };
        let Some(host) = self.host() else {
            return refusal(StatusCode::NOT_FOUND, "this console has no hub");
        };
        match host.answer_input_request(number, answer) {
            Ok(()) => {
                tracing::info!(
                    question = number,
                    "answered a question in the console in the place of its client"
                );
                json_response(&serde_json::json!({}))
            }
            Err(error) => refusal(status_of(&error), &error.to_string()),
        }
    }

    fn host(&self) -> Option<Host> {
        self.console.inner.options.caller.as_ref()?.host.upgrade()
    }
}

fn status_of(error: &OperatorAnswerError) -> StatusCode {
    match error {
        OperatorAnswerError::Gone => StatusCode::CONFLICT,
        OperatorAnswerError::ClientOnly => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn answer_of(body: &[u8]) -> Option<(u64, RawJson)> {
    let text = std::str::from_utf8(body).ok()?.to_owned();
    let mut members = RawJson::parse(text).ok()?.members().ok()?;
    Some((members.get("number")?.get().ok()?, members.take("response")?))
}

fn write_question(question: &UnansweredInput, writer: &mut JsonWriter) {
    let client = &question.client;
    let description = client.description.as_ref().and_then(|raw| raw.members().ok()).unwrap_or_default();
    writer.open_object();
    writer.plain_key("number");
    writer.unsigned(question.number);
    if let Some(call) = question.call {
        writer.plain_key("call");
        writer.string(&HubEvents::call_name(call));
    }
    writer.plain_key("client");
    writer.string(description.text("name").as_deref().unwrap_or_default());
    writer.plain_key("principal");
    writer.string(&client.principal.to_string());
    writer.plain_key("revision");
    writer.string(client.revision.as_str());
    writer.plain_key("method");
    writer.string(question.method.as_str());
    if let Some(name) = &question.name {
        writer.plain_key("name");
        writer.string(name);
    }
    writer.plain_key("answerable");
    writer.boolean(question.is_answerable());
    writer.plain_key("request");
    write_request(&question.request, writer);
    writer.close_object();
}

/// Writes an input request. The URL of another user may be a secret link, and is not shown.
fn write_request(request: &InputRequest, writer: &mut JsonWriter) {
    match request {
        InputRequest::Url(url) => {
            writer.open_object();
            writer.plain_key("method");
            writer.string(request.method());
            writer.plain_key("params");
            writer.open_object();
            writer.plain_key("mode");
            writer.string("url");
            writer.plain_key("message");
            writer.string(&url.message);
            writer.close_object();
            writer.close_object();
        }
        shown => shown.write_input_request(writer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_a_number_and_a_response() {
        let read = |text: &str| answer_of(text.as_bytes());
        let (number, response) = read(r#"{"number":7,"response":{"action":"decline"}}"#).unwrap();
        assert_eq!((number, response.as_str()), (7, r#"{"action":"decline"}"#));
        for other in [
            "",
            "[]",
            "{}",
            r#"{"number":7}"#,
            r#"{"number":-1,"response":{}}"#,
            r#"{"number":"7","response":{}}"#,
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }

    #[test]
    fn url_of_another_users_page_is_not_shown() {
        let mut writer = JsonWriter::with_capacity(64);
        write_request(&InputRequest::url("Log in", "https://example.com/s3cr3t"), &mut writer);
        let text = writer.into_string();
        assert!(text.contains("Log in") && !text.contains("s3cr3t"), "{text}");
    }
}
