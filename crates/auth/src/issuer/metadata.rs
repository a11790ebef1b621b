use bytes::Bytes;

use crate::json_document::JsonDocument;
use crate::server_metadata::MetadataError;

/// The metadata of an issuer, as far as a resource server uses them
/// ([RFC 8414 §2](https://www.rfc-editor.org/rfc/rfc8414#section-2)).
///
/// Unlike the metadata for a client they may lack a token endpoint, as those of a platform that only signs identities do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerMetadata {
    /// Where its keys are.
    pub jwks_uri: Option<String>,
    /// Where tokens are introspected.
    pub introspection_endpoint: Option<String>,
    /// The whole document.
    pub document: Bytes,
}

impl IssuerMetadata {
    /// Parses the document that was found for an issuer.
    ///
    /// # Errors
    /// The body is not a metadata document, or is of another issuer.
    pub fn parse(body: &Bytes, issuer: &str) -> Result<Self, MetadataError> {
        let document = JsonDocument::parse(body)?;
        let found = document.required("issuer")?;
        if found != issuer {
            return Err(MetadataError::IssuerMismatch { expected: issuer.to_owned(), found });
        }
        Ok(Self {
            jwks_uri: document.text("jwks_uri"),
            introspection_endpoint: document.text("introspection_endpoint"),
            document: body.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_an_issuer_need_only_its_identifier() {
        let parse = |body: &'static str| IssuerMetadata::parse(&Bytes::from(body), "https://a/t");
        let found = parse(r#"{"issuer":"https://a/t","jwks_uri":"https://a/k","introspection_endpoint":""}"#);
        let found = found.unwrap();
        assert_eq!(found.jwks_uri.as_deref(), Some("https://a/k"));
        assert_eq!(found.introspection_endpoint, None);
        assert!(parse(r#"{"issuer":"https://a/t"}"#).is_ok());
        for body in [r#"{"issuer":"https://a/t/"}"#, r#"{"issuer":"https://a"}"#, "{}", "[]", ""] {
            assert!(parse(body).is_err(), "{body}");
        }
    }
}
