//! A small authorization server, and an MCP endpoint that accepts its tokens.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// The server, as long as the test runs.
pub(crate) struct OauthServer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<ServerState>>,
}

/// What a test changes in the behaviour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerFault {
    #[default]
    None,
    /// It has no metadata at all, and only knows tokens.
    NoMetadata,
    /// Its metadata have another issuer.
    OtherIssuer,
    /// Its metadata do not list PKCE.
    NoPkce,
    /// It has no registration.
    NoRegistration,
    /// The token endpoint refuses codes.
    RefusedCodes,
    /// The revocation endpoint fails.
    NoRevocation,
    /// The revocation endpoint revokes refresh tokens alone.
    NoAccessRevocation,
    /// A call needs a scope that no token has.
    NeedsScope,
}

#[derive(Debug, Default)]
struct ServerState {
    fault: ServerFault,
    backend: Option<SocketAddr>,
    count: u64,
    access: HashSet<String>,
    refresh: HashSet<String>,
    revoked: Vec<String>,
    /// How long access tokens are valid, as the responses state it.
    life: u64,
    refreshes: u64,
    registrations: u64,
    scopes: String,
    /// The credentials that the token and revocation endpoints demand, if any.
    client: Option<String>,
}

impl OauthServer {
    /// Starts the server in front of an MCP server, to which authorized requests are passed on.
    pub(crate) fn start(backend: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = ServerState { backend: Some(backend), life: 3600, ..ServerState::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(stream, address, &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn set_fault(&self, fault: ServerFault) {
        self.state.lock().unwrap().fault = fault;
    }

    /// Makes access tokens of later responses expire after so many seconds.
    pub(crate) fn set_life(&self, seconds: u64) {
        self.state.lock().unwrap().life = seconds;
    }

    /// Makes all tokens invalid.
    pub(crate) fn forget_tokens(&self) {
        let mut state = self.state.lock().unwrap();
        state.access.clear();
        state.refresh.clear();
    }

    /// Returns the tokens that were revoked.
    pub(crate) fn revoked(&self) -> Vec<String> {
        self.state.lock().unwrap().revoked.clone()
    }

    /// Demands that the client authenticates itself with this secret; there is no registration any more.
    pub(crate) fn set_client(&self, id: &str, secret: &str) {
        let mut state = self.state.lock().unwrap();
        state.fault = ServerFault::NoRegistration;
        state.client = Some(STANDARD.encode(format!("{id}:{secret}")));
    }

    pub(crate) fn refreshes(&self) -> u64 {
        self.state.lock().unwrap().refreshes
    }

    pub(crate) fn registrations(&self) -> u64 {
        self.state.lock().unwrap().registrations
    }

    /// Returns the scopes of the last authorization.
    pub(crate) fn scopes(&self) -> String {
        self.state.lock().unwrap().scopes.clone()
    }

    /// Opens an authorization page as a user who agrees, and returns where the browser is sent.
    pub(crate) fn agree(&self, page: &str) -> String {
        let path = page.trim().strip_prefix(&format!("http://{}", self.address)).unwrap();
        let reply = crate::bare_client::get(self.address, path, &[]);
        assert_eq!(reply.status, 302, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }
}

impl ServerState {
    /// Reports whether a request has the credentials of the client, if any are demanded.
    fn is_client(&self, request: &HttpRequest) -> bool {
        let sent = request.head.lines().find_map(|line| line.strip_prefix("authorization: Basic "));
        self.client.as_deref().is_none_or(|client| sent.map(str::trim) == Some(client))
    }
}

struct HttpRequest {
    method: String,
    target: String,
    head: String,
    body: Vec<u8>,
}

fn read_request(stream: &TcpStream) -> Option<HttpRequest> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut start = head.split_whitespace();
    let (method, target) = (start.next()?.to_owned(), start.next()?.to_owned());
    Some(HttpRequest { method, target, head, body })
}

fn answer(stream: TcpStream, address: SocketAddr, state: &Mutex<ServerState>) {
    let Some(request) = read_request(&stream) else { return };
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let base = format!("http://{address}");
    let mut locked = state.lock().unwrap();
    match (request.method.as_str(), path) {
        ("GET", path) if path.starts_with("/.well-known/") => metadata(&stream, path, &base, locked.fault),
        ("POST", "/register") if locked.fault != ServerFault::NoMetadata => {
            locked.registrations += 1;
            let id = format!("client-{}", locked.registrations);
            respond(&stream, "201 Created", &[], &json!({ "client_id": id }).to_string());
        }
        ("GET", "/authorize") => {
            locked.scopes = parameter(query.as_bytes(), "scope").unwrap_or_default();
            let redirect = parameter(query.as_bytes(), "redirect_uri").unwrap();
            let sent = parameter(query.as_bytes(), "state").unwrap();
            let location = format!("{redirect}?code=secret-code&state={sent}&iss={base}");
            respond(&stream, "302 Found", &[("Location", &location)], "");
        }
        ("POST", "/token" | "/revoke") if !locked.is_client(&request) => {
            let error = json!({ "error": "invalid_client" });
            respond(&stream, "401 Unauthorized", &[], &error.to_string());
        }
        ("POST", "/token") => token(&stream, &request.body, &mut locked),
        ("POST", "/revoke") if locked.fault == ServerFault::NoRevocation => {
            respond(&stream, "503 Service Unavailable", &[], "");
        }
        ("POST", "/revoke")
            if locked.fault == ServerFault::NoAccessRevocation
                && parameter(&request.body, "token_type_hint").as_deref() == Some("access_token") =>
        {
            let error = json!({ "error": "unsupported_token_type" });
            respond(&stream, "400 Bad Request", &[], &error.to_string());
        }
        ("POST", "/revoke") => {
            let token = parameter(&request.body, "token").unwrap();
            locked.access.remove(&token);
            locked.refresh.remove(&token);
            locked.revoked.push(token);
            respond(&stream, "200 OK", &[], "");
        }
        (_, "/mcp") => {
            let authorization =
                request.head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
            let is_valid = authorization.is_some_and(|token| locked.access.contains(token.trim()));
            let (backend, fault) = (locked.backend.unwrap(), locked.fault);
            drop(locked);
            let is_call = request.body.windows(10).any(|window| window == b"tools/call");
            if fault == ServerFault::NeedsScope && is_valid && is_call {
                let resource = format!("{base}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!(
                    "Bearer error=\"insufficient_scope\", scope=\"shop:write\", resource_metadata=\"{resource}\""
                );
                return respond(&stream, "403 Forbidden", &[("WWW-Authenticate", &challenge)], "");
            }
            if is_valid { pass_on(stream, backend, &request) } else { challenge(&stream, &base, fault) }
        }
        _ => respond(&stream, "404 Not Found", &[], ""),
    }
}

fn metadata(stream: &TcpStream, path: &str, base: &str, fault: ServerFault) {
    let document = match path {
        _ if fault == ServerFault::NoMetadata => Value::Null,
        "/.well-known/oauth-protected-resource/mcp" => json!({
            "resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["mcp:use"],
        }),
        "/.well-known/oauth-authorization-server" => {
            let other = fault == ServerFault::OtherIssuer;
            let issuer = if other { "https://other.example".to_owned() } else { base.to_owned() };
            let mut document = json!({
                "issuer": issuer, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "revocation_endpoint": format!("{base}/revoke"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "authorization_response_iss_parameter_supported": true,
            });
            let members = document.as_object_mut().unwrap();
            if fault == ServerFault::NoPkce {
                members.remove("code_challenge_methods_supported");
            }
            if fault == ServerFault::NoRegistration {
                members.remove("registration_endpoint");
            }
            document
        }
        _ => Value::Null,
    };
    match document {
        Value::Null => respond(stream, "404 Not Found", &[], ""),
        document => respond(stream, "200 OK", &[], &document.to_string()),
    }
}

fn token(stream: &TcpStream, body: &[u8], state: &mut ServerState) {
    let is_valid = match parameter(body, "grant_type").as_deref() {
        Some("authorization_code") => {
            parameter(body, "code").as_deref() == Some("secret-code")
                && state.fault != ServerFault::RefusedCodes
        }
        Some("refresh_token") => {
            state.refreshes += 1;
            parameter(body, "refresh_token").is_some_and(|token| state.refresh.remove(&token))
        }
        _ => false,
    };
    if !is_valid {
        let error = json!({ "error": "invalid_grant", "error_description": "not today" });
        return respond(stream, "400 Bad Request", &[], &error.to_string());
    }
    state.count += 1;
    // The user is the subject of a JWT that only has a shape.
    let claims = URL_SAFE_NO_PAD.encode(json!({ "sub": "ann", "n": state.count }).to_string());
    let access = format!("{}.{claims}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#));
    let refresh = format!("secret-refresh-{}", state.count);
    state.access.insert(access.clone());
    state.refresh.insert(refresh.clone());
    let response = json!({
        "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": state.life,
        "scope": state.scopes,
    });
    respond(stream, "200 OK", &[], &response.to_string());
}

fn challenge(stream: &TcpStream, base: &str, fault: ServerFault) {
    let resource = format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
    let challenge = if fault == ServerFault::NoMetadata { "Bearer" } else { &resource };
    respond(stream, "401 Unauthorized", &[("WWW-Authenticate", challenge)], "");
}

/// Sends the request to the MCP server, and its response back.
fn pass_on(mut stream: TcpStream, backend: SocketAddr, request: &HttpRequest) {
    let mut server = TcpStream::connect(backend).unwrap();
    let dropped = ["authorization:", "connection:", "host:"];
    let is_kept = |line: &&str| !dropped.iter().any(|name| line.to_ascii_lowercase().starts_with(name));
    let head: String = request.head.lines().filter(is_kept).map(|line| format!("{line}\r\n")).collect();
    write!(server, "{head}Host: {backend}\r\nConnection: close\r\n\r\n").unwrap();
    server.write_all(&request.body).unwrap();
    let _ = std::io::copy(&mut server, &mut stream);
}

fn respond(mut stream: &TcpStream, status: &str, headers: &[(&str, &str)], body: &str) {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Returns a parameter of a form or query, decoded.
fn parameter(form: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(form).ok()?;
    let encoded = text.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")))?;
    let mut bytes = Vec::new();
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
