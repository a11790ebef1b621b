use std::time::Duration;

use trunkline_protocol::{ByteString, JsonObject};
use trunkline_session::Timestamp;

use super::{
    NonceKeys, NonceLifetime, PROOF_TYPE, ProofError, ReplayError, ReplayWindow, TargetUri, TokenBinding,
    token_hash,
};
use crate::access_token::numeric_date;
use crate::jose::{AlgorithmSet, CompactJws, JwsError, SignatureAlgorithm, VerificationKey};

/// What a server requires of proofs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProofRules {
    /// The allowed signature algorithms; by default ES256 and EdDSA.
    pub algorithms: AlgorithmSet,
    /// The largest difference of `iat` to the clock of the server, in both directions; 5 min.
    pub window: Duration,
    /// For how long a nonce is accepted.
    pub nonce_lifetime: NonceLifetime,
}

impl Default for ProofRules {
    fn default() -> Self {
        Self {
            algorithms: [SignatureAlgorithm::Es256, SignatureAlgorithm::EdDsa].into_iter().collect(),
            window: Duration::from_secs(300),
            nonce_lifetime: NonceLifetime::default(),
        }
    }
}

/// Returns the proof of a request from its headers `DPoP`, of which there must be one
/// ([RFC 9449 §4.3](https://www.rfc-editor.org/rfc/rfc9449#section-4.3), check 1).
///
/// # Errors
/// There is none, there are several, or it is not text.
pub fn single_proof<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Result<&'a str, ProofError> {
    let mut headers = headers.into_iter();
    let proof = headers.next().ok_or(ProofError::Missing)?;
    if headers.next().is_some() {
        return Err(ProofError::Multiple);
    }
    std::str::from_utf8(proof).map_err(|_| ProofError::Malformed)
}

/// A request, against which its proof is checked.
#[derive(Clone, Copy, Debug)]
pub struct ProofVerifier<'a> {
    /// The rules of the server.
    pub rules: &'a ProofRules,
    /// The method of the request.
    pub method: &'a str,
    /// The public URI of the request.
    pub target: &'a TargetUri,
    /// The token that the request carries; none at a token endpoint.
    pub binding: Option<TokenBinding<'a>>,
    /// The keys of nonces if every proof must have one.
    pub nonces: Option<&'a NonceKeys>,
}

/// A proof that has passed all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedProof {
    /// The thumbprint of its key.
    pub key_thumbprint: String,
    /// Whether the client should get a new nonce.
    pub nonce: NonceStatus,
}

/// The state of the nonce in an accepted proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonceStatus {
    /// The server requires none.
    NotRequired,
    /// The nonce is less than half as old as it may become.
    Fresh,
    /// The nonce is older: the response should have a new one in `DPoP-Nonce`.
    Renew,
}

impl ProofVerifier<'_> {
    /// Checks a proof after [RFC 9449 §4.3](https://www.rfc-editor.org/rfc/rfc9449#section-4.3), and counts it as used.
    ///
    /// The key is compared with that of the token before the signature is verified, and the proof is counted only after
    /// all other checks, so that a client without a bound token causes little work and takes no space.
    ///
    /// # Errors
    /// A check fails.
    pub fn verify(
        &self,
        proof: &str,
        replay: &ReplayWindow,
        now: Timestamp,
    ) -> Result<VerifiedProof, ProofError> {
        let jws = CompactJws::parse(proof).map_err(|error| match error {
            JwsError::Algorithm => ProofError::Algorithm,
            _ => ProofError::Malformed,
        })?;
        let key_thumbprint = self.check_key(&jws)?;
        let claims = jws.claims().map_err(|_| ProofError::Malformed)?;
        if text(&claims, "htm")? != self.method {
            return Err(ProofError::Method);
        }
        if TargetUri::parse(&text(&claims, "htu")?).as_ref() != Some(self.target) {
            return Err(ProofError::Uri);
        }
        if let Some(binding) = &self.binding
            && text(&claims, "ath")? != token_hash(binding.access_token)
        {
            return Err(ProofError::TokenHash);
        }
        let issued = self.check_time(&claims, now)?;
        let nonce = self.check_nonce(&claims, now)?;
        let jti = text(&claims, "jti")?;
        if jti.is_empty() {
            return Err(ProofError::Claim("jti"));
        }
        // The time of a nonce is the server's own, so that no client can fill the window with proofs of the future.
        let (issued, too_old, nonce) = match nonce {
            Some((made, status)) => (made, ProofError::Nonce, status),
            None => (issued, ProofError::Time, NonceStatus::NotRequired),
        };
        replay.insert(&key_thumbprint, &jti, issued, now).map_err(|error| match error {
            ReplayError::Replayed => ProofError::Replayed,
            ReplayError::TooOld => too_old,
        })?;
        Ok(VerifiedProof { key_thumbprint, nonce })
    }

    /// Checks type, algorithm, key and signature; returns the thumbprint of the key.
    fn check_key(&self, jws: &CompactJws<'_>) -> Result<String, ProofError> {
        if jws.media_type().as_deref() != Some(PROOF_TYPE) {
            return Err(ProofError::Type);
        }
        if !self.rules.algorithms.contains(jws.algorithm()) {
            return Err(ProofError::Algorithm);
        }
        let jwk = jws.header().get("jwk").ok_or(ProofError::Key)?;
        let jwk = jwk.members().map_err(|_| ProofError::Key)?;
        let key = VerificationKey::from_jwk(&jwk).map_err(|_| ProofError::Key)?;
        let key_thumbprint = key.thumbprint();
        if self.binding.is_some_and(|binding| binding.key_thumbprint != key_thumbprint) {
            return Err(ProofError::KeyMismatch);
        }
        jws.verify(&key, self.rules.algorithms).map_err(|_| ProofError::Signature)?;
        Ok(key_thumbprint)
    }

    fn check_time(&self, claims: &JsonObject, now: Timestamp) -> Result<Timestamp, ProofError> {
        let issued = numeric_date(claims, "iat").ok().flatten().ok_or(ProofError::Claim("iat"))?;
        let difference = now.since(issued).max(issued.since(now));
        if difference <= self.rules.window { Ok(issued) } else { Err(ProofError::Time) }
    }

    fn check_nonce(
        &self,
        claims: &JsonObject,
        now: Timestamp,
    ) -> Result<Option<(Timestamp, NonceStatus)>, ProofError> {
        let Some(keys) = self.nonces else { return Ok(None) };
        let lifetime = self.rules.nonce_lifetime;
        let nonce = claims.text("nonce").ok_or(ProofError::Nonce)?;
        let made = keys.check(&nonce, lifetime, now).ok_or(ProofError::Nonce)?;
        let is_old = now.since(made) > lifetime.accepted / 2;
        Ok(Some((made, if is_old { NonceStatus::Renew } else { NonceStatus::Fresh })))
    }
}

fn text(claims: &JsonObject, name: &'static str) -> Result<ByteString, ProofError> {
    claims.text(name).ok_or(ProofError::Claim(name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::RawJson;

    use super::super::DpopProof;
    use super::*;
    use crate::jose::fixtures::{EC_X, ed25519_key, es256_key, rsa_pkcs8};
    use crate::jose::{SigningKey, encode_base64url};

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const TOKEN: &str = "the.access.token";

    fn target() -> TargetUri {
        TargetUri::parse("https://hub.example/mcp").unwrap()
    }

    /// Signs a proof with changed header parameters and claims; `null` removes one.
    fn sign(key: &SigningKey, header: &Value, claims: &Value) -> String {
        let mut parameters = json!({"typ": "dpop+jwt"});
        parameters["jwk"] = serde_json::from_str(key.public().to_jwk().as_str()).unwrap();
        let mut payload = json!({
            "jti": "j1", "htm": "POST", "htu": "https://hub.example/mcp", "iat": NOW.0 / 1000, "ath": token_hash(TOKEN),
        });
        for (object, changes) in [(&mut parameters, header), (&mut payload, claims)] {
            let object = object.as_object_mut().unwrap();
            object.extend(changes.as_object().unwrap().clone());
            object.retain(|_, value| !value.is_null());
        }
        let parameters: Vec<_> = parameters.as_object().unwrap().iter().collect();
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (name.as_str(), RawJson::from(*value))).collect();
        key.sign_compact(&parameters, &RawJson::from(payload)).unwrap()
    }

    /// Checks a proof for a POST with a token that is bound to `key`.
    fn check(proof: &str, key: &SigningKey, now: Timestamp) -> Result<VerifiedProof, ProofError> {
        let (rules, target, thumbprint) = (ProofRules::default(), target(), key.public().thumbprint());
        let binding = Some(TokenBinding { access_token: TOKEN, key_thumbprint: &thumbprint });
        let verifier =
            ProofVerifier { rules: &rules, method: "POST", target: &target, binding, nonces: None };
        verifier.verify(proof, &ReplayWindow::new(100, rules.window), now)
    }

    #[test]
    fn own_proofs_are_accepted() {
        for key in [es256_key(), ed25519_key()] {
            let target = target();
            let proof = DpopProof {
                method: "POST",
                target: &target,
                access_token: Some(TOKEN),
                nonce: Some("not required"),
            };
            let signed = proof.sign(&key, &[1; 16], NOW).unwrap();
            let verified = check(signed.expose(), &key, NOW).unwrap();
            assert_eq!(verified.key_thumbprint, key.public().thumbprint());
            assert_eq!(verified.nonce, NonceStatus::NotRequired);
        }
    }

    #[test]
    fn dpop_proofs_are_refused_with_their_reason() {
        let key = es256_key();
        let seconds = NOW.0 / 1000;
        let none = json!({});
        let mut private: Value = serde_json::from_str(key.public().to_jwk().as_str()).unwrap();
        private["d"] = EC_X.into();
        for (header, claims, expected) in [
            (none.clone(), none.clone(), None),
            (json!({"typ": "application/dpop+jwt"}), none.clone(), None),
            (json!({"kid": "extra"}), json!({"extra": 1}), None),
            (none.clone(), json!({"htu": "https://HUB.example:443/mcp?q=1#f"}), None),
            (none.clone(), json!({"iat": seconds - 300}), None),
            (none.clone(), json!({"iat": seconds + 300}), None),
            (json!({"typ": null}), none.clone(), Some(ProofError::Type)),
            (json!({"typ": "JWT"}), none.clone(), Some(ProofError::Type)),
            (json!({"typ": "at+jwt"}), none.clone(), Some(ProofError::Type)),
            (json!({"jwk": null}), none.clone(), Some(ProofError::Key)),
            (json!({"jwk": "key"}), none.clone(), Some(ProofError::Key)),
            (json!({"jwk": private}), none.clone(), Some(ProofError::Key)),
            (json!({"jwk": {"kty": "oct", "k": "AAAA"}}), none.clone(), Some(ProofError::Key)),
            (json!({"crit": ["x"]}), none.clone(), Some(ProofError::Malformed)),
            (none.clone(), json!({"htm": "GET"}), Some(ProofError::Method)),
            (none.clone(), json!({"htm": "post"}), Some(ProofError::Method)),
            (none.clone(), json!({"htm": null}), Some(ProofError::Claim("htm"))),
            (none.clone(), json!({"htu": "https://hub.example/other"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": "https://hub.example/mcp/"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": "http://hub.example/mcp"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": "https://evil.example/mcp"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": "https://hub.example@evil.example/mcp"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": "/mcp"}), Some(ProofError::Uri)),
            (none.clone(), json!({"htu": null}), Some(ProofError::Claim("htu"))),
            (none.clone(), json!({"iat": seconds - 301}), Some(ProofError::Time)),
            (none.clone(), json!({"iat": seconds + 301}), Some(ProofError::Time)),
            (none.clone(), json!({"iat": 0}), Some(ProofError::Time)),
            (none.clone(), json!({"iat": "now"}), Some(ProofError::Claim("iat"))),
            (none.clone(), json!({"iat": null}), Some(ProofError::Claim("iat"))),
            (none.clone(), json!({"ath": token_hash("other")}), Some(ProofError::TokenHash)),
            (none.clone(), json!({"ath": null}), Some(ProofError::Claim("ath"))),
            (none.clone(), json!({"jti": null}), Some(ProofError::Claim("jti"))),
            (none.clone(), json!({"jti": ""}), Some(ProofError::Claim("jti"))),
            (none, json!({"jti": 7}), Some(ProofError::Claim("jti"))),
        ] {
            let proof = sign(&key, &header, &claims);
            assert_eq!(check(&proof, &key, NOW).err(), expected, "{header} {claims}");
        }
    }

    #[test]
    fn forged_dpop_proofs_are_refused() {
        let (key, other) = (es256_key(), es256_key());
        let empty = json!({});
        let good = sign(&key, &empty, &empty);
        let (input, signature) = good.rsplit_once('.').unwrap();
        let own_jwk: Value = serde_json::from_str(key.public().to_jwk().as_str()).unwrap();
        let rsa = SigningKey::from_pkcs8(&rsa_pkcs8(), None).unwrap();
        let header =
            |algorithm: &str| json!({"typ": "dpop+jwt", "alg": algorithm, "jwk": own_jwk}).to_string();
        let claims = input.split_once('.').unwrap().1;
        for (case, proof, expected) in [
            ("garbage", "garbage".to_owned(), ProofError::Malformed),
            ("empty", String::new(), ProofError::Malformed),
            ("signature of nothing", format!("{input}.AA"), ProofError::Signature),
            ("other key", sign(&other, &empty, &empty), ProofError::KeyMismatch),
            ("the key's own header", sign(&other, &json!({"jwk": own_jwk}), &empty), ProofError::Signature),
            ("algorithm not allowed", sign(&rsa, &empty, &empty), ProofError::Algorithm),
            (
                "alg none",
                format!("{}.{claims}.{signature}", encode_base64url(header("none"))),
                ProofError::Algorithm,
            ),
            (
                "HS256",
                format!("{}.{claims}.{signature}", encode_base64url(header("HS256"))),
                ProofError::Algorithm,
            ),
            (
                "algorithm of another type of key",
                format!("{}.{claims}.{signature}", encode_base64url(header("EdDSA"))),
                ProofError::Signature,
            ),
        ] {
            assert_eq!(check(&proof, &key, NOW).err(), Some(expected), "{case}");
        }
    }

    #[test]
    fn request_must_have_exactly_one_proof() {
        let cases: [(&[&[u8]], _); 4] = [
            (&[], Err(ProofError::Missing)),
            (&[b"a"], Ok("a")),
            (&[b"a", b"a"], Err(ProofError::Multiple)),
            (&[b"\xff"], Err(ProofError::Malformed)),
        ];
        for (headers, expected) in cases {
            assert_eq!(single_proof(headers.iter().copied()), expected);
        }
    }

    #[test]
    fn proof_is_accepted_once_and_only_a_valid_one_is_counted() {
        let key = es256_key();
        let (rules, target) = (ProofRules::default(), target());
        let verifier =
            ProofVerifier { rules: &rules, method: "POST", target: &target, binding: None, nonces: None };
        let replay = ReplayWindow::new(100, rules.window);
        let refused = sign(&key, &json!({}), &json!({"htm": "GET"}));
        assert_eq!(verifier.verify(&refused, &replay, NOW), Err(ProofError::Method));
        let proof = sign(&key, &json!({}), &json!({}));
        assert!(verifier.verify(&proof, &replay, NOW).is_ok());
        for later in [0, 1_000, 300_000] {
            let now = Timestamp(NOW.0 + later);
            assert_eq!(verifier.verify(&proof, &replay, now), Err(ProofError::Replayed), "{later}");
        }
        let again = sign(&key, &json!({}), &json!({"iat": NOW.0 / 1000 + 1}));
        assert_eq!(verifier.verify(&again, &replay, NOW), Err(ProofError::Replayed), "the same jti");
    }

    #[test]
    fn required_nonce_must_be_of_this_server_and_recent() {
        let key = es256_key();
        let keys = NonceKeys::new(&[[1; 32]]).unwrap();
        let foreign = NonceKeys::new(&[[2; 32]]).unwrap();
        let (rules, target) = (ProofRules::default(), target());
        let verifier = ProofVerifier {
            rules: &rules,
            method: "POST",
            target: &target,
            binding: None,
            nonces: Some(&keys),
        };
        let made =
            |keys: &NonceKeys, ago: u64| Value::from(keys.issue([3; 12], Timestamp(NOW.0 - ago)).unwrap());
        for (nonce, expected) in [
            (Value::Null, Err(ProofError::Nonce)),
            (json!("x"), Err(ProofError::Nonce)),
            (json!(7), Err(ProofError::Nonce)),
            (made(&foreign, 0), Err(ProofError::Nonce)),
            (made(&keys, 0), Ok(NonceStatus::Fresh)),
            (made(&keys, 150_000), Ok(NonceStatus::Fresh)),
            (made(&keys, 150_001), Ok(NonceStatus::Renew)),
            (made(&keys, 300_000), Ok(NonceStatus::Renew)),
            (made(&keys, 300_001), Err(ProofError::Nonce)),
        ] {
            let proof = sign(&key, &json!({}), &json!({"nonce": nonce}));
            let verified = verifier.verify(&proof, &ReplayWindow::new(100, rules.window), NOW);
            assert_eq!(verified.map(|proof| proof.nonce), expected, "{nonce}");
        }
        assert_eq!(ProofError::Nonce.code(), "use_dpop_nonce");
    }

    #[test]
    fn full_replay_window_demands_a_new_nonce() {
        let key = es256_key();
        let keys = NonceKeys::new(&[[1; 32]]).unwrap();
        let (rules, target) = (ProofRules::default(), target());
        let verifier = ProofVerifier {
            rules: &rules,
            method: "POST",
            target: &target,
            binding: None,
            nonces: Some(&keys),
        };
        let replay = ReplayWindow::new(2, rules.window);
        let nonce = keys.issue([3; 12], NOW).unwrap();
        let verify = |jti: &str, nonce: &str, now| {
            let proof =
                sign(&key, &json!({}), &json!({"jti": jti, "nonce": nonce, "iat": NOW.0 / 1000 + 300}));
            verifier.verify(&proof, &replay, now).map(drop)
        };
        for jti in ["a", "b", "c"] {
            assert_eq!(verify(jti, &nonce, NOW), Ok(()));
        }
        assert_eq!(verify("d", &nonce, NOW), Err(ProofError::Nonce));
        let later = Timestamp(NOW.0 + 1);
        let nonce = keys.issue([4; 12], later).unwrap();
        assert_eq!(verify("d", &nonce, later), Ok(()), "proofs of the future do not keep others out");
    }
}
