//! The request, typed as far as an echo needs it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(crate) struct Request<'a> {
    /// The raw token, sent back as it came.
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) params: Params<'a>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Params<'a> {
    #[serde(borrow)]
    pub(crate) arguments: Option<Arguments<'a>>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

impl Params<'_> {
    /// A modern request names its revision in `_meta`; a legacy one cannot.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.protocol_version.is_some())
    }
}

#[derive(Deserialize)]
pub(crate) struct Arguments<'a> {
    #[serde(borrow)]
    pub(crate) message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<&'a str>,
}
