//! Tokens that are bound to a key: what a resource server checks of their proofs (RFC 9449 §4.3, §7).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use trunkline_auth::jose::SigningKey;
use trunkline_protocol::RawJson;
use trunkline_server::Tool;
use trunkline_server::http::resource_server::DpopMode;

use super::issuer_server::{RESOURCE, seconds_from_now, signing_key};
use super::{METADATA, ResourceFixture, WholeResponse};

/// Signs a proof for a call with a token, with changed header parameters and claims; `null` removes one.
fn proof(key: &SigningKey, token: &str, header: Value, claims: Value) -> String {
    let mut parameters = json!({ "typ": "dpop+jwt" });
    parameters["jwk"] = serde_json::from_str(key.public().to_jwk().as_str()).unwrap();
    let jti = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{claims}{:?}", std::time::Instant::now())));
    let mut payload = json!({
        "jti": jti, "htm": "POST", "htu": RESOURCE, "iat": seconds_from_now(0),
        "ath": URL_SAFE_NO_PAD.encode(Sha256::digest(token)),
    });
    for (object, changes) in [(&mut parameters, header), (&mut payload, claims)] {
        let object = object.as_object_mut().unwrap();
        object.extend(changes.as_object().unwrap().clone());
        object.retain(|_, value| !value.is_null());
    }
    let parameters = parameters.as_object().unwrap().clone();
    let parameters: Vec<_> =
        parameters.iter().map(|(name, value)| (name.as_str(), RawJson::from(value))).collect();
    key.sign_compact(&parameters, &RawJson::from(payload)).unwrap()
}

impl ResourceFixture {
    /// Signs a token that is bound to a key.
    fn bound_token(&self, key: &SigningKey) -> String {
        self.token(json!({ "cnf": { "jkt": key.public().thumbprint() } }))
    }

    async fn call_with_proofs(&self, scheme: &str, token: &str, proofs: &[&str]) -> WholeResponse {
        let authorization = format!("{scheme} {token}");
        let mut headers = vec![("authorization", &*authorization)];
        headers.extend(proofs.iter().map(|proof| ("dpop", *proof)));
        self.call_with("/mcp", &headers).await
    }
}

#[tokio::test]
async fn dpop_proofs_are_checked_with_every_request() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    let (key, other) = (signing_key(), signing_key());
    let token = fixture.bound_token(&key);
    let signed = |header: Value, claims: Value| proof(&key, &token, header, claims);
    let good = signed(json!({}), json!({}));
    for claims in [
        json!({}),
        json!({ "htu": "HTTPS://HUB.example:443/mcp?a=b#c" }),
        json!({ "iat": seconds_from_now(-295) }),
        json!({ "iat": seconds_from_now(295) }),
    ] {
        let response = fixture.call_with_proofs("DPoP", &token, &[&signed(json!({}), claims)]).await;
        fixture.assert_called_by(&response, "ann");
    }
    fixture.assert_called_by(&fixture.call_with_proofs("dpop", &token, &[&good]).await, "ann");
    let private = {
        let mut jwk: Value = serde_json::from_str(key.public().to_jwk().as_str()).unwrap();
        jwk["d"] = "AAAA".into();
        jwk
    };
    let (input, signature) = good.rsplit_once('.').unwrap();
    let none = {
        let (_, claims) = input.split_once('.').unwrap();
        let header = json!({ "typ": "dpop+jwt", "alg": "none", "jwk": serde_json::from_str::<Value>(key.public().to_jwk().as_str()).unwrap() });
        format!("{}.{claims}.{signature}", URL_SAFE_NO_PAD.encode(header.to_string()))
    };
    let invalid = "invalid_dpop_proof";
    let table = [
        ("no proof", vec![], invalid, "the request has no DPoP proof"),
        (
            "two proofs",
            vec![signed(json!({}), json!({})), signed(json!({}), json!({}))],
            invalid,
            "the request has more than one DPoP proof",
        ),
        ("garbage", vec!["garbage".to_owned()], invalid, "the DPoP proof is malformed"),
        (
            "typ",
            vec![signed(json!({ "typ": "JWT" }), json!({}))],
            invalid,
            "the type of the DPoP proof is not dpop+jwt",
        ),
        ("alg none", vec![none], invalid, "the signature algorithm of the DPoP proof is not allowed"),
        (
            "no jwk",
            vec![signed(json!({ "jwk": null }), json!({}))],
            invalid,
            "the DPoP proof has no supported public key",
        ),
        (
            "private jwk",
            vec![signed(json!({ "jwk": private }), json!({}))],
            invalid,
            "the DPoP proof has no supported public key",
        ),
        (
            "signature of another proof",
            vec![format!("{input}.{}", signed(json!({}), json!({})).rsplit('.').next().unwrap())],
            invalid,
            "the signature of the DPoP proof is wrong",
        ),
        (
            "no jti",
            vec![signed(json!({}), json!({ "jti": null }))],
            invalid,
            "the DPoP proof has no valid claim jti",
        ),
        (
            "other htm",
            vec![signed(json!({}), json!({ "htm": "GET" }))],
            invalid,
            "the DPoP proof is for another method",
        ),
        (
            "other htu",
            vec![signed(json!({}), json!({ "htu": "https://hub.example/other" }))],
            invalid,
            "the DPoP proof is for another URI",
        ),
        (
            "htu of the socket",
            vec![signed(json!({}), json!({ "htu": format!("http://{}/mcp", fixture.service.address) }))],
            invalid,
            "the DPoP proof is for another URI",
        ),
        (
            "no iat",
            vec![signed(json!({}), json!({ "iat": null }))],
            invalid,
            "the DPoP proof has no valid claim iat",
        ),
        (
            "too old",
            vec![signed(json!({}), json!({ "iat": seconds_from_now(-301) }))],
            invalid,
            "the DPoP proof is too old or from the future",
        ),
        (
            "from the future",
            vec![signed(json!({}), json!({ "iat": seconds_from_now(310) }))],
            invalid,
            "the DPoP proof is too old or from the future",
        ),
        (
            "no ath",
            vec![signed(json!({}), json!({ "ath": null }))],
            invalid,
            "the DPoP proof has no valid claim ath",
        ),
        (
            "other ath",
            vec![proof(&key, "other", json!({}), json!({}))],
            invalid,
            "the DPoP proof is for another access token",
        ),
        (
            "other key",
            vec![proof(&other, &token, json!({}), json!({}))],
            "invalid_token",
            "the access token is bound to another key",
        ),
        ("replayed", vec![good.clone()], invalid, "the DPoP proof was used before"),
    ];
    for (case, proofs, error, description) in table {
        let proofs: Vec<&str> = proofs.iter().map(String::as_str).collect();
        let response = fixture.call_with_proofs("DPoP", &token, &proofs).await;
        assert_eq!(response.status, 401, "{case}");
        assert_eq!(response.body["error"], error, "{case}");
        let found = response.body["error_description"].as_str().unwrap();
        assert_eq!(found, description, "{case}");
        let expected = [
            format!(r#"Bearer scope="mcp:use", {METADATA}"#),
            format!(
                r#"DPoP error="{error}", error_description="{found}", algs="ES256 EdDSA", scope="mcp:use", {METADATA}"#
            ),
        ];
        assert_eq!(response.challenges(), expected, "{case}");
        assert!(!response.headers.contains_key("dpop-nonce"));
    }
}

#[tokio::test]
async fn bound_tokens_are_no_bearer_tokens_and_the_reverse() {
    for (mode, bound_as_bearer, unbound, bound) in [
        (DpopMode::Off, 401, 200, 401),
        (DpopMode::Accepted, 401, 200, 200),
        (DpopMode::Required, 401, 401, 200),
    ] {
        let fixture = ResourceFixture::start(|options, _| options.dpop = options.dpop.with_mode(mode)).await;
        let key = signing_key();
        let (bearer, token) = (fixture.token(json!({})), fixture.bound_token(&key));
        // Both before and after they are in the cache.
        for _ in 0..2 {
            let fresh = proof(&key, &token, json!({}), json!({}));
            let found = [
                fixture.call(&token).await,
                fixture.call(&bearer).await,
                fixture.call_with_proofs("DPoP", &token, &[&fresh]).await,
            ];
            let statuses = found.each_ref().map(|response| response.status.as_u16());
            assert_eq!(statuses, [bound_as_bearer, unbound, bound], "{mode:?}");
            assert_eq!(found[0].body["error"], "invalid_token");
        }
        let unbound_with_proof = proof(&key, &bearer, json!({}), json!({}));
        let response = fixture.call_with_proofs("DPoP", &bearer, &[&unbound_with_proof]).await;
        assert_eq!(response.status, 401, "{mode:?}");
        assert_eq!(fixture.call("cron-token-0123456").await.status, 200, "static tokens stay: {mode:?}");
        let schemes: Vec<String> = fixture
            .call_with("/mcp", &[])
            .await
            .challenges()
            .iter()
            .map(|challenge| challenge.split(' ').next().unwrap().to_owned())
            .collect();
        let expected: &[&str] = match mode {
            DpopMode::Off => &["Bearer"],
            DpopMode::Required => &["DPoP"],
            _ => &["Bearer", "DPoP"],
        };
        assert_eq!(schemes, expected);
    }
}

#[tokio::test]
async fn required_nonces_are_given_and_must_be_recent() {
    let fixture = ResourceFixture::start(|options, _| options.dpop = options.dpop.with_nonce()).await;
    let key = signing_key();
    let token = fixture.bound_token(&key);
    let call = async |claims: Value| {
        fixture.call_with_proofs("DPoP", &token, &[&proof(&key, &token, json!({}), claims)]).await
    };
    let refused = call(json!({})).await;
    assert_eq!((refused.status.as_u16(), &refused.body["error"]), (401, &json!("use_dpop_nonce")));
    assert!(refused.challenges()[1].starts_with(r#"DPoP error="use_dpop_nonce""#), "{refused:?}");
    let nonce = refused.headers["dpop-nonce"].to_str().unwrap().to_owned();
    for _ in 0..2 {
        fixture.assert_called_by(&call(json!({ "nonce": nonce })).await, "ann");
    }
    let other = ResourceFixture::start(|options, _| options.dpop = options.dpop.with_nonce()).await;
    let of_other = other.bound_token(&key);
    let first = proof(&key, &of_other, json!({}), json!({}));
    let foreign = other.call_with_proofs("DPoP", &of_other, &[&first]).await;
    let foreign = foreign.headers["dpop-nonce"].to_str().unwrap().to_owned();
    for stale in ["", "made-up", foreign.as_str()] {
        let refused = call(json!({ "nonce": stale })).await;
        assert_eq!(refused.body["error"], "use_dpop_nonce", "{stale}");
        assert!(refused.headers.contains_key("dpop-nonce"));
    }
}

#[tokio::test]
async fn stale_nonces_are_refused_and_old_ones_renewed() {
    use std::time::Duration;
    for (accepted, expected) in [(Duration::from_secs(300), 200), (Duration::ZERO, 401)] {
        let fixture = ResourceFixture::start(|options, _| {
            options.dpop = options.dpop.with_nonce();
            options.dpop.rules.nonce_lifetime.accepted = accepted;
        })
        .await;
        let key = signing_key();
        let token = fixture.bound_token(&key);
        let first =
            fixture.call_with_proofs("DPoP", &token, &[&proof(&key, &token, json!({}), json!({}))]).await;
        let nonce = first.headers["dpop-nonce"].to_str().unwrap().to_owned();
        // A nonce has the time in milliseconds.
        tokio::time::sleep(Duration::from_millis(3)).await;
        let second = proof(&key, &token, json!({}), json!({ "nonce": nonce }));
        let response = fixture.call_with_proofs("DPoP", &token, &[&second]).await;
        assert_eq!(response.status.as_u16(), expected);
    }
    // At half of its life a nonce is still accepted, and comes with the next one.
    let fixture = ResourceFixture::start(|options, _| {
        options.dpop = options.dpop.with_nonce();
        options.dpop.rules.nonce_lifetime.accepted = Duration::from_secs(40);
    })
    .await;
    let key = signing_key();
    let token = fixture.bound_token(&key);
    let first = fixture.call_with_proofs("DPoP", &token, &[&proof(&key, &token, json!({}), json!({}))]).await;
    let nonce = first.headers["dpop-nonce"].to_str().unwrap().to_owned();
    let second = proof(&key, &token, json!({}), json!({ "nonce": nonce }));
    let response = fixture.call_with_proofs("DPoP", &token, &[&second]).await;
    assert_eq!(response.status, 200);
    assert!(!response.headers.contains_key("dpop-nonce"), "it is fresh");
}

#[tokio::test]
async fn unaccepted_proof_algorithms_are_refused() {
    use trunkline_server::http::resource_server::SignatureAlgorithm;
    let fixture = ResourceFixture::start(|options, _| {
        options.dpop = options.dpop.with_algorithms([SignatureAlgorithm::EdDsa].into_iter().collect());
    })
    .await;
    let key = signing_key();
    let token = fixture.bound_token(&key);
    let response =
        fixture.call_with_proofs("DPoP", &token, &[&proof(&key, &token, json!({}), json!({}))]).await;
    assert_eq!(response.status, 401);
    let description = "the signature algorithm of the DPoP proof is not allowed";
    assert_eq!(response.body["error_description"], description);
    assert!(response.challenges()[1].contains(r#"algs="EdDSA""#));
}

#[tokio::test]
async fn tool_scopes_are_challenged_by_the_scheme_of_the_token() {
    let fixture = ResourceFixture::start(|_, _| {}).await;
    fixture.service.parts.remove_tool("whoami");
    let guarded = Tool::new("whoami").require_scopes(["files:write"]).run(async || "done");
    fixture.service.parts.add(guarded).unwrap();
    let key = signing_key();
    let bound = fixture.bound_token(&key);
    let signed = proof(&key, &bound, json!({}), json!({}));
    for (scheme, response) in [
        ("DPoP", fixture.call_with_proofs("DPoP", &bound, &[&signed]).await),
        ("Bearer", fixture.call(&fixture.token(json!({}))).await),
    ] {
        assert_eq!(response.status, 403, "{response:?}");
        let expected = format!(r#"{scheme} error="insufficient_scope", scope="files:write", {METADATA}"#);
        assert_eq!(response.challenges(), [expected]);
    }
}
