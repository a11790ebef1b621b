//! What clients and servers declare, by revision.

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::*;
use trunkline_protocol::{JsonObject, Revision};

use super::{check, raw, written};

/// Names the capabilities that are declared.
fn declared(json: &str, revision: Revision) -> String {
    let client = ClientCapabilities::read(&raw(json), revision).unwrap();
    let all = [
        ("form", client.form()),
        ("url", client.url()),
        ("sampling", client.sampling()),
        ("tools", client.sampling_tools()),
        ("context", client.sampling_context()),
        ("roots", client.roots()),
        ("changes", client.roots_list_changed()),
        ("extension", client.extension("com.x/e").is_some()),
    ];
    let names: Vec<_> = all.into_iter().filter_map(|(name, set)| set.then_some(name)).collect();
    names.join(" ")
}

#[test]
fn client_capabilities_depend_on_declaration_and_revision() {
    for (json, expected) in [
        ("{}", ["", "", "", "", ""]),
        (r#"{"elicitation":{}}"#, ["", "", "form", "form", "form"]),
        (r#"{"elicitation":{"form":{}}}"#, ["", "", "form", "form", "form"]),
        (r#"{"elicitation":{"url":{}}}"#, ["", "", "form", "url", "url"]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, ["", "", "form", "form url", "form url"]),
        (r#"{"elicitation":{"other":{}}}"#, ["", "", "form", "form", "form"]),
        (r#"{"elicitation":null,"sampling":true,"roots":[]}"#, ["", "", "", "", ""]),
        (r#"{"sampling":{}}"#, ["sampling"; 5]),
        (
            r#"{"sampling":{"tools":{},"context":{}}}"#,
            ["sampling", "sampling", "sampling", "sampling tools context", "sampling tools context"],
        ),
        (
            r#"{"roots":{"listChanged":true}}"#,
            ["roots changes", "roots changes", "roots changes", "roots changes", "roots"],
        ),
        (r#"{"roots":{"listChanged":false}}"#, ["roots"; 5]),
        (r#"{"extensions":{"com.x/e":{}}}"#, ["", "", "extension", "extension", "extension"]),
    ] {
        for (revision, expected) in Revision::ALL.into_iter().zip(expected) {
            assert_eq!(declared(json, revision), expected, "{json} in {revision}");
        }
    }
}

#[test]
fn client_capabilities_are_converted_to_the_modern_form() {
    let all = r#"{"experimental":{ "x":1 },"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"url":{}},"tasks":{},"extensions":{"com.x/e":{}},"new":1.0}"#;
    for (revision, expected) in Revision::ALL.into_iter().zip([
        r#"{"experimental":{ "x":1 },"roots":{},"sampling":{},"new":1.0}"#,
        r#"{"experimental":{ "x":1 },"roots":{},"sampling":{},"new":1.0}"#,
        r#"{"experimental":{ "x":1 },"roots":{},"sampling":{},"elicitation":{"form":{}},"extensions":{"com.x/e":{}},"new":1.0}"#,
        r#"{"experimental":{ "x":1 },"roots":{},"sampling":{"tools":{}},"elicitation":{"url":{}},"extensions":{"com.x/e":{}},"new":1.0}"#,
        all,
    ]) {
        let client = ClientCapabilities::read(&raw(all), revision).unwrap();
        assert_eq!(client.to_modern().as_str(), expected, "{revision}");
        assert_eq!(client.clone().into_owned_buffer(), client);
    }
}

#[test]
fn malformed_client_capabilities_are_rejected() {
    for json in ["null", "[]", "1", r#"{"roots":{},"roots":{}}"#, r#"{"sampling":{"tools":{},"tools":{}}}"#] {
        assert!(ClientCapabilities::read(&raw(json), Revision::NEWEST).is_err(), "{json}");
    }
}

#[test]
fn client_capabilities_stay_small() {
    assert!(size_of::<ClientCapabilities>() <= 48);
}

#[test]
fn servers_declare_completions_from_the_second_revision_and_extensions_from_the_third() {
    let server = ServerCapabilities {
        tools: Some(ListCapability { list_changed: true }),
        prompts: Some(ListCapability::default()),
        resources: Some(ResourcesCapability { subscribe: true, list_changed: true }),
        completions: true,
        logging: true,
        experimental: Some(raw(r#"{"e":{ }}"#)),
        extensions: Some(raw(r#"{"com.x/e":{}}"#)),
        rest: raw(r#"{"new":{ }}"#).members().unwrap(),
    };
    check(
        |dialect, writer| server.write(dialect, writer),
        [
            r#"{"experimental":{"e":{ }},"logging":{},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"new":{ }}"#,
            r#"{"experimental":{"e":{ }},"logging":{},"completions":{},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"new":{ }}"#,
            r#"{"experimental":{"e":{ }},"logging":{},"completions":{},"prompts":{},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"extensions":{"com.x/e":{}},"new":{ }}"#,
            "",
            "",
        ],
    );
    let json = written(|writer| server.write(Dialect::NEWEST, writer));
    assert_eq!(ServerCapabilities::read(&raw(&json)), Ok(server));
}

#[test]
fn experimental_capabilities_that_are_no_objects_are_dropped() {
    for (json, expected) in [
        (r#"{"experimental":{"a":{},"b":true,"c":[]}}"#, r#"{"experimental":{"a":{}}}"#),
        (r#"{"experimental":{"a":{ "x": 1 }}}"#, r#"{"experimental":{"a":{ "x": 1 }}}"#),
        (r#"{"experimental":7,"extensions":{"a":null}}"#, r#"{"extensions":{}}"#),
    ] {
        let capabilities = ServerCapabilities::read(&raw(json)).unwrap();
        assert_eq!(written(|writer| capabilities.write(Dialect::NEWEST, writer)), expected, "{json}");
    }
}

#[test]
fn server_without_features_declares_no_capability() {
    check(|dialect, writer| ServerCapabilities::default().write(dialect, writer), ["{}", "", "", "", ""]);
    let read = ServerCapabilities::read(&raw(r#"{"tools":null,"logging":true}"#)).unwrap();
    assert_eq!(read, ServerCapabilities { rest: JsonObject::new(), ..ServerCapabilities::default() });
}

#[test]
fn client_capabilities_are_reduced_to_each_revision() {
    let all = ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots();
    let read = |json: &str| ClientCapabilities::read(&raw(json), Revision::NEWEST).unwrap();
    for (client, expected) in [
        (ClientCapabilities::default(), ["{}"; 5]),
        (
            all,
            [
                r#"{"sampling":{},"roots":{"listChanged":true}}"#,
                r#"{"sampling":{},"roots":{"listChanged":true}}"#,
                r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}"#,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}"#,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#,
            ],
        ),
        (
            ClientCapabilities::default().with_url(),
            ["{}", "{}", "{}", r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#],
        ),
        (
            read(r#"{"experimental":{"a":1.0},"tasks":{},"extensions":{"com.x/e":{}},"roots":7}"#),
            [
                r#"{"experimental":{"a":1.0}}"#,
                r#"{"experimental":{"a":1.0}}"#,
                r#"{"experimental":{"a":1.0},"extensions":{"com.x/e":{}}}"#,
                r#"{"experimental":{"a":1.0},"extensions":{"com.x/e":{}}}"#,
                r#"{"experimental":{"a":1.0},"extensions":{"com.x/e":{}}}"#,
            ],
        ),
    ] {
        for (revision, expected) in Revision::ALL.into_iter().zip(expected) {
            let written = client.for_revision(revision);
            assert_eq!(written.as_str(), expected, "{revision}");
            // A reader finds what was declared, as far as the revision has it.
            assert!(ClientCapabilities::read(&written, revision).is_ok());
        }
    }
}
