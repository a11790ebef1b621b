//! Access tokens and proofs, with headers and claims of any kind under a good and a bad signature.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use trunkline_auth::access_token::{TokenRules, TokenTyping, UnverifiedToken};
use trunkline_auth::dpop::{ProofError, ProofRules, ProofVerifier, ReplayWindow, TargetUri, TokenBinding};
use trunkline_auth::jose::{CompactJws, JwkSet, PublicJwk, SignatureAlgorithm, SigningKey};
use trunkline_protocol::RawJson;
use trunkline_session::Timestamp;

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const ISSUER: &str = "https://login.example";
const RESOURCE: &str = "https://hub.example/mcp";

/// An Ed25519 key, so that the same bytes always have the same signature. The corpora hold its public key.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| {
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    SigningKey::from_pkcs8(&[&prefix[..], &[7; 32]].concat(), None).expect("an Ed25519 key")
});

/// Makes two tokens of a header and claims, which are the first line and the rest: a signed and a forged one.
fn tokens(data: &[u8]) -> (String, String) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (header, claims) = data.split_at(end);
    let claims = claims.get(1..).unwrap_or_default();
    let input = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = KEY.sign(input.as_bytes()).expect("Ed25519 draws no random numbers");
    let encoded = URL_SAFE_NO_PAD.encode(&signature);
    (format!("{input}.{encoded}"), format!("{input}.{}", URL_SAFE_NO_PAD.encode([1; 64])))
}

/// Validates an access token with any header and claims.
pub fn access_token(data: &[u8]) {
    let mut members = KEY.public().to_jwk().members().expect("a JWK is an object");
    members.set("kid", RawJson::from_text("k"));
    let keys: JwkSet = PublicJwk::from_members(&members).into_iter().collect();
    let mut rules = TokenRules::new(ISSUER, [RESOURCE]);
    rules.typing = TokenTyping::AllowUntyped;
    let rules = [rules];
    let check = |token: &str| {
        let token = UnverifiedToken::parse(token)?;
        let rules = token.choose_rules(&rules)?;
        token.verify(rules, &keys, NOW)
    };
    assert!(check(&String::from_utf8_lossy(data)).is_err(), "a token without signature is accepted");
    let (signed, forged) = tokens(data);
    assert!(check(&forged).is_err(), "a forged token is accepted");
    if let Ok(claims) = check(&signed) {
        let jws = CompactJws::parse(&signed).expect("it was accepted");
        assert_eq!(jws.algorithm(), SignatureAlgorithm::EdDsa);
        assert!(jws.header().get("crit").is_none());
        assert_eq!(&*claims.issuer, ISSUER);
        assert!(!claims.subject.is_empty());
        assert!(claims.expires.is_some_and(|expires| expires.plus(TokenRules::MAX_SKEW) > NOW));
        assert!(claims.scopes.iter().all(|scope| !scope.is_empty() && !scope.contains(' ')));
    }
}

/// Checks a DPoP proof with any header and claims.
pub fn dpop_proof(data: &[u8]) {
    let (rules, thumbprint) = (ProofRules::default(), KEY.public().thumbprint());
    let uri = RESOURCE.parse().expect("a URI");
    let target = TargetUri::new(&uri).expect("an absolute URI");
    let binding = Some(TokenBinding { access_token: "token", key_thumbprint: &thumbprint });
    let verifier = ProofVerifier { rules: &rules, method: "POST", target: &target, binding, nonces: None };
    let replay = ReplayWindow::new(16, rules.window);
    let check = |proof: &str| verifier.verify(proof, &replay, NOW);
    assert!(check(&String::from_utf8_lossy(data)).is_err(), "a proof without signature is accepted");
    let (signed, forged) = tokens(data);
    assert!(check(&forged).is_err(), "a forged proof is accepted");
    if let Ok(proof) = check(&signed) {
        assert_eq!(proof.key_thumbprint, thumbprint);
        assert_eq!(check(&signed), Err(ProofError::Replayed));
    }
}
