//! Proof Key for Code Exchange ([RFC 7636](https://www.rfc-editor.org/rfc/rfc7636)) with S256, and the random values of
//! one authorization.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use trunkline_transport::Secret;

/// The secret that binds an authorization code to the client that requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeVerifier(Secret);

impl CodeVerifier {
    /// Makes a verifier of 43 characters from random bytes.
    pub fn from_random(bytes: &[u8; 32]) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the verifier for the token request.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// Returns the S256 challenge for the authorization request.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.0.expose().as_bytes()))
    }
}

/// The random values of one authorization. They are used once.
#[derive(Clone, Debug)]
pub struct FlowRandom {
    /// The PKCE verifier.
    pub verifier: CodeVerifier,
    /// The parameter `state`, which binds the response to the request.
    pub state: Secret,
}

impl FlowRandom {
    /// Draws the values from a source of cryptographically random bytes, which fills the slices that it is given.
    pub fn draw(mut fill: impl FnMut(&mut [u8])) -> Self {
        let (mut verifier, mut state) = ([0; 32], [0; 32]);
        fill(&mut verifier);
        fill(&mut state);
        let state = Secret::new(URL_SAFE_NO_PAD.encode(state));
        Self { verifier: CodeVerifier::from_random(&verifier), state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_challenge_matches_the_example_of_the_rfc() {
        // RFC 7636 appendix B.
        let bytes = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105,
            214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        let verifier = CodeVerifier::from_random(&bytes);
        assert_eq!(verifier.secret().expose(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn flow_random_values_differ_and_are_not_printed() {
        let mut next = 0;
        let random = FlowRandom::draw(|bytes| {
            next += 1;
            bytes.fill(next);
        });
        assert_ne!(random.verifier.secret(), &random.state);
        assert_eq!(random.state.expose().len(), 43);
        assert!(!format!("{random:?}").contains(random.state.expose()));
    }
}
