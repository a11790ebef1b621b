//! What holds for every value: the newest dialect loses nothing, and every dialect writes legal JSON.

use proptest::prelude::*;
use trunkline_protocol::codec::{Dialect, ServerResult, write_result};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::model::*;
use trunkline_protocol::{JsonWriter, RawJson};

use super::{any, raw, written};

/// Values are large and slow to make, so fewer than usual are tried each time.
const CASES: u32 = 64;

/// Checks that a text is JSON in which no object has two members of one name.
fn assert_legal(json: &str) {
    fn walk(value: &RawJson) {
        match value.kind() {
            JsonKind::Object => value.members().unwrap().iter().for_each(|(_, value)| walk(value)),
            JsonKind::Array => value.elements().unwrap().iter().for_each(walk),
            _ => {}
        }
    }
    walk(&raw(json));
}

/// Checks that a value comes back from the newest dialect, and that every dialect can write it.
fn assert_survives<T: PartialEq + std::fmt::Debug>(
    value: &T,
    write: impl Fn(&T, &Dialect, &mut JsonWriter),
    read: impl Fn(&RawJson) -> Result<T, MalformedModel>,
) {
    for dialect in Dialect::ALL {
        assert_legal(&written(|writer| write(value, dialect, writer)));
    }
    let newest = written(|writer| write(value, Dialect::NEWEST, writer));
    assert_eq!(read(&raw(&newest)).as_ref(), Ok(value), "{newest}");
}

macro_rules! survives {
    ($($name:ident: $type:ident from $strategy:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(CASES))]
            $(#[test]
            fn $name(value in any::$strategy()) {
                assert_survives(&value, $type::write, $type::read);
            })*
        }
    };
}

survives! {
    icons_survive: Icon from icon;
    implementations_survive: Implementation from implementation;
    tools_survive: Tool from tool;
    resources_survive: Resource from resource;
    templates_survive: ResourceTemplate from template;
    contents_survive: ResourceContents from contents;
    content_survives: Content from content;
    prompts_survive: Prompt from prompt;
    tool_results_survive: CallToolResult from tool_result;
    prompt_results_survive: GetPromptResult from prompt_result;
    read_results_survive: ReadResourceResult from read_result;
    complete_results_survive: CompleteResult from complete_result;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn unknown_members_survive_in_order_and_verbatim(unknown in any::unknown()) {
        let mut json = r#"{"name":"t","inputSchema":{ "type" : "object" }"#.to_owned();
        for (key, value) in unknown.iter() {
            json.push_str(&format!(",{}:{value}", RawJson::from_text(key)));
        }
        json.push('}');
        let tool = Tool::read(&raw(&json)).unwrap();
        for dialect in Dialect::ALL {
            prop_assert_eq!(&written(|writer| tool.write(dialect, writer)), &json);
        }
    }

    #[test]
    fn every_reply_is_legal_in_every_dialect(
        tool in any::tool_result(),
        prompt in any::prompt_result(),
        read in any::read_result(),
        complete in any::complete_result(),
        object in any::unknown(),
    ) {
        let replies = [
            ServerResult::Empty,
            ServerResult::Object(object),
            ServerResult::Tool(tool),
            ServerResult::Prompt(prompt),
            ServerResult::Read(read),
            ServerResult::Complete(complete),
        ];
        for (reply, dialect) in replies.iter().flat_map(|reply| Dialect::ALL.map(|dialect| (reply, dialect))) {
            let json = written(|writer| write_result(reply, dialect, &RawJson::EMPTY_OBJECT, writer));
            assert_legal(&json);
            prop_assert_eq!(json.starts_with(r#"{"resultType":"complete""#), dialect.result_type);
        }
    }

    #[test]
    fn reading_any_json_never_panics(json in any::json()) {
        let _ = Tool::read(&json);
        let _ = CallToolResult::read(&json);
        let question = InputRequest::form("m", json.clone());
        let params = CreateMessageRequest::default().with("messages", json.clone());
        for dialect in Dialect::ALL {
            for question in [&question, &InputRequest::Sampling(params.clone())] {
                if let Ok(params) = question.to_legacy(dialect, String::new) {
                    assert_legal(params.as_str());
                }
                let _ = question.read_legacy_response(dialect, &json);
            }
        }
    }
}
