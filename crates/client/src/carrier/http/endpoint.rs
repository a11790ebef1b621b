use std::fmt;

use http::Method;
use http::header::LOCATION;
use parking_lot::{Mutex, MutexGuard};
use trunkline_transport::Url;
use trunkline_transport::dial::Dialer;
use trunkline_transport::http::{
    HeaderLines, HttpClient, HttpError, HttpOptions, HttpRequest, HttpResponse, OtherOrigin, Place,
};

/// The longest way within the origin to where the server is.
const MOST_REDIRECTS: usize = 3;

/// Where a server is.
pub(super) struct Endpoint {
    http: HttpClient,
    at: Mutex<At>,
}

struct At {
    url: Url,
    place: Place,
    /// Something was answered there, so that it does not move any more.
    is_settled: bool,
}

/// A request that says where it goes.
pub(super) struct Addressed {
    request: HttpRequest,
    /// The server does not move any more.
    is_settled: bool,
}

impl Endpoint {
    pub(super) fn new(dialer: Dialer, url: &Url) -> Result<Self, OtherOrigin> {
        let http = HttpClient::new(dialer, url.clone(), &HttpOptions::default());
        let at = At { place: http.place(url)?, url: url.clone(), is_settled: false };
        Ok(Self { http, at: Mutex::new(at) })
    }

    /// Says where a request goes.
    pub(super) fn address(&self, method: Method, headers: HeaderLines, body: Vec<u8>) -> Addressed {
        let at = self.lock();
        let request = HttpRequest { method, place: at.place.clone(), headers, body };
        Addressed { request, is_settled: at.is_settled }
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&self, addressed: &Addressed) -> Result<HttpResponse, HttpError> {
        if addressed.is_settled {
            return self.http.send(&addressed.request).await;
        }
        Box::pin(self.find(addressed.request.clone())).await
    }

    /// Sends a request to where the server says that it is.
    async fn find(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        for _ in 0..MOST_REDIRECTS {
            let response = self.http.send(&request).await?;
            match self.follow(&response) {
                Some(place) => request.place = place,
                None => return Ok(response),
            }
            response.body.finish();
        }
        self.http.send(&request).await
    }

    /// Finds the place that a response says to use instead, which is often only a slash away.
    ///
    /// Such a response says that the request was not looked at, and one to another origin is not followed.
    fn follow(&self, response: &HttpResponse) -> Option<Place> {
        let mut at = self.lock();
        if !matches!(response.status.as_u16(), 307 | 308) {
            at.is_settled |= response.status.is_success();
            return None;
        }
        let location = response.headers.get_text(&LOCATION)?;
        let url = at.url.join(location).ok()?;
        let place = self.http.place(&url).ok()?;
        (at.url, at.place) = (url, place.clone());
        Some(place)
    }

    fn lock(&self) -> MutexGuard<'_, At> {
        self.at.lock()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.lock();
        f.debug_struct("Endpoint").field("url", &at.url).field("is_settled", &at.is_settled).finish()
    }
}
