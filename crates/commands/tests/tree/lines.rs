use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use serde_json::json;
use trunkline_commands::TreeError;

use crate::support::{line, names, tree};

fn program() -> Command {
    let name = || Arg::new("component_name").required(true);
    Command::new("demo")
        .version("1.2.3")
        .arg(Arg::new("profile").long("profile").global(true))
        .arg(Arg::new("config_dir").long("config-dir"))
        .subcommand(
            Command::new("component")
                .subcommand(
                    Command::new("get")
                        .arg(name())
                        .arg(Arg::new("revision").value_parser(value_parser!(u64))),
                )
                .subcommand(Command::new("list").arg(Arg::new("component_name").long("component-name")))
                .subcommand(
                    Command::new("delete")
                        .arg(name())
                        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue))
                        .arg(Arg::new("color").long("no-color").action(ArgAction::SetFalse))
                        .arg(Arg::new("verbose").short('v').action(ArgAction::Count)),
                )
                .subcommand(Command::new("secret").hide(true).subcommand(Command::new("show"))),
        )
        .subcommand(
            Command::new("every")
                .arg(Arg::new("tag").long("tag").action(ArgAction::Append))
                .arg(Arg::new("label").short('l').action(ArgAction::Append).num_args(1..))
                .arg(Arg::new("keys").long("keys").value_delimiter(','))
                .arg(Arg::new("point").long("point").num_args(2).value_parser(value_parser!(i32)))
                .arg(Arg::new("range").long("range").num_args(2).allow_hyphen_values(true))
                .arg(Arg::new("pair").long("pair").num_args(2).action(ArgAction::Append))
                .arg(Arg::new("when").long("when").num_args(0..=1).require_equals(true))
                .arg(Arg::new("on").long("on").value_parser(value_parser!(bool)))
                .arg(Arg::new("ratio").long("ratio").value_parser(value_parser!(f64)))
                .arg(Arg::new("mode").long("mode").value_parser(["fast", "slow"])),
        )
        .subcommand(
            Command::new("exec")
                .arg(Arg::new("file").required(true))
                .arg(Arg::new("more"))
                .arg(Arg::new("rest").num_args(1..).last(true)),
        )
        .subcommand(
            Command::new("api-key_new").subcommand(Command::new("list")).subcommand(Command::new("delete")),
        )
        .subcommand(
            Command::new("pick")
                .arg(Arg::new("a").long("a").action(ArgAction::SetTrue))
                .arg(Arg::new("b").long("b").action(ArgAction::SetTrue))
                .group(ArgGroup::new("either").args(["a", "b"]).required(true)),
        )
}

#[test]
fn visible_leaf_commands_are_tools_and_groups_are_not() {
    assert_eq!(
        names(&tree(program())),
        [
            "component_get",
            "component_list",
            "component_delete",
            "every",
            "exec",
            "api-key_new_list",
            "api-key_new_delete",
            "pick",
            "version"
        ]
    );
    let tree = tree(program());
    let aliases: Vec<&[String]> =
        tree.leaves().iter().map(trunkline_commands::LeafCommand::aliases).collect();
    assert_eq!(aliases[1], ["component list"]);
    assert_eq!(aliases[5], ["api-key_new list"]);
    assert_eq!(aliases[8], ["--version"]);
    assert!(aliases[3].is_empty());
}

#[test]
fn calls_are_converted_to_argv_with_escaped_values() {
    let tree = tree(program());
    for (tool, arguments, expected) in [
        ("component_get", json!({ "component_name": "x" }), "component|get|--|x"),
        ("component_get", json!({ "component_name": "x", "revision": 7 }), "component|get|--|x|7"),
        ("component_get", json!({ "component_name": "--help" }), "component|get|--|--help"),
        ("component_get", json!({ "component_name": "" }), "component|get|--|"),
        ("component_list", json!({ "component_name": "" }), "component|list"),
        ("component_list", json!({}), "component|list"),
        (
            "component_list",
            json!({ "component_name": "--profile=admin" }),
            "component|list|--component-name=--profile=admin",
        ),
        ("component_delete", json!({ "component_name": "x", "force": false }), "component|delete|--|x"),
        (
            "component_delete",
            json!({ "component_name": "x", "force": true }),
            "component|delete|--force|--|x",
        ),
        ("component_delete", json!({ "component_name": "x", "color": true }), "component|delete|--|x"),
        (
            "component_delete",
            json!({ "component_name": "x", "color": false }),
            "component|delete|--no-color|--|x",
        ),
        ("component_delete", json!({ "component_name": "x", "verbose": 2 }), "component|delete|-v|-v|--|x"),
        ("every", json!({ "tag": ["a", "-b", ""] }), "every|--tag=a|--tag=-b|--tag="),
        ("every", json!({ "label": ["a", "=b", "-c"] }), "every|-l=a|-l==b|-l=-c"),
        ("every", json!({ "keys": ["a", "-b"] }), "every|--keys=a,-b"),
        ("every", json!({ "keys": [] }), "every"),
        ("every", json!({ "range": ["-1", "--x"] }), "every|--range|-1|--x"),
        ("every", json!({ "point": [1, 2] }), "every|--point|1|2"),
        ("every", json!({ "pair": [["a", "b"], ["c", "d"]] }), "every|--pair|a|b|--pair|c|d"),
        ("every", json!({ "when": true }), "every|--when"),
        ("every", json!({ "when": "-x" }), "every|--when=-x"),
        ("every", json!({ "on": false, "ratio": -1.5 }), "every|--on=false|--ratio=-1.5"),
        ("every", json!({ "mode": "fast" }), "every|--mode=fast"),
        ("exec", json!({ "file": "f", "rest": ["-x", "--"] }), "exec|f|--|-x|--"),
        ("exec", json!({ "file": "f", "rest": [] }), "exec|f"),
        ("exec", json!({ "file": "f", "more": "m" }), "exec|f|m"),
        ("api-key_new_list", json!({}), "api-key_new|list"),
        ("pick", json!({ "a": true }), "pick|--a"),
        ("version", json!({}), "--version"),
    ] {
        assert_eq!(line(&tree, tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn inexpressible_calls_are_rejected_with_the_reason() {
    let tree = tree(program());
    for (tool, arguments, expected) in [
        ("component_get", json!({ "profile": "admin" }), "`profile` is not one of its arguments"),
        ("component_get", json!({ "component_name": 7 }), "the value of `component_name` is not of its type"),
        ("component_get", json!({}), "error: the following required arguments were not provided:"),
        (
            "component_get",
            json!({ "component_name": "a\u{0}b" }),
            "`component_name` has a NUL character, which no command line can carry",
        ),
        // Two words behind an option: what looks like a flag there is one.
        ("every", json!({ "pair": [["-x", "b"]] }), "error: unexpected argument '-x' found"),
        ("every", json!({ "point": [-1, 2] }), "error: unexpected argument '-1' found"),
        (
            "every",
            json!({ "keys": ["a,b"] }),
            "the value of `keys` cannot be passed on: the program would read it as something else",
        ),
        ("exec", json!({ "file": "-x", "rest": ["y"] }), "error: unexpected argument '-x' found"),
        ("pick", json!({}), "error: the following required arguments were not provided:"),
        ("pick", json!({ "a": true, "b": true }), "error: the argument '--a' cannot be used with '--b'"),
    ] {
        assert_eq!(line(&tree, tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn program_without_subcommands_is_one_tool() {
    let tree = tree(Command::new("sum").version("1").arg(Arg::new("n").num_args(1..)));
    assert_eq!(names(&tree), ["sum"]);
    assert_eq!(line(&tree, "sum", &json!({ "n": ["1", "-2"] })), "--|1|-2");
}

#[test]
fn multicall_program_is_rejected() {
    let error =
        trunkline_commands::CommandTree::from_command(Command::new("box").multicall(true)).unwrap_err();
    assert_eq!(error, TreeError::Multicall("box".to_owned()));
}
