//! Nonces that servers demand in DPoP proofs ([RFC 9449 §8](https://www.rfc-editor.org/rfc/rfc9449#section-8)).

use http::{HeaderMap, Response, StatusCode};

use crate::challenge::ChallengeList;
use crate::json_document::JsonDocument;

/// The bytes that a nonce may have; a longer one is ignored.
pub const MAX_NONCE_BYTES: usize = 1024;

/// The number of times that one request is repeated for the sake of a new nonce.
pub const MAX_NONCE_RETRIES: u32 = 2;

/// Returns the nonce that a response supplies for the next proof, with any status.
pub fn supplied_nonce(headers: &HeaderMap) -> Option<&str> {
    let nonce = headers.get("dpop-nonce")?.to_str().ok()?;
    (!nonce.is_empty() && nonce.len() <= MAX_NONCE_BYTES).then_some(nonce)
}

/// Reports whether a response demands another nonce: 400 with `use_dpop_nonce` from a token endpoint, or 401 with a
/// challenge from a resource.
pub fn is_nonce_demanded(response: &Response<impl AsRef<[u8]>>) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED if is_nonce_challenged(response.headers()) => true,
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => {
            let document = JsonDocument::parse(response.body().as_ref()).ok();
            document.and_then(|document| document.text("error")).as_deref() == Some("use_dpop_nonce")
        }
        _ => false,
    }
}

/// Reports whether the challenge of a resource demands another nonce.
pub fn is_nonce_challenged(headers: &HeaderMap) -> bool {
    let list = ChallengeList::from_headers(headers);
    list.dpop().is_some_and(|challenge| challenge.parameter("error") == Some("use_dpop_nonce"))
}

/// The nonce of one origin, and how often a request was repeated for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonceState {
    current: Option<String>,
    retries: u32,
}

/// What to do with a response after its nonce was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceDecision {
    /// Repeat the request with a new proof, which has the recorded nonce.
    Repeat,
    /// Use the response.
    Proceed,
}

impl NonceState {
    /// Returns the nonce for the next proof.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Records the nonce of a response, and decides whether to repeat the request: once for each new nonce, and at
    /// most [`MAX_NONCE_RETRIES`] times.
    pub fn on_response(&mut self, response: &Response<impl AsRef<[u8]>>) -> NonceDecision {
        let Some(nonce) = supplied_nonce(response.headers()) else { return NonceDecision::Proceed };
        let is_new = self.current.as_deref() != Some(nonce);
        self.current = Some(nonce.to_owned());
        if is_new && self.retries < MAX_NONCE_RETRIES && is_nonce_demanded(response) {
            self.retries += 1;
            return NonceDecision::Repeat;
        }
        NonceDecision::Proceed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, nonce: Option<&str>, challenge: Option<&str>, body: &str) -> Response<String> {
        let mut response = Response::builder().status(status);
        response = nonce.into_iter().fold(response, |response, nonce| response.header("DPoP-Nonce", nonce));
        response = challenge
            .into_iter()
            .fold(response, |response, value| response.header("WWW-Authenticate", value));
        response.body(body.to_owned()).unwrap()
    }

    #[test]
    fn requests_are_repeated_once_for_each_nonce() {
        let demand = |nonce: &str| response(400, Some(nonce), None, r#"{"error":"use_dpop_nonce"}"#);
        let mut state = NonceState::default();
        assert_eq!(state.on_response(&demand("n1")), NonceDecision::Repeat);
        assert_eq!(state.current(), Some("n1"));
        assert_eq!(state.on_response(&demand("n1")), NonceDecision::Proceed);
        assert_eq!(state.on_response(&demand("n2")), NonceDecision::Repeat);
        assert_eq!(state.on_response(&demand("n3")), NonceDecision::Proceed);
    }

    #[test]
    fn nonces_are_taken_from_any_response_and_demanded_by_few() {
        let challenge = r#"DPoP error="use_dpop_nonce""#;
        let error = r#"{"error":"use_dpop_nonce"}"#;
        let long = "n".repeat(MAX_NONCE_BYTES + 1);
        let table = [
            (response(200, Some("n"), None, "{}"), Some("n"), NonceDecision::Proceed),
            (response(401, Some("n"), Some(challenge), ""), Some("n"), NonceDecision::Repeat),
            (
                response(401, Some("n"), Some("Bearer error=\"use_dpop_nonce\""), ""),
                Some("n"),
                NonceDecision::Proceed,
            ),
            (response(401, Some("n"), None, error), Some("n"), NonceDecision::Repeat),
            (response(400, None, None, error), None, NonceDecision::Proceed),
            (
                response(400, Some("n"), None, r#"{"error":"invalid_grant"}"#),
                Some("n"),
                NonceDecision::Proceed,
            ),
            (response(500, Some("n"), None, error), Some("n"), NonceDecision::Proceed),
            (response(400, Some(&long), None, error), None, NonceDecision::Proceed),
        ];
        for (response, nonce, decision) in table {
            let mut state = NonceState::default();
            assert_eq!((state.on_response(&response), state.current()), (decision, nonce), "{response:?}");
        }
    }
}
