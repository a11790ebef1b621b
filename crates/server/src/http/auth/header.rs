use http::header::AUTHORIZATION;
use http::request::Parts;

use super::AuthRefusal;

/// Returns the bearer token of a request, if it has one
/// ([RFC 6750 §2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1)).
///
/// # Errors
/// The request has more than one `Authorization` header, a `Bearer` without a token, or a token in its query, which MCP
/// forbids because addresses are logged.
pub fn bearer_token(request: &Parts) -> Result<Option<&[u8]>, AuthRefusal> {
    if request.uri.query().is_some_and(has_access_token) {
        return Err(AuthRefusal::invalid_request("an access token belongs in the Authorization header"));
    }
    let mut values = request.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(AuthRefusal::invalid_request("the request has more than one Authorization header"));
    }
    let value = value.as_bytes().trim_ascii();
    let (scheme, token) = value.split_at_checked("Bearer".len()).unwrap_or((value, &[]));
    if !scheme.eq_ignore_ascii_case(b"Bearer")
        || token.first().is_some_and(|byte| !byte.is_ascii_whitespace())
    {
        return Ok(None);
    }
    let token = token.trim_ascii();
    if token.is_empty() || token.iter().any(u8::is_ascii_whitespace) {
        return Err(AuthRefusal::invalid_request("the Authorization header has no bearer token"));
    }
    Ok(Some(token))
}

/// Reports whether a query has the parameter of [RFC 6750 §2.3](https://www.rfc-editor.org/rfc/rfc6750#section-2.3).
fn has_access_token(query: &str) -> bool {
    query.split('&').any(|member| member.split('=').next() == Some("access_token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_token_is_read_from_one_authorization_header_only() {
        let read = |uri: &str, authorization: &[&str]| {
            let mut request = http::Request::builder().uri(uri);
            for value in authorization {
                request = request.header(AUTHORIZATION, *value);
            }
            let parts = request.body(()).unwrap().into_parts().0;
            bearer_token(&parts)
                .map(|token| token.map(|token| String::from_utf8(token.to_vec()).unwrap()))
                .map_err(|refusal| refusal.status().as_u16())
        };
        let token = |text: &str| Ok(Some(text.to_owned()));
        for (uri, authorization, expected) in [
            ("/", &[][..], Ok(None)),
            ("/", &["Bearer abc"], token("abc")),
            ("/?sessionId=1&access_tokens=2", &["bearer  abc "], token("abc")),
            ("/", &["Basic abc"], Ok(None)),
            ("/", &["abc"], Ok(None)),
            ("/", &["Bearerabc"], Ok(None)),
            ("/", &["Bearer"], Err(400)),
            ("/", &["Bearer "], Err(400)),
            ("/", &["Bearer a b"], Err(400)),
            ("/", &["Bearer abc", "Bearer abc"], Err(400)),
            ("/", &["Bearer abc", "Basic abc"], Err(400)),
            ("/?access_token=abc", &[], Err(400)),
            ("/?x=1&access_token=abc", &["Bearer abc"], Err(400)),
            ("/?access_token", &[], Err(400)),
        ] {
            assert_eq!(read(uri, authorization), expected, "{uri} {authorization:?}");
        }
    }
}
