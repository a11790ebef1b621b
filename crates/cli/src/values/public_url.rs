use trunkline_server::http::{ProtectedResource, ProtectedResourceError};

/// Reads the public URL of the MCP endpoint.
///
/// # Errors
/// A message for the user if it is not one.
pub(crate) fn parse_public_url(text: &str) -> Result<ProtectedResource, ProtectedResourceError> {
    ProtectedResource::new(text)
}
