//! Who may open a connect link, how often and how long.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use trunkline_client::Client;
use trunkline_hub::{LoginAudience, UserLogins};
use trunkline_server::http::BearerTokens;
use trunkline_session::Principal;

use crate::browser::Browser;
use crate::front::{ANN, BOB, Front, say};
use crate::protected_server::ProtectedServer;
use crate::{until, within};

#[tokio::test]
async fn connect_links_are_used_once_in_time_and_by_their_own_principal() {
    let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
    let front = Front::for_users(vec![server.config("notes")]).await;
    let ann = front.client(Client::builder(), ANN).await;
    let said = say(&ann, "notes__whoami").await;
    let link = crate::front::link_in(&said);
    // The link of one user is invalid for another user of the hub.
    let mut foreign = Browser::default();
    let refused = foreign.post(&link, format!("token={}", BOB.1)).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(!refused.text.contains("form_key") && !refused.text.contains(BOB.1), "{}", refused.text);
    // A consent needs the browser that the page was shown in.
    let mut browser = Browser::default();
    let page = browser.post(&link, format!("token={}", ANN.1)).await;
    assert!(
        page.text.contains("<strong>notes</strong>") && page.text.contains("<code>read</code>"),
        "{}",
        page.text
    );
    assert!(page.text.contains("<strong>ann</strong>") && !page.text.contains(ANN.1), "{}", page.text);
    let form_key = page.text.split_once("value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    assert_eq!(foreign.post(&link, format!("form_key={form_key}")).await.status, StatusCode::GONE);
    let done = browser.consent(&link, page, "ann-there").await;
    assert!(done.text.contains("You are logged in to notes"), "{}", done.text);
    // It is used.
    assert_eq!(browser.get(&link).await.status, StatusCode::GONE);
    assert_eq!(browser.post(&link, format!("token={}", ANN.1)).await.status, StatusCode::GONE);
    assert_eq!(say(&ann, "notes__whoami").await, "ann-there");
    // Made up.
    let unknown = format!("{}/connect/{}", front.origin, "A".repeat(43));
    assert_eq!(browser.get(&unknown).await.status, StatusCode::GONE);
    let callback = format!("{}/oauth/callback?code=c&state=s", front.origin);
    assert_eq!(browser.get(&callback).await.status, StatusCode::GONE);
}

#[tokio::test]
async fn cookies_that_a_neighbouring_host_can_plant_continue_no_login() {
    let server = ProtectedServer::start(&["ann-there", "bob-there"]).await;
    let logins = UserLogins::in_memory(LoginAudience::EachPrincipal);
    logins.set_base_url("https://hub.example.com");
    let tokens = Arc::new(BearerTokens::new([ANN, BOB]));
    let front = Front::start(logins, tokens, vec![server.config("notes")]).await;
    // The proxy in front of the hub has the certificate.
    let behind_proxy = |url: &str| url.replace("https://hub.example.com", &front.origin);
    let bob = front.client(Client::builder(), BOB).await;
    let said = say(&bob, "notes__whoami").await;
    let link = said.split_whitespace().find(|word| word.starts_with("https://")).unwrap();
    let link = behind_proxy(link);
    // Bob begins a login of his own, and gets ann to end it: her login would be his.
    let mut browser = Browser::default();
    let page = browser.post(&link, format!("token={}", BOB.1)).await;
    let names = browser.cookie_names();
    assert!(names.iter().all(|name| name.starts_with("__Host-")) && !names.is_empty(), "{names:?}");
    let mut planted = Browser::planted_from(&browser);
    let form = format!("form_key={}", page.form_key().unwrap());
    assert_eq!(planted.post(&link, form.clone()).await.status, StatusCode::GONE);
    let authorize = browser.post(&link, form).await.location.unwrap();
    let answer = planted.get(&format!("{authorize}&as_user=ann-there")).await.location.unwrap();
    assert_eq!(planted.get(&behind_proxy(&answer)).await.status, StatusCode::GONE);
    assert!(say(&bob, "notes__whoami").await.contains("requires a login"));
    let answer = browser.get(&format!("{authorize}&as_user=bob-there")).await.location.unwrap();
    assert_eq!(browser.get(&behind_proxy(&answer)).await.status, StatusCode::OK);
    assert_eq!(say(&bob, "notes__whoami").await, "bob-there");
}

#[tokio::test]
async fn answer_of_one_authorization_server_is_never_used_at_another() {
    let servers =
        [ProtectedServer::start(&["ann-there"]).await, ProtectedServer::start(&["ann-there"]).await];
    let mut own_client = servers[0].config("own client");
    own_client.auth.client_id = Some("the-client".into());
    let front =
        Front::for_local_user(vec![servers[0].config("honest"), servers[1].config("mixed/up"), own_client])
            .await;
    let mut browser = Browser::default();
    let mut pages = Vec::new();
    for name in ["honest", "mixed/up", "own client"] {
        let link = within(front.hub.login_link(name, &Principal::Process)).await.unwrap();
        let page = browser.get(link.url()).await;
        let form = format!("form_key={}", page.form_key().unwrap());
        pages.push(browser.post(link.url(), form).await.location.unwrap());
    }
    let parameter = |page: &str, name: &str| {
        let form = trunkline_auth::decode_form(page.split_once('?').unwrap().1);
        form.into_iter().find(|(known, _)| known == name).unwrap().1
    };
    let redirects: Vec<_> = pages.iter().map(|page| parameter(page, "redirect_uri")).collect();
    assert_eq!(redirects[2], format!("{}/oauth/callback", front.origin), "as the operator registered it");
    assert!(redirects[0] != redirects[1] && redirects[1].starts_with(&redirects[2]), "{redirects:?}");
    // A server has the user log in at another one, for the request of its own.
    let state = parameter(&pages[1], "state");
    for redirect in [&redirects[0], &redirects[2]] {
        let mixed_up = format!("{redirect}?code=code-of-another&state={state}");
        assert_eq!(browser.get(&mixed_up).await.status, StatusCode::GONE);
    }
    assert!(!servers[1].was_sent("code-of-another"));
    let answer = browser.get(&format!("{}&as_user=ann-there", pages[1])).await.location.unwrap();
    assert!(answer.starts_with(&redirects[1]), "{answer}");
    assert_eq!(browser.get(&answer).await.status, StatusCode::OK);
}

#[tokio::test]
async fn guessing_tokens_ends_a_link() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_users(vec![server.config("notes")]).await;
    let ann = Principal::Named(ANN.0.into());
    let client = front.client(Client::builder(), ANN).await;
    say(&client, "notes__whoami").await;
    let link = within(front.hub.login_link("notes", &ann)).await.unwrap();
    let mut browser = Browser::default();
    for _ in 0..5 {
        assert_eq!(browser.post(link.url(), "token=guess".to_owned()).await.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(browser.post(link.url(), format!("token={}", ANN.1)).await.status, StatusCode::GONE);
}

#[tokio::test]
async fn guessing_ends_a_link_whose_page_is_being_prepared() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_users(vec![server.config("notes")]).await;
    let client = front.client(Client::builder(), ANN).await;
    say(&client, "notes__whoami").await;
    let link = within(front.hub.login_link("notes", &Principal::Named(ANN.0.into()))).await.unwrap();
    server.set_metadata(false);
    assert!(!server.was_sent("oauth-authorization-server"));
    let opened = tokio::spawn({
        let url = link.url().to_owned();
        async move { Browser::default().post(&url, format!("token={}", ANN.1)).await }
    });
    // Its page waits for the authorization server.
    until(|| server.was_sent("oauth-authorization-server")).await;
    for _ in 0..5 {
        let refused = Browser::default().post(link.url(), "token=guess".to_owned()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    server.set_metadata(true);
    assert_eq!(within(opened).await.unwrap().status, StatusCode::GONE);
    let again = Browser::default().post(link.url(), format!("token={}", ANN.1)).await;
    assert_eq!(again.status, StatusCode::GONE);
}

#[tokio::test]
async fn links_expire() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_local_user(vec![server.config("notes")]).await;
    let link = within(front.hub.login_link("notes", &Principal::Process)).await.unwrap();
    let mut browser = Browser::default();
    let page = browser.get(link.url()).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<strong>the user of this machine</strong>"), "{}", page.text);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    assert_eq!(browser.get(link.url()).await.status, StatusCode::GONE);
}

#[tokio::test]
async fn pages_of_a_local_hub_open_only_on_this_machine() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let front = Front::for_local_user(vec![server.config("notes")]).await;
    let link = within(front.hub.login_link("notes", &Principal::Process)).await.unwrap();
    let request = http::Request::get(link.url()).header("x-forwarded-for", "203.0.113.9");
    let fetcher = trunkline_auth::fetch::Fetcher::new(
        trunkline_transport::dial::Dialer::default(),
        trunkline_auth::fetch::FetchLimits::default(),
    );
    let response = fetcher.fetch(request.body(bytes::Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn links_of_one_user_are_bounded() {
    let server = ProtectedServer::start(&["ann-there"]).await;
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let front = Front::for_local_user(names.iter().map(|name| server.config(name)).collect()).await;
    let mut links = Vec::new();
    for name in &names {
        links.push(within(front.hub.login_link(name, &Principal::Process)).await.unwrap());
    }
    let again = within(front.hub.login_link("s19", &Principal::Process)).await.unwrap();
    assert_eq!(again.url(), links[19].url(), "the same login has one link");
    let mut browser = Browser::default();
    assert_eq!(browser.get(links[3].url()).await.status, StatusCode::GONE, "the oldest are dropped");
    assert_eq!(browser.get(links[4].url()).await.status, StatusCode::OK);
}
