use std::sync::Arc;

use http::HeaderMap;
use http::header::HeaderName;
use http::request::Parts;
use trunkline_protocol::era::{self, Admitted, MirrorHeaders, Mirrored};
use trunkline_protocol::{Method, Refusal, Request};
use trunkline_session::Principal;

use super::accept::Accepts;
use super::carry::{argument_value, first_event};
use super::endpoint::{Answered, Inner, MCP_METHOD, MCP_NAME, VERSION, accepted, respond, streamed};
use super::stream::{CallStream, ListenStream};
use crate::edge::Event;
use crate::edge::modern::{self, Begun};

impl Inner {
    /// Answers a modern request.
    pub(super) async fn modern(
        self: &Arc<Self>,
        parts: &Parts,
        request: Request,
        accepts: Accepts,
        principal: Principal,
    ) -> Answered {
        let as_stream = self.options.always_stream || !accepts.json;
        let id = request.id.clone();
        let admitted = match self.admit(parts, &request) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(respond(modern::refuse(Some(&id), &refusal), false)),
        };
        let mut begun = modern::begin(&self.core, request, admitted, principal);
        if let Begun::Resume(future) = begun {
            begun = future.await;
        }
        let mut call = match begun {
            Begun::Answer(answer) => return Ok(respond(answer, as_stream)),
            Begun::Listen(_) if !accepts.stream => return Err((Refusal::NOT_ACCEPTABLE, Some(id))),
            Begun::Listen(listen) => return Ok(streamed(ListenStream::new(self.core.clone(), listen))),
            Begun::Resume(_) => return Err((Refusal::INTERNAL, Some(id))),
            Begun::Call(call) => call,
        };
        let limits = &self.core.limits;
        match first_event(&mut call, accepts.stream, limits.stream_after).await {
            Some(Event::Answer(answer)) => Ok(respond(answer, as_stream)),
            Some(Event::Nothing) => Ok(accepted()),
            first => Ok(streamed(CallStream::new(call, first, limits.keep_alive))),
        }
    }

    /// Checks a request against its headers, down to those that mirror a tool's arguments.
    fn admit(&self, parts: &Parts, request: &Request) -> Result<Admitted, Refusal> {
        let headers = &parts.headers;
        let mirror = MirrorHeaders {
            version: mirrored(headers, &VERSION),
            method: mirrored(headers, &MCP_METHOD),
            name: mirrored(headers, &MCP_NAME),
        };
        let admitted = era::admit(request, Some(&mirror))?;
        if admitted.method == Method::ToolsCall {
            self.check_arguments(headers, request)?;
        }
        Ok(admitted)
    }

    fn check_arguments(&self, headers: &HeaderMap, request: &Request) -> Result<(), Refusal> {
        let Some(name) = request.params.get("name").and_then(trunkline_protocol::Raw::as_text) else {
            return Ok(());
        };
        let Some(mirrored) = self.core.handler.mirrored_arguments(&name) else { return Ok(()) };
        let arguments = argument_value(request.params.get("arguments"));
        mirrored
            .check(arguments.as_ref(), |name| headers.get(name).map(http::HeaderValue::as_bytes))
            .map_err(|mismatch| Refusal::HEADER_MISMATCH.because(mismatch.to_string()))
    }
}

fn mirrored<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Mirrored<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Mirrored::Absent,
        (Some(value), None) => Mirrored::Once(value.as_bytes()),
        (Some(_), Some(_)) => Mirrored::Repeated,
    }
}
