//! A token endpoint that rotates refresh tokens, and refuses one that was used before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Refresh tokens are `r0`, `r1` and so on; `r0` is the first that it accepts.
pub(crate) struct TokenEndpoint {
    pub(crate) url: String,
    state: Arc<EndpointState>,
}

struct EndpointState {
    requests: AtomicU64,
    rotations: AtomicU64,
    is_failing: AtomicBool,
    refuses_client: AtomicBool,
    /// Each response needs a permit.
    responses: Semaphore,
}

impl TokenEndpoint {
    /// Starts an endpoint that responds at once.
    pub(crate) async fn start() -> Self {
        let endpoint = Self::start_silent().await;
        endpoint.allow_responses(Semaphore::MAX_PERMITS);
        endpoint
    }

    /// Starts an endpoint that responds only when it is allowed to.
    pub(crate) async fn start_silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", listener.local_addr().unwrap());
        let state = Arc::new(EndpointState {
            requests: AtomicU64::new(0),
            rotations: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            refuses_client: AtomicBool::new(false),
            responses: Semaphore::new(0),
        });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(respond(stream, shared.clone()));
            }
        });
        Self { url, state }
    }

    pub(crate) fn allow_responses(&self, count: usize) {
        self.state.responses.add_permits(count);
    }

    /// Makes it respond with status 503, or not any more.
    pub(crate) fn set_failing(&self, is_failing: bool) {
        self.state.is_failing.store(is_failing, Ordering::SeqCst);
    }

    /// Makes it refuse every client, as if its secret was replaced, or not any more.
    pub(crate) fn set_refusing_clients(&self, refuses: bool) {
        self.state.refuses_client.store(refuses, Ordering::SeqCst);
    }

    /// Returns how many requests came.
    pub(crate) fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Waits until this many requests have come.
    pub(crate) async fn has_requests(&self, count: u64) {
        while self.requests() < count {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the refresh token that it accepts.
    pub(crate) fn valid_token(&self) -> String {
        format!("r{}", self.state.rotations.load(Ordering::SeqCst))
    }
}

async fn respond(mut stream: TcpStream, state: Arc<EndpointState>) {
    let Some(body) = read_body(&mut stream).await else { return };
    state.requests.fetch_add(1, Ordering::SeqCst);
    state.responses.acquire().await.unwrap().forget();
    let rotations = state.rotations.load(Ordering::SeqCst);
    let is_valid = body.split('&').any(|pair| pair == format!("refresh_token=r{rotations}"));
    let (status, json) = if state.is_failing.load(Ordering::SeqCst) {
        ("503 Service Unavailable", String::new())
    } else if state.refuses_client.load(Ordering::SeqCst) {
        ("401 Unauthorized", r#"{"error":"invalid_client"}"#.to_owned())
    } else if is_valid {
        let next = state.rotations.fetch_add(1, Ordering::SeqCst) + 1;
        ("200 OK", format!(r#"{{"access_token":"a{next}","refresh_token":"r{next}","expires_in":3600}}"#))
    } else {
        ("400 Bad Request", r#"{"error":"invalid_grant"}"#.to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        json.len()
    );
    let _ = stream.write_all(format!("{head}{json}").as_bytes()).await;
}

async fn read_body(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        text.push_str(std::str::from_utf8(buffer.get(..count)?).ok()?);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lower = head.to_ascii_lowercase();
        let length =
            lower.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse::<usize>();
        if body.len() >= length.ok()? {
            return Some(body.to_owned());
        }
    }
}
