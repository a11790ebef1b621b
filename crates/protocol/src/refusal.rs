//! Every error that a peer can receive from us: code, HTTP status and public message, in one table.
//!
//! No HTTP status is written anywhere else. Messages never contain paths of the machine, names that the caller may
//! not see, or secrets.
//!
//! See [Error Codes](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#error-codes).

use std::borrow::Cow;
use std::fmt;

use crate::error_code;
use crate::json::{JsonObject, JsonWriter, RawJson};
use crate::model::CallToolResult;
use crate::revision::{Era, Revision};
use crate::revision_set::RevisionSet;
use crate::shorten::shorten;

/// The longest URI that an error repeats to the caller. A truncated one would name another resource.
const MAX_URI_LEN: usize = 1024;

/// The member of a result's `_meta` that names the feature which the two ends of a bridge do not share.
const INCOMPATIBILITY_META: &str = "trunkline/unbridgeable";

/// A feature that a call needs and the revisions of the client and of the server do not share.
#[derive(Clone, Copy, Debug)]
pub struct Incompatibility<'a> {
    /// The feature that the call needs.
    pub feature: &'a str,
    /// The revision of the client.
    pub downstream: Revision,
    /// The revision of the server, if it is known.
    pub upstream: Option<Revision>,
    /// The capabilities that the client lacks, if they are the reason, as a capabilities object.
    pub required: Option<&'a RawJson>,
}

/// The member of a refusal's data, or of its substitute in `_meta`, that names the required capabilities.
const REQUIRED: &str = "requiredCapabilities";

/// The member of a refusal's data that names the scopes of an operation.
const REQUIRED_SCOPES: &str = "requiredScopes";

/// The member of a result's `_meta` that holds the error which the result replaces.
const REFUSAL_META: &str = "trunkline/refusal";

/// A refusal: one row of the table, perhaps with a more precise message and data.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    row: &'static RefusalRow,
    code: Option<i64>,
    message: Option<Cow<'static, str>>,
    data: Option<RawJson>,
}

#[derive(Debug, PartialEq)]
struct RefusalRow {
    name: &'static str,
    legacy_code: i64,
    modern_code: i64,
    legacy_status: u16,
    modern_status: u16,
    sentence: &'static str,
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident = $legacy_code:ident / $modern_code:ident, $legacy_status:literal / $modern_status:literal, $sentence:literal;)*) => {
        impl Refusal {
            $($(#[$doc])* pub const $name: Self = {
                static ROW: RefusalRow = RefusalRow {
                    name: stringify!($name),
                    legacy_code: error_code::$legacy_code,
                    modern_code: error_code::$modern_code,
                    legacy_status: $legacy_status,
                    modern_status: $modern_status,
                    sentence: $sentence,
                };
                Self { row: &ROW, code: None, message: None, data: None }
            };)*

            /// The whole table.
            pub const TABLE: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

table! {
    //                  code legacy / modern    status legacy / modern
    /// The bytes are not JSON.
    PARSE_ERROR        = PARSE_ERROR / PARSE_ERROR, 400 / 400, "the message is not valid JSON";
    /// The JSON is not a valid message in this position.
    INVALID_REQUEST    = INVALID_REQUEST / INVALID_REQUEST, 400 / 400, "the message is not a valid JSON-RPC request";
    /// A member's name differs from one of the protocol only in case, so that decoders disagree about the message.
    AMBIGUOUS_MEMBER   = INVALID_REQUEST / INVALID_REQUEST, 400 / 400, "a member's name differs from one of the protocol only in case";
    /// The method does not exist, or belongs to a capability that is not offered.
    METHOD_NOT_FOUND   = METHOD_NOT_FOUND / METHOD_NOT_FOUND, 200 / 404, "method not found";
    /// The parameters of a method are wrong.
    INVALID_PARAMS     = INVALID_PARAMS / INVALID_PARAMS, 200 / 200, "invalid parameters";
    /// A modern request lacks what every modern request must carry.
    MISSING_META       = INVALID_PARAMS / INVALID_PARAMS, 400 / 400, "the request lacks required `_meta` members";
    /// A header and the body disagree, or a required header is missing.
    HEADER_MISMATCH    = HEADER_MISMATCH / HEADER_MISMATCH, 400 / 400, "a header does not match the request body";
    /// The request needs a capability that the client did not declare.
    MISSING_CAPABILITY = INTERNAL_ERROR / MISSING_CAPABILITY, 200 / 400, "the request needs a capability that the client did not declare";
    /// The call needs a feature that the client and the server of a bridge do not share.
    UNBRIDGEABLE       = INTERNAL_ERROR / INTERNAL_ERROR, 200 / 200, "client and server have no words in common for what the call needs";
    /// The protocol version is not one of ours.
    UNSUPPORTED_VERSION = INVALID_PARAMS / UNSUPPORTED_VERSION, 400 / 400, "unsupported protocol version";
    /// There is no such resource.
    RESOURCE_NOT_FOUND = RESOURCE_NOT_FOUND / INVALID_PARAMS, 200 / 200, "resource not found";
    /// The server failed.
    INTERNAL           = INTERNAL_ERROR / INTERNAL_ERROR, 200 / 200, "internal error";
    /// A handler panicked; its caller receives no more detail than for any other failure.
    PANICKED           = INTERNAL_ERROR / INTERNAL_ERROR, 200 / 200, "internal error";
    /// The call exceeded its timeout.
    TIMED_OUT          = INTERNAL_ERROR / INTERNAL_ERROR, 200 / 200, "the call took longer than this server allows";
    /// The caller cancelled the call, on a transport that requires a response all the same.
    CANCELLED          = REQUEST_CANCELLED / INTERNAL_ERROR, 200 / 200, "the call was cancelled";
    /// The `requestState` was not made by us for this request, or has expired.
    STALE_STATE        = INVALID_PARAMS / INVALID_PARAMS, 200 / 200, "`requestState` is not valid for this request; start the call again";
    /// A legacy request has no session.
    SESSION_REQUIRED   = INVALID_REQUEST / INVALID_REQUEST, 400 / 400, "no session: send `initialize` first and repeat its `Mcp-Session-Id` header on every request";
    /// The session is unknown, ended, or belongs to another client.
    SESSION_NOT_FOUND  = INVALID_REQUEST / INVALID_REQUEST, 404 / 404, "session not found: send `initialize` to open a new one";
    /// The stream position in `Last-Event-ID` is unknown or no longer stored.
    NOT_RESUMABLE      = INVALID_REQUEST / INVALID_REQUEST, 400 / 400, "`Last-Event-ID` names no event that is still kept";
    /// The `Origin` or `Host` header is not allowed.
    FORBIDDEN_ORIGIN   = INVALID_REQUEST / INVALID_REQUEST, 403 / 403, "this Origin or Host may not use this server";
    /// There is no acceptable credential.
    UNAUTHORIZED       = INVALID_REQUEST / INVALID_REQUEST, 401 / 401, "a valid credential is required";
    /// The token of the caller lacks a scope that the operation needs.
    INSUFFICIENT_SCOPE = INVALID_REQUEST / INVALID_REQUEST, 403 / 403, "the token lacks a scope that this operation needs";
    /// Credentials cannot be checked now.
    AUTH_UNAVAILABLE   = INTERNAL_ERROR / INTERNAL_ERROR, 503 / 503, "credentials cannot be checked now; try again later";
    /// The client accepts neither of the two response types.
    NOT_ACCEPTABLE     = INVALID_REQUEST / INVALID_REQUEST, 406 / 406, "Accept must allow application/json or text/event-stream";
    /// The body is not JSON by its content type.
    UNSUPPORTED_MEDIA  = INVALID_REQUEST / INVALID_REQUEST, 415 / 415, "Content-Type must be application/json";
    /// The message is larger than the limit.
    TOO_LARGE          = INVALID_REQUEST / INVALID_REQUEST, 413 / 413, "the message is larger than this server accepts";
    /// The HTTP method is not offered here.
    NOT_ALLOWED        = INVALID_REQUEST / INVALID_REQUEST, 405 / 405, "this HTTP method is not offered here";
    /// The path is for WebSockets, and the request is no WebSocket handshake.
    UPGRADE_REQUIRED   = INVALID_REQUEST / INVALID_REQUEST, 426 / 426, "this path is for WebSockets";
    /// There is nothing at this path.
    NO_SUCH_PATH       = INVALID_REQUEST / INVALID_REQUEST, 404 / 404, "there is nothing at this path";
    /// The body did not arrive in time.
    TOO_SLOW           = INVALID_REQUEST / INVALID_REQUEST, 408 / 408, "the request body did not arrive in time";
    /// The caller has reached its quota of running calls or open streams.
    TOO_MANY           = INTERNAL_ERROR / INTERNAL_ERROR, 429 / 429, "too many requests, sessions or streams at once; try again later";
    /// The caller, or all callers of a server, have used up a rate limit.
    RATE_LIMITED       = INTERNAL_ERROR / INTERNAL_ERROR, 429 / 429, "too many calls; try again later";
    /// The store of sessions cannot be reached.
    STORE_UNAVAILABLE  = INTERNAL_ERROR / INTERNAL_ERROR, 503 / 503, "sessions are unavailable now; try again later";
    /// The server is shutting down.
    SHUTTING_DOWN      = INTERNAL_ERROR / INTERNAL_ERROR, 503 / 503, "the server is shutting down";
}

impl Refusal {
    /// Creates a refusal with a code of the application's own.
    ///
    /// Codes from −32768 to −32000 belong to JSON-RPC and the protocol; such a code is replaced by that of an internal error.
    #[cold]
    pub fn application(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        let code = if (-32768..=-32000).contains(&code) { None } else { Some(code) };
        Self { code, ..Self::INTERNAL.with_message(message) }
    }

    /// Relays an error of another server, with its code.
    ///
    /// In the legacy era servers may use the codes from −32099 to −32000 freely. The modern era has given them its
    /// own meanings, so there such a refusal becomes an internal error with the code in its data.
    #[cold]
    pub fn relayed(code: i64, message: impl Into<Cow<'static, str>>, data: Option<RawJson>) -> Self {
        let row = match code {
            error_code::METHOD_NOT_FOUND => Self::METHOD_NOT_FOUND,
            error_code::INVALID_PARAMS => Self::INVALID_PARAMS,
            _ => Self { code: Some(code), ..Self::INTERNAL },
        };
        Self { data, ..row.with_message(message) }
    }

    /// Converts a refusal without a code in a revision to a tool result, which the client's model can read.
    pub fn as_tool_result(&self, revision: Revision) -> Option<CallToolResult> {
        let about = |key: &str, value: RawJson| {
            let mut meta = JsonObject::new();
            meta.set(key, value);
            Some(meta)
        };
        if self.is_same_kind(&Self::UNBRIDGEABLE) {
            let meta = self.data().and_then(|gap| about(INCOMPATIBILITY_META, gap.clone()));
            return Some(CallToolResult { meta, ..CallToolResult::error(self.message()) });
        }
        let has_none = self.is_same_kind(&Self::MISSING_CAPABILITY) && !self.has_code_in(revision);
        has_none.then(|| {
            let needed = self.data().map_or_else(String::new, |data| format!(" ({data})"));
            let said = format!(
                "{}{needed}; this client, which speaks revision {revision}, did not declare it or cannot provide it",
                self.message()
            );
            let mut refusal = JsonWriter::with_capacity(128);
            self.write(&mut refusal, revision.era());
            CallToolResult { meta: about(REFUSAL_META, refusal.into_raw()), ..CallToolResult::error(said) }
        })
    }

    /// Returns the missing capabilities for which a tool failed and the error message, if [`Refusal::as_tool_result`]
    /// made the result.
    pub fn missing_capability_in(result: &RawJson) -> Option<(RawJson, String)> {
        let mut about = result.members().ok()?.take("_meta")?.members().ok()?;
        let mut refusal = about.take(REFUSAL_META)?.members().ok()?;
        let required = refusal.take("data")?.members().ok()?.take(REQUIRED)?;
        Some((required, refusal.text("message")?.to_string()))
    }

    /// Refuses a client that lacks capabilities, naming them as a capabilities object.
    ///
    /// See [MissingRequiredClientCapabilityError](https://modelcontextprotocol.io/specification/2026-07-28/schema#missingrequiredclientcapabilityerror).
    #[cold]
    pub fn missing_capability(required: &RawJson) -> Self {
        let mut writer = JsonWriter::with_capacity(64);
        writer.open_object();
        writer.member(REQUIRED, required);
        writer.close_object();
        Self::MISSING_CAPABILITY.with_data(writer.into_raw())
    }

    /// Refuses a caller with a token that lacks scopes, naming all scopes of the operation.
    #[cold]
    pub fn insufficient_scope(scopes: &[Box<str>]) -> Self {
        let mut writer = JsonWriter::with_capacity(64);
        writer.open_object();
        writer.plain_key(REQUIRED_SCOPES);
        writer.open_array();
        scopes.iter().for_each(|scope| writer.string(scope));
        writer.close_array();
        writer.close_object();
        let message = format!("the token needs the scope: {}", scopes.join(" "));
        Self::INSUFFICIENT_SCOPE.with_message(message).with_data(writer.into_raw())
    }

    /// Returns the scopes that an error response names, if [`Refusal::insufficient_scope`] made its error.
    pub fn required_scopes_in(response: &RawJson) -> Option<Vec<String>> {
        let mut error = response.members().ok()?.take("error")?.members().ok()?;
        error.take("data")?.members().ok()?.take(REQUIRED_SCOPES)?.decode().ok()
    }

    /// Refuses a feature that the client and the server of a bridge do not share, and names it and both revisions.
    pub fn incompatible(gap: &Incompatibility<'_>) -> Self {
        let mut writer = JsonWriter::with_capacity(160);
        writer.open_object();
        for (key, text) in [
            ("reason", Some("unbridgeable")),
            ("feature", Some(gap.feature)),
            ("downstream", Some(gap.downstream.as_str())),
            ("upstream", gap.upstream.map(Revision::as_str)),
        ] {
            if let Some(text) = text {
                writer.plain_key(key);
                writer.string(text);
            }
        }
        if let Some(required) = gap.required {
            writer.member("requiredCapabilities", required);
        }
        writer.close_object();
        Self::UNBRIDGEABLE.with_data(writer.into_raw())
    }

    /// Refuses a version, and lists the supported ones.
    ///
    /// See [UnsupportedProtocolVersionError](https://modelcontextprotocol.io/specification/2026-07-28/schema#unsupportedprotocolversionerror).
    #[cold]
    pub fn unsupported_version(requested: &str, supported: RevisionSet) -> Self {
        let mut writer = JsonWriter::with_capacity(128);
        writer.open_object();
        writer.plain_key("supported");
        writer.open_array();
        for revision in supported.newest_first() {
            writer.string(revision.as_str());
        }
        writer.close_array();
        writer.plain_key("requested");
        writer.string(&shorten(requested));
        writer.close_object();
        Self::UNSUPPORTED_VERSION.with_data(writer.into_raw())
    }

    /// Refuses a read of a resource that is not there, naming it unless its name is absurdly long.
    ///
    /// See [Resources, Error Handling](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#error-handling).
    #[cold]
    pub fn resource_not_found(uri: &str) -> Self {
        if uri.len() > MAX_URI_LEN {
            return Self::RESOURCE_NOT_FOUND;
        }
        let mut writer = JsonWriter::with_capacity(uri.len() + 16);
        writer.open_object();
        writer.plain_key("uri");
        writer.string(uri);
        writer.close_object();
        Self::RESOURCE_NOT_FOUND.with_data(writer.into_raw())
    }

    /// Replaces the public message by a more precise one.
    #[must_use]
    #[cold]
    pub fn with_message(self, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: Some(message.into()), ..self }
    }

    /// Attaches data.
    #[must_use]
    pub fn with_data(self, data: RawJson) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Returns the name of the row, for logs and metrics.
    pub const fn name(&self) -> &'static str {
        self.row.name
    }

    /// Reports whether this is the same row of the table as `other`.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.row.name == other.row.name
    }

    /// Returns the JSON-RPC error code in an era.
    pub fn code(&self, era: Era) -> i64 {
        self.code.filter(|code| era == Era::Legacy || !is_reserved(*code)).unwrap_or(match era {
            Era::Legacy => self.row.legacy_code,
            Era::Modern => self.row.modern_code,
        })
    }

    /// Reports whether a revision has a specific code for this, and not only that of an internal error.
    pub fn has_code_in(&self, revision: Revision) -> bool {
        let era = revision.era();
        self.code(era) != Self::INTERNAL.code(era)
    }

    /// Returns the HTTP status in an era.
    pub fn status(&self, era: Era) -> u16 {
        match era {
            Era::Legacy => self.row.legacy_status,
            Era::Modern => self.row.modern_status,
        }
    }

    /// Returns the public message.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.row.sentence)
    }

    /// Returns the data, if any.
    pub fn data(&self) -> Option<&RawJson> {
        self.data.as_ref()
    }

    /// Writes the `error` object.
    pub fn write(&self, writer: &mut JsonWriter, era: Era) {
        writer.open_object();
        writer.plain_key("code");
        writer.integer(self.code(era));
        writer.plain_key("message");
        writer.string(self.message());
        match (self.code, &self.data) {
            (Some(original), data) if original != self.code(era) => {
                writer.plain_key("data");
                writer.open_object();
                writer.plain_key("code");
                writer.integer(original);
                if let Some(data) = data {
                    writer.member("data", data);
                }
                writer.close_object();
            }
            (_, Some(data)) => writer.member("data", data),
            (_, None) => {}
        }
        writer.close_object();
    }
}

/// Reports whether a code is one of those that the modern era reserves.
fn is_reserved(code: i64) -> bool {
    (-32099..=-32000).contains(&code)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_refusals_use_only_the_codes_that_the_specification_allows() {
        for refusal in Refusal::TABLE {
            let code = refusal.code(Era::Modern);
            let standard = matches!(code, -32700 | -32600 | -32601 | -32602 | -32603);
            assert!(standard || matches!(code, -32022..=-32020), "{refusal:?}");
        }
    }

    #[test]
    fn application_codes_stay_out_of_the_reserved_range() {
        assert_eq!(Refusal::application(42, "x").code(Era::Modern), 42);
        assert_eq!(Refusal::application(-32020, "x").code(Era::Modern), -32603);
    }

    #[test]
    fn relayed_error_codes_are_kept_unless_the_era_reserves_them() {
        let written = |refusal: &Refusal, era| {
            let mut writer = JsonWriter::with_capacity(64);
            refusal.write(&mut writer, era);
            writer.into_string()
        };
        let data = Some(RawJson::parse("[1]").unwrap());
        for (code, legacy, modern) in [
            (-32000, -32000, -32603),
            (-32042, -32042, -32603),
            (-32601, -32601, -32601),
            (-32602, -32602, -32602),
            (-32603, -32603, -32603),
            (7, 7, 7),
        ] {
            let refusal = Refusal::relayed(code, "no", data.clone());
            assert_eq!((refusal.code(Era::Legacy), refusal.code(Era::Modern)), (legacy, modern), "{code}");
            assert_eq!(
                written(&refusal, Era::Legacy),
                format!(r#"{{"code":{code},"message":"no","data":[1]}}"#)
            );
        }
        let moved = Refusal::relayed(-32000, "no", data);
        assert_eq!(
            written(&moved, Era::Modern),
            r#"{"code":-32603,"message":"no","data":{"code":-32000,"data":[1]}}"#
        );
        assert_eq!(Refusal::relayed(-32601, "no", None).status(Era::Modern), 404);
    }

    #[test]
    fn refusal_without_a_code_becomes_a_tool_result() {
        let missing = Refusal::missing_capability(&RawJson::EMPTY_OBJECT);
        let gap =
            Incompatibility { feature: "f", downstream: Revision::NEWEST, upstream: None, required: None };
        let unbridgeable = Refusal::incompatible(&gap).with_message("no");
        for revision in Revision::ALL {
            let is_modern = revision.era() == Era::Modern;
            let said = missing.as_tool_result(revision);
            assert_eq!(said.is_none(), is_modern, "{revision}");
            let mut result = JsonObject::new();
            result.set("_meta", said.map_or(RawJson::NULL, |said| said.meta.unwrap().to_raw()));
            let told = Refusal::missing_capability_in(&result.to_raw());
            assert_eq!(
                told,
                (!is_modern).then(|| (RawJson::EMPTY_OBJECT, missing.message().to_owned())),
                "{revision}"
            );
            let result = unbridgeable.as_tool_result(revision).unwrap();
            assert!(
                result.is_error && result.meta.unwrap().get(INCOMPATIBILITY_META).is_some(),
                "{revision}"
            );
            assert!(Refusal::INVALID_PARAMS.as_tool_result(revision).is_none(), "{revision}");
        }
    }

    #[test]
    fn refusal_data_names_the_required_capabilities() {
        let supported = RevisionSet::from_revisions([Revision::V2026_07_28]);
        assert_eq!(
            Refusal::unsupported_version("v9", supported).data().unwrap().as_str(),
            r#"{"supported":["2026-07-28"],"requested":"v9"}"#
        );
        let required = RawJson::parse(r#"{"roots":{}}"#).unwrap();
        let gap = Incompatibility {
            feature: "f",
            downstream: Revision::V2024_11_05,
            upstream: Some(Revision::V2026_07_28),
            required: Some(&required),
        };
        let told = r#"{"reason":"unbridgeable","feature":"f","downstream":"2024-11-05","upstream":"2026-07-28","requiredCapabilities":{"roots":{}}}"#;
        assert_eq!(Refusal::incompatible(&gap).data().unwrap().as_str(), told);
        let gap = Incompatibility { upstream: None, required: None, ..gap };
        let told = r#"{"reason":"unbridgeable","feature":"f","downstream":"2024-11-05"}"#;
        assert_eq!(Refusal::incompatible(&gap).data().unwrap().as_str(), told);
        assert_eq!(Refusal::resource_not_found("a\"b").data().unwrap().as_str(), r#"{"uri":"a\"b"}"#);
    }
}
