//! A small authorization server: codes, refresh with rotation, client credentials, assertions, ID-JAG.

use std::collections::HashMap;
use std::sync::Mutex;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use trunkline_auth::decode_form;

/// A token that was issued.
#[derive(Clone, Debug)]
pub(crate) struct IssuedToken {
    pub(crate) user: String,
    pub(crate) scopes: String,
}

#[derive(Debug, Default)]
pub(crate) struct TokenIssuer {
    state: Mutex<IssuerState>,
}

#[derive(Debug, Default)]
struct IssuerState {
    next: usize,
    access: HashMap<String, IssuedToken>,
    refresh: HashMap<String, IssuedToken>,
    codes: HashMap<String, IssuedToken>,
    /// The grants so far.
    grants: Vec<String>,
    /// How long tokens live, in seconds.
    life: Option<u64>,
}

type Form = HashMap<String, String>;

impl TokenIssuer {
    pub(crate) fn token(&self, token: &str) -> Option<IssuedToken> {
        self.state.lock().unwrap().access.get(token).cloned()
    }

    /// Returns how often a grant was used.
    pub(crate) fn grants(&self, grant: &str) -> usize {
        self.state.lock().unwrap().grants.iter().filter(|known| known.ends_with(grant)).count()
    }

    /// Lets access tokens expire at the server, so that they have to be refreshed.
    pub(crate) fn expire_access(&self) {
        self.state.lock().unwrap().access.clear();
    }

    /// Forgets the refresh tokens, as if another process had rotated them.
    pub(crate) fn forget_refresh(&self) {
        self.state.lock().unwrap().refresh.clear();
    }

    /// Issues an access token as another issuer of the same server does.
    pub(crate) fn issue_access(&self, user: &str, scopes: &str) -> String {
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let access = format!("access-{}", state.next);
        state.access.insert(access.clone(), IssuedToken { user: user.to_owned(), scopes: scopes.to_owned() });
        access
    }

    pub(crate) fn set_life(&self, seconds: u64) {
        self.state.lock().unwrap().life = Some(seconds);
    }

    pub(crate) fn respond(&self, origin: &str, path: &str, query: &str, body: &str) -> Response<String> {
        let form: Form = decode_form(if body.is_empty() { query } else { body }).into_iter().collect();
        match path {
            "/.well-known/oauth-authorization-server" => json_response(&metadata(origin)),
            "/register" => {
                json_response(&json!({ "client_id": "registered", "redirect_uris": redirect_uris(body) }))
            }
            "/authorize" => self.authorize(origin, &form),
            "/token" => self.issue(&form),
            _ => status_response(StatusCode::NOT_FOUND, "not_found"),
        }
    }

    /// The user is the one that the browser names.
    fn authorize(&self, origin: &str, form: &Form) -> Response<String> {
        let mut state = self.state.lock().unwrap();
        state.next += 1;
        let code = format!("code-{}", state.next);
        let issued = IssuedToken {
            user: form.get("as_user").cloned().unwrap_or_else(|| "nobody".to_owned()),
            scopes: form.get("scope").cloned().unwrap_or_default(),
        };
        state.codes.insert(code.clone(), issued);
        let location = format!("{}?code={code}&state={}&iss={origin}", form["redirect_uri"], form["state"]);
        let response = Response::builder().status(StatusCode::FOUND).header("location", location);
        response.body(String::new()).unwrap()
    }

    fn issue(&self, form: &Form) -> Response<String> {
        let mut state = self.state.lock().unwrap();
        let grant = form["grant_type"].clone();
        state.grants.push(grant.clone());
        let issued = match &*grant {
            "authorization_code" => state.codes.remove(&form["code"]),
            "refresh_token" => state.refresh.remove(&form["refresh_token"]),
            "urn:ietf:params:oauth:grant-type:token-exchange" => {
                assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:id-jag");
                return json_response(&json!({
                    "access_token": format!("id-jag-of-{}", form["subject_token"]),
                    "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
                    "token_type": "N_A",
                }));
            }
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => {
                Some(IssuedToken { user: form["assertion"].clone(), scopes: String::new() })
            }
            _ => Some(IssuedToken { user: "the hub".to_owned(), scopes: String::new() }),
        };
        let Some(issued) = issued else { return status_response(StatusCode::BAD_REQUEST, "invalid_grant") };
        state.next += 1;
        let (access, refresh) = (format!("access-{}", state.next), format!("refresh-{}", state.next));
        state.access.insert(access.clone(), issued.clone());
        state.refresh.insert(refresh.clone(), issued.clone());
        let mut answer = json!({
            "access_token": access,
            "token_type": "Bearer",
            "refresh_token": refresh,
            "scope": issued.scopes,
        });
        if let Some(life) = state.life {
            answer["expires_in"] = life.into();
        }
        json_response(&answer)
    }
}

fn metadata(origin: &str) -> Value {
    json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "authorization_response_iss_parameter_supported": true,
        "grant_types_supported": [
            "authorization_code", "refresh_token", "client_credentials",
            "urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:ietf:params:oauth:grant-type:token-exchange",
        ],
    })
}

fn redirect_uris(body: &str) -> Value {
    serde_json::from_str::<Value>(body).map(|sent| sent["redirect_uris"].clone()).unwrap_or_default()
}

fn json_response(value: &Value) -> Response<String> {
    Response::builder().header("content-type", "application/json").body(value.to_string()).unwrap()
}

fn status_response(status: StatusCode, error: &str) -> Response<String> {
    let mut response = json_response(&json!({ "error": error }));
    *response.status_mut() = status;
    response
}
