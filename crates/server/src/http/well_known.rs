//! Public documents of the endpoint, and the references to them in refusals.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    CONTENT_TYPE, RETRY_AFTER,
};
use http::{HeaderValue, Method, Response, StatusCode};
use trunkline_http1::server::RequestHead;

use super::auth::AuthRefusal;
use super::body::McpResponseBody;
use super::endpoint::HttpServiceInner;
use super::protected_resource::ProtectedResource;
use crate::call::BoxFuture;

/// The folder of well-known documents ([RFC 8615](https://www.rfc-editor.org/rfc/rfc8615)).
const WELL_KNOWN: &str = "/.well-known/";

/// Where clients of revision 2025-03-26 look for the metadata of the authorization server: at the root of the MCP server.
pub(super) const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";

impl HttpServiceInner {
    /// Calls a function with the description of the endpoint as a protected resource: that of the authenticator, or else
    /// that of the options.
    pub(super) fn with_protected_resource<T>(&self, f: impl FnOnce(Option<&ProtectedResource>) -> T) -> T {
        match self.options.authenticator.protected_resource() {
            Some(resource) => f(Some(&resource)),
            None => f(self.options.protected_resource.as_ref()),
        }
    }

    /// Makes the response to a request that its authentication refused.
    #[cold]
    pub(super) fn auth_response(&self, refusal: AuthRefusal) -> Response<McpResponseBody> {
        self.with_protected_resource(|resource| refusal.into_response(resource))
    }

    /// Answers a request for a public document, which pages of every origin may read; `None` for other paths.
    pub(super) fn well_known<'a>(
        &'a self,
        head: &'a RequestHead,
    ) -> Option<BoxFuture<'a, Response<McpResponseBody>>> {
        let path = head.path();
        if !path.starts_with(WELL_KNOWN) {
            return None;
        }
        if path == SERVER_METADATA {
            let metadata = self.options.authenticator.server_metadata()?;
            return Some(Box::pin(async move {
                let body = if is_read(head.method()) { metadata.await } else { Some(Bytes::new()) };
                body.map_or_else(unavailable, |body| document_response(head.method(), body))
            }));
        }
        let document = self.with_protected_resource(|resource| {
            let resource = resource.filter(|resource| resource.is_at(path, &self.options.path))?;
            Some(resource.document().to_string())
        })?;
        let response = document_response(head.method(), document.into());
        Some(Box::pin(std::future::ready(response)))
    }
}

fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// Makes the response with a public document, or to another method at its path.
fn document_response(method: &Method, document: Bytes) -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if is_read(method) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *response.body_mut() = McpResponseBody::whole(document);
    } else {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
        let is_preflight = *method == Method::OPTIONS;
        *response.status_mut() =
            if is_preflight { StatusCode::NO_CONTENT } else { StatusCode::METHOD_NOT_ALLOWED };
    }
    response
}

/// Makes the response to a request for a document that cannot be fetched now.
fn unavailable() -> Response<McpResponseBody> {
    let error = r#"{"error":"temporarily_unavailable","error_description":"the authorization server does not answer"}"#;
    let mut response = document_response(&Method::GET, Bytes::from_static(error.as_bytes()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}
