use trunkline_protocol::era::{HeaderOccurrence, MirrorHeaders, validate_request};
use trunkline_protocol::{Era, Revision, RevisionSet};

use super::request;

/// One request and its headers; each test changes what it is about.
struct Case {
    version: &'static str,
    capabilities: &'static str,
    method: &'static str,
    params: &'static str,
    extra: &'static str,
    headers: [Option<&'static str>; 3],
}

const GOOD: Case = Case {
    version: r#""2026-07-28""#,
    capabilities: "{}",
    method: "tools/call",
    params: r#""name":"echo","#,
    extra: "",
    headers: [Some("2026-07-28"), Some("tools/call"), Some("echo")],
};

fn header(value: Option<&'static str>) -> HeaderOccurrence<'static> {
    value.map_or(HeaderOccurrence::Absent, |value| HeaderOccurrence::Once(value.as_bytes()))
}

/// Returns how the ladder ends: `ok`, or the code and status of the refusal.
fn outcome(case: &Case) -> String {
    let member = |key: &str, value: &str| match value {
        "" => String::new(),
        value => format!(r#""io.modelcontextprotocol/{key}":{value},"#),
    };
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{{{}"_meta":{{{}{}{}"x":1}}}}}}"#,
        case.method,
        case.params,
        member("protocolVersion", case.version),
        member("clientCapabilities", case.capabilities),
        case.extra,
    );
    let [version, method, name] = case.headers.map(header);
    match validate_request(&request(&text), Some(&MirrorHeaders { version, method, name }), RevisionSet::ALL)
    {
        Ok(_) => "ok".to_owned(),
        Err(refusal) => format!("{} {}", refusal.code(Era::Modern), refusal.status(Era::Modern)),
    }
}

#[test]
fn first_failed_validation_check_decides_the_refusal() {
    let level = r#""io.modelcontextprotocol/logLevel":"#;
    let bad_level: &'static str = Box::leak(format!(r#"{level}"loud","#).into_boxed_str());
    let good_level: &'static str = Box::leak(format!(r#"{level}"info","#).into_boxed_str());
    for (what, case, expected) in [
        ("everything agrees", GOOD, "ok"),
        ("no version", Case { version: "", ..GOOD }, "-32602 400"),
        ("version of another type", Case { version: "1", ..GOOD }, "-32602 400"),
        ("no capabilities", Case { capabilities: "", ..GOOD }, "-32602 400"),
        ("capabilities of another type", Case { capabilities: "[]", ..GOOD }, "-32602 400"),
        (
            "no version header",
            Case { headers: [None, GOOD.headers[1], GOOD.headers[2]], ..GOOD },
            "-32020 400",
        ),
        ("body and header name different versions", Case { version: r#""v999""#, ..GOOD }, "-32020 400"),
        (
            "both name a version that is unknown",
            Case {
                version: r#""2099-01-01""#,
                headers: [Some("2099-01-01"), GOOD.headers[1], GOOD.headers[2]],
                ..GOOD
            },
            "-32022 400",
        ),
        (
            "a legacy version cannot be claimed",
            Case {
                version: r#""2025-11-25""#,
                headers: [Some("2025-11-25"), GOOD.headers[1], GOOD.headers[2]],
                ..GOOD
            },
            "-32022 400",
        ),
        (
            "no method header",
            Case { headers: [GOOD.headers[0], None, GOOD.headers[2]], ..GOOD },
            "-32020 400",
        ),
        (
            "method header in another case",
            Case { headers: [GOOD.headers[0], Some("Tools/Call"), GOOD.headers[2]], ..GOOD },
            "-32020 400",
        ),
        (
            "space around a header value",
            Case { headers: [Some(" 2026-07-28 "), Some("\ttools/call"), Some("echo ")], ..GOOD },
            "ok",
        ),
        (
            "a method of the other era",
            Case { method: "ping", headers: [GOOD.headers[0], Some("ping"), None], ..GOOD },
            "-32601 404",
        ),
        (
            "an unknown method, whose name header is not looked at",
            Case { method: "nope", headers: [GOOD.headers[0], Some("nope"), None], ..GOOD },
            "-32601 404",
        ),
        ("no name header", Case { headers: [GOOD.headers[0], GOOD.headers[1], None], ..GOOD }, "-32020 400"),
        (
            "no name in the body either",
            Case { params: "", headers: [GOOD.headers[0], GOOD.headers[1], None], ..GOOD },
            "-32020 400",
        ),
        ("a name header without a name in the body", Case { params: "", ..GOOD }, "-32020 400"),
        (
            "an encoded name",
            Case {
                params: r#""name":"é","#,
                headers: [GOOD.headers[0], GOOD.headers[1], Some("=?base64?w6k=?=")],
                ..GOOD
            },
            "ok",
        ),
        (
            "an encoded name without its padding",
            Case {
                params: r#""name":"é","#,
                headers: [GOOD.headers[0], GOOD.headers[1], Some("=?base64?w6k?=")],
                ..GOOD
            },
            "-32020 400",
        ),
        (
            "a method that mirrors no name",
            Case {
                method: "tools/list",
                params: "",
                headers: [GOOD.headers[0], Some("tools/list"), None],
                ..GOOD
            },
            "ok",
        ),
        ("a log level", Case { extra: good_level, ..GOOD }, "ok"),
        ("something that is not a log level", Case { extra: bad_level, ..GOOD }, "-32602 200"),
    ] {
        assert_eq!(outcome(&case), expected, "{what}");
    }
}

#[test]
fn repeated_header_is_a_mismatch() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let once = |value: &'static str| HeaderOccurrence::Once(value.as_bytes());
    let good = MirrorHeaders {
        version: once("2026-07-28"),
        method: once("tools/list"),
        name: HeaderOccurrence::Absent,
    };
    assert!(validate_request(&request(text), Some(&good), RevisionSet::ALL).is_ok());
    for bad in [
        MirrorHeaders { version: HeaderOccurrence::Repeated, ..good },
        MirrorHeaders { method: HeaderOccurrence::Repeated, ..good },
    ] {
        assert_eq!(
            validate_request(&request(text), Some(&bad), RevisionSet::ALL).unwrap_err().code(Era::Modern),
            -32020
        );
    }
}

#[test]
fn channel_requests_are_validated_without_headers() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert!(validate_request(&request(text), None, RevisionSet::ALL).is_ok());
}

#[test]
fn unsupported_version_error_lists_supported_versions() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2031-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let refusal = validate_request(&request(text), None, RevisionSet::ALL).unwrap_err();
    assert_eq!(
        refusal.data().unwrap().as_str(),
        r#"{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2031-01-01"}"#
    );
}

#[test]
fn legacy_only_server_lists_its_revisions_to_a_modern_client() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let spoken = RevisionSet::from_revisions([Revision::V2025_11_25, Revision::V2025_06_18]);
    let refusal = validate_request(&request(text), None, spoken).unwrap_err();
    assert_eq!(refusal.code(Era::Modern), -32022);
    let data = r#"{"supported":["2025-11-25","2025-06-18"],"requested":"2026-07-28"}"#;
    assert_eq!(refusal.data().unwrap().as_str(), data);
}
