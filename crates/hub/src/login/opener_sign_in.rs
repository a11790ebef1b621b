//! The opener of a link proves to be its principal by signing in at the issuer of that principal.
//!
//! The hub is a web client there. The access token that it gets is authenticated like that of a request, so that issuer
//! and subject are compared as they are for the client of the user, and is then dropped.

use std::sync::Arc;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode};
use trunkline_auth::callback::AuthorizationCallback;
use trunkline_auth::sign_in::SignInClient;
use trunkline_server::http::resource_server::issuer_of_principal;
use trunkline_session::Principal;

use super::UserLogins;
use super::connect_link::{BrowserCookie, ConnectLink, LinkStage, RunningSignIn};
use super::connect_page::{CALLBACK_PATH, ConnectRequest, OpenerProof, failed, gone, proof_of_token};
use super::html::message_page;

impl UserLogins {
    /// Returns the client with which a principal signs in, if its issuer has one.
    pub(super) fn sign_in_client(&self, principal: &Principal) -> Option<Arc<SignInClient>> {
        let issuer = issuer_of_principal(principal)?;
        self.inner.sign_ins.lock().iter().find(|client| client.issuer == issuer).cloned()
    }

    /// Sends the browser to the issuer.
    pub(super) async fn begin_sign_in(
        &self,
        link: &ConnectLink,
        client: Arc<SignInClient>,
    ) -> Response<Bytes> {
        let Some(base_url) = self.base_url().await else { return gone() };
        let request = match client.begin(&format!("{base_url}{CALLBACK_PATH}")).await {
            Ok(request) => request,
            Err(error) => {
                tracing::warn!(issuer = client.issuer, %error, "openers of connect pages cannot sign in");
                return failed("The identity provider of this hub cannot be used now");
            }
        };
        let location = HeaderValue::try_from(request.url());
        let (Ok(location), Some(browser)) = (location, BrowserCookie::random(&base_url)) else {
            return gone();
        };
        let mut response = message_page(StatusCode::SEE_OTHER, "Sign in", "Continue at the sign-in page.");
        response.headers_mut().insert(LOCATION, location);
        browser.set_in(response.headers_mut());
        let mut stage = link.stage.lock();
        match &*stage {
            // A second browser starts over; what the first began is not accepted any more.
            LinkStage::Fresh | LinkStage::SigningIn(_) | LinkStage::Consent(_) => {
                *stage = LinkStage::SigningIn(Arc::new(RunningSignIn { client, request, browser }));
                response
            }
            LinkStage::Authorizing(_) | LinkStage::Used => gone(),
        }
    }

    /// Takes the answer of the issuer, from the browser that was sent there, and compares the principals.
    pub(super) async fn finish_sign_in(
        &self,
        link: &Arc<ConnectLink>,
        sign_in: &Arc<RunningSignIn>,
        callback: &AuthorizationCallback,
        request: &ConnectRequest<'_>,
    ) -> Response<Bytes> {
        let is_answer = request.parts.uri.path() == CALLBACK_PATH;
        if !is_answer || !sign_in.browser.is_in(&request.parts.headers) {
            return gone();
        }
        {
            // An answer is used once.
            let mut stage = link.stage.lock();
            match &*stage {
                LinkStage::SigningIn(current) if Arc::ptr_eq(current, sign_in) => *stage = LinkStage::Fresh,
                _ => return gone(),
            }
        }
        let token = match sign_in.client.finish(&sign_in.request, callback).await {
            Ok(token) => token,
            Err(error) => {
                tracing::info!(%error, "the opener of a connect page did not sign in");
                return failed("The sign-in was not completed");
            }
        };
        match proof_of_token(request, token.expose(), &link.principal).await {
            OpenerProof::SamePrincipal => self.show_consent(link).await,
            OpenerProof::OtherPrincipal => {
                link.count_wrong_token();
                tracing::warn!(user = %link.principal, "a connect page was opened by another user");
                message_page(
                    StatusCode::FORBIDDEN,
                    "Another user",
                    "This page is for another user than the one that you are signed in as. Sign in as that user, and repeat \
                     what you did in your client.",
                )
            }
            OpenerProof::Refused(reason) => {
                let issuer = &sign_in.client.issuer;
                tracing::warn!(issuer, "a token for the connect pages is refused: {reason}");
                failed(&format!(
                    "The hub refuses the token that {issuer} has issued for this page: {reason}. Its operator has to change \
                     what the issuer puts into tokens for the client `{}`",
                    sign_in.client.client_id
                ))
            }
        }
    }

    /// Sends the browser to the consent page of a link, which it may see from now on.
    async fn show_consent(&self, link: &Arc<ConnectLink>) -> Response<Bytes> {
        let mut response = self.ask_consent(link).await;
        // The form of the page is sent to the address of the page, so that it must not be that of the answer.
        if response.status() == StatusCode::OK
            && let Some(base_url) = self.base_url().await
            && let Ok(location) = HeaderValue::try_from(link.url(&base_url))
        {
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(LOCATION, location);
            *response.body_mut() = Bytes::new();
        }
        response
    }
}
