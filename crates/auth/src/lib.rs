//! OAuth for the Model Context Protocol, for clients and for resource servers.
//!
//! The modules are pure unless documented otherwise: they read no clock, draw no random numbers and do no IO. Time and
//! random bytes are arguments. [`fetch`] is the only module that opens connections, for [`authorizer`] and [`issuer`].
//!
//! # Invariants
//! - No token, code, secret or key is in a `Debug` output, an error or a log line.
//! - An identifier that the RFCs compare as a string (issuer, resource, redirect URI) is kept, compared and sent as it
//!   was received.
//! - Metadata of another issuer or resource are not used: `metadata_of_another_issuer_are_not_used`.
//! - A token that is bound to a key is not a bearer token: `bound_tokens_need_the_dpop_scheme`.

pub mod authorizer;
pub mod fetch;
pub mod issuer;
pub mod sign_in;
pub mod user_agent;

pub mod access_token;
pub mod client_assertion;
pub mod dpop;
pub mod jose;

pub mod authorization_request;
pub mod callback;
pub mod challenge;
pub mod discovery;
pub mod dpop_nonce;
pub mod endpoint_url;
mod error_source;
pub mod flow;
mod form;
mod json_document;
mod oauth_error;
pub mod pkce;
pub mod refresh;
pub mod registration;
pub mod resource_metadata;
pub mod revocation;
pub mod scopes;
pub mod server_metadata;
pub mod step_up;
pub mod token_request;
pub mod token_response;
pub mod token_set;
pub mod token_store;
mod user_name;

pub use self::error_source::ErrorSource;
pub use self::form::{MAX_FORM_PARAMETERS, decode as decode_form};
pub use self::json_document::{DocumentError, MAX_DOCUMENT_BYTES, MAX_LISTED_VALUES};
pub use self::oauth_error::{MAX_ERROR_CHARACTERS, OauthError};
