//! The response of the authorization server, which the browser brings to the redirect URI.
//!
//! Its issuer is validated before anything in it is used or shown
//! ([RFC 9207 §2.4](https://www.rfc-editor.org/rfc/rfc9207#section-2.4); MCP, Authorization Response Validation).

use trunkline_transport::Secret;

use crate::form::decode;
use crate::oauth_error::OauthError;

/// The reason why an authorization response is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// The response does not belong to the request.
    #[error("the authorization response has no or another `state`")]
    StateMismatch,
    /// The response is of another issuer than the request.
    #[error("the authorization response is not of the issuer that the request was sent to")]
    IssuerMismatch,
    /// The issuer is not in the response, although its metadata promise it.
    #[error("the authorization response has no `iss`, which the metadata of the issuer promise")]
    IssuerMissing,
    /// A parameter occurs twice, so that two readers could see two values.
    #[error("the authorization response has the parameter `{0}` twice")]
    Repeated(&'static str),
    /// The user or the server refused.
    #[error("the authorization was refused: {0}")]
    Refused(OauthError),
    /// There is neither a code nor an error.
    #[error("the authorization response has no `code`")]
    NoCode,
}

/// What a response has to match. It is recorded before the request is sent.
#[derive(Clone, Debug)]
pub struct PendingAuthorization {
    /// The `state` of the request.
    pub state: Secret,
    /// The issuer of the metadata by which the request was made.
    pub issuer: String,
    /// Whether the metadata promise the parameter `iss`.
    pub is_issuer_in_response: bool,
}

/// An authorization response that was not validated yet.
#[derive(Clone, Debug)]
pub struct AuthorizationCallback {
    code: Option<Secret>,
    state: Option<Secret>,
    issuer: Option<String>,
    error: Option<OauthError>,
    repeated: Option<&'static str>,
}

impl AuthorizationCallback {
    /// Parses a redirect URI with its query, as it is in a `Location` header or in a browser's address bar.
    pub fn from_url(url: &str) -> Self {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        Self::from_query(query.split('#').next().unwrap_or_default())
    }

    /// Parses a query.
    pub fn from_query(query: &str) -> Self {
        let parameters = decode(query);
        let mut repeated = None;
        let mut find = |name: &'static str| {
            let mut values =
                parameters.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
            let first = values.next();
            if values.next().is_some() {
                repeated = Some(name);
            }
            first
        };
        let (code, state, issuer) = (find("code"), find("state"), find("iss"));
        let (error, description) = (find("error"), find("error_description"));
        Self {
            code: code.filter(|code| !code.is_empty()).map(Secret::new),
            state: state.map(Secret::new),
            issuer: issuer.map(str::to_owned),
            error: error.map(|error| OauthError::new(error, description)),
            repeated,
        }
    }

    /// Returns its `state`, by which a listener finds the request that it belongs to.
    pub fn state(&self) -> Option<&Secret> {
        self.state.as_ref()
    }

    /// Reports whether the response belongs to a request, by its `state`, for a listener that serves several requests.
    pub fn belongs_to(&self, pending: &PendingAuthorization) -> bool {
        self.state.as_ref() == Some(&pending.state)
    }

    /// Validates the response and returns its code.
    ///
    /// # Errors
    /// See [`CallbackError`]. The error of the server is only in the result if the response is of the right issuer.
    pub fn validate(&self, pending: &PendingAuthorization) -> Result<Secret, CallbackError> {
        if let Some(name) = self.repeated {
            return Err(CallbackError::Repeated(name));
        }
        if !self.belongs_to(pending) {
            return Err(CallbackError::StateMismatch);
        }
        match &self.issuer {
            Some(issuer) if *issuer != pending.issuer => return Err(CallbackError::IssuerMismatch),
            None if pending.is_issuer_in_response => return Err(CallbackError::IssuerMissing),
            Some(_) | None => {}
        }
        if let Some(error) = &self.error {
            return Err(CallbackError::Refused(error.clone()));
        }
        self.code.clone().ok_or(CallbackError::NoCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(query: &str, is_issuer_in_response: bool) -> Result<String, CallbackError> {
        let pending = PendingAuthorization {
            state: Secret::new("st"),
            issuer: "https://a/t".to_owned(),
            is_issuer_in_response,
        };
        let callback = AuthorizationCallback::from_url(&format!("http://localhost:1/cb?{query}#fragment"));
        callback.validate(&pending).map(|code| code.expose().to_owned())
    }

    #[test]
    fn issuer_is_validated_by_the_specification_table() {
        use CallbackError::{IssuerMismatch, IssuerMissing};
        let table = [
            (true, "&iss=https%3A%2F%2Fa%2Ft", Ok(())),
            (true, "", Err(IssuerMissing)),
            (true, "&iss=", Err(IssuerMismatch)),
            (true, "&iss=https://evil.example", Err(IssuerMismatch)),
            (false, "&iss=https://a/t", Ok(())),
            (false, "&iss=https://evil.example", Err(IssuerMismatch)),
            (false, "", Ok(())),
            (true, "&iss=https://a/t/", Err(IssuerMismatch)),
            (true, "&iss=https://A/t", Err(IssuerMismatch)),
            (true, "&iss=https://a:443/t", Err(IssuerMismatch)),
        ];
        for (supported, issuer, expected) in table {
            let code = validate(&format!("code=c&state=st{issuer}"), supported);
            assert_eq!(code, expected.clone().map(|()| "c".to_owned()), "{supported} {issuer}");
            let error = validate(&format!("error=access_denied&state=st{issuer}"), supported).unwrap_err();
            let refused = CallbackError::Refused(OauthError::new("access_denied", None));
            assert_eq!(error, expected.err().unwrap_or(refused), "{supported} {issuer}");
        }
    }

    #[test]
    fn callbacks_without_the_right_state_are_rejected_first() {
        let table = [
            ("code=c", CallbackError::StateMismatch),
            ("code=c&state=", CallbackError::StateMismatch),
            ("code=c&state=other", CallbackError::StateMismatch),
            ("error=sentinel", CallbackError::StateMismatch),
            ("state=st", CallbackError::NoCode),
            ("state=st&code=", CallbackError::NoCode),
            ("state=st&code=c&code=d", CallbackError::Repeated("code")),
            ("state=st&state=st&code=c", CallbackError::Repeated("state")),
            ("", CallbackError::StateMismatch),
        ];
        for (query, expected) in table {
            assert_eq!(validate(query, false), Err(expected), "{query}");
        }
        let callback = AuthorizationCallback::from_query("code=sentinel&state=sentinel");
        assert!(!format!("{callback:?}").contains("sentinel"));
    }
}
