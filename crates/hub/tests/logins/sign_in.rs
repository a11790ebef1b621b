//! Users of an identity provider, who prove to be the principal of a connect link by signing in there.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::request::Parts;
use trunkline_auth::scopes::ScopeSet;
use trunkline_auth::sign_in::SignInClient;
use trunkline_client::Client;
use trunkline_hub::{LoginAudience, UserLogins};
use trunkline_server::http::{AuthRefusal, Authenticated, AuthenticationResult, Authenticator, bearer_token};
use trunkline_session::Principal;
use trunkline_transport::dial::Dialer;

use crate::browser::Browser;
use crate::front::{Front, link_in, say};
use crate::protected_server::ProtectedServer;
use crate::raw_server;
use crate::token_issuer::TokenIssuer;

/// The identity provider of a hub, and the authenticator that accepts its tokens.
#[derive(Clone, Debug)]
struct IdentityProvider {
    origin: String,
    issuer: Arc<TokenIssuer>,
    /// The queries and bodies that it got.
    received: Arc<Mutex<Vec<String>>>,
}

impl IdentityProvider {
    async fn start() -> Self {
        let (issuer, received) = (Arc::<TokenIssuer>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (tokens, noted) = (issuer.clone(), received.clone());
        let origin = raw_server::start(move |origin, request| {
            noted.lock().unwrap().push(format!("{}?{} {}", request.path, request.query, request.body));
            tokens.respond(origin, &request.path, &request.query, &request.body)
        })
        .await;
        Self { origin, issuer, received }
    }

    /// Serves a hub for its users.
    async fn front(&self, server: &ProtectedServer) -> Front {
        let logins = UserLogins::in_memory(LoginAudience::EachPrincipal);
        let client = SignInClient {
            issuer: self.origin.clone(),
            client_id: "hub-pages".to_owned(),
            client_secret: Some(trunkline_transport::Secret::new("secret-of-the-pages")),
            resource: "https://hub.example/mcp".to_owned(),
            scopes: ScopeSet::parse("mcp:use"),
            dialer: Dialer::default(),
        };
        logins.set_sign_ins(vec![client]);
        Front::start(logins, Arc::new(self.clone()), vec![server.config("notes")]).await
    }

    /// Connects the client of a user, and returns it with the link that its call is answered with.
    async fn client_and_link(&self, front: &Front, user: &str) -> (Client, String) {
        let token = self.issuer.issue_access(user, "");
        let client = front.client(Client::builder(), (user, &token)).await;
        let link = link_in(&say(&client, "notes__whoami").await);
        (client, link)
    }
}

impl Authenticator for IdentityProvider {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        let token = bearer_token(request).unwrap().map(|token| String::from_utf8(token.to_vec()).unwrap());
        let issued = token.and_then(|token| self.issuer.token(&token));
        AuthenticationResult::Ready(match issued {
            Some(issued) if issued.user == "elsewhere" => {
                Err(AuthRefusal::invalid_token("the access token has another audience"))
            }
            Some(issued) => {
                let name = format!("{} {}", self.origin, issued.user);
                Ok(Authenticated::new(Principal::Named(name.into())))
            }
            None => Err(AuthRefusal::missing_token()),
        })
    }
}

#[tokio::test]
async fn opener_signs_in_at_the_identity_provider_before_the_login() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let provider = IdentityProvider::start().await;
    let front = provider.front(&server).await;
    let (ann, link) = provider.client_and_link(&front, "ann").await;
    let mut browser = Browser::default();
    let page = browser.sign_in(&link, "ann").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(
        page.text.contains("name=\"form_key\"") && !page.text.contains("name=\"token\""),
        "{}",
        page.text
    );
    let page = browser.consent(&link, page, "ann-there").await;
    assert!(page.text.contains("You are logged in to notes"), "{}", page.text);
    assert_eq!(say(&ann, "notes__whoami").await, "ann-there");
    let received = provider.received.lock().unwrap().clone();
    let sent = |start: &str, parts: &[&str]| {
        received.iter().any(|sent| sent.starts_with(start) && parts.iter().all(|part| sent.contains(part)))
    };
    let resource = "resource=https%3A%2F%2Fhub.example%2Fmcp";
    let authorize = [
        "response_type=code",
        "client_id=hub-pages",
        "code_challenge_method=S256",
        "scope=mcp%3Ause",
        resource,
    ];
    assert!(sent("/authorize?", &authorize), "{received:?}");
    assert!(sent("/token?", &["grant_type=authorization_code", "code_verifier=", resource]), "{received:?}");
    assert!(!server.was_sent("secret-of-the-pages"));
}

#[tokio::test]
async fn link_is_refused_to_another_user_of_the_identity_provider() {
    let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
    let provider = IdentityProvider::start().await;
    let front = provider.front(&server).await;
    let (ann, link) = provider.client_and_link(&front, "ann").await;
    let mut bob = Browser::default();
    let refused = bob.sign_in(&link, "bob").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(!refused.text.contains("form_key") && !refused.text.contains("access-"), "{}", refused.text);
    // The answer of the issuer counts in the browser that was sent there, once.
    let mut browser = Browser::default();
    let sent = browser.get(&link).await;
    let signed_in = browser.get(&format!("{}&as_user=ann", sent.location.unwrap())).await;
    let answer = signed_in.location.unwrap();
    assert_eq!(bob.get(&answer).await.status, StatusCode::GONE);
    let back = browser.get(&answer).await;
    assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.text);
    assert_eq!(browser.get(&answer).await.status, StatusCode::GONE);
    // Who comes after that has to sign in too, and the link ends after too many others.
    for _ in 0..4 {
        assert_eq!(bob.sign_in(&link, "bob").await.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(bob.sign_in(&link, "bob").await.status, StatusCode::GONE);
    assert!(say(&ann, "notes__whoami").await.contains("requires a login"));
}

#[tokio::test]
async fn sign_in_that_the_user_cancels_leaves_the_link_for_another_attempt() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let provider = IdentityProvider::start().await;
    let front = provider.front(&server).await;
    let (_ann, link) = provider.client_and_link(&front, "ann").await;
    let mut browser = Browser::default();
    let location = browser.get(&link).await.location.unwrap();
    let state = location.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let cancelled =
        format!("{}/oauth/callback?error=access_denied&state={state}&iss={}", front.origin, provider.origin);
    assert_eq!(browser.get(&cancelled).await.status, StatusCode::BAD_GATEWAY);
    assert_eq!(browser.sign_in(&link, "ann").await.status, StatusCode::OK);
}

#[tokio::test]
async fn refused_token_of_a_sign_in_is_reported_with_its_reason() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let provider = IdentityProvider::start().await;
    let front = provider.front(&server).await;
    let (_ann, link) = provider.client_and_link(&front, "ann").await;
    let mut browser = Browser::default();
    let refused = browser.sign_in(&link, "elsewhere").await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY, "{}", refused.text);
    for part in ["the access token has another audience", "hub-pages", &*provider.origin] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    assert!(!refused.text.contains("Another user") && !refused.text.contains("access-"), "{}", refused.text);
    assert_eq!(browser.sign_in(&link, "ann").await.status, StatusCode::OK, "the link is still valid");
}
