use http::HeaderName;
use trunkline_protocol::Revision;
use trunkline_protocol::header::encode_value;
use trunkline_transport::http::HeaderLines;

use crate::client_transport::HeaderMirror;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Adds the headers that mirror parts of a body, and the method if it is a request.
pub(super) fn add_mirrored_headers(lines: &mut HeaderLines, mirror: &HeaderMirror, method: Option<&str>) {
    match mirror {
        HeaderMirror::Nothing => {}
        HeaderMirror::Version(revision) => add_version_header(lines, *revision),
        HeaderMirror::Full { revision, name, params } => {
            add_version_header(lines, *revision);
            if let Some(method) = method {
                lines.add_text(&MCP_METHOD, method);
            }
            if let Some(name) = name {
                lines.add_text(&MCP_NAME, &encode_value(name));
            }
            for (name, value) in params {
                // The names come from validated schemas and the values are encoded, so that neither can fail; the
                // server rejects the call if one is missing.
                if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                    lines.add_text(&name, value);
                }
            }
        }
    }
}

/// Adds the `MCP-Protocol-Version` header.
pub(super) fn add_version_header(lines: &mut HeaderLines, revision: Revision) {
    lines.add_text(&PROTOCOL_VERSION, revision.as_str());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stateless_request_mirrors_its_body_and_session_request_its_version() {
        let revision = Revision::V2026_07_28;
        let params = vec![("Mcp-Param-Region".to_owned(), "us west".to_owned())];
        let whole = |name: Option<&str>| HeaderMirror::Full {
            revision,
            name: name.map(Into::into),
            params: params.clone(),
        };
        let version = ("mcp-protocol-version", "2026-07-28");
        let method = ("mcp-method", "tools/call");
        let param = ("mcp-param-region", "us west");
        type HeaderPairs<'a> = &'a [(&'a str, &'a str)];
        let table: &[(HeaderMirror, Option<&str>, HeaderPairs<'_>)] = &[
            (HeaderMirror::Nothing, Some("initialize"), &[]),
            (
                HeaderMirror::Version(Revision::V2025_06_18),
                Some("tools/call"),
                &[("mcp-protocol-version", "2025-06-18")],
            ),
            (whole(None), None, &[version, param]),
            (whole(Some("add")), Some("tools/call"), &[version, method, ("mcp-name", "add"), param]),
            (whole(Some("")), Some("tools/call"), &[version, method, ("mcp-name", ""), param]),
            (
                whole(Some("gr\u{fc}\u{df}e")),
                Some("tools/call"),
                &[version, method, ("mcp-name", "=?base64?Z3LDvMOfZQ==?="), param],
            ),
        ];
        for (mirrored, method, expected) in table {
            let mut lines = HeaderLines::default();
            add_mirrored_headers(&mut lines, mirrored, *method);
            let found = std::str::from_utf8(lines.as_bytes()).unwrap();
            let expected: String =
                expected.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            assert_eq!(found, expected, "{mirrored:?}");
        }
    }
}
