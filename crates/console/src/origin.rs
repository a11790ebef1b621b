use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

/// Headers by which a proxy reports that a request came from elsewhere.
const FORWARDED: [HeaderName; 3] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether the console is served over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleScheme {
    Http,
    Https,
}

/// Returns why a request is not one of the page itself, if it is not. `Host` is checked by the endpoint's own list.
///
/// An origin is a scheme, a host and a port. Every loopback origin may call MCP, but only the console's own may call the
/// console: another port of this machine is another program.
pub(crate) fn foreign_request(parts: &Parts, scheme: ConsoleScheme) -> Option<&'static str> {
    if FORWARDED.iter().any(|name| parts.headers.contains_key(name)) {
        return Some("the console is not served through a proxy");
    }
    let origin = single(&parts.headers, &ORIGIN);
    let host = single(&parts.headers, &HOST)
        .flatten()
        .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
    let is_own = |origin: &str| {
        let authority = match scheme {
            ConsoleScheme::Http => origin.strip_prefix("http://"),
            ConsoleScheme::Https => origin.strip_prefix("https://"),
        };
        authority.is_some_and(|authority| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    };
    match origin {
        None => Some("the request has several origins"),
        Some(Some(origin)) if !is_own(origin) => Some("the origin of the request is not the console's own"),
        Some(_) => None,
    }
}

/// Reports whether a browser states that a request was not made by a page of the console's own origin.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin")
}

/// Returns the value of a header that may occur once; `None` if it is repeated or not text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_foreign(scheme: ConsoleScheme, headers: &[(&str, &str)]) -> bool {
        let mut request = http::Request::builder().uri("/console/api/hub");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        foreign_request(&request.body(()).unwrap().into_parts().0, scheme).is_some()
    }

    #[test]
    fn only_the_own_origin_is_accepted_with_its_port_and_scheme() {
        use ConsoleScheme::{Http, Https};
        for (scheme, host, origin, foreign) in [
            (Http, "127.0.0.1:7411", "http://127.0.0.1:7411", false),
            (Http, "localhost:7411", "http://localhost:7411", false),
            (Https, "hub.example", "https://hub.example", false),
            (Http, "127.0.0.1:7411", "http://127.0.0.1:7412", true),
            (Http, "127.0.0.1:7411", "http://127.0.0.1", true),
            (Http, "127.0.0.1:7411", "http://localhost:7411", true),
            (Http, "127.0.0.1:7411", "https://127.0.0.1:7411", true),
            (Http, "127.0.0.1:7411", "null", true),
            (Http, "127.0.0.1:7411", "http://evil.example", true),
            (Https, "hub.example", "http://hub.example", true),
        ] {
            assert_eq!(is_foreign(scheme, &[("host", host), ("origin", origin)]), foreign, "{host} {origin}");
        }
        assert!(!is_foreign(Http, &[("host", "127.0.0.1:7411")]));
        assert!(is_foreign(Http, &[("host", "a"), ("origin", "http://a"), ("origin", "http://b")]));
        assert!(is_foreign(Http, &[("host", "a"), ("x-forwarded-for", "192.0.2.1")]));
    }
}
