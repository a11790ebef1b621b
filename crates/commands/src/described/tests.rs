use std::path::Path;

use serde_json::{Map, Value, json};

use super::{CommandConfig, DescribedCommand};

fn described(config: Value) -> Result<DescribedCommand, String> {
    let config: CommandConfig = serde_json::from_value(config).map_err(|error| error.to_string())?;
    DescribedCommand::new("c", config, Path::new("/w"))
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn line(config: &Value, call: &Value) -> String {
    let call: Map<String, Value> = call.as_object().unwrap().clone();
    match described(config.clone()).unwrap().prepare(&call) {
        Ok(prepared) => prepared.words().join("|"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn placeholders_are_filled_and_words_without_values_are_left_out() {
    let git = json!({
        "argv": ["git", "log", "{oneline}", ["-n", "{count}"], "--author={author}", "--grep={words}", "{{}}", "--", "{paths}"],
        "arguments": {
            "oneline": { "type": "boolean", "flag": "--oneline" },
            "count": { "type": "integer", "required": false, "min": 1, "max": 100 },
            "author": { "required": false },
            "words": { "repeated": true, "required": false },
            "paths": { "repeated": true, "default": ["."] },
        },
    });
    for (call, expected) in [
        (json!({}), "git|log|{}|--|."),
        (json!({ "oneline": true }), "git|log|--oneline|{}|--|."),
        (json!({ "oneline": false, "count": 5 }), "git|log|-n|5|{}|--|."),
        (json!({ "count": 5.0 }), "git|log|-n|5|{}|--|."),
        (json!({ "author": "-x" }), "git|log|--author=-x|{}|--|."),
        (json!({ "author": "" }), "git|log|--author=|{}|--|."),
        (json!({ "words": ["a", "-b"] }), "git|log|--grep=a|--grep=-b|{}|--|."),
        (json!({ "words": [] }), "git|log|{}|--|."),
        (json!({ "paths": ["-x", "--", "@f", "$(x)", "a\nb"] }), "git|log|{}|--|-x|--|@f|$(x)|a\nb"),
        (json!({ "count": -5 }), "`count` begins with `-`, which the command could read as an option"),
        (json!({ "author": "a\u{0}" }), "`author` has a NUL character, which no command line can carry"),
        (json!({ "author": 7 }), "the value of `author` must be a string"),
        (json!({ "words": "a" }), "the value of `words` must be a list of strings"),
        (json!({ "other": 1 }), "`other` is not one of its arguments"),
        (
            json!({ "author": "x".repeat(1 << 20) }),
            "`author` has 1048585 bytes; a command line takes at most 131071",
        ),
    ] {
        assert_eq!(line(&git, &call), expected, "{call}");
    }
}

#[test]
fn value_with_leading_dash_is_rejected_where_it_could_be_an_option() {
    let config = |allow_dash: bool| json!({ "argv": ["p", "{a}", "--", "{a}"], "arguments": { "a": { "allow_dash": allow_dash } } });
    for value in ["-", "-x", "--", "--x=y"] {
        let refused = "`a` begins with `-`, which the command could read as an option";
        assert_eq!(line(&config(false), &json!({ "a": value })), refused);
        assert_eq!(line(&config(true), &json!({ "a": value })), format!("p|{value}|--|{value}"));
    }
    let two = json!({ "argv": ["p", "{a}{b}"], "arguments": { "a": {}, "b": {} } });
    assert_eq!(
        line(&two, &json!({ "a": "", "b": "-x" })),
        "`b` begins with `-`, which the command could read as an option"
    );
    assert_eq!(line(&two, &json!({ "a": "x", "b": "-x" })), "p|x-x");
}

#[test]
fn leading_dash_is_allowed_only_directly_after_a_double_dash() {
    let refused = "`b` begins with `-`, which the command could read as an option";
    let arguments = json!({ "a": { "required": false }, "b": {} });
    for (argv, call, expected) in [
        (json!(["p", "--", "{b}"]), json!({ "b": "-x" }), "p|--|-x"),
        (json!(["p", "--", "{a}", "{b}"]), json!({ "b": "-x" }), "p|--|-x"),
        (json!(["p", ["--", "{a}"], "{b}"]), json!({ "a": "f", "b": "-x" }), "p|--|f|-x"),
        (json!(["p", ["--", "{a}"], "{b}"]), json!({ "b": "-x" }), refused),
        (json!(["kubectl", "exec", "web", "--", "ls", "{b}"]), json!({ "b": "-x" }), refused),
        (json!(["p", "--{a}", "{b}"]), json!({ "a": "", "b": "-x" }), refused),
    ] {
        let needed = argv.to_string().contains("{a}");
        let mut arguments = arguments.clone();
        if !needed {
            arguments.as_object_mut().unwrap().remove("a");
        }
        assert_eq!(line(&json!({ "argv": argv, "arguments": arguments }), &call), expected, "{argv} {call}");
    }
}

#[test]
fn script_arguments_are_environment_variables_or_a_file() {
    let script = |pass: &str| {
        json!({
            "script": "echo ${ARG_WHO} {who}", "pass": pass,
            "arguments": { "who": {}, "how-often": { "type": "integer", "default": 2 }, "list": { "repeated": true, "required": false } },
        })
    };
    let call = json!({ "who": "'; reboot", "list": ["a", "b"] }).as_object().unwrap().clone();
    let command = described(script("environment")).unwrap();
    let prepared = command.prepare(&call).unwrap();
    assert_eq!(prepared.words(), ["sh", "-eu", "-c", "echo ${ARG_WHO} {who}"]);
    let variables: Vec<(&str, &str)> =
        prepared.variables().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(variables, [("ARG_HOW_OFTEN", "2"), ("ARG_LIST", "[\"a\",\"b\"]"), ("ARG_WHO", "'; reboot")]);

    let prepared = described(script("file")).unwrap().prepare(&call).unwrap();
    let (name, path) = prepared.variables()[0].clone();
    assert_eq!((name.as_str(), prepared.variables().len()), ("ARGUMENTS_FILE", 1));
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(written, json!({ "who": "'; reboot", "how-often": 2, "list": ["a", "b"] }));
    drop(prepared);
    assert!(!Path::new(&path).exists(), "the file goes with the run");
}

#[test]
fn described_command_faults_are_reported_with_their_path() {
    let argument = |argument: Value| json!({ "argv": ["p", "{a}"], "arguments": { "a": argument } });
    for (config, expected) in [
        (json!({}), "``: it has neither `argv` nor `script`"),
        (json!({ "argv": ["a"], "script": "b" }), "`script`: it has `argv` too; a command has one of both"),
        (json!({ "argv": [] }), "`argv`: it names no program"),
        (json!({ "argv": ["a", "{b}"] }), "`argv.1`: `{b}` is not an argument; a brace is written `{{`"),
        (json!({ "argv": ["a", "b}"] }), "`argv.1`: a `}` closes nothing; a brace is written `}}`"),
        (
            json!({ "argv": ["{a}"], "arguments": { "a": {} } }),
            "`argv.0`: the program itself is not for the caller to choose",
        ),
        (
            json!({ "argv": ["env", "A=1", "{a}"], "arguments": { "a": {} } }),
            "`argv.2`: the program itself is not for the caller to choose",
        ),
        (json!({ "argv": ["p"], "arguments": { "a": {} } }), "`arguments.a`: `{a}` has no place in `argv`"),
        (
            json!({ "argv": ["sh", "-c", "echo {a}"], "arguments": { "a": {} } }),
            "`argv.2`: `a` would become part of a program; use `script`, or say `program = true` of an argument that is all of it",
        ),
        (
            json!({ "argv": ["sh", "-c", "x {a}"], "arguments": { "a": { "program": true } } }),
            "`argv.2`: `a` would become part of a program; use `script`, or say `program = true` of an argument that is all of it",
        ),
        (argument(json!({ "default": 7 })), "`arguments.a.default`: 7 is not a string"),
        (
            argument(json!({ "type": "integer", "enum": [1, "b"] })),
            "`arguments.a.enum`: \"b\" is not a valid integer",
        ),
        (
            argument(json!({ "type": "integer", "min": 3, "max": 2 })),
            "`arguments.a.min`: 3 is more than `max`, which is 2",
        ),
        (argument(json!({ "pattern": "(" })), "`arguments.a.pattern`: not a valid regular expression"),
        (argument(json!({ "min": -1 })), "`arguments.a.min`: a text cannot have -1 characters"),
        (argument(json!({ "enum": ["x"], "default": "y" })), "`arguments.a.default`: \"y\" is not"),
        (
            argument(json!({ "type": "integer", "max": 2, "default": 3 })),
            "`arguments.a.default`: 3 is greater than the maximum of 2",
        ),
        (
            argument(json!({ "pattern": "^a+$", "repeated": true, "default": ["a", "b"] })),
            "`arguments.a.default`: \"b\" does not match",
        ),
        (argument(json!({ "flag": "--a" })), "`arguments.a.flag`: only one boolean can be a flag"),
        (
            argument(json!({ "required": true, "default": "x" })),
            "`arguments.a.required`: what has a default need not be given",
        ),
        (
            json!({ "script": "x", "arguments": { "a-b": {}, "a_b": {} } }),
            "`arguments`: two arguments map to the variable ARG_A_B",
        ),
        (
            json!({ "argv": ["p"], "confirm": "really {x}?" }),
            "`confirm`: `{x}` is not an argument; a brace is written `{{`",
        ),
        (json!({ "argv": ["p"], "timeout": "5" }), "expected a duration with a unit"),
        (json!({ "argv": ["p"], "timeout": 5 }), "expected a duration with a unit, such as \"500ms\""),
        (json!({ "argv": ["p"], "output_limit": "1GiB" }), "expected a size in quotes, such as"),
        (json!({ "argv": ["p"], "argz": [] }), "unknown field `argz`"),
        (argument(json!({ "type": "text" })), "unknown variant `text`"),
    ] {
        let error = described(config.clone()).unwrap_err();
        assert!(error.contains(expected), "{config}: {error}");
    }
    let query = json!({ "argv": ["sqlite3", "db", "{q}"], "arguments": { "q": { "program": true } } });
    assert_eq!(line(&query, &json!({ "q": "select 1" })), "sqlite3|db|select 1");
}

#[test]
fn described_command_schema_follows_the_configuration() {
    let command = described(json!({
        "argv": ["p", "{a}", "{b}", "{c}", "{d}"],
        "arguments": {
            "a": { "description": "What.", "min": 1, "max": 9, "pattern": "^[a-z]+$" },
            "b": { "type": "number", "min": 0.5, "default": 1.5 },
            "c": { "enum": ["x", "y"], "repeated": true },
            "d": { "type": "boolean", "flag": "-d" },
        },
    }))
    .unwrap();
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "description": "What.", "minLength": 1, "maxLength": 9, "pattern": "^[a-z]+$" },
            "b": { "type": "number", "minimum": 0.5, "default": 1.5 },
            "c": { "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "minItems": 1 },
            "d": { "type": "boolean" },
        },
        "required": ["a", "c"],
        "additionalProperties": false,
    });
    assert_eq!(command.schema(), expected);
}

#[test]
fn confirmation_shows_the_configured_question_or_the_arguments_only() {
    for (confirm, expected) in [
        (json!("Push {branch} to {remote}?"), Some("Push main to origin?")),
        (json!(true), Some("Run `c` with branch = main, remote = origin?")),
        (json!(false), None),
    ] {
        let command = described(json!({
            "argv": ["git", "-c", "http.extraHeader=sentinel", "push", "{remote}", "{branch}"], "confirm": confirm,
            "arguments": { "branch": {}, "remote": { "default": "origin" } },
        }))
        .unwrap();
        let prepared = command.prepare(json!({ "branch": "main" }).as_object().unwrap()).unwrap();
        assert_eq!(command.question(&prepared).as_deref(), expected);
    }
    let none = described(json!({ "script": "reboot", "confirm": true })).unwrap();
    assert_eq!(none.question(&none.prepare(&Map::new()).unwrap()).as_deref(), Some("Run `c`?"));
}

#[test]
fn described_environment_values_are_never_printed() {
    let command = described(json!({ "argv": ["p"], "env": { "TOKEN": "sentinel" } })).unwrap();
    let printed = format!("{command:?}");
    assert!(printed.contains("TOKEN") && !printed.contains("sentinel"), "{printed}");
}
