use std::fmt;

use http::Method;
use http::header::LOCATION;
use parking_lot::{Mutex, MutexGuard};
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{
    HeaderLines, HttpClient, HttpClientOptions, HttpError, HttpRequest, HttpResponse, OriginMismatch,
    RequestTarget,
};

/// The longest way within the origin to where the server is.
const MAX_REDIRECTS: usize = 3;

/// Where a server is.
pub(super) struct HttpEndpoint {
    http: HttpClient,
    address: Mutex<EndpointAddress>,
}

struct EndpointAddress {
    url: Url,
    target: RequestTarget,
    /// Something was answered there, so that it does not move any more.
    is_final: bool,
}

/// A request that says where it goes.
pub(super) struct AddressedRequest {
    request: HttpRequest,
    /// The server does not move any more.
    is_final: bool,
}

impl HttpEndpoint {
    pub(super) fn new(dialer: Dialer, url: &Url) -> Result<Self, OriginMismatch> {
        let http = HttpClient::new(dialer, url.clone(), &HttpClientOptions::default());
        let at = EndpointAddress { target: http.target(url)?, url: url.clone(), is_final: false };
        Ok(Self { http, address: Mutex::new(at) })
    }

    /// Says where a request goes.
    pub(super) fn build_request(
        &self,
        method: Method,
        headers: HeaderLines,
        body: Vec<u8>,
    ) -> AddressedRequest {
        let at = self.lock();
        let request = HttpRequest { method, target: at.target.clone(), headers, body };
        AddressedRequest { request, is_final: at.is_final }
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&self, addressed: &AddressedRequest) -> Result<HttpResponse, HttpError> {
        if addressed.is_final {
            return self.http.send(&addressed.request).await;
        }
        Box::pin(self.send_following_redirects(addressed.request.clone())).await
    }

    /// Sends a request to where the server says that it is.
    async fn send_following_redirects(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        for _ in 0..MAX_REDIRECTS {
            let response = self.http.send(&request).await?;
            match self.redirect_target(&response) {
                Some(place) => request.target = place,
                None => return Ok(response),
            }
            response.body.finish();
        }
        self.http.send(&request).await
    }

    /// Finds the place that a response says to use instead, which is often only a slash away.
    ///
    /// Such a response says that the request was not looked at, and one to another origin is not followed.
    fn redirect_target(&self, response: &HttpResponse) -> Option<RequestTarget> {
        let mut at = self.lock();
        if !matches!(response.status.as_u16(), 307 | 308) {
            at.is_final |= response.status.is_success();
            return None;
        }
        let location = response.headers.get_text(&LOCATION)?;
        let url = at.url.join(location).ok()?;
        let place = self.http.target(&url).ok()?;
        (at.url, at.target) = (url, place.clone());
        Some(place)
    }

    fn lock(&self) -> MutexGuard<'_, EndpointAddress> {
        self.address.lock()
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.lock();
        f.debug_struct("HttpEndpoint").field("url", &at.url).field("is_settled", &at.is_final).finish()
    }
}
