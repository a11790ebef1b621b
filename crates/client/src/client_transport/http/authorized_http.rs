use std::sync::Arc;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use trunkline_auth::authorizer::{AuthorizedAttempt, Authorizer, CallerToken};
use trunkline_auth::fetch::DPOP_NONCE;
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{
    HttpClient, HttpClientOptions, HttpRequest, HttpResponse, OriginMismatch, RequestTarget, ResponseHeaders,
};

use super::shared::http_failure;
use crate::client_transport::{RequestDelivery, TransportFailure, TransportFailureKind};

/// Sends requests to one origin, with the credentials of an authorizer if there is one.
///
/// Authorization is below the protocol: a request that the server refuses as unauthorized is sent again with a token,
/// in either era.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizedHttp {
    http: HttpClient,
    authorizer: Option<Arc<Authorizer>>,
}

/// How a request is distinguished from others, for authorization.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPurpose<'a> {
    /// The URL of the request.
    pub(super) url: &'a Url,
    /// What it does, such as `tools/call`.
    pub(super) operation: &'a str,
    /// The token of the caller that it is sent for.
    pub(super) caller_token: Option<&'a CallerToken>,
}

impl<'a> RequestPurpose<'a> {
    /// A request that belongs to no call.
    pub(super) fn new(url: &'a Url, operation: &'a str) -> Self {
        Self { url, operation, caller_token: None }
    }
}

impl AuthorizedHttp {
    pub(crate) fn new(dialer: Dialer, url: &Url, authorizer: Option<Arc<Authorizer>>) -> Self {
        Self { http: HttpClient::new(dialer, url.clone(), &HttpClientOptions::default()), authorizer }
    }

    pub(super) fn target(&self, url: &Url) -> Result<RequestTarget, OriginMismatch> {
        self.http.target(url)
    }

    /// Reports whether an authorization waits for the user, so that no timeout is due.
    pub(super) fn is_waiting_for_user(&self) -> bool {
        self.authorizer.as_ref().is_some_and(|authorizer| authorizer.is_waiting_for_user())
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// # Errors
    /// There is no response, or the authorization that the server demands could not be obtained.
    pub(super) async fn send(
        &self,
        request: &HttpRequest,
        purpose: RequestPurpose<'_>,
    ) -> Result<HttpResponse, TransportFailure> {
        match &self.authorizer {
            None => self.http.send(request).await.map_err(http_failure),
            Some(authorizer) => Box::pin(self.send_authorized(authorizer, request, purpose)).await,
        }
    }

    async fn send_authorized(
        &self,
        authorizer: &Arc<Authorizer>,
        request: &HttpRequest,
        purpose: RequestPurpose<'_>,
    ) -> Result<HttpResponse, TransportFailure> {
        let uri: Uri = purpose
            .url
            .to_full_string()
            .parse()
            .map_err(|_| TransportFailure::not_sent("the URL is unusable"))?;
        let authorizer = authorizer.acting_for(purpose.caller_token);
        let mut attempt = authorizer.begin(purpose.operation);
        let mut authorized = request.clone();
        loop {
            authorized.headers = request.headers.clone();
            add_credentials(&mut attempt, &mut authorized, &request.method, &uri).await?;
            let response = self.http.send(&authorized).await.map_err(http_failure)?;
            let headers = authorization_headers(response.status, &response.headers);
            match attempt.is_refused(response.status, &headers).await {
                Ok(false) => return Ok(response),
                Ok(true) => response.body.finish(),
                Err(error) => return Err(authorization_failure(error)),
            }
        }
    }
}

/// Adds the headers of one send.
async fn add_credentials(
    attempt: &mut AuthorizedAttempt<'_>,
    request: &mut HttpRequest,
    method: &Method,
    uri: &Uri,
) -> Result<(), TransportFailure> {
    let credentials = attempt.headers(method, uri).await.map_err(authorization_failure)?;
    for (name, value) in &credentials {
        request.headers.add(name, value);
    }
    Ok(())
}

/// Copies the headers that authorization looks at; of an accepted request that is only the nonce for the next proof.
pub(crate) fn authorization_headers(status: StatusCode, headers: &ResponseHeaders) -> HeaderMap {
    let mut used = HeaderMap::new();
    let names: &[_] = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => &[DPOP_NONCE, WWW_AUTHENTICATE],
        _ => &[DPOP_NONCE],
    };
    for name in names {
        for value in headers.get_all(name).filter_map(|value| HeaderValue::from_bytes(value).ok()) {
            used.append(name.clone(), value);
        }
    }
    used
}

/// Describes an authorization that failed; the server did not act on the request.
fn authorization_failure(error: trunkline_auth::authorizer::AuthorizationError) -> TransportFailure {
    TransportFailure { delivery: RequestDelivery::NotSent, kind: TransportFailureKind::Authorization(error) }
}
