//! Headers and documents of servers in the OAuth flow.

use trunkline_auth::challenge::{ChallengeList, MAX_CHALLENGE_PARAMETERS, MAX_CHALLENGES};
use trunkline_auth::endpoint_url::PlainHttpPolicy;
use trunkline_auth::resource_metadata::ResourceMetadata;
use trunkline_auth::scopes::ScopeSet;
use trunkline_auth::server_metadata::ServerMetadata;

/// Parses the challenges of a `WWW-Authenticate` header, within bounds, and again as they would be written.
pub fn challenge(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let list = ChallengeList::parse(&text);
    assert!(list.iter().count() <= MAX_CHALLENGES);
    if let Some(scopes) = list.scope() {
        assert_eq!(ScopeSet::parse(&scopes.to_string()), scopes);
    }
    let mut written = Vec::new();
    for challenge in list.iter() {
        assert!(challenge.parameters().count() <= MAX_CHALLENGE_PARAMETERS);
        let mut parts: Vec<String> = challenge
            .parameters()
            .map(|(name, value)| {
                format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
            })
            .collect();
        // A token excludes parameters in the grammar; where a peer sent both, only the token is compared.
        if let Some(token) = challenge.token68() {
            parts = vec![token.to_owned()];
        }
        written.push(format!("{} {}", challenge.scheme(), parts.join(", ")));
    }
    let again = ChallengeList::parse(&written.join(", "));
    let names = |list: &ChallengeList| list.iter().map(|c| c.scheme().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&list));
    for (first, second) in list.iter().zip(again.iter()) {
        assert_eq!(first.token68(), second.token68());
        if first.token68().is_none() {
            assert!(first.parameters().eq(second.parameters()));
        }
    }
}

/// Reads the bytes as metadata of a resource and of an authorization server.
///
/// The first line is the issuer, or the URL of the resource, and the rest is the document.
pub fn metadata_document(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (identifier, document) = data.split_at(end);
    let identifier = String::from_utf8_lossy(identifier);
    let document = document.get(1..).unwrap_or_default();
    if let Ok(metadata) = ServerMetadata::parse(document, &identifier, PlainHttpPolicy::LoopbackOnly) {
        assert_eq!(metadata.issuer, identifier);
        let endpoints = [metadata.authorization_endpoint.as_deref(), Some(&metadata.token_endpoint)];
        for endpoint in endpoints.into_iter().flatten() {
            let is_http = endpoint.trim().to_ascii_lowercase().starts_with("http");
            assert!(is_http, "{endpoint:?}");
        }
    }
    if let Ok(metadata) = ResourceMetadata::parse(document) {
        let is_covered = metadata.covers(&identifier);
        assert!(is_covered || metadata.resource != identifier);
    }
}
