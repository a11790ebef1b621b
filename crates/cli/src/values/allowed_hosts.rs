use trunkline_server::http::AllowList;

/// Reads a host that requests may name.
///
/// # Errors
/// A sentence for whoever typed it.
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    if AllowList::is_host(text) {
        return Ok(text.to_owned());
    }
    Err("expected a host such as mcp.example.com or mcp.example.com:8443, without scheme, path or *"
        .to_owned())
}

/// Reads an origin whose pages may call.
///
/// # Errors
/// A sentence for whoever typed it.
pub(crate) fn parse_origin(text: &str) -> Result<String, String> {
    if AllowList::is_origin(text) {
        return Ok(text.to_owned());
    }
    Err("expected an origin such as https://app.example.com: a scheme and a host, a port only if it is \
         not the default, and no trailing slash"
        .to_owned())
}
