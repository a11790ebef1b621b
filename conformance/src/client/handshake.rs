//! The handshake of earlier revisions, with the headers of this one.
//!
//! The suite looks at these two messages in a revision that has them no more. No client of ours sends them there, so they
//! are sent by hand; otherwise the suite would pass over the two checks without a word.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use trunkline::Result;
use trunkline::protocol::Revision;
use trunkline_client::transport::Url;
use trunkline_client::transport::dial::Dialer;
use trunkline_client::transport::http::{HttpClient, HttpClientOptions, HttpRequest};

const MOST_BYTES: usize = 1 << 20;

/// Sends both messages and expects that the server takes them.
pub(super) async fn by_hand(url: &str) -> Result<()> {
    let url: Url = url.parse()?;
    let client = HttpClient::new(Dialer::default(), url.clone(), &HttpClientOptions::default());
    let version = Revision::NEWEST_LEGACY.as_str();
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": { "name": "everything-client", "version": env!("CARGO_PKG_VERSION") },
    } });
    post(&client, &url, "initialize", &initialize).await?;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(&client, &url, "notifications/initialized", &initialized).await
}

async fn post(client: &HttpClient, url: &Url, method: &str, body: &Value) -> Result<()> {
    let version = HeaderValue::from_static(Revision::NEWEST_LEGACY.as_str());
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
        (HeaderName::from_static("mcp-protocol-version"), version),
        (HeaderName::from_static("mcp-method"), HeaderValue::from_str(method)?),
    ]);
    let request = HttpRequest {
        method: http::Method::POST,
        target: client.target(url)?,
        headers: headers.into(),
        body: body.to_string().into(),
    };
    let mut response = client.send(&request).await?;
    response.body.read_all(MOST_BYTES).await?;
    if !response.status.is_success() {
        return Err(format!("`{method}` was answered with {}", response.status).into());
    }
    Ok(())
}
