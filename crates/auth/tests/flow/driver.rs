//! A driver of flows over a table of canned responses.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use trunkline_auth::callback::AuthorizationCallback;
use trunkline_auth::challenge::ChallengeList;
use trunkline_auth::flow::{AuthorizationFlow, FlowAction, FlowConfig, FlowError, FlowOutcome, FlowTrigger};
use trunkline_auth::pkce::FlowRandom;
use trunkline_transport::Secret;

pub(crate) const MCP: &str = "http://localhost:1/mcp";
pub(crate) const REDIRECT: &str = "http://localhost:3000/callback";

pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
}

pub(crate) fn config() -> FlowConfig {
    FlowConfig::new(MCP, REDIRECT)
}

pub(crate) fn challenged(value: &str) -> FlowTrigger {
    FlowTrigger::Challenged(ChallengeList::parse(value))
}

/// A request that the flow made, with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) line: String,
    pub(crate) body: String,
    pub(crate) headers: http::HeaderMap,
}

/// Responses by method and URL; everything else is 404. What the flow did is recorded.
pub(crate) struct CannedServer {
    responses: HashMap<String, Vec<Response<Bytes>>>,
    /// Appended to the authorization response, such as `&iss=…`; `None` refuses to open pages.
    pub(crate) callback: Option<String>,
    pub(crate) seen: Vec<SeenRequest>,
    pub(crate) pages: Vec<String>,
    pub(crate) proofs: Vec<Option<String>>,
    pub(crate) assertions: usize,
}

impl CannedServer {
    pub(crate) fn new() -> Self {
        Self {
            responses: HashMap::new(),
            callback: Some("code=the-code".to_owned()),
            seen: Vec::new(),
            pages: Vec::new(),
            proofs: Vec::new(),
            assertions: 0,
        }
    }

    /// An authorization server at `https://as.example` for the MCP server, with registration and a token.
    pub(crate) fn usual() -> Self {
        let mut server = Self::new();
        server.resource_metadata("");
        server.server_metadata("");
        server.json("POST https://as.example/register", 201, r#"{"client_id":"dynamic"}"#);
        server.token();
        server
    }

    pub(crate) fn resource_metadata(&mut self, extra: &str) {
        let body = format!(r#"{{"resource":"{MCP}","authorization_servers":["https://as.example"]{extra}}}"#);
        self.json("GET http://localhost:1/.well-known/oauth-protected-resource/mcp", 200, &body);
    }

    pub(crate) fn server_metadata(&mut self, extra: &str) {
        let body = server_document("https://as.example", "https://as.example", extra);
        self.json("GET https://as.example/.well-known/oauth-authorization-server", 200, &body);
    }

    pub(crate) fn token(&mut self) {
        let body = r#"{"access_token":"the-token","token_type":"Bearer","expires_in":3600}"#;
        self.json("POST https://as.example/token", 200, body);
    }

    /// Sets the response to a request.
    pub(crate) fn json(&mut self, line: &str, status: u16, body: &str) {
        let response = Response::builder().status(status).body(Bytes::from(body.to_owned())).unwrap();
        self.responses.insert(line.to_owned(), vec![response]);
    }

    /// Puts a response before the others to the same request.
    pub(crate) fn first(&mut self, line: &str, response: Response<Bytes>) {
        self.responses.entry(line.to_owned()).or_default().insert(0, response);
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.seen.iter().map(|request| request.line.as_str()).collect()
    }

    pub(crate) fn body_of(&self, line: &str) -> &str {
        &self.seen.iter().rev().find(|request| request.line == line).unwrap().body
    }

    /// Returns a parameter of the last page that was opened.
    pub(crate) fn page_parameter(&self, name: &str) -> Option<String> {
        parameter(self.pages.last().unwrap().split_once('?').unwrap().1, name)
    }

    pub(crate) fn run(&mut self, config: FlowConfig, trigger: FlowTrigger) -> Result<FlowOutcome, FlowError> {
        let mut next = 0;
        let random = FlowRandom::draw(|bytes| {
            next += 1;
            bytes.fill(next);
        });
        let mut flow = AuthorizationFlow::new(config, trigger, random)?;
        for _ in 0..40 {
            match flow.next()? {
                FlowAction::Fetch(fetch) => {
                    self.proofs.extend(fetch.proof.map(|proof| proof.nonce));
                    match self.answer(&fetch.request) {
                        Some(response) => flow.on_response(&response, now())?,
                        None => flow.on_fetch_failed(std::io::Error::other("connection refused"), now())?,
                    }
                }
                FlowAction::OpenPage(page) => {
                    self.pages.push(page.url.clone());
                    let state = self.page_parameter("state").unwrap();
                    let callback = self.callback.as_ref().expect("no page is expected");
                    let url = format!("{}?{callback}&state={state}", page.redirect_uri);
                    flow.on_callback(&AuthorizationCallback::from_url(&url))?;
                }
                FlowAction::NeedAssertion(request) => {
                    self.assertions += 1;
                    let text = format!("jwt{}-{}-{}", self.assertions, request.client_id, request.audience);
                    flow.on_assertion(Secret::new(text))?;
                }
                FlowAction::Done(outcome) => return Ok(*outcome),
                action => panic!("{action:?}"),
            }
        }
        panic!("the flow does not end: {:?}", self.lines());
    }

    pub(crate) fn respond(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        self.answer(request).expect("the server is up")
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let line = format!("{} {}", request.method(), request.uri());
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        self.seen.push(SeenRequest { line: line.clone(), body, headers: request.headers().clone() });
        if request.uri().host() == Some("down.example") {
            return None;
        }
        match self.responses.get_mut(&line) {
            Some(responses) if responses.len() > 1 => Some(responses.remove(0)),
            Some(responses) => responses.first().cloned(),
            None => Some(Response::builder().status(404).body(Bytes::new()).unwrap()),
        }
    }
}

pub(crate) fn server_document(issuer: &str, base: &str, extra: &str) -> String {
    format!(
        r#"{{"issuer":"{issuer}","authorization_endpoint":"{base}/authorize","token_endpoint":"{base}/token",
        "registration_endpoint":"{base}/register","code_challenge_methods_supported":["S256"]{extra}}}"#
    )
}

/// Returns a form parameter, decoded as far as the tests need it.
pub(crate) fn parameter(form: &str, name: &str) -> Option<String> {
    let value = form.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.replace('+', " ").replace("%3A", ":").replace("%2F", "/"))
}
