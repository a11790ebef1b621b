use std::time::Instant;

use trunkline_client::{Error, ServerInfo};
use trunkline_config::{ServerConfig, ServerLocation};
use trunkline_protocol::TraceContext;

use super::body::{CallOutcome, EventBody, ServerCallEvent};
use super::event_text::bounded;
use super::observed_call::ObservedCall;
use super::ring::EventAudience;
use super::wire_taps::{call_name, transport_name};

/// A request of an observed call to a server. Dropped without an end, it was cancelled.
#[derive(Debug)]
pub(crate) struct ObservedServerCall<'a> {
    call: &'a ObservedCall,
    began: Instant,
    event: Option<Box<ServerCallEvent>>,
    context: Option<TraceContext>,
}

/// How a request to a server ended.
#[derive(Debug)]
pub(crate) enum ServerCallEnd<'a> {
    /// It has an outcome.
    Outcome(CallOutcome),
    /// It failed.
    Failure(&'a Error),
}

impl<'a> ObservedServerCall<'a> {
    /// Begins a request of a method for an item.
    pub(crate) fn begin(
        call: &'a ObservedCall,
        method: &str,
        item: Option<&str>,
        config: &ServerConfig,
        info: &ServerInfo,
    ) -> Self {
        let span = call.trace().and_then(|trace| Some((trace, call.events().tracer()?.server_span())));
        let context = span.map(|(trace, span)| TraceContext {
            trace: trace.trace,
            parent: span,
            sampled: trace.sampled,
            state: trace.state.clone(),
        });
        let (address, port) = address_of(config).unzip();
        let event = ServerCallEvent {
            call: call_name(call.number()),
            server: config.name.to_string(),
            method: method.to_owned(),
            item: item.map(bounded),
            span: span.map(|(_, span)| span.to_string()),
            outcome: CallOutcome::Cancelled,
            micros: 0,
            code: None,
            failure: None,
            revision: Some(info.revision.as_str().to_owned()),
            transport: Some(transport_name(info.transport).to_owned()),
            address,
            port,
        };
        Self { call, began: Instant::now(), event: Some(Box::new(event)), context }
    }

    /// Returns the context that the request carries on, if calls are traced.
    pub(crate) fn context(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Publishes the end of the request.
    pub(crate) fn end(mut self, end: &ServerCallEnd<'_>) {
        if let Some(event) = &mut self.event {
            match end {
                ServerCallEnd::Outcome(outcome) => event.outcome = *outcome,
                ServerCallEnd::Failure(error) => {
                    event.outcome = CallOutcome::Error;
                    (event.code, event.failure) = match error {
                        Error::ErrorResponse(response) => (Some(response.code), None),
                        error => (None, Some(failure_kind(error))),
                    };
                }
            }
        }
        self.publish();
    }

    fn publish(&mut self) {
        let Some(mut event) = self.event.take() else { return };
        event.micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let audience = EventAudience::Owner(self.call.principal().clone());
        self.call.events().publish(EventBody::ServerCall(event), audience);
    }
}

impl Drop for ObservedServerCall<'_> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// Returns the kind of a failure, of which there are few.
fn failure_kind(error: &Error) -> String {
    let kind = match error {
        Error::Unauthorized { status, .. } | Error::Status { status, .. } => return status.to_string(),
        Error::Unreachable(_) => "unreachable",
        Error::Authorization(_) => "authorization",
        Error::TimedOut { .. } => "timeout",
        Error::Closed { .. } => "connection_closed",
        Error::TooLong { .. } => "response_too_long",
        Error::Malformed(_) => "malformed_response",
        Error::Unsupported(_) => "unsupported",
        _ => "_OTHER",
    };
    kind.to_owned()
}

/// Returns the host and port of a server. Of an address with variables nothing is shown, since they may be secrets.
fn address_of(config: &ServerConfig) -> Option<(String, u16)> {
    let ServerLocation::Endpoint(endpoint) = &config.location else { return None };
    let written = endpoint.url.as_written();
    let (scheme, rest) = written.split_once("://").filter(|_| !written.contains('$'))?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.contains('@'))?;
    let standard = if matches!(scheme, "https" | "wss") { 443 } else { 80 };
    match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None => Some((authority.to_owned(), standard)),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_config::{RemoteEndpoint, ServerName};

    use super::*;

    #[test]
    fn address_of_a_server_has_no_variables_paths_or_names() {
        for (url, expected) in [
            ("https://a.example/mcp?key=x", Some(("a.example", 443))),
            ("http://127.0.0.1:8080", Some(("127.0.0.1", 8080))),
            ("ws://[::1]:9/x", Some(("[::1]", 9))),
            ("wss://[::1]/x", Some(("[::1]", 443))),
            ("https://${HOST}/mcp", None),
            ("https://user:secret@a/mcp", None),
            ("nonsense", None),
        ] {
            let location = ServerLocation::Endpoint(RemoteEndpoint::new(url));
            let config = ServerConfig::new(ServerName::parse("a").unwrap(), location);
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(address_of(&config), expected, "{url}");
        }
    }
}
