//! A browser for the connect page of a hub: it consents, follows the authorization server, and returns with its answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use http::{Method, StatusCode};
use trunkline::Result;
use trunkline_client::transport::Url;
use trunkline_client::transport::dial::Dialer;
use trunkline_client::transport::http::{HttpClient, HttpClientOptions, HttpRequest};

const MAX_PAGE_BYTES: usize = 1 << 20;

struct Page {
    status: StatusCode,
    text: String,
    location: Option<String>,
    cookie: Option<String>,
}

/// Opens a link, consents and logs in.
///
/// # Errors
/// A page reports that the login failed.
pub(super) async fn open_link(link: &str) -> Result<()> {
    let consent = request(Method::GET, link, None, "").await?;
    let form_key =
        consent.text.split_once("name=\"form_key\" value=\"").and_then(|(_, rest)| rest.split('"').next());
    let form_key = form_key.ok_or_else(|| consent.failure())?;
    let cookie = consent.cookie.as_deref();
    let sent = request(Method::POST, link, cookie, &format!("form_key={form_key}")).await?;
    let login_page = sent.location.as_deref().ok_or_else(|| sent.failure())?;
    // The cookie is for the hub alone.
    let logged_in = request(Method::GET, login_page, None, "").await?;
    let callback = logged_in.location.as_deref().ok_or_else(|| logged_in.failure())?;
    let done = request(Method::GET, callback, cookie, "").await?;
    if done.status == StatusCode::OK { Ok(()) } else { Err(done.failure().into()) }
}

impl Page {
    fn failure(&self) -> String {
        format!("a login page has status {}: {}", self.status, self.text)
    }
}

async fn request(method: Method, url: &str, cookie: Option<&str>, form: &str) -> Result<Page> {
    let url: Url = url.parse()?;
    let client = HttpClient::new(Dialer::default(), url.clone(), &HttpClientOptions::default());
    let mut headers = HeaderMap::new();
    if let Some(cookie) = cookie {
        headers.insert(COOKIE, HeaderValue::from_str(cookie)?);
    }
    if method == Method::POST {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    }
    let body = form.as_bytes().to_vec();
    let request = HttpRequest { method, target: client.target(&url)?, headers: headers.into(), body };
    let mut response = client.send(&request).await?;
    let body: Bytes = response.body.read_all(MAX_PAGE_BYTES).await?;
    let header = |name| response.headers.get_text(name).map(str::to_owned);
    let cookie = header(&SET_COOKIE).map(|cookie| cookie.split(';').next().unwrap_or_default().to_owned());
    Ok(Page {
        status: response.status,
        text: String::from_utf8_lossy(&body).into_owned(),
        location: header(&LOCATION),
        cookie,
    })
}
