//! The pages of a login: plain HTML without a script, a style or anything of another origin.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY};
use http::{HeaderValue, Response, StatusCode};

/// The headers of every page: it is stored nowhere, framed nowhere, and loads nothing.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    // The address is a secret; a form that is sent without any referrer would have no origin either.
    (REFERRER_POLICY, "same-origin"),
];

/// What a consent page shows.
pub(super) struct ConsentDetails<'a> {
    pub(super) server: &'a str,
    pub(super) address: &'a str,
    pub(super) issuer: &'a str,
    pub(super) scopes: Vec<&'a str>,
    pub(super) user: &'a str,
    pub(super) form_key: &'a str,
}

/// Returns the page that requests consent.
pub(super) fn consent_page(details: &ConsentDetails<'_>) -> Response<Bytes> {
    let mut body = format!(
        "<p>The hub needs a login of yours for the server <strong>{}</strong> ({}).</p>\n\
         <p>You will log in at <strong>{}</strong>. The token is kept at this hub for <strong>{}</strong> and is sent to \
         that server only.</p>\n",
        escaped(details.server),
        escaped(details.address),
        escaped(details.issuer),
        escaped(details.user),
    );
    if details.scopes.is_empty() {
        body.push_str("<p>No particular permissions are requested.</p>\n");
    } else {
        body.push_str("<p>These permissions are requested:</p>\n<ul>\n");
        for scope in &details.scopes {
            let _ = writeln!(body, "<li><code>{}</code></li>", escaped(scope));
        }
        body.push_str("</ul>\n");
    }
    let _ = writeln!(
        body,
        "<form method=\"post\"><input type=\"hidden\" name=\"form_key\" value=\"{}\">\
         <button>Continue</button></form>\n\
         <p>If you did not ask for this, close the page.</p>",
        escaped(details.form_key)
    );
    page(StatusCode::OK, &format!("Log in to {}", details.server), &body)
}

/// Returns the page on which its opener proves to be the user.
/// `wrong` is the reason why the last token was refused.
pub(super) fn token_page(server: &str, user: &str, wrong: Option<&str>) -> Response<Bytes> {
    let shown =
        wrong.map(|wrong| format!("<p><strong>{}</strong></p>\n", escaped(wrong))).unwrap_or_default();
    let body = format!(
        "{shown}<p>This page is for the user <strong>{}</strong> of this hub, to log in to the server <strong>{}</strong>.</p>\n\
         <form method=\"post\"><label>The token with which your client reaches this hub: \
         <input type=\"password\" name=\"token\" autocomplete=\"off\" required></label> <button>Continue</button></form>\n\
         <p>It is compared and not stored. If your client gets its token by itself and does not show it, ask the \
         operator of the hub to connect the server for you.</p>\n",
        escaped(user),
        escaped(server)
    );
    let status = if wrong.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    page(status, &format!("Log in to {server}"), &body)
}

/// Returns a page with one sentence.
pub(super) fn message_page(status: StatusCode, title: &str, sentence: &str) -> Response<Bytes> {
    page(status, title, &format!("<p>{}</p>\n", escaped(sentence)))
}

fn page(status: StatusCode, title: &str, body: &str) -> Response<Bytes> {
    let title = escaped(title);
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
         <h1>{title}</h1>\n{body}</body></html>\n"
    );
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Escapes text for an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_escape_all_that_they_show() {
        let evil = "\"><script>'&\u{7}";
        let consent = ConsentDetails {
            server: evil,
            address: evil,
            issuer: evil,
            scopes: vec![evil],
            user: evil,
            form_key: evil,
        };
        let shown = [
            consent_page(&consent),
            token_page(evil, evil, Some(evil)),
            token_page(evil, evil, None),
            message_page(StatusCode::GONE, evil, evil),
        ];
        for response in shown {
            let text = String::from_utf8(response.body().to_vec()).unwrap();
            assert!(!text.contains("<script") && !text.contains("'&") && !text.contains('\u{7}'), "{text}");
            assert!(text.contains("&quot;&gt;&lt;script&gt;&#39;&amp;\u{fffd}"), "{text}");
            for (name, value) in HEADERS {
                assert_eq!(response.headers()[&name], value);
            }
        }
    }
}
