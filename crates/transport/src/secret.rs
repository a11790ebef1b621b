use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A text that is redacted in debug output, cannot be serialized, and is wiped from memory when its last copy is
/// dropped.
///
/// The comparison takes constant time for equal lengths.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(Zeroizing::new(text.into())))
    }

    /// Returns the text itself. Every call of this may expose the secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_compared_but_never_printed() {
        let secret = Secret::new("sentinel");
        assert_eq!(secret, Secret::new("sentinel"));
        for other in ["sentinem", "sentine", "sentinel ", ""] {
            assert_ne!(secret, Secret::new(other));
        }
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("sentinel").count(), 0);
        assert_eq!(secret.expose(), "sentinel");
    }
}
