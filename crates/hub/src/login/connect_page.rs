//! Answers the requests of browsers for the pages of a login.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use trunkline_auth::callback::AuthorizationCallback;
use trunkline_auth::decode_form;
use trunkline_config::ServerConfig;
use trunkline_server::http::{HttpService, IncomingRequest, McpResponseBody, RequestBody};
use trunkline_session::Principal;
use trunkline_transport::Url;

use super::connect_link::{BrowserCookie, ConnectLink, LinkStage, LoginProgress};
use super::html::{ConsentDetails, consent_page, message_page, token_page};
use super::login_flow::{self, is_secret};
use super::{LoginAudience, UserLogins};

/// The path of the page of a link, before its id.
pub(super) const CONNECT_PREFIX: &str = "/connect/";

/// The path to which authorization servers send their answers; `state` and `iss` distinguish them.
///
/// Below it each server has a path of its own, so that the answer for one is never used for another, even if an
/// authorization server sends no `iss` ([RFC 9700 §4.4.2](https://www.rfc-editor.org/rfc/rfc9700#section-4.4.2)). A client that
/// the operator registers has this one redirect URI.
pub(super) const CALLBACK_PATH: &str = "/oauth/callback";

/// Returns the path to which the authorization server of a server sends its answers.
pub(super) fn callback_path(config: &ServerConfig) -> String {
    match config.auth.client_id.is_some() || config.auth.client_document.is_some() {
        true => CALLBACK_PATH.to_owned(),
        false => format!("{CALLBACK_PATH}/{}", URL_SAFE_NO_PAD.encode(config.name.as_str())),
    }
}

/// Headers by which a proxy reports that a request came from another machine.
const FORWARDED: [HeaderName; 2] =
    [HeaderName::from_static("forwarded"), HeaderName::from_static("x-forwarded-for")];

/// The longest body of a request.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// A request of a browser.
pub(super) struct ConnectRequest<'a> {
    pub(super) parts: Parts,
    body: Bytes,
    /// The address that it came from.
    remote_address: Option<IpAddr>,
    /// The endpoint of the hub, which knows the principals.
    endpoint: &'a HttpService,
}

impl UserLogins {
    /// Reports whether a path is one of the pages.
    pub fn serves_path(path: &str) -> bool {
        is_callback(path) || path.starts_with(CONNECT_PREFIX)
    }

    /// Answers a request of a browser for one of the pages. `endpoint` is that of the hub: its rules for hosts and
    /// origins apply, and by its credentials an opener proves to be a principal.
    pub async fn respond(
        &self,
        endpoint: &HttpService,
        request: IncomingRequest,
    ) -> Response<McpResponseBody> {
        let (head, body) = request.into_head_and_body();
        let remote_address = head.remote_address();
        let mut parts = head.parts().clone();
        // The forms of the pages themselves.
        if parts.headers.get(ORIGIN).is_some_and(|origin| self.is_own_origin(origin)) {
            parts.headers.remove(ORIGIN);
        }
        if let Some(refused) = endpoint.refuse_disallowed_origin(&parts) {
            return refused;
        }
        let response = match read_body(body).await {
            Some(body) => self.answer(ConnectRequest { parts, body, remote_address, endpoint }).await,
            None => message_page(StatusCode::PAYLOAD_TOO_LARGE, "Too long", "The form is too long."),
        };
        response.map(McpResponseBody::whole)
    }

    fn is_own_origin(&self, origin: &HeaderValue) -> bool {
        let url = self.inner.base_url.get().and_then(|url| url.parse::<Url>().ok());
        let sent = origin.to_str().ok().and_then(|origin| origin.parse::<Url>().ok());
        let is_same = |a: &Url, b: &Url| (a.scheme(), a.host(), a.port()) == (b.scheme(), b.host(), b.port());
        matches!((&url, &sent), (Some(url), Some(sent)) if is_same(url, sent))
    }

    async fn answer(&self, request: ConnectRequest<'_>) -> Response<Bytes> {
        let path = request.parts.uri.path();
        let id = path.strip_prefix(CONNECT_PREFIX).map(str::to_owned);
        match (&request.parts.method, id) {
            (&Method::GET, None) if is_callback(path) => self.finish_login(&request).await,
            (&Method::GET | &Method::POST, Some(id)) => match self.link_by_id(&id) {
                Some(link) if request.parts.method == Method::GET => self.open(&link, &request).await,
                Some(link) => self.submit(&link, &request).await,
                None => gone(),
            },
            _ => {
                let sentence = "This page cannot be requested in this way.";
                message_page(StatusCode::METHOD_NOT_ALLOWED, "Not allowed", sentence)
            }
        }
    }

    /// Opens a link.
    async fn open(&self, link: &Arc<ConnectLink>, request: &ConnectRequest<'_>) -> Response<Bytes> {
        if self.is_local(&link.principal) {
            return match is_from_this_machine(request) {
                true => self.ask_consent(link).await,
                false => message_page(
                    StatusCode::FORBIDDEN,
                    "Not from here",
                    "This page opens only on the machine that the hub runs on.",
                ),
            };
        }
        let shown = match &*link.stage.lock() {
            LinkStage::Consent(consent) => consent.browser.is_in(&request.parts.headers),
            _ => false,
        };
        match (shown, self.sign_in_client(&link.principal)) {
            (true, _) => self.ask_consent(link).await,
            (false, Some(client)) => self.begin_sign_in(link, client).await,
            (false, None) => link.with_server(|server, _| token_page(server, &user_name(link), None)),
        }
    }

    /// Takes a form of a page: the token of the opener, or the consent.
    async fn submit(&self, link: &Arc<ConnectLink>, request: &ConnectRequest<'_>) -> Response<Bytes> {
        let body = String::from_utf8_lossy(&request.body);
        let form = decode_form(&body);
        let field =
            |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if let Some(form_key) = field("form_key") {
            return consent(link, request, form_key);
        }
        let Some(token) = field("token") else { return gone() };
        let wrong = match proof_of_token(request, token, &link.principal).await {
            OpenerProof::SamePrincipal => return self.ask_consent(link).await,
            OpenerProof::OtherPrincipal => "That token is not one of this user.".to_owned(),
            OpenerProof::Refused(reason) => format!("The hub does not accept that token: {reason}."),
        };
        link.count_wrong_token();
        tracing::warn!(user = %link.principal, "a connect page was opened with a wrong token: {wrong}");
        link.with_server(|server, _| token_page(server, &user_name(link), Some(&wrong)))
    }

    fn is_local(&self, principal: &Principal) -> bool {
        self.audience() == LoginAudience::LocalUser || *principal == Principal::Process
    }

    /// Shows what the user logs in to. The authorization is begun, so that its scopes are known.
    pub(super) async fn ask_consent(&self, link: &Arc<ConnectLink>) -> Response<Bytes> {
        let known = match &*link.stage.lock() {
            LinkStage::Fresh | LinkStage::SigningIn(_) => None,
            LinkStage::Consent(consent) => Some(consent.clone()),
            LinkStage::Authorizing(_) | LinkStage::Used => return gone(),
        };
        let consent = match known {
            Some(consent) => consent,
            None => {
                let Some(base_url) = self.base_url().await else { return gone() };
                match login_flow::begin(link, &base_url).await {
                    Ok(consent) => Arc::new(consent),
                    Err(reason) => return failed(&reason),
                }
            }
        };
        {
            // Wrong tokens may have ended the link while the authorization was begun.
            let mut stage = link.stage.lock();
            if matches!(*stage, LinkStage::Authorizing(_) | LinkStage::Used) {
                return gone();
            }
            *stage = LinkStage::Consent(consent.clone());
        }
        let mut response = link.with_server(|server, address| {
            consent_page(&ConsentDetails {
                server,
                address,
                issuer: &consent.page.issuer,
                scopes: consent.page.scopes.iter().collect(),
                user: &user_name(link),
                form_key: consent.form_key.expose(),
            })
        });
        consent.browser.set_in(response.headers_mut());
        response
    }

    /// Takes the answer of an authorization server, from the browser that the login began in.
    async fn finish_login(&self, request: &ConnectRequest<'_>) -> Response<Bytes> {
        let query = request.parts.uri.query().unwrap_or_default();
        let callback = AuthorizationCallback::from_query(query);
        let Some(link) = callback.state().and_then(|state| self.link_by_state(state)) else { return gone() };
        let sign_in = match &*link.stage.lock() {
            LinkStage::SigningIn(sign_in) => Some(sign_in.clone()),
            _ => None,
        };
        if let Some(sign_in) = sign_in {
            return self.finish_sign_in(&link, &sign_in, &callback, request).await;
        }
        {
            let stage = link.stage.lock();
            let LinkStage::Authorizing(consent) = &*stage else { return gone() };
            let is_answer = request.parts.uri.path() == consent.callback_path;
            if !is_answer || !consent.browser.is_in(&request.parts.headers) {
                return gone();
            }
            consent.flow.redirect(format!("{CALLBACK_PATH}?{query}"));
        }
        match link.finished().await {
            LoginProgress::Done => link.with_server(|server, _| {
                let sentence = format!("You are logged in to {server}. You can close this page.");
                message_page(StatusCode::OK, "Logged in", &sentence)
            }),
            LoginProgress::Failed(reason) => failed(&reason),
            LoginProgress::Waiting => gone(),
        }
    }
}

impl ConnectLink {
    /// Makes a page with the name and the address of the server.
    pub(super) fn with_server(&self, page: impl FnOnce(&str, &str) -> Response<Bytes>) -> Response<Bytes> {
        match self.upstream.upgrade() {
            Some(upstream) => page(upstream.name().as_str(), &upstream.config().location.to_string()),
            None => gone(),
        }
    }
}

/// Sends the browser to the authorization server, once.
fn consent(link: &ConnectLink, request: &ConnectRequest<'_>, form_key: &str) -> Response<Bytes> {
    let mut stage = link.stage.lock();
    let consent = match &*stage {
        LinkStage::Consent(consent)
            if is_secret(&consent.form_key, form_key) && consent.browser.is_in(&request.parts.headers) =>
        {
            consent.clone()
        }
        _ => return gone(),
    };
    let Ok(location) = HeaderValue::try_from(&consent.page.url) else { return gone() };
    *stage = LinkStage::Authorizing(consent);
    let mut response = message_page(StatusCode::SEE_OTHER, "Log in", "Continue at the login page.");
    response.headers_mut().insert(LOCATION, location);
    response
}

fn is_callback(path: &str) -> bool {
    path.strip_prefix(CALLBACK_PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn gone() -> Response<Bytes> {
    message_page(
        StatusCode::GONE,
        "This link is not valid",
        "It was used already, is older than 10 minutes, or belongs to another browser. Repeat what you did in your \
         client to get a new one.",
    )
}

pub(super) fn failed(reason: &str) -> Response<Bytes> {
    let sentence = format!("{reason}. Repeat what you did in your client to try again.");
    message_page(StatusCode::BAD_GATEWAY, "The login failed", &sentence)
}

/// Reports whether a request came from this machine, and through no proxy.
fn is_from_this_machine(request: &ConnectRequest<'_>) -> bool {
    let is_forwarded = FORWARDED.iter().any(|name| request.parts.headers.contains_key(name));
    request.remote_address.is_some_and(|address| address.to_canonical().is_loopback()) && !is_forwarded
}

/// What a token proves of the opener of a page.
pub(super) enum OpenerProof {
    SamePrincipal,
    OtherPrincipal,
    /// The endpoint does not accept it, for this reason.
    Refused(String),
}

/// Compares the owner of a token with a principal, by the rules of the endpoint itself.
pub(super) async fn proof_of_token(
    request: &ConnectRequest<'_>,
    token: &str,
    principal: &Principal,
) -> OpenerProof {
    let Ok(mut value) = HeaderValue::try_from(format!("Bearer {}", token.trim())) else {
        return OpenerProof::Refused("it has characters that no token has".to_owned());
    };
    value.set_sensitive(true);
    let mut parts = request.parts.clone();
    parts.headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    match request.endpoint.authenticate(&parts).await {
        Ok(sender) if sender.principal == *principal => OpenerProof::SamePrincipal,
        Ok(_) => OpenerProof::OtherPrincipal,
        Err(refusal) => OpenerProof::Refused(refusal.description().to_owned()),
    }
}

/// Returns what the pages call the user of a link.
fn user_name(link: &ConnectLink) -> String {
    match &link.principal {
        Principal::Named(name) => name.to_string(),
        // A link for a hub with users is never one of an anonymous client.
        Principal::Anonymous | Principal::Process => "the user of this machine".to_owned(),
    }
}

impl BrowserCookie {
    /// Reports whether a request is of the browser.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.name && is_secret(&self.value, value))
    }

    /// Binds a login to the browser that gets a response.
    pub(super) fn set_in(&self, headers: &mut HeaderMap) {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{}={}; Path=/; Max-Age=600; HttpOnly; SameSite=Lax{secure}",
            self.name,
            self.value.expose()
        );
        if let Ok(mut value) = HeaderValue::try_from(cookie) {
            value.set_sensitive(true);
            headers.append(SET_COOKIE, value);
        }
    }
}

/// Reads a form; `None` if it is too long or breaks off.
async fn read_body(mut body: RequestBody) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let data = frame.ok()?.into_data().ok()?;
        if read.len() + data.len() > MAX_BODY_BYTES {
            return None;
        }
        read.extend_from_slice(&data);
    }
    Some(read.freeze())
}
