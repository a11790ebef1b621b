//! Questions in every dialect, and their answers.

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::*;
use trunkline_protocol::{JsonObject, RawJson, Revision};

use super::{raw, written};

fn form(schema: &str) -> InputRequest {
    InputRequest::form("m", raw(schema))
}

fn sample(params: &str) -> InputRequest {
    InputRequest::Sampling(CreateMessageRequest { params: raw(params).members().unwrap() })
}

/// Checks the parameters, or the lacking feature, in the five dialects, oldest first.
#[track_caller]
fn check_legacy(question: &InputRequest, expected: [Result<&str, &str>; 5]) {
    for (dialect, expected) in Dialect::ALL.into_iter().zip(expected) {
        let params = question.to_legacy(dialect, || "E".into());
        let params = params.as_ref().map(RawJson::as_str).map_err(|lacking| {
            assert_eq!(lacking.revision, dialect.revision());
            lacking.feature
        });
        assert_eq!(params, expected, "{}", dialect.revision());
    }
}

#[test]
fn form_elicitation_needs_the_third_revision_and_has_a_mode_from_the_fourth() {
    let lacking = Err("elicitation");
    let moded = Ok(r#"{"mode":"form","message":"m","requestedSchema":{ }}"#);
    let plain = Ok(r#"{"message":"m","requestedSchema":{ }}"#);
    check_legacy(&form("{ }"), [lacking, lacking, plain, moded, moded]);
}

#[test]
fn url_elicitation_needs_the_fourth_revision_and_only_there_has_an_id() {
    let lacking = Err("URL elicitation");
    let mut question = InputRequest::url("m", "https://x");
    if let InputRequest::Url(url) = &mut question {
        url.rest = raw(r#"{"elicitationId":"theirs","_meta":{"a":1}}"#).members().unwrap();
    }
    check_legacy(
        &question,
        [
            lacking,
            lacking,
            lacking,
            Ok(r#"{"mode":"url","message":"m","url":"https://x","elicitationId":"E","_meta":{"a":1}}"#),
            Ok(r#"{"mode":"url","message":"m","url":"https://x","_meta":{"a":1}}"#),
        ],
    );
}

#[test]
fn roots_list_request_has_no_parameters() {
    check_legacy(&InputRequest::Roots, [Ok("{}"); 5]);
}

#[test]
fn forms_are_simplified_for_the_third_revision() {
    let fields = |schema: &str| -> Result<String, &'static str> {
        let schema = format!(r#"{{"type":"object","properties":{schema},"required":["a"]}}"#);
        let params = form(&schema).to_legacy(Dialect::of(Revision::V2025_06_18), String::new);
        let mut params = params.map_err(|lacking| lacking.feature)?.members().unwrap();
        let schema = params.take("requestedSchema").unwrap();
        assert!(schema.as_str().ends_with(r#","required":["a"]}"#), "{schema}");
        Ok(schema.members().unwrap().take("properties").unwrap().as_str().to_owned())
    };
    for (given, expected) in [
        // Untouched, byte for byte.
        (r#"{ "a": {"type":"string", "enum":["x"]} }"#, Ok(r#"{ "a": {"type":"string", "enum":["x"]} }"#)),
        (r#"{"a":{"type":"boolean","default":true}}"#, Ok(r#"{"a":{"type":"boolean","default":true}}"#)),
        // Titled choices.
        (
            r#"{"b":{"type":"string", "minLength":1},"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"description":"d"}}"#,
            Ok(
                r#"{"b":{"type":"string", "minLength":1},"a":{"type":"string","enum":["r","g"],"enumNames":["Red","g"],"description":"d"}}"#,
            ),
        ),
        // Defaults.
        (
            r#"{"a":{"type":"string","default":"x","title":"A"},"b":{"type":"integer","default":1.0}}"#,
            Ok(r#"{"a":{"type":"string","title":"A"},"b":{"type":"integer"}}"#),
        ),
        // Several choices.
        (r#"{"a":{"type":"array","items":{"enum":["x"]}}}"#, Err("form fields with several choices")),
        (
            r#"{"a":{"oneOf":[{"type":"string"},{"type":"number"}]}}"#,
            Err("form fields with alternatives other than titled choices"),
        ),
    ] {
        assert_eq!(fields(given).as_deref(), expected.as_ref().map(|s| *s), "{given}");
        // Later revisions get the form as it is.
        let schema = format!(r#"{{"type":"object","properties":{given}}}"#);
        let params = form(&schema).to_legacy(Dialect::of(Revision::V2025_11_25), String::new).unwrap();
        assert!(params.as_str().ends_with(&format!(r#""requestedSchema":{schema}}}"#)), "{params}");
    }
}

#[test]
fn dropped_form_defaults_are_filled_in() {
    let question = form(
        r#"{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"boolean","default":true},"c":{"type":"number","default":1.50}}}"#,
    );
    for (revision, content, expected) in [
        (Revision::V2025_06_18, r#"{"z": 0}"#, r#"{"z":0,"a":"x","c":1.50}"#),
        (Revision::V2025_06_18, r#"{ "c":2,"a":"" }"#, r#"{ "c":2,"a":"" }"#),
        (Revision::V2025_11_25, r#"{"z": 0}"#, r#"{"z": 0}"#),
    ] {
        let answer = raw(&format!(r#"{{"action":"accept","content":{content}}}"#));
        let Ok(InputResponse::Elicit(result)) = question.read_legacy_response(Dialect::of(revision), &answer)
        else {
            unreachable!("a form has an elicitation as its answer");
        };
        assert_eq!(result.content.unwrap().as_str(), expected, "{revision}");
    }
}

#[test]
fn sampling_messages_of_several_blocks_are_split_before_the_fourth_revision() {
    let given = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"_meta":{"k":1}},{"role":"assistant", "content":{"type":"text","text":"b"}}],"maxTokens":5}"#;
    let split = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"},"_meta":{"k":1}},{"role":"user","content":{"type":"image","data":"","mimeType":"image/png"},"_meta":{"k":1}},{"role":"assistant", "content":{"type":"text","text":"b"}}],"maxTokens":5}"#;
    check_legacy(&sample(given), [Ok(split), Ok(split), Ok(split), Ok(given), Ok(given)]);
}

#[test]
fn sampling_with_tools_is_refused_before_the_fourth_revision() {
    for (params, feature) in [
        (r#"{"messages":[],"tools":[]}"#, "tools in sampling"),
        (r#"{"messages":[],"toolChoice":{"mode":"none"}}"#, "tools in sampling"),
        (
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}"#,
            "tool content in sampling",
        ),
        (r#"{"messages":[{"role":"user","content":{"type":"tool_result"}}]}"#, "tool content in sampling"),
    ] {
        let lacking = Err(feature);
        check_legacy(&sample(params), [lacking, lacking, lacking, Ok(params), Ok(params)]);
    }
}

#[test]
fn sampling_with_audio_is_refused_in_the_first_revision() {
    let params = r#"{"messages":[{"role":"user","content":{"type":"audio"}}]}"#;
    check_legacy(&sample(params), [Err("audio in sampling"), Ok(params), Ok(params), Ok(params), Ok(params)]);
}

#[test]
fn input_request_names_its_required_capability() {
    let plain = CreateMessageRequest::new([PromptMessage::user("hi")], 10).system("s");
    for (question, method, capability) in [
        (form("{}"), "elicitation/create", r#"{"elicitation":{"form":{}}}"#),
        (InputRequest::url("m", "u"), "elicitation/create", r#"{"elicitation":{"url":{}}}"#),
        (InputRequest::Sampling(plain.clone()), "sampling/createMessage", r#"{"sampling":{}}"#),
        (InputRequest::Sampling(plain.tools([])), "sampling/createMessage", r#"{"sampling":{"tools":{}}}"#),
        (InputRequest::Roots, "roots/list", r#"{"roots":{}}"#),
    ] {
        assert_eq!((question.method(), question.required_capability().as_str()), (method, capability));
        // Exactly that capability is enough, and nothing is not.
        let client = ClientCapabilities::read(&raw(capability), Revision::NEWEST).unwrap();
        assert!(question.is_supported_by(&client), "{capability}");
        assert!(!question.is_supported_by(&ClientCapabilities::default()), "{capability}");
    }
    let tools = sample(r#"{"tools":[]}"#);
    let client = ClientCapabilities::read(&raw(r#"{"sampling":{}}"#), Revision::NEWEST).unwrap();
    assert!(!tools.is_supported_by(&client));
}

#[test]
fn sampling_conversation_with_tools_is_written_per_block() {
    let tool = Tool::new("add", raw(r#"{"type":"object"}"#));
    let failed = CallToolResult::error("too large");
    let question = CreateMessageRequest::new([PromptMessage::user("hi")], 10)
        .tools([tool])
        .tool_choice(ToolChoice::Required)
        .assistant([Content::text("Let me see."), Content::tool_use("1", "add", raw(r#"{"a":1}"#))])
        .user([Content::tool_result("1", CallToolResult::text("3")), Content::tool_result("2", failed)])
        .user([Content::text("Go on.")]);
    let expected = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"1","name":"add","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"3"}]},{"type":"tool_result","toolUseId":"2","content":[{"type":"text","text":"too large"}],"isError":true}]},{"role":"user","content":{"type":"text","text":"Go on."}}],"maxTokens":10,"tools":[{"name":"add","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}"#;
    let lacking = Err("tools in sampling");
    check_legacy(&InputRequest::Sampling(question), [lacking, lacking, lacking, Ok(expected), Ok(expected)]);
    for (text, says) in [
        (r#"{"type":"tool_use","id":"1","input":{}}"#, "name"),
        (r#"{"type":"tool_result","content":[]}"#, "toolUseId"),
        (r#"{"type":"tool_result","toolUseId":"1"}"#, "content"),
    ] {
        assert!(Content::read(&raw(text)).unwrap_err().to_string().contains(says), "{text}");
    }
}

#[test]
fn include_context_is_sent_only_to_clients_that_declare_it() {
    let with =
        |scope: &str| sample(&format!(r#"{{"messages":[],"maxTokens":1,"includeContext":"{scope}"}}"#));
    let plain = sample(r#"{"messages":[],"maxTokens":1}"#);
    let (bare, offered) = (r#"{"sampling":{}}"#, r#"{"sampling":{"context":{}}}"#);
    for (revision, capabilities, scope, kept) in [
        (Revision::V2024_11_05, bare, "allServers", true),
        (Revision::V2025_06_18, bare, "thisServer", true),
        (Revision::V2025_11_25, bare, "thisServer", false),
        (Revision::V2025_11_25, offered, "thisServer", true),
        (Revision::V2026_07_28, bare, "allServers", false),
        (Revision::V2026_07_28, bare, "none", true),
        (Revision::V2026_07_28, offered, "allServers", true),
    ] {
        let client = ClientCapabilities::read(&raw(capabilities), revision).unwrap();
        let asked = with(scope).adapted_to(&client, Dialect::of(revision));
        assert_eq!(
            asked,
            if kept { with(scope) } else { plain.clone() },
            "{revision} {capabilities} {scope}"
        );
    }
}

#[test]
fn modern_input_requests_are_written_within_a_result() {
    let rest: JsonObject = raw(r#"{"message":"again","_meta":{"k":1}}"#).members().unwrap();
    let question = InputRequest::Form(FormElicitRequest { message: "m".into(), schema: raw("{ }"), rest });
    let messages = CreateMessageRequest::new(vec![PromptMessage::user("hi")], 10).system("s");
    for (question, expected) in [
        (
            question,
            r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{ },"_meta":{"k":1}}}"#,
        ),
        (
            InputRequest::Sampling(messages),
            r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10,"systemPrompt":"s"}}"#,
        ),
        (InputRequest::Roots, r#"{"method":"roots/list","params":{}}"#),
    ] {
        assert_eq!(written(|writer| question.write_input_request(writer)), expected);
    }
}

#[test]
fn matching_input_responses_are_accepted() {
    let elicited = |action, content: Option<&str>, rest: &str| {
        let rest = raw(rest).members().unwrap();
        InputResponse::Elicit(ElicitResult { action, content: content.map(raw), rest })
    };
    let sampled = |content: Vec<Content>, stop_reason: Option<&str>| {
        InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content,
            model: "m".into(),
            stop_reason: stop_reason.map(Into::into),
            meta: None,
            rest: JsonObject::new(),
        })
    };
    let root = Root { uri: "file:///a".into(), name: Some("a".into()), ..Root::default() };
    for (question, answer, expected) in [
        (
            form("{}"),
            r#"{"action":"accept","content":{ }}"#,
            elicited(ElicitAction::Accept, Some("{ }"), "{}"),
        ),
        (form("{}"), r#"{"action":"decline"}"#, elicited(ElicitAction::Decline, None, "{}")),
        (
            form("{}"),
            r#"{"action":"cancel","content":null,"x":1}"#,
            elicited(ElicitAction::Cancel, None, r#"{"x":1}"#),
        ),
        (InputRequest::url("m", "u"), r#"{"action":"accept"}"#, elicited(ElicitAction::Accept, None, "{}")),
        (
            sample("{}"),
            r#"{"role":"assistant","content":{"type":"text","text":"t"},"model":"m","stopReason":"endTurn"}"#,
            sampled(vec![Content::text("t")], Some("endTurn")),
        ),
        (
            sample("{}"),
            r#"{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"1","name":"n","input":{}}],"model":"m"}"#,
            sampled(vec![Content::text("t"), Content::tool_use("1", "n", RawJson::EMPTY_OBJECT)], None),
        ),
        (
            InputRequest::Roots,
            r#"{"roots":[{"uri":"file:///a","name":"a"}]}"#,
            InputResponse::Roots(vec![root]),
        ),
        (InputRequest::Roots, r#"{"roots":[]}"#, InputResponse::Roots(vec![])),
    ] {
        assert_eq!(question.read_response(&raw(answer)), Ok(expected), "{answer}");
    }
}

#[test]
fn mismatched_input_responses_are_rejected_with_the_member() {
    for (question, answer, problem) in [
        (form("{}"), "12", "the value must be an object"),
        (form("{}"), "{}", "`action` is missing"),
        (form("{}"), r#"{"action":"maybe"}"#, "`action` must be \"accept\", \"decline\" or \"cancel\""),
        (form("{}"), r#"{"action":"accept"}"#, "`content` must be an object"),
        (form("{}"), r#"{"action":"accept","content":null}"#, "`content` must be an object"),
        (form("{}"), r#"{"action":"accept","content":[]}"#, "`content` must be an object"),
        (sample("{}"), r#"{"role":"assistant","model":"m"}"#, "`content` is missing"),
        (sample("{}"), r#"{"content":{"type":"text","text":""},"model":"m"}"#, "`role` is missing"),
        (sample("{}"), r#"{"role":"user","content":{"type":"text","text":""}}"#, "`model` is missing"),
        (
            sample("{}"),
            r#"{"role":"user","content":[{"type":"text"}],"model":"m"}"#,
            "`content[0].text` is missing",
        ),
        (InputRequest::Roots, "null", "the value must be an object"),
        (InputRequest::Roots, "{}", "`roots` is missing"),
        (InputRequest::Roots, r#"{"roots":[{"uri":1}]}"#, "`roots[0].uri` must be a string"),
    ] {
        let error = question.read_response(&raw(answer)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("not an answer to `{}`: {problem}", question.method()),
            "{answer}"
        );
    }
}

#[test]
fn input_request_round_trips_in_both_eras() {
    let mut with_meta = InputRequest::url("m", "https://x");
    if let InputRequest::Url(url) = &mut with_meta {
        url.rest = raw(r#"{"_meta":{"a":1}}"#).members().unwrap();
    }
    for question in [
        form(r#"{"type":"object"}"#),
        with_meta,
        sample(r#"{"messages":[],"maxTokens":1}"#),
        InputRequest::Roots,
    ] {
        let asked = raw(&written(|writer| question.write_input_request(writer))).members().unwrap();
        let params = asked.get("params").unwrap().members().unwrap();
        let method = asked.text("method").unwrap();
        assert_eq!(InputRequest::read(&method, params).unwrap(), question);
        let mut params =
            question.to_legacy(Dialect::of(Revision::V2025_11_25), || "E".into()).unwrap().members().unwrap();
        params.take("elicitationId");
        assert_eq!(InputRequest::read(&method, params).unwrap(), question);
    }
}

#[test]
fn invalid_input_request_gets_the_matching_refusal() {
    for (method, params, code) in [
        ("x/y", "{}", -32601),
        ("elicitation/create", "{}", -32602),
        ("elicitation/create", r#"{"message":"m"}"#, -32602),
        ("elicitation/create", r#"{"message":7,"requestedSchema":{}}"#, -32602),
        ("elicitation/create", r#"{"message":"m","requestedSchema":[]}"#, -32602),
        ("elicitation/create", r#"{"mode":"url","message":"m"}"#, -32602),
        ("elicitation/create", r#"{"mode":"other","message":"m","requestedSchema":{}}"#, -32602),
    ] {
        let refusal = InputRequest::read(method, raw(params).members().unwrap()).unwrap_err();
        assert_eq!(refusal.code(trunkline_protocol::Era::Legacy), code, "{method} {params}");
    }
}

#[test]
fn input_response_round_trips_and_joins_text_blocks_if_needed() {
    let said = |content: Vec<Content>| {
        InputResponse::Sampling(CreateMessageResult {
            role: Role::Assistant,
            content,
            model: "m".to_owned(),
            stop_reason: Some("endTurn".to_owned()),
            meta: None,
            rest: JsonObject::new(),
        })
    };
    let two = said(vec![Content::text("a"), Content::text("b")]);
    let joined = said(vec![Content::text("a\nb")]);
    let root = Root { uri: "file:///a".to_owned(), name: Some("a".to_owned()), ..Root::default() };
    for dialect in Dialect::ALL {
        let newer = dialect.sampling_tools;
        for (question, answer, expected) in [
            (
                form("{}"),
                InputResponse::accept(Some(raw(r#"{"a":1.0}"#))),
                InputResponse::accept(Some(raw(r#"{"a":1.0}"#))),
            ),
            (form("{}"), InputResponse::decline(), InputResponse::decline()),
            (InputRequest::url("m", "https://x"), InputResponse::cancel(), InputResponse::cancel()),
            (sample("{}"), said(vec![Content::text("a")]), said(vec![Content::text("a")])),
            (sample("{}"), two.clone(), if newer { two.clone() } else { joined.clone() }),
            (
                InputRequest::Roots,
                InputResponse::Roots(vec![root.clone()]),
                InputResponse::Roots(vec![root.clone()]),
            ),
        ] {
            let json = written(|writer| answer.write(dialect, writer).unwrap());
            assert_eq!(question.read_response(&raw(&json)).unwrap(), expected, "{}", dialect.revision());
        }
        let image = said(vec![Content::text("a"), Content::Image(MediaContent::new(b"x", "image/png"))]);
        let mut writer = trunkline_protocol::JsonWriter::default();
        assert_eq!(image.write(dialect, &mut writer).is_ok(), newer, "{}", dialect.revision());
    }
}
