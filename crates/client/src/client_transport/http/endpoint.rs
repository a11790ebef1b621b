use std::fmt;
use std::sync::Arc;

use http::Method;
use http::header::LOCATION;
use parking_lot::{Mutex, MutexGuard};
use trunkline_auth::authorizer::CallerToken;
use trunkline_transport::Url;
use trunkline_transport::http::{HeaderLines, HttpRequest, HttpResponse, OriginMismatch, RequestTarget};

use super::authorized_http::{AuthorizedHttp, RequestPurpose};
use crate::client_transport::TransportFailure;

/// The most redirects within the origin.
const MAX_REDIRECTS: usize = 3;

/// The HTTP endpoint of a server.
pub(super) struct HttpEndpoint {
    http: AuthorizedHttp,
    address: Mutex<EndpointAddress>,
}

struct EndpointAddress {
    url: Arc<Url>,
    target: RequestTarget,
    /// A request succeeded there, so that redirects are no longer followed.
    is_final: bool,
}

/// A request with its target.
pub(super) struct AddressedRequest {
    request: HttpRequest,
    url: Arc<Url>,
    /// Redirects are no longer followed.
    is_final: bool,
}

impl HttpEndpoint {
    pub(super) fn new(http: AuthorizedHttp, url: &Url) -> Result<Self, OriginMismatch> {
        let address =
            EndpointAddress { target: http.target(url)?, url: Arc::new(url.clone()), is_final: false };
        Ok(Self { http, address: Mutex::new(address) })
    }

    /// Builds a request to the current target.
    pub(super) fn build_request(
        &self,
        method: Method,
        headers: HeaderLines,
        body: Vec<u8>,
    ) -> AddressedRequest {
        let address = self.lock();
        let request = HttpRequest { method, target: address.target.clone(), headers, body };
        AddressedRequest { request, url: address.url.clone(), is_final: address.is_final }
    }

    /// Sends a request and waits for the response head.
    /// `operation` names what it does, for authorization.
    pub(super) async fn send(
        &self,
        addressed: &AddressedRequest,
        operation: &str,
    ) -> Result<HttpResponse, TransportFailure> {
        self.send_for(addressed, operation, None).await
    }

    /// Sends a request that belongs to the call of a caller.
    pub(super) async fn send_for(
        &self,
        addressed: &AddressedRequest,
        operation: &str,
        caller_token: Option<&CallerToken>,
    ) -> Result<HttpResponse, TransportFailure> {
        let purpose = RequestPurpose { url: &addressed.url, operation, caller_token };
        if addressed.is_final {
            return self.http.send(&addressed.request, purpose).await;
        }
        Box::pin(self.send_following_redirects(addressed, purpose)).await
    }

    /// Reports whether an authorization waits for the user.
    pub(super) fn is_waiting_for_user(&self) -> bool {
        self.http.is_waiting_for_user()
    }

    /// Sends a request, and follows redirects.
    async fn send_following_redirects(
        &self,
        addressed: &AddressedRequest,
        purpose: RequestPurpose<'_>,
    ) -> Result<HttpResponse, TransportFailure> {
        let (mut request, mut url) = (addressed.request.clone(), addressed.url.clone());
        for _ in 0..MAX_REDIRECTS {
            let response = self.http.send(&request, RequestPurpose { url: &url, ..purpose }).await?;
            match self.redirect_target(&response) {
                Some((target, at)) => (request.target, url) = (target, at),
                None => return Ok(response),
            }
            response.body.finish();
        }
        self.http.send(&request, RequestPurpose { url: &url, ..purpose }).await
    }

    /// Returns the target of a redirect, which often differs by a slash only.
    ///
    /// Only 307 and 308 are followed, which keep method and body (RFC 9110 §15.4.8 and §15.4.9) and mean that the
    /// request was not processed here. A redirect to another origin is not followed.
    fn redirect_target(&self, response: &HttpResponse) -> Option<(RequestTarget, Arc<Url>)> {
        let mut address = self.lock();
        if !matches!(response.status.as_u16(), 307 | 308) {
            address.is_final |= response.status.is_success();
            return None;
        }
        let location = response.headers.get_text(&LOCATION)?;
        let url = Arc::new(address.url.join(location).ok()?);
        let target = self.http.target(&url).ok()?;
        (address.url, address.target) = (url.clone(), target.clone());
        Some((target, url))
    }

    fn lock(&self) -> MutexGuard<'_, EndpointAddress> {
        self.address.lock()
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.lock();
        f.debug_struct("HttpEndpoint")
            .field("url", &address.url)
            .field("is_settled", &address.is_final)
            .finish()
    }
}
