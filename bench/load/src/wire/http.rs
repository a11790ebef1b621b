//! HTTP/1.1 requests as bytes.

use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::Result;

use super::message::Era;
use super::proof::ProofKey;

/// Where the tool is: the address, the path of the endpoint, and what the tool is called there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'static str,
    pub(crate) tool: &'static str,
    /// The value of the header `Authorization`, if there is one.
    pub(crate) authorization: Option<&'static str>,
    /// The key that signs a proof for every request, if the token is bound to one.
    pub(crate) proof_key: Option<&'static ProofKey>,
}

/// A server that has the tool itself.
impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Self { address, path: "/mcp", tool: "echo", authorization: None, proof_key: None }
    }
}

/// Where a request goes, in which era, and in which session.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) place: Place,
    pub(crate) era: Era,
    /// The legacy session, once it is open.
    pub(crate) session: Option<&'a str>,
}

/// The name of the header with a proof, and what follows it.
pub(super) const PROOF_HEADER: &str = "\r\nDPoP: ";

/// Builds a POST; `name` is what the modern header `Mcp-Name` repeats.
///
/// # Errors
/// No proof can be signed.
pub(crate) fn post(target: &Target<'_>, method: &str, name: Option<&str>, body: &str) -> Result<Vec<u8>> {
    let mut head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        target.place.path, target.place.address
    );
    if let Some(authorization) = target.place.authorization {
        push_header(&mut head, "Authorization", authorization);
    }
    if let Some(key) = target.place.proof_key {
        push_header(&mut head, "DPoP", &key.proof()?);
    }
    if target.era == Era::Modern {
        push_header(&mut head, "Mcp-Method", method);
        if let Some(name) = name {
            push_header(&mut head, "Mcp-Name", name);
        }
    }
    // A legacy client does not know the revision before `initialize` is answered.
    if target.era == Era::Modern || target.session.is_some() {
        push_header(&mut head, "MCP-Protocol-Version", target.era.revision());
    }
    if let Some(session) = target.session {
        push_header(&mut head, "Mcp-Session-Id", session);
    }
    push_header(&mut head, "Content-Length", &body.len().to_string());
    head.push_str("\r\n");
    head.push_str(body);
    Ok(head.into_bytes())
}

impl Target<'_> {
    /// Builds the GET that opens a legacy session's standing stream.
    pub(crate) fn get_stream(&self) -> Vec<u8> {
        let mut head = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n",
            self.place.path, self.place.address
        );
        push_header(&mut head, "MCP-Protocol-Version", self.era.revision());
        if let Some(session) = self.session {
            push_header(&mut head, "Mcp-Session-Id", session);
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

fn push_header(head: &mut String, name: &str, value: &str) {
    // Writing into a string cannot fail.
    let _ = write!(head, "{name}: {value}\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(era: Era, session: Option<&str>) -> String {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let target = Target { place: address.into(), era, session };
        String::from_utf8(post(&target, "tools/call", Some("echo"), "{}").unwrap()).unwrap()
    }

    #[test]
    fn modern_request_repeats_method_name_and_revision_in_headers() {
        let request = text(Era::Modern, None);
        for header in ["Mcp-Method: tools/call", "Mcp-Name: echo", "MCP-Protocol-Version: 2026-07-28"] {
            assert!(request.contains(header), "{header} is not in {request}");
        }
        assert!(request.ends_with("Content-Length: 2\r\n\r\n{}"));
    }

    #[test]
    fn legacy_request_has_session_and_revision_headers_once_known() {
        assert!(!text(Era::Legacy, None).contains("Protocol-Version"));
        let request = text(Era::Legacy, Some("s1"));
        assert!(request.contains("Mcp-Session-Id: s1\r\n"));
        assert!(request.contains("MCP-Protocol-Version: 2025-11-25\r\n"));
        assert!(!request.contains("Mcp-Method"));
    }
}
