use std::future::ready;
use std::pin::Pin;

use futures_util::future::Either;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use trunkline_server::Metrics;
use trunkline_server::http::{HttpService, IncomingRequest, McpResponseBody, Service};

use trunkline_console::Console;
use trunkline_hub::UserLogins;

use super::gateway::Gateway;
use crate::process_counter::ProcessCounter;
use crate::signals::ProcessShutdown;

/// The path that answers as long as the process does.
pub(crate) const LIVENESS_PATH: &str = "/healthz";

/// The path that answers whether new work should be sent here.
pub(crate) const READINESS_PATH: &str = "/readyz";

/// The path of the metrics.
pub(crate) const METRICS_PATH: &str = "/metrics";

/// The health endpoints.
///
/// On the MCP port they need no token, since probes have none. `Host` and `Origin` are checked as on the
/// endpoint, so that no foreign web page can detect the server.
#[derive(Clone, Debug)]
pub(super) struct HealthProbes {
    pub(super) shutdown: ProcessShutdown,
    pub(super) metrics: Metrics,
    /// The hub, if there is one.
    pub(super) gateway: Option<Gateway>,
    pub(super) audience: ProbeAudience,
}

/// Who can reach the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeAudience {
    /// Those who run the server: they may know everything.
    Operators,
    /// All clients: they learn whether the server is healthy, and nothing more.
    Public,
}

impl HealthProbes {
    fn serves_path(&self, path: &str) -> bool {
        matches!(path, LIVENESS_PATH | READINESS_PATH)
            || (path == METRICS_PATH && self.audience == ProbeAudience::Operators)
    }

    /// Reports whether the server is ready, and to operators also the reason and the status of the servers.
    fn readiness(&self) -> (bool, Value) {
        let missing = self.gateway.as_ref().map(Gateway::unready_servers).unwrap_or_default();
        let leaving = self.shutdown.is_shutting_down().then(|| "shutting down".to_owned());
        let missing = missing.into_iter().map(|(server, why)| format!("required server `{server}`: {why}"));
        let reasons: Vec<String> = leaving.into_iter().chain(missing).collect();
        let mut report = Map::from_iter([("ready".to_owned(), reasons.is_empty().into())]);
        if self.audience == ProbeAudience::Operators {
            if !reasons.is_empty() {
                report.insert("reason".to_owned(), reasons.join("; ").into());
            }
            if let Some(gateway) = &self.gateway {
                let servers = gateway.server_summaries().into_iter().map(|(name, state, reason)| {
                    let state = match reason {
                        Some(reason) => json!({ "state": state, "reason": reason }),
                        None => json!({ "state": state }),
                    };
                    (name, state)
                });
                report.insert("servers".to_owned(), servers.collect());
            }
        }
        (reasons.is_empty(), report.into())
    }

    fn respond(&self, parts: &Parts) -> Response<McpResponseBody> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = Response::new(McpResponseBody::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let (status, kind, body) = match parts.uri.path() {
            LIVENESS_PATH => (StatusCode::OK, "text/plain", "ok".to_owned()),
            METRICS_PATH => {
                (StatusCode::OK, Metrics::CONTENT_TYPE, self.metrics.text() + &ProcessCounter::metrics())
            }
            _ => {
                let (ready, report) = self.readiness();
                let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (status, "application/json", report.to_string())
            }
        };
        let mut response = Response::new(McpResponseBody::whole(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The response of a page beside the endpoint: one type, so that requests of the endpoint itself stay unboxed.
type OtherPage = Pin<Box<dyn Future<Output = Response<McpResponseBody>> + Send>>;

/// The MCP endpoint together with the probes.
#[derive(Clone, Debug)]
pub(super) struct EndpointWithProbes {
    pub(super) endpoint: HttpService,
    pub(super) probes: HealthProbes,
    /// The pages on which users of a hub log in to its servers.
    pub(super) logins: Option<UserLogins>,
    /// The web console, on the loopback.
    pub(super) console: Option<Console>,
}

impl Service for EndpointWithProbes {
    type Body = McpResponseBody;

    fn respond(&self, request: IncomingRequest) -> impl Future<Output = Response<McpResponseBody>> + Send {
        let path = request.uri().path();
        if let Some(logins) = self.logins.clone().filter(|_| UserLogins::serves_path(path)) {
            let endpoint = self.endpoint.clone();
            let response: OtherPage = Box::pin(async move { logins.respond(&endpoint, request).await });
            return Either::Right(Either::Left(response));
        }
        if let Some(console) = self.console.clone().filter(|_| Console::serves_path(path)) {
            let endpoint = self.endpoint.clone();
            let response: OtherPage = Box::pin(async move { console.respond(&endpoint, request).await });
            return Either::Right(Either::Left(response));
        }
        if !self.probes.serves_path(path) {
            return Either::Left(self.endpoint.respond(request));
        }
        let (parts, _) = request.into_request().into_parts();
        let answer =
            self.endpoint.refuse_disallowed_origin(&parts).unwrap_or_else(|| self.probes.respond(&parts));
        Either::Right(Either::Right(ready(answer)))
    }
}

/// The probes and the console, on an address of their own.
#[derive(Clone, Debug)]
pub(super) struct AdminService {
    /// Serves nothing here, but knows which hosts and origins may ask, and who off the loopback.
    pub(super) guard: HttpService,
    pub(super) probes: HealthProbes,
    /// The web console, which authenticates by itself; off the loopback only where there are users.
    pub(super) console: Option<Console>,
}

impl Service for AdminService {
    type Body = McpResponseBody;

    async fn respond(&self, request: IncomingRequest) -> Response<McpResponseBody> {
        if let Some(console) = self.console.as_ref().filter(|_| Console::serves_path(request.uri().path())) {
            return Box::pin(console.respond(&self.guard, request)).await;
        }
        let (parts, _) = request.into_request().into_parts();
        if let Some(refused) = self.guard.refuse_unauthorized(&parts).await {
            return refused;
        }
        if self.probes.serves_path(parts.uri.path()) {
            return self.probes.respond(&parts);
        }
        let mut response = Response::new(McpResponseBody::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }
}
