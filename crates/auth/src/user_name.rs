//! The name of a user for display, as tokens have it.

use trunkline_transport::Secret;

use crate::jose::CompactJws;

/// The claims of a name, the most readable first (OpenID Connect Core §5.1).
const CLAIMS: [&str; 4] = ["preferred_username", "email", "name", "sub"];

/// The characters of a name that are kept.
const MAX_CHARACTERS: usize = 128;

/// Returns the user that a JWT names. Its signature is not checked: nothing may be decided by this name.
pub(crate) fn user_name(token: &Secret) -> Option<String> {
    let claims = CompactJws::parse(token.expose()).ok()?.claims().ok()?;
    let name = CLAIMS.iter().find_map(|claim| claims.text(claim).filter(|name| !name.is_empty()))?;
    Some(name.chars().filter(|c| !c.is_control()).take(MAX_CHARACTERS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn user_name_is_the_most_readable_claim() {
        let table = [
            (r#"{"sub":"7","email":"ann@example.com"}"#, Some("ann@example.com")),
            (r#"{"sub":"7","preferred_username":""}"#, Some("7")),
            (r#"{"sub":"a\u001b[1mb"}"#, Some("a[1mb")),
            (r#"{"iss":"x"}"#, None),
            ("nonsense", None),
        ];
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
        for (claims, expected) in table {
            let token = format!("{header}.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
            assert_eq!(user_name(&Secret::new(token)).as_deref(), expected, "{claims}");
        }
        assert_eq!(user_name(&Secret::new("opaque")), None);
    }
}
