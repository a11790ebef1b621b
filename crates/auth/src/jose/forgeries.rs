//! Signatures of the RFCs, and forgeries of signatures.

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{self as ring_signature, KeyPair as _};
use trunkline_protocol::RawJson;

use super::fixtures::{EC_X, EC_Y, ED_X, RSA_N, ed25519_key, es256_key, jwk, rsa_pkcs8};
use super::*;

fn parse_key(text: &str) -> VerificationKey {
    PublicJwk::parse(&RawJson::parse(text.to_owned()).unwrap()).unwrap().key().clone()
}

#[test]
fn signatures_of_the_rfcs_verify() {
    let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let rs256 = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG\
        bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_\
        eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXL\
        IhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let es256 = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    let eddsa = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    for (source, text, key) in [
        (
            "RFC 7515 A.2",
            format!("eyJhbGciOiJSUzI1NiJ9.{payload}.{rs256}"),
            format!(r#"{{"kty":"RSA","n":"{RSA_N}","e":"AQAB"}}"#),
        ),
        (
            "RFC 7515 A.3",
            format!("eyJhbGciOiJFUzI1NiJ9.{payload}.{es256}"),
            format!(r#"{{"kty":"EC","crv":"P-256","x":"{EC_X}","y":"{EC_Y}"}}"#),
        ),
        (
            "RFC 8037 A.4",
            format!("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.{eddsa}"),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED_X}"}}"#),
        ),
    ] {
        let jws = CompactJws::parse(&text).unwrap();
        assert_eq!(jws.verify(&parse_key(&key), AlgorithmSet::all()), Ok(()), "{source}");
        let none: AlgorithmSet = [].into_iter().collect();
        assert_eq!(jws.verify(&parse_key(&key), none), Err(VerifyError::Algorithm), "{source}");
    }
}

#[test]
fn algorithms_that_are_only_verified_verify() {
    let random = SystemRandom::new();
    let method = &ring_signature::ECDSA_P384_SHA384_FIXED_SIGNING;
    let document = ring_signature::EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
    let pair = ring_signature::EcdsaKeyPair::from_pkcs8(method, document.as_ref(), &random).unwrap();
    let key = VerificationKey::P384(pair.public_key().as_ref().to_vec());
    let signature = pair.sign(&random, b"m").unwrap();
    assert_eq!(key.verify(SignatureAlgorithm::Es384, b"m", signature.as_ref()), Ok(()));
    assert_eq!(VerificationKey::from_jwk(&key.to_jwk().members().unwrap()), Ok(key));

    let pair = ring_signature::RsaKeyPair::from_pkcs8(&rsa_pkcs8()).unwrap();
    let key = SigningKey::from_pkcs8(&rsa_pkcs8(), None).unwrap();
    let methods: [(_, &'static dyn ring_signature::RsaEncoding); 6] = [
        (SignatureAlgorithm::Rs256, &ring_signature::RSA_PKCS1_SHA256),
        (SignatureAlgorithm::Rs384, &ring_signature::RSA_PKCS1_SHA384),
        (SignatureAlgorithm::Rs512, &ring_signature::RSA_PKCS1_SHA512),
        (SignatureAlgorithm::Ps256, &ring_signature::RSA_PSS_SHA256),
        (SignatureAlgorithm::Ps384, &ring_signature::RSA_PSS_SHA384),
        (SignatureAlgorithm::Ps512, &ring_signature::RSA_PSS_SHA512),
    ];
    for (algorithm, encoding) in methods {
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(encoding, &random, b"m", &mut signature).unwrap();
        for other in methods.map(|(other, _)| other) {
            let expected = if other == algorithm { Ok(()) } else { Err(VerifyError::Signature) };
            assert_eq!(key.public().verify(other, b"m", &signature), expected, "{algorithm} as {other}");
        }
    }
}

/// Encodes a raw ECDSA signature as the DER that other protocols use.
fn ecdsa_der(raw: &[u8]) -> Vec<u8> {
    let integer = |bytes: &[u8]| {
        let sign = bytes.first().is_some_and(|byte| *byte >= 0x80);
        let mut value = if sign { vec![0] } else { Vec::new() };
        value.extend(bytes);
        [&[2, u8::try_from(value.len()).unwrap()], &*value].concat()
    };
    let (r, s) = raw.split_at(raw.len() / 2);
    let content = [integer(r), integer(s)].concat();
    [&[0x30, u8::try_from(content.len()).unwrap()], &*content].concat()
}

#[test]
fn altered_ecdsa_signatures_are_refused() {
    let key = es256_key();
    let message = b"header.payload";
    let good = key.sign(message).unwrap();
    let verify = |signature: &[u8]| key.public().verify(SignatureAlgorithm::Es256, message, signature);
    assert_eq!(verify(&good), Ok(()));
    let (r, s) = good.split_at(32);
    // The order of P-256, so that r + n and s + n would be equal values modulo n.
    let order = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
        0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    for (case, signature) in [
        ("empty", Vec::new()),
        ("DER instead of raw", ecdsa_der(&good)),
        ("r is zero", [&[0; 32], s].concat()),
        ("s is zero", [r, &[0; 32]].concat()),
        ("both are zero", vec![0; 64]),
        ("r and s are one", [[0; 31].as_slice(), &[1], &[0; 31], &[1]].concat()),
        ("r is the order", [&order[..], s].concat()),
        ("s is the order", [r, &order].concat()),
        ("all bits set", vec![0xff; 64]),
        ("r and s swapped", [s, r].concat()),
        ("truncated", good[..63].to_vec()),
        ("half", r.to_vec()),
        ("one byte more", [&good[..], &[0]].concat()),
        ("one byte before", [&[0], &good[..]].concat()),
        ("padded to the length of P-384", [&[0; 16], r, &[0; 16], s].concat()),
    ] {
        assert_eq!(verify(&signature), Err(VerifyError::Signature), "{case}");
    }
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verify(&changed), Err(VerifyError::Signature), "bit {bit}");
    }
}

#[test]
fn altered_rsa_and_ed25519_signatures_are_refused() {
    for key in [
        SigningKey::from_pkcs8(&rsa_pkcs8(), None).unwrap(),
        SigningKey::from_pkcs8(&rsa_pkcs8(), Some(SignatureAlgorithm::Ps256)).unwrap(),
        ed25519_key(),
    ] {
        let message = b"header.payload";
        let good = key.sign(message).unwrap();
        let verify = |signature: &[u8]| key.public().verify(key.algorithm(), message, signature);
        assert_eq!(verify(&good), Ok(()));
        assert!(key.public().verify(key.algorithm(), b"header.payloae", &good).is_err());
        let mut changed = good.clone();
        changed[7] ^= 1;
        for (case, signature) in [
            ("empty", Vec::new()),
            ("changed", changed),
            ("zero", vec![0; good.len()]),
            ("all bits set", vec![0xff; good.len()]),
            ("truncated", good[..good.len() - 1].to_vec()),
            ("one byte more", [&good[..], &[0]].concat()),
            ("one byte before", [&[0], &good[..]].concat()),
        ] {
            assert_eq!(verify(&signature), Err(VerifyError::Signature), "{} {case}", key.algorithm());
        }
    }
}

#[test]
fn key_verifies_only_algorithms_of_its_own_type() {
    let keys = [es256_key(), ed25519_key(), SigningKey::from_pkcs8(&rsa_pkcs8(), None).unwrap()];
    for key in &keys {
        let signature = key.sign(b"m").unwrap();
        for algorithm in SignatureAlgorithm::ALL {
            let expected = if algorithm == key.algorithm() {
                Ok(())
            } else if algorithm.key_type() == key.public().key_type() {
                Err(VerifyError::Signature)
            } else {
                Err(VerifyError::KeyType)
            };
            assert_eq!(key.public().verify(algorithm, b"m", &signature), expected, "{algorithm} {key:?}");
        }
    }
}

#[test]
fn forged_signatures_are_refused() {
    let key = es256_key();
    let set: JwkSet = [jwk(&key, "a"), jwk(&es256_key(), "b")].into_iter().collect();
    let accepted = |text: &str| {
        CompactJws::parse(text).is_ok_and(|jws| {
            set.candidates(&jws).any(|key| jws.verify(key.key(), AlgorithmSet::all()).is_ok())
        })
    };
    let payload = RawJson::EMPTY_OBJECT;
    let sign = |kid: &str| key.sign_compact(&[("kid", RawJson::from_text(kid))], &payload).unwrap();
    assert!(accepted(&sign("a")));
    assert!(accepted(&key.sign_compact(&[], &payload).unwrap()), "without kid");
    assert!(!accepted(&sign("b")), "kid of another key");
    assert!(!accepted(&sign("c")), "unknown kid");

    let encode = |header: &str| format!("{}.e30", encode_base64url(header));
    let signature = encode_base64url(key.sign(encode(r#"{"alg":"none","kid":"a"}"#).as_bytes()).unwrap());
    for name in ["none", "None", "NONE", "nOnE"] {
        let input = encode(&format!(r#"{{"alg":"{name}","kid":"a"}}"#));
        assert!(!accepted(&format!("{input}.")), "{name}");
        assert!(!accepted(&format!("{input}.{signature}")), "{name}");
    }
    // The public key, in each form that a library might take for an HMAC secret.
    let public = key.public().to_jwk();
    let VerificationKey::P256(point) = key.public() else { panic!("an EC key") };
    for secret in [public.as_str().as_bytes(), point] {
        let input = encode(r#"{"alg":"HS256","kid":"a"}"#);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), input.as_bytes());
        assert!(!accepted(&format!("{input}.{}", encode_base64url(tag))));
    }
}
