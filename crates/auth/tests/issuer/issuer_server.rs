//! An issuer over HTTP: metadata, keys and introspection, with real signatures.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use trunkline_auth::access_token::TokenRules;
use trunkline_auth::issuer::TrustedIssuer;
use trunkline_auth::jose::SigningKey;
use trunkline_protocol::RawJson;

/// The resource that tokens are for.
pub(crate) const RESOURCE: &str = "https://hub.example/mcp";

/// An issuer that listens on a free port of this machine.
pub(crate) struct IssuerServer {
    pub(crate) address: SocketAddr,
    content: Arc<Mutex<IssuerContent>>,
    /// Whether requests are answered.
    open: watch::Sender<bool>,
}

#[derive(Default)]
struct IssuerContent {
    documents: BTreeMap<String, Value>,
    introspected: BTreeMap<String, Value>,
    requests: BTreeMap<String, usize>,
    is_down: bool,
}

/// A key of the issuer.
pub(crate) struct IssuerKey {
    pub(crate) key: SigningKey,
    pub(crate) id: &'static str,
}

impl IssuerKey {
    pub(crate) fn new(id: &'static str) -> Self {
        Self { key: signing_key(), id }
    }

    pub(crate) fn jwk(&self) -> Value {
        let mut jwk: Value = serde_json::from_str(self.key.public().to_jwk().as_str()).unwrap();
        jwk["kid"] = self.id.into();
        jwk
    }

    /// Signs a token with the type and claims; `null` removes a claim.
    pub(crate) fn sign(&self, typ: Option<&str>, claims: Value) -> String {
        let mut claims = claims;
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let mut header = vec![("kid", RawJson::from_text(self.id))];
        header.extend(typ.map(|typ| ("typ", RawJson::from_text(typ))));
        self.key.sign_compact(&header, &RawJson::from(claims)).unwrap()
    }
}

pub(crate) fn signing_key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate_es256().unwrap(), None).unwrap()
}

/// Returns a time in seconds, as claims have it.
pub(crate) fn seconds_from_now(offset: i64) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap() + offset
}

impl IssuerServer {
    /// Starts an issuer without keys.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let content = Arc::new(Mutex::new(IssuerContent::default()));
        let server = Self { address, content: content.clone(), open: watch::Sender::new(true) };
        let issuer = server.issuer();
        let metadata = json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/jwks"), "introspection_endpoint": format!("{issuer}/introspect"),
            "code_challenge_methods_supported": ["S256"],
        });
        server.set_document("/.well-known/oauth-authorization-server", metadata);
        let open = server.open.subscribe();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, content.clone(), open.clone()));
            }
        });
        server
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set_document(&self, path: &str, document: Value) {
        self.content.lock().documents.insert(path.to_owned(), document);
    }

    pub(crate) fn set_keys(&self, keys: &[&IssuerKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.set_document("/jwks", json!({ "keys": keys }));
    }

    /// Sets what the introspection of a token returns, which may be an error.
    pub(crate) fn set_introspected(&self, token: &str, answer: Value) {
        self.content.lock().introspected.insert(token.to_owned(), answer);
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.content.lock().is_down = is_down;
    }

    /// Lets requests wait, or go on.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.open.send_replace(is_open);
    }

    /// Returns how many requests a path had.
    pub(crate) fn requests(&self, path: &str) -> usize {
        self.content.lock().requests.get(path).copied().unwrap_or(0)
    }

    /// Waits until a path has had this many requests.
    pub(crate) async fn wait_for_requests(&self, path: &str, count: usize) {
        while self.requests(path) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the claims of a valid token.
    pub(crate) fn claims(&self, subject: &str) -> Value {
        json!({
            "iss": self.issuer(), "sub": subject, "aud": RESOURCE, "exp": seconds_from_now(600), "iat": seconds_from_now(0),
            "client_id": "app", "jti": "1", "scope": "mcp:use",
        })
    }

    pub(crate) fn rules(&self) -> TokenRules {
        TokenRules::new(self.issuer(), [RESOURCE])
    }

    pub(crate) fn trusted(&self) -> TrustedIssuer {
        TrustedIssuer::jwt(self.rules())
    }
}

async fn answer(
    mut stream: TcpStream,
    content: Arc<Mutex<IssuerContent>>,
    mut open: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut received = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut received).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    // As a proxy it gets whole URLs.
    let target = head.split(' ').nth(1).unwrap_or_default();
    let origin = stream.local_addr().map(|address| format!("http://{address}"))?;
    let path = target.strip_prefix(&origin).unwrap_or(target).to_owned();
    *content.lock().requests.entry(path.clone()).or_default() += 1;
    let _ = open.wait_for(|is_open| *is_open).await;
    let (status, document) = respond(&content.lock(), &path, &head, &body);
    let document = document.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        document.len()
    );
    stream.write_all(format!("{head}{document}").as_bytes()).await
}

fn respond(content: &IssuerContent, path: &str, head: &str, body: &str) -> (u16, Value) {
    if content.is_down {
        return (500, json!({}));
    }
    if path == "/introspect" {
        // `rs:secret` in Base64.
        if !head.contains("Basic cnM6c2VjcmV0") {
            return (401, json!({ "error": "invalid_client" }));
        }
        let token = body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
        let answer = content.introspected.get(token).cloned().unwrap_or(json!({ "active": false }));
        return (if answer.get("error").is_some() { 400 } else { 200 }, answer);
    }
    content.documents.get(path).map_or((404, json!({})), |document| (200, document.clone()))
}
