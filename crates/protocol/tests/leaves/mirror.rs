use proptest::prelude::*;
use serde_json::{Value, json};
use trunkline_protocol::mirror::{MAX_SCHEMA_DEPTH, MirrorError, MirrorKind, MirroredParams, MismatchReason};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Method"},
            "plain": {"type": "string"},
            "deep": {"type": "object", "properties": {
                "x-mcp-header": {"type": "string", "x-mcp-header": "Inner"}
            }}
        }
    })
}

fn params() -> MirroredParams {
    MirroredParams::from_schema(&schema()).unwrap()
}

/// Checks arguments against `name: value` headers; the outcome is the reason and the header it concerns.
fn check(arguments: Value, headers: &[(&str, &str)]) -> Result<(), (MismatchReason, String)> {
    let lookup =
        |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_bytes());
    let arguments = Some(arguments).filter(|arguments| !arguments.is_null());
    params().check(arguments.as_ref(), lookup).map_err(|mismatch| (mismatch.reason, mismatch.header))
}

#[test]
fn mirrored_params_lists_paths_names_and_kinds() {
    let params = params();
    let mut listed: Vec<_> =
        params.iter().map(|param| (param.header(), param.path().join("."), param.kind())).collect();
    listed.sort_by_key(|(header, _, _)| *header);
    let expected = [
        ("Mcp-Param-Count", "count".to_owned(), MirrorKind::Integer),
        ("Mcp-Param-Inner", "deep.x-mcp-header".to_owned(), MirrorKind::String),
        ("Mcp-Param-Method", "dry".to_owned(), MirrorKind::Boolean),
        ("Mcp-Param-Region", "region".to_owned(), MirrorKind::String),
    ];
    assert_eq!(listed, expected);
}

#[test]
fn mirrored_params_is_empty_without_marks() {
    let data = json!({"default": {"x-mcp-header": ""}, "properties": {"a": {"enum": [{"x-mcp-header": 1}]}}});
    for schema in [json!({}), json!(true), json!({"properties": {"a": {"type": "string"}}}), data] {
        assert!(MirroredParams::from_schema(&schema).unwrap().is_empty(), "{schema}");
    }
}

#[test]
fn invalid_header_marks_are_rejected_with_their_path() {
    let mark = json!({"type": "string", "x-mcp-header": "A"});
    let named = |name: Value| json!({"properties": {"p": {"type": "string", "x-mcp-header": name}}});
    let typed = |kind: Value| json!({"properties": {"p": {"type": kind, "x-mcp-header": "A"}}});
    let bad_name = |place: &str| MirrorError::BadName { place: place.into() };
    let bad_type = |place: &str| MirrorError::BadType { place: place.into() };
    let unreachable = |place: &str| MirrorError::Unreachable { place: place.into() };
    let duplicate = MirrorError::Duplicate { place: "/b/c".into(), name: "region".into() };
    let twice = json!({"properties": {
        "a": {"type": "string", "x-mcp-header": "Region"},
        "b": {"properties": {"c": {"type": "string", "x-mcp-header": "region"}}}
    }});
    let table = [
        (named(json!("")), bad_name("/p")),
        (named(json!("a b")), bad_name("/p")),
        (named(json!("a:b")), bad_name("/p")),
        (named(json!("é")), bad_name("/p")),
        (named(json!("a\r\n")), bad_name("/p")),
        (named(json!(7)), bad_name("/p")),
        (named(json!(null)), bad_name("/p")),
        (typed(json!("number")), bad_type("/p")),
        (typed(json!("object")), bad_type("/p")),
        (typed(json!("array")), bad_type("/p")),
        (typed(json!("null")), bad_type("/p")),
        (typed(json!(["string", "null"])), bad_type("/p")),
        (json!({"properties": {"p": {"x-mcp-header": "A"}}}), bad_type("/p")),
        (mark.clone(), bad_type("/")),
        (twice, duplicate),
        (json!({"properties": {"p": {"items": mark}}}), unreachable("/p/items")),
        (json!({"properties": {"p": {"prefixItems": [true, mark]}}}), unreachable("/p/prefixItems")),
        (json!({"oneOf": [{"properties": {"p": mark}}]}), unreachable("/oneOf/p")),
        (json!({"anyOf": [mark]}), unreachable("/anyOf")),
        (json!({"allOf": [mark]}), unreachable("/allOf")),
        (json!({"not": mark}), unreachable("/not")),
        (json!({"if": mark}), unreachable("/if")),
        (json!({"then": {"properties": {"p": mark}}}), unreachable("/then/p")),
        (json!({"else": mark}), unreachable("/else")),
        (json!({"additionalProperties": mark}), unreachable("/additionalProperties")),
        (json!({"patternProperties": {"^a": mark}}), unreachable("/patternProperties/^a")),
        (json!({"$defs": {"d": mark}}), unreachable("/$defs/d")),
    ];
    for (schema, expected) in table {
        assert_eq!(MirroredParams::from_schema(&schema), Err(expected), "{schema}");
    }
}

#[test]
fn schema_depth_is_bounded() {
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"properties": {"p": inner}}));
    assert!(MirroredParams::from_schema(&nested(MAX_SCHEMA_DEPTH - 1)).is_ok());
    assert_eq!(MirroredParams::from_schema(&nested(MAX_SCHEMA_DEPTH)), Err(MirrorError::TooDeep));
    let lists = (0..1000).fold(json!({}), |inner, _| json!({"items": [inner]}));
    assert_eq!(MirroredParams::from_schema(&lists), Err(MirrorError::TooDeep));
}

#[test]
fn headers_that_mirror_the_body_pass() {
    let table: [(Value, &[(&str, &str)]); 15] = [
        (json!(null), &[]),
        (json!({}), &[]),
        (json!({"region": null, "plain": "x"}), &[]),
        (json!({"deep": null}), &[]),
        (json!({"deep": 3}), &[]),
        (json!({"region": "us"}), &[("mcp-param-region", " us ")]),
        (json!({"region": ""}), &[("mcp-param-region", "")]),
        (json!({"region": "Zürich"}), &[("mcp-param-region", "=?base64?WsO8cmljaA==?=")]),
        (json!({"count": 7}), &[("mcp-param-count", "7")]),
        (json!({"count": 7}), &[("mcp-param-count", "007.0")]),
        (json!({"count": 7.0}), &[("mcp-param-count", "7")]),
        (json!({"count": -9_007_199_254_740_991_i64}), &[("mcp-param-count", "-9007199254740991")]),
        (json!({"dry": true}), &[("mcp-param-method", "true")]),
        (json!({"deep": {"x-mcp-header": "v"}}), &[("mcp-param-inner", "v")]),
        // A value of the wrong type is for the schema to reject; its header only has to match it.
        (json!({"count": "seven", "region": 5}), &[("mcp-param-count", "seven"), ("mcp-param-region", "5")]),
    ];
    for (arguments, headers) in table {
        assert_eq!(check(arguments.clone(), headers), Ok(()), "{arguments} {headers:?}");
    }
}

#[test]
fn headers_that_disagree_with_the_body_are_refused() {
    use MismatchReason::{Different, Missing, OutOfRange, Undecodable, Unexpected};
    let table = [
        (json!({"region": "us"}), None, Missing),
        (json!({"region": ""}), None, Missing),
        (json!({}), Some("us"), Unexpected),
        (json!(null), Some(""), Unexpected),
        (json!({"region": null}), Some("null"), Unexpected),
        (json!({"region": ["us"]}), Some("us"), Unexpected),
        (json!({"region": "us"}), Some("US"), Different),
        (json!({"region": " us"}), Some(" us"), Different),
        (json!({"region": "us"}), Some("=?base64?dXM?="), Undecodable),
        (json!({"region": "7"}), Some("07"), Different),
    ];
    for (arguments, header, reason) in table {
        let headers: Vec<_> = header.map(|value| ("mcp-param-region", value)).into_iter().collect();
        let expected = Err((reason, "Mcp-Param-Region".to_owned()));
        assert_eq!(check(arguments.clone(), &headers), expected, "{arguments} {header:?}");
    }
    let integers = [
        (json!(7), "8", Different),
        (json!(7), "7.5", Different),
        (json!(7), "7.", Different),
        (json!(7), "+7", Different),
        (json!(7), "", Different),
        (json!(7), "7e0", Different),
        (json!(7.5), "7", Different),
        (json!(9_007_199_254_740_992_i64), "9007199254740992", OutOfRange),
        (json!(u64::MAX), "18446744073709551615", OutOfRange),
        (json!(1e300), "1e300", OutOfRange),
    ];
    for (count, header, reason) in integers {
        let outcome = check(json!({"count": count}), &[("mcp-param-count", header)]);
        assert_eq!(outcome, Err((reason, "Mcp-Param-Count".to_owned())), "{count} {header}");
    }
}

#[test]
fn mismatch_names_the_header_and_not_the_values() {
    let refused = params().check(Some(&json!({"region": "secret"})), |_| Some(b"guess")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "header `Mcp-Param-Count` is present although the body has no such argument"
    );
    let lookup = |name: &str| (name == "mcp-param-region").then_some(&b"guess"[..]);
    let refused = params().check(Some(&json!({"region": "secret"})), lookup).unwrap_err();
    assert_eq!(refused.to_string(), "header `Mcp-Param-Region` does not match the argument in the body");
}

#[test]
fn mirror_headers_are_encoded_and_omit_absent_arguments() {
    let arguments = json!({"region": "Zürich", "count": 5.0, "dry": null, "deep": {"x-mcp-header": ""}});
    let mut headers = params().headers(Some(&arguments));
    headers.sort();
    let expected =
        [("Mcp-Param-Count", "5"), ("Mcp-Param-Inner", ""), ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(params().headers(None), []);
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1_i64 << 53) + 1..1 << 53).prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::from),
    ]
}

proptest! {
    #[test]
    fn mirrored_headers_of_a_client_pass_the_server_check(
        region in scalar(), count in -(1_i64 << 53) + 1..1 << 53, dry in scalar(), inner in scalar(),
    ) {
        let arguments =
            json!({"region": region, "count": count, "dry": dry, "deep": {"x-mcp-header": inner}});
        let headers = params().headers(Some(&arguments));
        let lookup = |wanted: &str| {
            headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_bytes())
        };
        prop_assert_eq!(params().check(Some(&arguments), lookup), Ok(()));
    }
}
