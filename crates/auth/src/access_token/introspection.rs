use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Uri};
use trunkline_protocol::{ByteString, JsonObject};
use trunkline_session::Timestamp;
use trunkline_transport::Secret;

use super::claims::text;
use super::{AccessTokenClaims, TokenError, TokenRules};

/// How a resource server authenticates to an introspection endpoint
/// ([RFC 7662 §2.1](https://www.rfc-editor.org/rfc/rfc7662#section-2.1)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntrospectionCredentials {
    /// `client_secret_basic`.
    Basic {
        /// The identifier of the resource server as a client.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
    },
    /// `client_secret_post`.
    Post {
        /// The identifier of the resource server as a client.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
    },
    /// `private_key_jwt`, with an assertion of [`crate::client_assertion`].
    Assertion(Secret),
    /// An access token of its own.
    Bearer(Secret),
}

/// Builds the request that introspects a token.
///
/// Its body holds the token, so it must not be logged.
///
/// # Errors
/// The credentials cannot be put into a header.
pub fn introspection_request(
    endpoint: &Uri,
    token: &str,
    credentials: &IntrospectionCredentials,
) -> Result<Request<Bytes>, http::Error> {
    let mut form = String::new();
    add_parameter(&mut form, "token", token);
    add_parameter(&mut form, "token_type_hint", "access_token");
    let mut authorization = None;
    match credentials {
        IntrospectionCredentials::Basic { client_id, client_secret } => {
            // Both are form-encoded first (RFC 6749 §2.3.1).
            let pair = format!("{}:{}", form_encode(client_id), form_encode(client_secret.expose()));
            authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
        }
        IntrospectionCredentials::Post { client_id, client_secret } => {
            add_parameter(&mut form, "client_id", client_id);
            add_parameter(&mut form, "client_secret", client_secret.expose());
        }
        IntrospectionCredentials::Assertion(assertion) => {
            add_parameter(&mut form, "client_assertion_type", crate::client_assertion::ASSERTION_TYPE);
            add_parameter(&mut form, "client_assertion", assertion.expose());
        }
        IntrospectionCredentials::Bearer(token) => authorization = Some(format!("Bearer {}", token.expose())),
    }
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(endpoint.clone())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .body(Bytes::from(form))?;
    if let Some(authorization) = authorization {
        let mut value = HeaderValue::try_from(authorization)?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    Ok(request)
}

/// Reads the answer of an introspection endpoint
/// ([RFC 7662 §2.2](https://www.rfc-editor.org/rfc/rfc7662#section-2.2)).
///
/// The issuer may be left out, since the answer comes from it. The audience may not: a token for another resource would
/// be accepted. A token of a client that acts for itself may have no subject, and then the client is the subject.
///
/// # Errors
/// The answer cannot be read, or the token is not active, or not valid under the rules.
pub fn read_introspection(
    body: &[u8],
    rules: &TokenRules,
    now: Timestamp,
) -> Result<AccessTokenClaims, TokenError> {
    let body = ByteString::try_from(body).map_err(|_| TokenError::Introspection)?;
    let answer = JsonObject::parse(&body).map_err(|_| TokenError::Introspection)?;
    let active = answer.get("active").ok_or(TokenError::Introspection)?;
    if !active.get::<bool>().map_err(|_| TokenError::Introspection)? {
        return Err(TokenError::Inactive);
    }
    let issuer = text(&answer, "iss")?.unwrap_or_else(|| rules.issuer.as_str().into());
    if rules.issuer != *issuer {
        return Err(TokenError::Issuer);
    }
    let expires = rules.check_time(&answer, now)?;
    rules.check_audience(answer.get("aud"))?;
    let subject = match text(&answer, "sub")? {
        Some(subject) => Some(subject),
        None => text(&answer, "client_id")?,
    };
    let claims = AccessTokenClaims::read(answer, issuer, subject, expires)?;
    let is_dpop = text(&claims.claims, "token_type")?.is_some_and(|kind| kind.eq_ignore_ascii_case("dpop"));
    if is_dpop && claims.key_thumbprint.is_none() {
        return Err(TokenError::Confirmation);
    }
    Ok(claims)
}

fn add_parameter(form: &mut String, name: &str, value: &str) {
    if !form.is_empty() {
        form.push('&');
    }
    form.push_str(name);
    form.push('=');
    form.push_str(&form_encode(value));
}

/// Encodes a value of `application/x-www-form-urlencoded`; a space becomes `%20`, which every decoder reads.
fn form_encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    #[test]
    fn introspection_request_authenticates_by_each_method() {
        let endpoint = Uri::from_static("https://login.example/introspect");
        let token = "token_type_hint=access_token";
        for (credentials, authorization, body) in [
            (
                IntrospectionCredentials::Basic {
                    client_id: "a:b".into(),
                    client_secret: Secret::new("c d"),
                },
                Some("Basic YSUzQWI6YyUyMGQ="),
                format!("token=t%2B%2F1&{token}"),
            ),
            (
                IntrospectionCredentials::Post { client_id: "a".into(), client_secret: Secret::new("c&d=") },
                None,
                format!("token=t%2B%2F1&{token}&client_id=a&client_secret=c%26d%3D"),
            ),
            (
                IntrospectionCredentials::Assertion(Secret::new("x.y.z")),
                None,
                format!(
                    "token=t%2B%2F1&{token}&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type\
                     %3Ajwt-bearer&client_assertion=x.y.z"
                ),
            ),
            (
                IntrospectionCredentials::Bearer(Secret::new("own")),
                Some("Bearer own"),
                format!("token=t%2B%2F1&{token}"),
            ),
        ] {
            let request = introspection_request(&endpoint, "t+/1", &credentials).unwrap();
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.uri(), &endpoint);
            let header = request.headers().get(AUTHORIZATION);
            assert_eq!(header.map(|value| value.to_str().unwrap()), authorization);
            assert!(header.is_none_or(HeaderValue::is_sensitive));
            assert_eq!(request.body(), body.as_bytes());
            assert!(!format!("{credentials:?}").contains("c d"));
        }
    }

    #[test]
    fn introspection_answers_are_checked_like_tokens() {
        let rules = TokenRules::new("https://login.example", ["https://hub.example/mcp"]);
        let aud = r#""aud":"https://hub.example/mcp""#;
        let cases = [
            (format!(r#"{{"active":true,{aud},"sub":"ann"}}"#), Ok("ann")),
            (format!(r#"{{"active":true,{aud},"client_id":"app"}}"#), Ok("app")),
            (format!(r#"{{"active":true,{aud},"sub":"ann","iss":"https://login.example"}}"#), Ok("ann")),
            (format!(r#"{{"active":true,{aud},"sub":"ann","exp":1800000600}}"#), Ok("ann")),
            (
                format!(r#"{{"active":true,{aud},"sub":"ann","token_type":"DPoP","cnf":{{"jkt":"t"}}}}"#),
                Ok("ann"),
            ),
            (r#"{"active":false}"#.to_owned(), Err(TokenError::Inactive)),
            (r#"{"active":false,"sub":7}"#.to_owned(), Err(TokenError::Inactive)),
            ("{}".to_owned(), Err(TokenError::Introspection)),
            (r#"{"active":"true"}"#.to_owned(), Err(TokenError::Introspection)),
            (r#"{"active":true,"active":false}"#.to_owned(), Err(TokenError::Introspection)),
            ("<html>".to_owned(), Err(TokenError::Introspection)),
            (r#"{"active":true,"sub":"ann"}"#.to_owned(), Err(TokenError::Claim("aud"))),
            (r#"{"active":true,"sub":"ann","aud":"x"}"#.to_owned(), Err(TokenError::Audience)),
            (format!(r#"{{"active":true,{aud}}}"#), Err(TokenError::Claim("sub"))),
            (format!(r#"{{"active":true,{aud},"sub":"ann","iss":"x"}}"#), Err(TokenError::Issuer)),
            (format!(r#"{{"active":true,{aud},"sub":"ann","exp":1799999940}}"#), Err(TokenError::Expired)),
            (
                format!(r#"{{"active":true,{aud},"sub":"ann","nbf":1800000061}}"#),
                Err(TokenError::NotYetValid),
            ),
            (
                format!(r#"{{"active":true,{aud},"sub":"ann","token_type":"DPoP"}}"#),
                Err(TokenError::Confirmation),
            ),
            (
                format!(r#"{{"active":true,{aud},"sub":"ann","cnf":{{"x5t#S256":"t"}}}}"#),
                Err(TokenError::Confirmation),
            ),
        ];
        for (body, expected) in cases {
            let claims = read_introspection(body.as_bytes(), &rules, NOW);
            assert_eq!(
                claims.as_ref().map(|claims| &*claims.subject).map_err(|error| *error),
                expected,
                "{body}"
            );
        }
        assert_eq!(read_introspection(b"\xff", &rules, NOW), Err(TokenError::Introspection));
    }
}
