use std::net::{Ipv4Addr, Ipv6Addr};

/// Schemes with addresses that clients with a browser's URL parser check more strictly.
const WITH_HOST: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Reports whether a text is a URI that every official client accepts.
///
/// The schemas require a URI. Clients differ: some accept any text, some use a browser's URL parser. This accepts
/// what both accept, including spaces and letters of every language within a path, which servers of files list.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_outside = |character: char| character.is_whitespace();
    if text.chars().any(char::is_control) || text.starts_with(is_outside) || text.ends_with(is_outside) {
        return false;
    }
    let scheme = scheme.to_ascii_lowercase();
    if !is_scheme(&scheme) {
        return false;
    }
    let authority =
        rest.strip_prefix("//").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        Some(authority) if WITH_HOST.contains(&&*scheme) => is_authority(authority, is_domain),
        Some("") => true,
        Some(host) if scheme == "file" => is_domain(host),
        Some(authority) => is_authority(authority, is_name),
        // Browsers treat a backslash as a slash, and the text after two of them as a host.
        None if scheme == "file" => !rest.chars().take(2).any(|character| character == '\\'),
        None => !WITH_HOST.contains(&&*scheme),
    }
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Checks `user@host:port`.
fn is_authority(authority: &str, is_host: fn(&str) -> bool) -> bool {
    let (user, host_port) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user = user.bytes().all(|byte| is_unreserved(byte) || b"!$&'()*+,;=:%".contains(&byte));
    // An IPv6 address has colons of its own, in brackets.
    let (host, port) = match host_port.rfind(']') {
        Some(end) => host_port.split_at_checked(end + 1).unwrap_or((host_port, "")),
        None => host_port.find(':').and_then(|at| host_port.split_at_checked(at)).unwrap_or((host_port, "")),
    };
    let is_port = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some("") => true,
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok(),
    };
    is_user && is_port && (is_bracketed(host) || is_host(host))
}

fn is_bracketed(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok())
}

/// Checks a host of a scheme that gives hosts no meaning of their own.
fn is_name(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| is_unreserved(byte) || b"!$&'()*+,;=%".contains(&byte))
}

/// Checks a domain name. A host that ends in a number is an IP address, and one in Punycode may be invalid: that
/// would require decoding it.
fn is_domain(host: &str) -> bool {
    let is_legible = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let mut labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let is_punycode = labels.clone().any(|label| label.to_ascii_lowercase().starts_with("xn--"));
    let last = labels.next_back().unwrap_or_default().to_ascii_lowercase();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_legible && !host.is_empty() && !is_punycode && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_check_accepts_only_uris_that_all_clients_parse() {
        for (text, expected) in [
            ("file:///home/me/notes.md", true),
            ("file:///home/me/My Notes – zwölf.md", true),
            ("file://server/share", true),
            ("file:/home", true),
            ("https://x.example/a?b=c#d", true),
            ("https://user:secret@x.example:8443/", true),
            ("http://127.0.0.1:80/", true),
            ("http://[::1]:80/", true),
            ("note://internal/1", true),
            ("note:///1", true),
            ("postgres://u:p@db:5432/t/schema", true),
            ("urn:isbn:0451450523", true),
            ("data:text/plain,hello world", true),
            ("x:1", true),
            ("x:", true),
            ("", false),
            (":", false),
            ("notes.md", false),
            ("/home/me", false),
            ("1x:y", false),
            ("a b:c", false),
            (" file:///a", false),
            ("file:///a ", false),
            ("file:///a\nb", false),
            ("file:///a\u{0}", false),
            ("http:", false),
            ("http://", false),
            ("http:///a", false),
            ("http:a", false),
            ("http://a b/", false),
            ("http://a:65536/", false),
            ("http://a:b/", false),
            ("http://a:1:2/", false),
            ("http://[::1/", false),
            ("http://[::g]/", false),
            ("http://[::1]x/", false),
            ("http://1.2.3/", false),
            ("http://1.2.3.256/", false),
            ("http://a.0x/", false),
            ("http://xn--a/", false),
            ("http://a\\b/", false),
            ("http://a%00/", false),
            ("note://a b/1", false),
            ("note://a<b/1", false),
            ("note://a:99999/", false),
            ("note://u@/", false),
            ("note://:80/", false),
            ("file:\\\\a<b", false),
            ("file://a:80/b", false),
            ("file://a b/c", false),
        ] {
            assert_eq!(is_uri(text), expected, "{text:?}");
        }
    }
}
