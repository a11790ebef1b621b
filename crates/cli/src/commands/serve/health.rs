use std::future::ready;

use futures_util::future::Either;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Map, Value, json};
use trunkline_server::Metrics;
use trunkline_server::http::{Arrival, HttpService, Responder, ResponseBody};

use super::gateway::Gateway;
use crate::signals::Departure;

/// The path that answers as long as the process does.
pub(crate) const ALIVE: &str = "/healthz";

/// The path that answers whether new work should be sent here.
pub(crate) const READY: &str = "/readyz";

/// The path of the metrics.
pub(crate) const METRICS: &str = "/metrics";

/// The paths that tell how the server is.
///
/// Beside the endpoint they need no token, since those who ask have none. `Host` and `Origin` are checked as on the
/// endpoint, so that no page from elsewhere can find out that the server is there.
#[derive(Clone, Debug)]
pub(super) struct Probes {
    pub(super) departure: Departure,
    pub(super) metrics: Metrics,
    /// The hub, if there is one.
    pub(super) gateway: Option<Gateway>,
    pub(super) audience: Audience,
}

/// Who can reach the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// Those who run the server: they may know everything.
    Operators,
    /// Anybody: they learn whether the server is well, and nothing more.
    Anybody,
}

impl Probes {
    fn knows(&self, path: &str) -> bool {
        matches!(path, ALIVE | READY) || (path == METRICS && self.audience == Audience::Operators)
    }

    /// Tells whether new work should be sent here, and to those who may know it why not and how the servers stand.
    fn readiness(&self) -> (bool, Value) {
        let missing = self.gateway.as_ref().map(Gateway::missing).unwrap_or_default();
        let leaving = self.departure.is_leaving().then(|| "shutting down".to_owned());
        let missing = missing.into_iter().map(|(server, why)| format!("required server `{server}`: {why}"));
        let reasons: Vec<String> = leaving.into_iter().chain(missing).collect();
        let mut told = Map::from_iter([("ready".to_owned(), reasons.is_empty().into())]);
        if self.audience == Audience::Operators {
            if !reasons.is_empty() {
                told.insert("reason".to_owned(), reasons.join("; ").into());
            }
            if let Some(gateway) = &self.gateway {
                let servers = gateway.servers().into_iter().map(|status| {
                    let state = match &status.reason {
                        Some(reason) => json!({ "state": status.state.as_str(), "reason": reason }),
                        None => json!({ "state": status.state.as_str() }),
                    };
                    (status.name.to_string(), state)
                });
                told.insert("servers".to_owned(), servers.collect());
            }
        }
        (reasons.is_empty(), told.into())
    }

    fn answer(&self, parts: &Parts) -> Response<ResponseBody> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = Response::new(ResponseBody::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let (status, kind, body) = match parts.uri.path() {
            ALIVE => (StatusCode::OK, "text/plain", "ok".to_owned()),
            METRICS => (StatusCode::OK, Metrics::CONTENT_TYPE, self.metrics.text()),
            _ => {
                let (ready, told) = self.readiness();
                let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (status, "application/json", told.to_string())
            }
        };
        let mut response = Response::new(ResponseBody::whole(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// The endpoint with the probes beside it.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    pub(super) endpoint: HttpService,
    pub(super) probes: Probes,
}

impl Responder for Beside {
    type Body = ResponseBody;

    fn respond(&self, request: Arrival) -> impl Future<Output = Response<ResponseBody>> + Send {
        if !self.probes.knows(request.uri().path()) {
            return Either::Left(self.endpoint.respond(request));
        }
        let (parts, _) = request.into_request().into_parts();
        let answer = self.endpoint.refuse_foreign(&parts).unwrap_or_else(|| self.probes.answer(&parts));
        Either::Right(ready(answer))
    }
}

/// The probes alone, on an address of their own.
#[derive(Clone, Debug)]
pub(super) struct ProbesAlone {
    /// Serves nothing here, but knows which hosts and origins may ask, and who off the loopback.
    pub(super) guard: HttpService,
    pub(super) probes: Probes,
}

impl Responder for ProbesAlone {
    type Body = ResponseBody;

    async fn respond(&self, request: Arrival) -> Response<ResponseBody> {
        let (parts, _) = request.into_request().into_parts();
        self.guard.refuse_stranger(&parts).unwrap_or_else(|| {
            if self.probes.knows(parts.uri.path()) {
                return self.probes.answer(&parts);
            }
            let mut response = Response::new(ResponseBody::empty());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        })
    }
}
