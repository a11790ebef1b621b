//! The JSON-RPC error codes of the protocol, by the names that the specification gives them.
//!
//! The table of refusals writes them, and clients and gateways read them; no code is written as a number anywhere else.
//!
//! See [Error Codes](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#error-codes) and
//! [JSON-RPC 2.0, Error object](https://www.jsonrpc.org/specification#error_object).

/// The bytes are not JSON (JSON-RPC 2.0).
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request (JSON-RPC 2.0).
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist (JSON-RPC 2.0).
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters of a method are wrong (JSON-RPC 2.0).
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed (JSON-RPC 2.0).
pub const INTERNAL_ERROR: i64 = -32603;
/// There is no such resource (up to 2025-11-25).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header does not match the body of the request (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_CAPABILITY: i64 = -32021;
/// The protocol version is not supported (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The user has to visit URLs before the call can be made (2025-11-25).
///
/// See [URL Elicitation Required Error](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The request was cancelled (`RequestCancelled` of the Language Server Protocol).
pub const REQUEST_CANCELLED: i64 = -32800;
