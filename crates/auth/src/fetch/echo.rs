//! Removes the secrets of a request from a response that refuses it.
//!
//! Some servers quote in an error what they were sent. Errors are shown and logged, so that no secret may be in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use trunkline_transport::Secret;

use crate::form::{decode, encode};

/// The parameters of token, revocation and introspection requests that are secret.
const SECRET_PARAMETERS: [&str; 8] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
    "subject_token",
    "token",
];

/// Shorter values are no secrets, and would be found within words.
const MIN_SECRET_BYTES: usize = 6;

/// What stands in the place of a secret.
const PLACEHOLDER: &str = "…";

/// The secrets of one request.
pub(super) struct SentSecrets(Vec<Secret>);

impl SentSecrets {
    /// Collects the secrets of a request.
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Self {
        let form = decode(&String::from_utf8_lossy(body));
        let parameters = form.into_iter().filter(|(name, _)| SECRET_PARAMETERS.contains(&name.as_str()));
        let credentials = headers.get_all(AUTHORIZATION).iter().flat_map(credentials_of);
        let secrets = parameters.map(|(_, value)| value).chain(credentials);
        let mut secrets: Vec<_> = secrets.filter(|secret| secret.len() >= MIN_SECRET_BYTES).collect();
        // One may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into_iter().map(Secret::new).collect())
    }

    /// Removes them from the body of a response, unless it is the response that has the requested tokens.
    pub(super) fn remove_from(&self, status: StatusCode, body: Bytes) -> Bytes {
        if self.0.is_empty() {
            return body;
        }
        let text = String::from_utf8_lossy(&body);
        if status.is_success() && text.contains("\"access_token\"") {
            return body;
        }
        let mut clean = text.into_owned();
        for secret in &self.0 {
            let plain = secret.expose();
            // As it is, as it was sent, and as JSON of some servers has it.
            for form in [plain.to_owned(), encode(plain), plain.replace('/', "\\/")] {
                if clean.contains(&form) {
                    clean = clean.replace(&form, PLACEHOLDER);
                }
            }
        }
        Bytes::from(clean)
    }
}

/// Returns the credentials of an `Authorization` header, and the password that `Basic` credentials hold.
fn credentials_of(value: &HeaderValue) -> Vec<String> {
    let Some((scheme, credentials)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return Vec::new();
    };
    let mut found = vec![credentials.to_owned()];
    if scheme.eq_ignore_ascii_case("basic")
        && let Ok(pair) = STANDARD.decode(credentials)
        && let Some((_, password)) = String::from_utf8_lossy(&pair).split_once(':')
    {
        // Both are form-encoded (RFC 6749 §2.3.1).
        found.extend(decode(&format!("password={password}")).into_iter().map(|(_, value)| value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is left of the body of a response.
    fn left_of(status: u16, authorization: Option<&str>, sent: &str, response: &str) -> String {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
        }
        let body = Bytes::from(response.to_owned());
        let secrets = SentSecrets::of(&headers, sent.as_bytes());
        let left = secrets.remove_from(StatusCode::from_u16(status).unwrap(), body);
        String::from_utf8(left.to_vec()).unwrap()
    }

    #[test]
    fn secrets_of_a_request_are_removed_from_the_response_that_refuses_it() {
        let table = [
            (400, "code=sen%2Ftinel%3D&client_id=public-id", r#"{"error":"bad sen/tinel= of public-id"}"#),
            (400, "refresh_token=sen%2Ftinel", r#"{"error_description":"no sen\/tinel"}"#),
            (500, "subject_token=sentinel", "<pre>subject_token=sentinel</pre>"),
            (200, "code_verifier=sentinel", r#"{"error":"invalid_grant","error_description":"sentinel"}"#),
            (401, "client_secret=sentinel%2B", "client_secret=sentinel%2B"),
            (400, "client_assertion=sentinel.a.b", "sentinel.a.b"),
            (400, "token=sentinel", "sentinel sentinel"),
            (400, "assertion=sentinel", "sentinel"),
        ];
        for (status, sent, response) in table {
            let left = left_of(status, None, sent, response);
            assert!(!left.contains("tinel") && left.contains('…'), "{response}: {left}");
        }
        let basic = format!("Basic {}", STANDARD.encode("id:sen%2Ftinel"));
        let response = format!("{basic} is id with sen/tinel or sen%2Ftinel");
        let left = left_of(401, Some(&basic), "", &response);
        assert_eq!(left, "Basic … is id with … or …");
        assert_eq!(left_of(401, Some("Bearer sentinel"), "", "not sentinel"), "not …");
    }

    #[test]
    fn tokens_that_were_issued_and_short_values_stay() {
        let issued = r#"{"access_token":"a","refresh_token":"sentinel"}"#;
        assert_eq!(left_of(200, None, "refresh_token=sentinel", issued), issued);
        let error = r#"{"error":"invalid_code"}"#;
        assert_eq!(left_of(400, None, "code=code", error), error);
        assert_eq!(left_of(400, None, "client_id=invalid_code", error), error);
    }
}
