//! Removes credentials from what a server answers a failed request with, since it becomes part of error messages and logs.
//! Servers in development quote the headers of the request that failed.

/// The schemes of credentials that clients send.
const SCHEMES: [&str; 3] = ["bearer", "basic", "dpop"];

/// Credentials have this many bytes at least; shorter ones are only taken for some if there is a digit in them.
const MIN_BYTES: usize = 16;

/// Returns a text without JWTs, and without what follows the name of a scheme.
pub(super) fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    let mut follows_scheme = false;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_credential_char(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if is_jwt(run) || (follows_scheme && is_credential(run)) {
            clean.push('…');
        } else {
            clean.push_str(run);
        }
        let gap = after.find(is_credential_char).unwrap_or(after.len());
        let (between, next) = after.split_at_checked(gap).unwrap_or((after, ""));
        clean.push_str(between);
        let is_adjacent = !between.is_empty() && between.chars().all(char::is_whitespace);
        follows_scheme = is_adjacent && SCHEMES.iter().any(|scheme| run.eq_ignore_ascii_case(scheme));
        rest = next;
    }
    clean
}

/// The characters of `token68` (RFC 9110 §11.2).
fn is_credential_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/=".contains(c)
}

fn is_credential(run: &str) -> bool {
    let token = run.trim_end_matches('=');
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let is_parameter = token.contains('=') || (token.len() < run.len() && is_name(token));
    !is_parameter && (run.len() >= MIN_BYTES || run.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Reports whether a run is a JWT, or the beginning of one: its header is an object in base64.
fn is_jwt(run: &str) -> bool {
    let token = run.rsplit('=').next().unwrap_or(run);
    token.len() > MIN_BYTES && token.starts_with("eyJ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_and_other_words_stay() {
        let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl";
        let table = [
            ("Authorization: Bearer sentinel-0815", "Authorization: Bearer …"),
            ("authorization: bearer  sentinel-0815, host: h", "authorization: bearer  …, host: h"),
            ("DPoP abcdefghijklmnop", "DPoP …"),
            ("{\"Authorization\":\"Basic aWQ6c2VudGluZWw=\"}", "{\"Authorization\":\"Basic …\"}"),
            (&format!("the token {jwt} is expired"), "the token … is expired"),
            (&format!("token={jwt}&x=1"), "…&x=1"),
            (
                "Bearer error=\"invalid_token\", scope=\"a b\"",
                "Bearer error=\"invalid_token\", scope=\"a b\"",
            ),
            ("Bearer realm=example-realm-0815", "Bearer realm=example-realm-0815"),
            ("Bearer authentication is required", "Bearer authentication is required"),
            ("no Bearer", "no Bearer"),
            ("https://h/eyJ", "https://h/eyJ"),
            ("", ""),
            ("…é Bearer é", "…é Bearer é"),
        ];
        for (text, expected) in table {
            assert_eq!(without_credentials(text), expected, "{text}");
        }
    }
}
