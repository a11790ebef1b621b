use http::request::Parts;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use trunkline_auth::dpop::{
    NonceKeys, NonceStatus, ProofError, ProofRules, ProofVerifier, ReplayWindow, TokenBinding, single_proof,
};
use trunkline_auth::jose::{AlgorithmSet, SignatureAlgorithm};
use trunkline_session::Timestamp;

use super::public_uri::PublicUris;
use super::replay_windows::ReplayWindows;
use super::verified_token::VerifiedToken;
use crate::http::auth::{AuthChallenge, Authenticated, TokenScheme};

const DPOP: HeaderName = HeaderName::from_static("dpop");
pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Whether access tokens may or must be bound to a key of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopMode {
    /// Bound tokens are refused, and bearer tokens accepted.
    Off,
    /// Both are accepted.
    #[default]
    Accepted,
    /// Only bound tokens are accepted; static tokens still are.
    Required,
}

/// How bound tokens are accepted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DpopOptions {
    /// Whether they may or must be used.
    pub mode: DpopMode,
    /// Whether every proof must have a nonce of this server. Default no: the time and the identifier of a proof protect
    /// against replay as long as clocks are right.
    pub requires_nonce: bool,
    /// The algorithms and the time window of proofs.
    pub rules: ProofRules,
}

impl DpopOptions {
    /// Sets whether bound tokens may or must be used.
    #[must_use]
    pub fn with_mode(mut self, mode: DpopMode) -> Self {
        self.mode = mode;
        self
    }

    /// Requires a nonce of this server in every proof.
    #[must_use]
    pub fn with_nonce(mut self) -> Self {
        self.requires_nonce = true;
        self
    }

    /// Sets the accepted algorithms of proofs.
    #[must_use]
    pub fn with_algorithms(mut self, algorithms: AlgorithmSet) -> Self {
        self.rules.algorithms = algorithms;
        self
    }

    fn algorithms(&self) -> Vec<&'static str> {
        self.rules.algorithms.iter().map(SignatureAlgorithm::as_str).collect()
    }

    /// Returns the members of the metadata of the resource.
    pub(super) fn metadata(&self) -> Vec<(&'static str, Value)> {
        if self.mode == DpopMode::Off {
            return Vec::new();
        }
        vec![
            ("dpop_signing_alg_values_supported", self.algorithms().into()),
            ("dpop_bound_access_tokens_required", (self.mode == DpopMode::Required).into()),
        ]
    }

    /// Returns a challenge for each accepted scheme, with the error for the one that the client has used.
    pub(super) fn challenges(&self, used: TokenScheme, error: Option<(&str, &str)>) -> Vec<AuthChallenge> {
        let schemes: &[TokenScheme] = match self.mode {
            DpopMode::Off => &[TokenScheme::Bearer],
            DpopMode::Accepted => &[TokenScheme::Bearer, TokenScheme::Dpop],
            DpopMode::Required => &[TokenScheme::Dpop],
        };
        let blamed = if schemes.contains(&used) { Some(&used) } else { schemes.first() };
        let challenge = |scheme: &TokenScheme| {
            let mut challenge = AuthChallenge::new(scheme.as_str());
            if let Some((error, description)) = error.filter(|_| blamed == Some(scheme)) {
                challenge = challenge.param("error", error).param("error_description", description);
            }
            match scheme {
                TokenScheme::Bearer => challenge,
                TokenScheme::Dpop => challenge.param("algs", self.algorithms().join(" ")),
            }
        };
        schemes.iter().map(challenge).collect()
    }
}

/// What proofs are checked with.
#[derive(Debug)]
pub(super) struct ProofChecker {
    nonces: NonceKeys,
    replays: ReplayWindows,
}

impl ProofChecker {
    /// Makes a checker with a random key for nonces; `None` without random numbers.
    pub(super) fn new(options: &DpopOptions) -> Option<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        // Proofs from the future stay known until their time has passed too.
        let replays = ReplayWindows::new(ReplayWindow::DEFAULT_CAPACITY, options.rules.window);
        Some(Self { nonces: NonceKeys::new(&[key])?, replays })
    }

    /// Makes a nonce for a client.
    pub(super) fn nonce(&self, now: Timestamp) -> Option<HeaderValue> {
        let mut random = [0; 12];
        getrandom::fill(&mut random).ok()?;
        HeaderValue::try_from(self.nonces.issue(random, now)?).ok()
    }

    /// Checks that a request may use a token: a bound one needs a proof of its key.
    pub(super) fn check(
        &self,
        request: &Parts,
        (scheme, access_token): (TokenScheme, &str),
        token: &VerifiedToken,
        (options, uris): (&DpopOptions, &PublicUris),
        now: Timestamp,
    ) -> Result<Authenticated, ProofError> {
        let key_thumbprint = match (scheme, token.key_thumbprint.as_deref()) {
            (TokenScheme::Bearer, None) if options.mode == DpopMode::Required => {
                return Err(ProofError::UnboundToken);
            }
            (TokenScheme::Bearer, None) => return Ok(token.sender()),
            (TokenScheme::Bearer, Some(_)) => return Err(ProofError::BoundToken),
            (TokenScheme::Dpop, None) => return Err(ProofError::UnboundToken),
            (TokenScheme::Dpop, Some(key_thumbprint)) => key_thumbprint,
        };
        let proof = single_proof(request.headers.get_all(DPOP).iter().map(HeaderValue::as_bytes))?;
        let verifier = ProofVerifier {
            rules: &options.rules,
            method: request.method.as_str(),
            target: &uris.of_path(request.uri.path()).ok_or(ProofError::Uri)?,
            binding: Some(TokenBinding { access_token, key_thumbprint }),
            nonces: options.requires_nonce.then_some(&self.nonces),
        };
        let proof = verifier.verify(proof, self.replays.of(&token.principal), now)?;
        let nonce = if proof.nonce == NonceStatus::Renew { self.nonce(now) } else { None };
        Ok(nonce
            .into_iter()
            .fold(token.sender(), |sender, nonce| sender.with_response_header(DPOP_NONCE, nonce)))
    }
}
