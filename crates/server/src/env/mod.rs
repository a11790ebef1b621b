//! Environment variables of a caller: those of the process on its own pipes, those of headers over HTTP.
//!
//! Nothing is visible that the operator has not named, and a value has a type that does not print.
//!
//! # Invariants
//!
//! - Only variables that the operator listed are read, and malformed ones are refused:
//!   `env_headers_are_ignored_without_an_allow_list_and_rejected_if_malformed`.
//! - Header values are ignored without TLS or loopback: `env_headers_are_ignored_without_tls_or_loopback`.
//! - A secret in a handler's result is redacted: `secret_in_handler_output_is_redacted`.
//! - Variables of one session are never visible in another:
//!   `ten_thousand_calls_never_mix_env_values_of_different_tenants`.

mod policy;
mod redact;
mod sources;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use self::policy::EnvPolicy;
pub(crate) use self::redact::redact;
pub(crate) use self::sources::EnvSources;
use crate::call::Context;
pub use trunkline_transport::Secret;

/// The variables of a caller, by name. `Debug` and serialization show the names only.
#[derive(Clone, Default)]
pub struct Env(Option<Arc<[EnvVariable]>>);

/// A variable: its name and its value.
pub(crate) type EnvVariable = (Arc<str>, Secret);

impl Env {
    /// No variables.
    pub const NONE: Self = Self(None);

    pub(crate) fn new(values: Vec<EnvVariable>) -> Self {
        Self((!values.is_empty()).then(|| values.into()))
    }

    fn values(&self) -> &[EnvVariable] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<Secret> {
        self.values().iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone())
    }

    /// Returns the names of the variables that have a value.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values().iter().map(|(name, _)| &**name)
    }

    /// Reports whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = &EnvVariable> {
        self.values().iter()
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.values().iter().map(|(_, value)| value)
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Serialize for Env {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

impl Context {
    /// Returns an environment variable of the caller, if it has one and the operator allows it.
    ///
    /// Over standard input and output it is one of this process; over HTTP it came in an `X-Env-*` header of this
    /// request, or of the one that opened its legacy session or its stream. The operator's allow list is
    /// [`HostOptions::env`](crate::HostOptions::env).
    pub fn env(&self, name: &str) -> Option<Secret> {
        self.shared().with_caller(|caller| caller.env.get(name))
    }
}
