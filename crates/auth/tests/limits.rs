//! The document of limits has every bound of the crate.

use trunkline_auth::{
    MAX_DOCUMENT_BYTES, MAX_ERROR_CHARACTERS, MAX_FORM_PARAMETERS, MAX_LISTED_VALUES, authorizer, challenge,
    dpop_nonce, flow, issuer, scopes, step_up, token_store,
};

#[test]
fn every_bound_of_authorization_is_in_the_document_of_limits() {
    let document = include_str!("../../../docs/limits.md");
    let table = [
        ("MAX_DOCUMENT_BYTES", MAX_DOCUMENT_BYTES, "64 KiB", 64 << 10),
        ("MAX_LISTED_VALUES", MAX_LISTED_VALUES, "256", 256),
        ("MAX_ISSUERS", flow::MAX_ISSUERS, "8", 8),
        ("MAX_CHALLENGES", challenge::MAX_CHALLENGES, "16", 16),
        ("MAX_CHALLENGE_PARAMETERS", challenge::MAX_CHALLENGE_PARAMETERS, "32", 32),
        ("MAX_SCOPES", scopes::MAX_SCOPES, "256", 256),
        ("MAX_FORM_PARAMETERS", MAX_FORM_PARAMETERS, "64", 64),
        ("MAX_ERROR_CHARACTERS", MAX_ERROR_CHARACTERS, "512", 512),
        ("MAX_NONCE_BYTES", dpop_nonce::MAX_NONCE_BYTES, "1 KiB", 1 << 10),
        ("MAX_NONCE_RETRIES", dpop_nonce::MAX_NONCE_RETRIES as usize, "2", 2),
        ("MAX_ATTEMPTS", step_up::MAX_ATTEMPTS as usize, "3", 3),
        ("MAX_LOGGED_OPERATIONS", step_up::MAX_LOGGED_OPERATIONS, "1,024", 1024),
        ("MAX_CALLER_TOKENS", authorizer::MAX_CALLER_TOKENS, "8", 8),
        ("MAX_STORED_ENTRIES", token_store::MAX_STORED_ENTRIES, "10,000", 10_000),
        ("MAX_STORE_BYTES", token_store::MAX_STORE_BYTES, "32 MiB", 32 << 20),
    ];
    for (name, value, text, expected) in [
        ("METADATA_AGE", issuer::METADATA_AGE, "10 min", 600),
        ("METADATA_RETRY_INTERVAL", issuer::METADATA_RETRY_INTERVAL, "10 s", 10),
        ("EXCHANGE_REFUSAL_AGE", authorizer::EXCHANGE_REFUSAL_AGE, "30 s", 30),
    ] {
        assert_eq!(value.as_secs(), expected, "{name}");
        assert!(document.contains(&format!("| `{name}` | {text} |")), "{name}");
    }
    for (name, value, text, expected) in table {
        assert_eq!(value, expected, "{name}");
        assert!(document.contains(&format!("| `{name}` | {text} |")), "{name}");
    }
}
