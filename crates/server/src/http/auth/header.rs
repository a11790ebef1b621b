use http::header::AUTHORIZATION;
use http::request::Parts;

use super::AuthRefusal;

/// The token of an `Authorization` header, and its scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct PresentedToken<'a> {
    pub(in crate::http) scheme: TokenScheme,
    pub(in crate::http) token: &'a [u8],
}

/// The scheme of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum TokenScheme {
    Bearer,
    Dpop,
}

impl TokenScheme {
    pub(in crate::http) const fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// Returns the bearer token of a request, if it has one
/// ([RFC 6750 §2.1](https://www.rfc-editor.org/rfc/rfc6750#section-2.1)).
///
/// # Errors
/// The request has more than one `Authorization` header, a `Bearer` without a token, or a token in its query, which MCP
/// forbids because addresses are logged.
pub fn bearer_token(request: &Parts) -> Result<Option<&[u8]>, AuthRefusal> {
    let presented = presented_token(request)?;
    Ok(presented.filter(|presented| presented.scheme == TokenScheme::Bearer).map(|presented| presented.token))
}

/// Returns the access token of a request with its scheme, if it has one.
///
/// # Errors
/// As [`bearer_token`].
pub(in crate::http) fn presented_token(request: &Parts) -> Result<Option<PresentedToken<'_>>, AuthRefusal> {
    if request.uri.query().is_some_and(has_access_token) {
        return Err(AuthRefusal::invalid_request("an access token belongs in the Authorization header"));
    }
    let mut values = request.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(AuthRefusal::invalid_request("the request has more than one Authorization header"));
    }
    read_token(value.as_bytes())
        .ok_or_else(|| AuthRefusal::invalid_request("the Authorization header has no token"))
}

/// Reads the value of an `Authorization` header: `None` if its token is malformed, and a further `None` for other
/// schemes.
#[expect(clippy::option_option, reason = "a malformed token is not the same as none")]
pub(in crate::http) fn read_token(value: &[u8]) -> Option<Option<PresentedToken<'_>>> {
    let value = value.trim_ascii();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let (name, rest) = value.split_at_checked(end)?;
    let mut schemes = [TokenScheme::Bearer, TokenScheme::Dpop].into_iter();
    let Some(scheme) = schemes.find(|scheme| name.eq_ignore_ascii_case(scheme.as_str().as_bytes())) else {
        return Some(None);
    };
    let token = rest.trim_ascii();
    let is_one = !token.is_empty() && !token.iter().any(u8::is_ascii_whitespace);
    is_one.then_some(Some(PresentedToken { scheme, token }))
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
            ("/", &["DPoP abc"], Ok(None)),
            ("/", &["DPoP"], Err(400)),
        ] {
            assert_eq!(read(uri, authorization), expected, "{uri} {authorization:?}");
        }
    }
}
