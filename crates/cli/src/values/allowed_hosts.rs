use trunkline_server::http::AllowList;

/// Reads a host that requests may name.
///
/// # Errors
/// Returns a message for the user if `text` is not a host.
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    if AllowList::is_host(text) {
        return Ok(text.to_owned());
    }
    Err("expected a host such as mcp.example.com or mcp.example.com:8443, without scheme, path or *"
        .to_owned())
}

/// Parses a web origin to allow.
///
/// # Errors
/// Returns a message for the user if `text` is not an origin.
pub(crate) fn parse_origin(text: &str) -> Result<String, String> {
    if AllowList::is_origin(text) {
        return Ok(text.to_owned());
    }
    Err("expected an origin such as https://app.example.com: a scheme and a host, a port only if it is \
         not the default, and no trailing slash"
        .to_owned())
}
