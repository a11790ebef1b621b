use std::sync::Arc;

use trunkline_protocol::era::{self, MirrorHeaders, ValidatedRequest};
use trunkline_protocol::{Method, Refusal, Request};

use super::call_exchange::{CallExchange, argument_value};
use super::endpoint::{HttpServiceInner, accepted, event_stream_response};
use super::post_message::{PostMessage, PostStart, ready_message, ready_response};
use super::stream::SubscriptionEventStream;
use crate::admission::BytePermit;
use crate::edge::MessageStart;
use crate::edge::modern::{self, RequestOrigin};
use crate::env::Env;

impl HttpServiceInner {
    /// Handles a modern request.
    pub(super) fn handle_modern<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        request: Request,
        env: Env,
        reserved: Option<BytePermit>,
    ) -> PostStart<'a> {
        let validated = match self.validate_request(post, &request) {
            Ok(validated) => validated,
            Err(refusal) => return ready_message(modern::refuse(Some(&request.id), &refusal), false),
        };
        let (principal, grant) = (post.sender.principal.clone(), post.sender.grant.clone());
        let remote_address = post.head.remote_address();
        let origin =
            RequestOrigin { principal, connection: None, remote_address, transport: "http", env, grant };
        let begun = modern::begin(&self.core, request, validated, origin);
        self.follow_start(post, begun.hold_permit(reserved))
    }

    /// Takes the call of a message, or makes its response, from how it begins.
    pub(super) fn follow_start<'a>(
        self: &'a Arc<Self>,
        post: PostMessage<'a>,
        begun: MessageStart,
    ) -> PostStart<'a> {
        let accepts = post.headers.accepts();
        match begun {
            MessageStart::Accepted => ready_response(accepted()),
            MessageStart::Call(call) => Ok(CallExchange::Modern(call)),
            MessageStart::Response(answer) => ready_message(answer, self.prefers_stream(accepts)),
            MessageStart::Subscription(listen) if !accepts.stream => {
                let refusal =
                    Refusal::NOT_ACCEPTABLE.with_message("this method needs Accept: text/event-stream");
                self.refuse_post(post, &refusal, Some(listen.id()))
            }
            MessageStart::Subscription(listen) => {
                ready_response(event_stream_response(SubscriptionEventStream::new(self.core.clone(), listen)))
            }
            MessageStart::Deferred(_, future) => {
                self.defer(post, async move { self.follow_start(post, future.await) })
            }
        }
    }

    /// Checks a request against its headers, down to those that mirror a tool's arguments.
    fn validate_request(
        &self,
        post: PostMessage<'_>,
        request: &Request,
    ) -> Result<ValidatedRequest, Refusal> {
        let headers = post.headers;
        let mirror = MirrorHeaders { version: headers.version, method: headers.method, name: headers.name };
        let validated = era::validate_request(request, Some(&mirror), self.core.revisions)?;
        if validated.method == Method::ToolsCall {
            self.check_argument_headers(post, request)?;
        }
        Ok(validated)
    }

    fn check_argument_headers(&self, post: PostMessage<'_>, request: &Request) -> Result<(), Refusal> {
        let Some(name) = request.params.get("name").and_then(trunkline_protocol::RawJson::as_text) else {
            return Ok(());
        };
        let Some(mirrored) = self.core.handler.mirrored_arguments(&name, post.sender.identity()) else {
            return Ok(());
        };
        let headers = &post.head.parts().headers;
        // A parser that takes the last of two equal keys would read another value than one that takes the first.
        if let Some(repeated) =
            mirrored.iter().find(|param| headers.get_all(param.header()).iter().count() > 1)
        {
            let message = format!("the header {} is repeated", repeated.header());
            return Err(Refusal::HEADER_MISMATCH.with_message(message));
        }
        let arguments = argument_value(request.params.get("arguments"));
        mirrored
            .check(arguments.as_ref(), |name| headers.get(name).map(http::HeaderValue::as_bytes))
            .map_err(|mismatch| Refusal::HEADER_MISMATCH.with_message(mismatch.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::{BodyExt as _, Full};
    use serde_json::{Value, json};

    use crate::http::HttpServerOptions;
    use crate::{HostOptions, Json, Server, Tool};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct RegionArguments {
        region: String,
    }

    #[tokio::test]
    async fn mirrored_argument_header_must_occur_once_and_match() {
        let tool = Tool::new("go")
            .mirror("region", "Region")
            .run(async |arguments: RegionArguments| Json(arguments.region));
        let service = Server::new("test")
            .with(tool)
            .host(HostOptions::default())
            .unwrap()
            .http_service(HttpServerOptions::default());
        let body = |arguments: &str| {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"go","arguments":{arguments},"_meta":{meta}}}}}"#
            )
        };
        let north = r#"{"region":"north"}"#;
        // A parser that takes the first of two equal keys would read another region than the header names.
        let both = r#"{"region":"north","region":"south"}"#;
        for (headers, arguments, status, code) in [
            (&["north"][..], north, 200, Value::Null),
            (&["=?base64?bm9ydGg=?="], north, 200, Value::Null),
            (&["south"], north, 400, json!(-32020)),
            (&[], north, 400, json!(-32020)),
            (&["north", "south"], north, 400, json!(-32020)),
            (&["north", "north"], north, 400, json!(-32020)),
            (&["south"], both, 400, json!(-32600)),
            (&["north"], both, 400, json!(-32600)),
        ] {
            let mut request = Request::post("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "go");
            for value in headers {
                request = request.header("mcp-param-region", *value);
            }
            let response = service.handle(request.body(Full::from(body(arguments))).unwrap()).await;
            assert_eq!(response.status(), status, "{headers:?}");
            let answer = response.into_body().collect().await.unwrap().to_bytes();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(answer["error"]["code"], code, "{headers:?}: {answer}");
        }
    }
}
