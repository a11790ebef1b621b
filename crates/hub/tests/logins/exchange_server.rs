//! A token endpoint that exchanges the tokens of a hub's users for those of a server (RFC 8693).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::Response;
use serde_json::{Value, json};
use trunkline_auth::decode_form;
use trunkline_config::{AuthKind, ServerConfig};

use crate::protected_server::ProtectedServer;
use crate::raw_server;
use crate::token_issuer::TokenIssuer;

pub(crate) struct ExchangeServer {
    pub(crate) endpoint: String,
    state: Arc<Mutex<ExchangeState>>,
}

#[derive(Default)]
struct ExchangeState {
    forms: Vec<HashMap<String, String>>,
    refusal: Option<&'static str>,
    /// How long the tokens are valid, in seconds.
    life: Option<u64>,
    /// The token that is exchanged for one with the scope `write`.
    writer: Option<&'static str>,
}

impl ExchangeServer {
    /// Starts an endpoint that issues tokens for a server: `token-of-NAME-…` becomes one of `NAME-there`.
    pub(crate) async fn start(server: &ProtectedServer) -> Self {
        let (state, issuer) = (Arc::<Mutex<ExchangeState>>::default(), server.issuer.clone());
        let kept = state.clone();
        let origin = raw_server::start(move |_, request| {
            let form = decode_form(&request.body).into_iter().collect();
            let (status, answer) = respond(&mut kept.lock().unwrap(), &issuer, form);
            let response = Response::builder().status(status).header("content-type", "application/json");
            response.body(answer.to_string()).unwrap()
        })
        .await;
        Self { endpoint: format!("{origin}/exchange"), state }
    }

    pub(crate) fn config(&self, server: &ProtectedServer) -> ServerConfig {
        let mut config = server.config("notes");
        config.auth.kind = AuthKind::TokenExchange;
        config.auth.token_endpoint = Some((&*self.endpoint).into());
        config.auth.client_id = Some("the-hub".into());
        config.auth.client_secret = Some("secret-of-the-hub".into());
        config.auth.audience = Some("notes-service".into());
        config
    }

    pub(crate) fn forms(&self) -> Vec<HashMap<String, String>> {
        self.state.lock().unwrap().forms.clone()
    }

    /// Refuses every exchange with an OAuth error, or none.
    pub(crate) fn refuse(&self, error: Option<&'static str>) {
        self.state.lock().unwrap().refusal = error;
    }

    /// Grants the scope `write` to one token only.
    pub(crate) fn grant_write_for(&self, token: &'static str) {
        self.state.lock().unwrap().writer = Some(token);
    }

    pub(crate) fn set_life(&self, seconds: u64) {
        self.state.lock().unwrap().life = Some(seconds);
    }
}

fn respond(state: &mut ExchangeState, issuer: &TokenIssuer, form: HashMap<String, String>) -> (u16, Value) {
    let user = form["subject_token"].split('-').nth(2).unwrap().to_owned();
    let is_writer = state.writer.is_some_and(|writer| form["subject_token"] == writer);
    let scopes = if is_writer { "write" } else { "" };
    state.forms.push(form);
    if let Some(error) = state.refusal {
        return (400, json!({ "error": error, "error_description": "sentinel-description" }));
    }
    let mut answer = json!({
        "access_token": issuer.issue_access(&format!("{user}-there"), scopes),
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "refresh_token": "refresh-that-is-not-used",
    });
    if let Some(life) = state.life {
        answer["expires_in"] = life.into();
    }
    (200, answer)
}
