use trunkline_server::http::AllowList;

/// Reads a host that requests may name.
///
/// # Errors
/// A sentence for whoever typed it.
pub(crate) fn parse_host(text: &str) -> Result<String, String> {
    if AllowList::is_host(text) {
        return Ok(text.to_owned());
    }
    Err("write a host such as mcp.example.com or mcp.example.com:8443: no scheme, no path and no *"
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
    Err("write an origin as browsers do, such as https://app.example.com: a scheme and a host, a port only where it is \
         not the usual one, and no slash at the end"
        .to_owned())
}
