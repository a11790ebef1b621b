//! Which tokens are accepted, and how the others are refused.

use http::StatusCode;
use serde_json::{Value, json};
use trunkline_auth::jose::SigningKey;
use trunkline_server::http::resource_server::{DpopMode, TokenTyping};

use super::issuer_server::{IssuerKey, seconds_from_now};
use super::{METADATA, ResourceFixture};

/// Starts a resource server that accepts no bound tokens, so that there is one challenge.
async fn bearer_only() -> ResourceFixture {
    ResourceFixture::start(|options, _| options.dpop = options.dpop.with_mode(DpopMode::Off)).await
}

fn base64url(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// Makes a token of the header and claims that is signed with HMAC by bytes that are public.
fn hmac_token(claims: &Value, secret: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let input = format!(
        "{}.{}",
        base64url(r#"{"alg":"HS256","typ":"at+jwt","kid":"a"}"#),
        base64url(&claims.to_string())
    );
    let mut key = [0_u8; 64];
    let short = Sha256::digest(secret);
    let bytes: &[u8] = if secret.len() > 64 { &short } else { secret };
    key[..bytes.len()].copy_from_slice(bytes);
    let pad = |byte: u8| key.map(|key| key ^ byte);
    let inner = Sha256::digest([&pad(0x36)[..], input.as_bytes()].concat());
    let mac = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    use base64::Engine as _;
    format!("{input}.{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(mac))
}

#[tokio::test]
async fn valid_tokens_identify_issuer_and_subject() {
    let fixture = bearer_only().await;
    for changes in [
        json!({}),
        json!({ "aud": ["https://other.example", super::RESOURCE] }),
        json!({ "scope": null, "scp": ["other", "mcp:use"] }),
        json!({ "exp": seconds_from_now(-30) }),
        json!({ "nbf": seconds_from_now(30) }),
    ] {
        let response = fixture.call(&fixture.token(changes)).await;
        fixture.assert_called_by(&response, "ann");
    }
    let response = fixture.call(&fixture.token(json!({ "sub": "bob" }))).await;
    fixture.assert_called_by(&response, "bob");
    let cron = fixture.call("cron-token-0123456").await;
    assert_eq!(cron.body["result"]["content"][0]["text"], "cron");
    assert_eq!(fixture.issuer.requests("/jwks"), 1);
}

#[tokio::test]
async fn tokens_are_refused_with_their_reason() {
    let fixture = bearer_only().await;
    let token = |changes| fixture.token(changes);
    let id_token = fixture.key.sign(Some("JWT"), fixture.claims(json!({ "aud": "app", "nonce": "n" })));
    let id_jag = fixture.key.sign(Some("oauth-id-jag+jwt"), fixture.claims(json!({})));
    for (case, token, expected) in [
        ("expired", token(json!({ "exp": seconds_from_now(-61) })), "the access token has expired"),
        ("nbf", token(json!({ "nbf": seconds_from_now(90) })), "the access token is not valid yet"),
        ("aud", token(json!({ "aud": "https://hub.example" })), "the access token is for another audience"),
        ("no aud", token(json!({ "aud": null })), "the access token has no valid claim aud"),
        ("no exp", token(json!({ "exp": null })), "the access token has no valid claim exp"),
        ("ID token", id_token, "the token is not an access token"),
        ("ID-JAG", id_jag, "the token is not an access token"),
    ] {
        let response = fixture.call(&token).await;
        assert_eq!(response.status, 401, "{case}");
        assert_eq!(
            response.body,
            json!({ "error": "invalid_token", "error_description": expected }),
            "{case}"
        );
        let challenge = format!(
            r#"Bearer error="invalid_token", error_description="{expected}", scope="mcp:use", {METADATA}"#
        );
        assert_eq!(response.challenges(), [challenge], "{case}");
    }
}

#[tokio::test]
async fn unverified_tokens_are_refused_alike() {
    let fixture = bearer_only().await;
    let good = fixture.token(json!({}));
    let (input, signature) = good.rsplit_once('.').unwrap();
    let claims = fixture.claims(json!({}));
    let unsigned =
        format!("{}.{}.", base64url(r#"{"alg":"none","typ":"at+jwt"}"#), base64url(&claims.to_string()));
    let public = fixture.key.jwk().to_string();
    let raw_public = {
        use base64::Engine as _;
        let decode = |name: &str| {
            let text = fixture.key.jwk()[name].as_str().unwrap().to_owned();
            base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap()
        };
        [vec![4], decode("x"), decode("y")].concat()
    };
    let other = IssuerKey::new("a").sign(Some("at+jwt"), claims.clone());
    let mut refusals = Vec::new();
    for (case, token) in [
        ("garbage", "garbage".to_owned()),
        ("unknown static token", "cron-token-0123457".to_owned()),
        ("three parts of garbage", "a.b.c".to_owned()),
        ("alg none", unsigned.clone()),
        ("alg none with a signature", format!("{unsigned}{signature}")),
        ("HS256 with the public key as JSON", hmac_token(&claims, public.as_bytes())),
        ("HS256 with the public key as bytes", hmac_token(&claims, &raw_public)),
        ("wrong issuer", fixture.token(json!({ "iss": "https://evil.example" }))),
        ("issuer with a slash", fixture.token(json!({ "iss": format!("{}/", fixture.issuer.issuer()) }))),
        ("no issuer", fixture.token(json!({ "iss": null }))),
        ("unknown kid", IssuerKey::new("b").sign(Some("at+jwt"), claims.clone())),
        ("known kid, other key", other),
        (
            "signature of another token",
            format!("{input}.{}", fixture.token(json!({ "sub": "bob" })).rsplit('.').next().unwrap()),
        ),
    ] {
        let response = fixture.call(&token).await;
        assert_eq!(response.status, 401, "{case}");
        assert_eq!(response.body["error_description"], "the access token is not valid", "{case}");
        refusals.push((response.body.clone(), response.challenges().join("\n")));
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(fixture.issuer.requests("/jwks"), 1, "made-up keys cause no fetch");
}

#[tokio::test]
async fn requests_without_one_token_in_its_place_are_refused() {
    let fixture = bearer_only().await;
    let bearer = format!("Bearer {}", fixture.token(json!({})));
    let token = bearer.trim_start_matches("Bearer ");
    let plain = format!(r#"Bearer scope="mcp:use", {METADATA}"#);
    for (case, path, headers, status, error) in [
        ("no token", "/mcp".to_owned(), vec![], 401, "unauthorized"),
        ("Basic", "/mcp".to_owned(), vec!["Basic YW5uOnB3"], 401, "unauthorized"),
        ("DPoP without DPoP", "/mcp".to_owned(), vec!["DPoP abc"], 401, "unauthorized"),
        ("token in the query", format!("/mcp?access_token={token}"), vec![], 400, "invalid_request"),
        ("token in both", format!("/mcp?access_token={token}"), vec![&*bearer], 400, "invalid_request"),
        ("two tokens", "/mcp".to_owned(), vec![&*bearer, &*bearer], 400, "invalid_request"),
        ("no token behind the scheme", "/mcp".to_owned(), vec!["Bearer"], 400, "invalid_request"),
        ("two words", "/mcp".to_owned(), vec!["Bearer a b"], 400, "invalid_request"),
    ] {
        let headers: Vec<_> = headers.into_iter().map(|value| ("authorization", value)).collect();
        let response = fixture.call_with(&path, &headers).await;
        assert_eq!(response.status.as_u16(), status, "{case}");
        assert_eq!(response.body["error"], error, "{case}");
        if status == 401 {
            assert_eq!(response.challenges(), [&*plain], "{case}");
        }
    }
    assert_eq!(fixture.issuer.requests("/jwks"), 0, "none of them causes a fetch");
}

#[tokio::test]
async fn missing_scope_is_403_and_implied_scopes_count() {
    let fixture = ResourceFixture::start(|options, _| {
        let implied = ["mcp:use", "mcp:read"].map(str::to_owned).to_vec();
        options.implied_scopes.insert("mcp:all".to_owned(), implied);
        options.required_scopes.push("mcp:read".to_owned());
        options.dpop = options.dpop.with_mode(DpopMode::Off);
    })
    .await;
    for (scope, expected) in
        [("mcp:use mcp:read", 200), ("mcp:all", 200), ("mcp:use", 403), ("mcp", 403), ("", 403)]
    {
        let response = fixture.call(&fixture.token(json!({ "scope": scope }))).await;
        assert_eq!(response.status.as_u16(), expected, "{scope}");
        if response.status == StatusCode::FORBIDDEN {
            let challenge =
                format!(r#"Bearer error="insufficient_scope", scope="mcp:use mcp:read", {METADATA}"#);
            assert_eq!(response.challenges(), [challenge], "{scope}");
            assert_eq!(response.body["error"], "insufficient_scope");
        }
    }
}

#[tokio::test]
async fn untyped_tokens_are_accepted_only_where_configured() {
    let strict = bearer_only().await;
    let lenient = ResourceFixture::start(|options, _| {
        for issuer in &mut options.issuers {
            issuer.rules.typing = TokenTyping::AllowUntyped;
        }
    })
    .await;
    for (fixture, expected) in [(&strict, 401), (&lenient, 200)] {
        for typ in [None, Some("JWT")] {
            let token = fixture.key.sign(typ, fixture.claims(json!({})));
            assert_eq!(fixture.call(&token).await.status.as_u16(), expected, "{typ:?}");
        }
    }
    let id_token = lenient.key.sign(Some("JWT"), lenient.claims(json!({ "at_hash": "x" })));
    assert_eq!(lenient.call(&id_token).await.status, 401);
}

#[tokio::test]
async fn tokens_of_every_key_type_are_accepted_within_the_allowed_algorithms() {
    use trunkline_server::http::resource_server::SignatureAlgorithm;
    let fixture = ResourceFixture::start(|options, _| {
        for issuer in &mut options.issuers {
            issuer.rules.algorithms = [SignatureAlgorithm::EdDsa].into_iter().collect();
        }
    })
    .await;
    assert_eq!(fixture.call(&fixture.token(json!({}))).await.status, 401, "ES256 is not allowed");
    let der = ring_ed25519();
    let ed25519 = IssuerKey { key: SigningKey::from_pkcs8(&der, None).unwrap(), id: "e" };
    fixture.issuer.set_keys(&[&fixture.key, &ed25519]);
    // The keys were not fetched yet: the algorithm was refused before.
    let token = ed25519.sign(Some("at+jwt"), fixture.claims(json!({})));
    fixture.assert_called_by(&fixture.call(&token).await, "ann");
}

/// The Ed25519 key of RFC 8037 A.1, as PKCS#8.
fn ring_ed25519() -> Vec<u8> {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let seed = engine.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
    let public = engine.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
    // RFC 8410, version 2 with the public key.
    let head = [0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    [&head[..], &seed, &[0x81, 0x21, 0], &public].concat()
}
