use std::collections::VecDeque;

use trunkline_http1::Url;

use super::config::FlowConfig;
use super::error::{FlowFailure, MetadataAttempt};
use crate::discovery::{origin_metadata_url, server_metadata_urls};
use crate::endpoint_url::{PlainHttpPolicy, check_endpoint, redacted};
use crate::resource_metadata::ResourceMetadata;

/// The number of authorization servers of one resource that are tried.
pub const MAX_ISSUERS: usize = 8;

/// Where an issuer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IssuerSource {
    /// The resource lists it, or the operator configured it.
    Named,
    /// The MCP server is its own authorization server (revision 2025-03-26).
    Origin,
}

/// One place to look for metadata.
#[derive(Clone, Debug)]
pub(super) struct MetadataCandidate {
    pub(super) url: String,
    /// Empty for protected resource metadata.
    pub(super) issuer: String,
    pub(super) source: IssuerSource,
}

/// Candidates in order, with what was wrong with those before.
#[derive(Clone, Debug)]
pub(super) struct MetadataSearch {
    candidates: VecDeque<MetadataCandidate>,
    policy: PlainHttpPolicy,
}

impl MetadataSearch {
    pub(super) fn for_resource(urls: Vec<String>, policy: PlainHttpPolicy) -> Self {
        let candidate = |url| MetadataCandidate { url, issuer: String::new(), source: IssuerSource::Named };
        Self { candidates: urls.into_iter().map(candidate).collect(), policy }
    }

    pub(super) fn for_issuers(issuers: &[String], policy: PlainHttpPolicy) -> Self {
        let mut candidates = VecDeque::new();
        for issuer in issuers.iter().take(MAX_ISSUERS) {
            // A text that is not a URL is refused as a candidate, so that the error names it.
            let urls =
                issuer.parse::<Url>().map_or_else(|_| vec![issuer.clone()], |url| server_metadata_urls(&url));
            let candidate =
                |url| MetadataCandidate { url, issuer: issuer.clone(), source: IssuerSource::Named };
            candidates.extend(urls.into_iter().map(candidate));
        }
        Self { candidates, policy }
    }

    pub(super) fn for_origin(server: &Url, policy: PlainHttpPolicy) -> Self {
        let (url, issuer) = (origin_metadata_url(server), server.origin());
        let candidate = MetadataCandidate { url, issuer, source: IssuerSource::Origin };
        Self { candidates: VecDeque::from([candidate]), policy }
    }

    /// Returns the next candidate with an acceptable URL.
    pub(super) fn next(&mut self, attempts: &mut Vec<MetadataAttempt>) -> Option<MetadataCandidate> {
        loop {
            let candidate = self.candidates.pop_front()?;
            match check_endpoint(&candidate.url, self.policy) {
                Ok(_) => return Some(candidate),
                Err(error) => {
                    let failure = FlowFailure::Endpoint(error);
                    attempts.push(MetadataAttempt { url: redacted(&candidate.url), failure });
                }
            }
        }
    }
}

/// Returns the issuers to try: those where the client is known come first, since their credentials are of use.
pub(super) fn issuers_of(
    metadata: &ResourceMetadata,
    config: &FlowConfig,
) -> Result<Vec<String>, FlowFailure> {
    let listed = &metadata.authorization_servers;
    if let Some(issuer) = &config.issuer {
        return match listed.contains(issuer) || listed.is_empty() {
            true => Ok(vec![issuer.clone()]),
            false => Err(FlowFailure::IssuerNotListed(issuer.clone())),
        };
    }
    let is_known = |issuer: &String| {
        config.preregistered.iter().any(|client| client.issuer.as_ref() == Some(issuer))
            || config.registrations.iter().any(|client| client.issuer == *issuer)
    };
    let (mut known, other): (Vec<String>, Vec<String>) = listed.iter().cloned().partition(is_known);
    known.extend(other);
    Ok(known)
}
