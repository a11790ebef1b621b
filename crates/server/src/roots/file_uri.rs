use std::path::PathBuf;

use trunkline_protocol::model::Root;

/// Returns the path of a root, if it is one of this machine.
///
/// Its URI must be `file:///path` or `file://localhost/path`, with an absolute path.
pub fn root_path(root: &Root) -> Option<PathBuf> {
    let rest = strip_ignoring_case(&root.uri, "file://")?;
    let path = match rest.find('/')? {
        0 => rest,
        at => {
            let (host, path) = rest.split_at(at);
            host.eq_ignore_ascii_case("localhost").then_some(path)?
        }
    };
    // A query or a fragment has no meaning in a path, so the author of such a URI means something unknown here.
    if path.contains(['?', '#']) {
        return None;
    }
    let path = decode(path)?;
    (!path.contains('\0')).then(|| PathBuf::from(path))
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let [high, low, after @ ..] = rest else { return None };
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                rest = after;
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_uris_of_this_machine_have_a_path() {
        for (uri, path) in [
            ("file:///w/p1", Some("/w/p1")),
            ("file:///w/p%201/%C3%A9", Some("/w/p 1/é")),
            ("FILE://LOCALHOST/w", Some("/w")),
            ("file:///", Some("/")),
            ("file://host/w", None),
            ("file:/w", None),
            ("file://", None),
            ("http://localhost/w", None),
            ("/w", None),
            ("file:///w%00x", None),
            ("file:///w%2", None),
            ("file:///w%zz", None),
            ("file:///w%FF", None),
            ("file:///w?x", None),
            ("file:///w#x", None),
            ("", None),
        ] {
            let root = Root { uri: uri.to_owned(), ..Root::default() };
            assert_eq!(root_path(&root), path.map(PathBuf::from), "{uri}");
        }
    }
}
