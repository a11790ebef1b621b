use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::Service;
use trunkline_server::http::{HttpService, ResponseBody};

use crate::signals::Departure;

/// The path that answers as long as the process does.
pub(crate) const ALIVE: &str = "/healthz";

/// The path that answers whether new work should be sent here.
pub(crate) const READY: &str = "/readyz";

/// The endpoint, with two paths beside it that tell whether the server is well.
///
/// They need no token, since those who probe have none, and say nothing that is worth one. `Host` and `Origin` are checked
/// as on the endpoint, so that no page from elsewhere can find out that the server is there.
#[derive(Clone, Debug)]
pub(super) struct WithHealth {
    endpoint: HttpService,
    departure: Departure,
}

impl WithHealth {
    pub(super) fn new(endpoint: HttpService, departure: Departure) -> Self {
        Self { endpoint, departure }
    }

    fn probe(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let (parts, _) = request.into_parts();
        if let Some(refusal) = self.endpoint.refuse_foreign(&parts) {
            return refusal;
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = Response::new(ResponseBody::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let (status, kind, body) = match (parts.uri.path(), self.departure.is_leaving()) {
            (ALIVE, _) => (StatusCode::OK, "text/plain", "ok"),
            (_, false) => (StatusCode::OK, "application/json", r#"{"ready":true}"#),
            (_, true) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "application/json",
                r#"{"ready":false,"reason":"shutting down"}"#,
            ),
        };
        let mut response = Response::new(ResponseBody::whole(body));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl Service<Request<Incoming>> for WithHealth {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        match request.uri().path() {
            ALIVE | READY => Box::pin(ready(Ok(self.probe(request)))),
            _ => Service::call(&self.endpoint, request),
        }
    }
}
