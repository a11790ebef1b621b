use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use serde_json::{Value, json};

use crate::support::{leaf, tree};

fn schema(command: Command) -> Value {
    let tree = tree(Command::new("p").subcommand(command.name("c")));
    leaf(&tree, "c").schema().clone()
}

fn property(arg: Arg) -> Value {
    let id = arg.get_id().to_string();
    schema(Command::new("c").arg(arg))["properties"][id.as_str()].clone()
}

#[test]
fn every_clap_argument_kind_has_its_schema() {
    let long = |id: &'static str| Arg::new(id).long(id);
    for (arg, expected) in [
        (long("a"), json!({ "type": "string" })),
        (long("a").help("What."), json!({ "type": "string", "description": "What." })),
        (
            long("a").value_parser(value_parser!(u16)).default_value("80"),
            json!({ "type": "integer", "minimum": 0, "maximum": 65535, "default": 80 }),
        ),
        (
            long("a").value_parser(value_parser!(i64).range(1..=9)),
            json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
        ),
        (long("a").value_parser(value_parser!(f32)), json!({ "type": "number" })),
        (long("a").value_parser(value_parser!(bool)), json!({ "type": "boolean" })),
        (
            long("a").value_parser(["x", "y"]).default_value("x"),
            json!({ "type": "string", "enum": ["x", "y"], "default": "x" }),
        ),
        (long("a").action(ArgAction::SetTrue), json!({ "type": "boolean", "default": false })),
        (
            Arg::new("a").long("no-a").action(ArgAction::SetFalse),
            json!({ "type": "boolean", "default": true, "description": "False stands for `--no-a`." }),
        ),
        (
            long("a").action(ArgAction::Count),
            json!({ "type": "integer", "minimum": 0, "maximum": 255, "default": 0 }),
        ),
        (long("a").action(ArgAction::Append), json!({ "type": "array", "items": { "type": "string" } })),
        (
            long("a").value_delimiter(','),
            json!({ "type": "array", "items": { "type": "string", "pattern": "^[^,]*$" } }),
        ),
        (
            long("a").num_args(2..=3).value_parser(value_parser!(u8)),
            json!({
                "type": "array", "minItems": 2, "maxItems": 3,
                "items": { "type": "integer", "minimum": 0, "maximum": 255 },
            }),
        ),
        (
            long("a").num_args(0..=1),
            json!({ "anyOf": [{ "type": "string" }, { "const": true, "description": "without a value" }] }),
        ),
        (Arg::new("a").num_args(1..), json!({ "type": "array", "items": { "type": "string" } })),
        (
            Arg::new("a").num_args(1..).required(true),
            json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
        ),
    ] {
        assert_eq!(property(arg.clone()), expected, "{arg:?}");
    }
}

#[test]
fn tool_schema_has_leaf_and_required_parent_arguments_only() {
    let command = Command::new("p")
        .arg(Arg::new("profile").long("profile").global(true))
        .arg(Arg::new("target").long("target").required(true))
        .subcommand(
            Command::new("c")
                .arg(Arg::new("hidden").long("hidden").hide(true))
                .arg(Arg::new("name").required(true)),
        );
    let tree = tree(command);
    assert_eq!(
        *leaf(&tree, "c").schema(),
        json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "target": { "type": "string" } },
            "required": ["target", "name"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn argument_relations_of_clap_are_in_the_schema() {
    let flag = |id: &'static str| Arg::new(id).long(id).action(ArgAction::SetTrue);
    let value = |id: &'static str| Arg::new(id).long(id).value_parser(value_parser!(u8));
    let command = Command::new("c")
        .arg(value("user").requires("password"))
        .arg(value("password"))
        .arg(flag("quiet").conflicts_with("loud"))
        .arg(flag("loud"))
        .arg(value("file"))
        .arg(value("url"))
        .group(ArgGroup::new("source").args(["file", "url"]).required(true));
    let schema = schema(command);
    assert_eq!(schema["dependentRequired"], json!({ "user": ["password"] }));
    let properties = |name: &str, absent: Value| json!({ "properties": { name: absent } });
    assert_eq!(
        schema["dependentSchemas"],
        json!({
            "file": { "allOf": [properties("url", json!(false))] },
            "quiet": { "allOf": [{ "anyOf": [
                properties("quiet", json!({ "const": false })),
                properties("loud", json!({ "const": false })),
            ] }] },
        })
    );
    assert_eq!(schema["not"], json!({ "anyOf": [{ "properties": { "file": false, "url": false } }] }));
    assert_eq!(schema["properties"]["user"]["description"], "Only together with `password`.");
    assert_eq!(schema["properties"]["loud"]["description"], "Not together with `quiet`.");
    let either = "Not together with `url`.\nAt least one of `file`, `url` is needed.";
    assert_eq!(schema["properties"]["file"]["description"], either);
}

#[test]
fn positional_requires_the_positionals_before_it() {
    let number = |id: &'static str| Arg::new(id).value_parser(value_parser!(u8));
    let schema = schema(Command::new("c").arg(number("a").required(true)).arg(number("b")).arg(number("c")));
    assert_eq!(schema["dependentRequired"], json!({ "c": ["b"] }));
}

#[test]
fn invalid_property_names_are_replaced_and_map_to_their_arguments() {
    let command = Command::new("c").arg(Arg::new("größe in cm").long("size")).arg(Arg::new("ok").long("ok"));
    let tree = tree(Command::new("p").subcommand(command));
    let leaf = leaf(&tree, "c");
    let names: Vec<&String> = leaf.schema()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["gr__e_in_cm", "ok"]);
    assert_eq!(crate::support::line(&tree, "c", &json!({ "gr__e_in_cm": "3" })), "c|--size=3");
}
