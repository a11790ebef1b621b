use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};
use trunkline_commands::ArgvError;

use crate::support::{argv, tree};

/// A program that has one argument of each way to take a value.
fn program() -> Command {
    Command::new("p").subcommand(
        Command::new("c")
            .arg(Arg::new("flag").short('x').long("flag").action(ArgAction::SetTrue))
            .arg(Arg::new("option").long("option"))
            .arg(Arg::new("short").short('s'))
            .arg(Arg::new("repeated").long("repeated").action(ArgAction::Append))
            .arg(Arg::new("place").required(true))
            .arg(Arg::new("places").num_args(0..)),
    )
}

/// Returns what the program reads as the argument, after `argv` has made a line of it.
fn read_back(arguments: &Value, id: &str) -> Result<Option<Vec<String>>, ArgvError> {
    let words = argv(&tree(program()), "c", arguments)?;
    let matches = program().try_get_matches_from([OsString::from("p")].into_iter().chain(words)).unwrap();
    let matches = matches.subcommand().unwrap().1;
    assert!(!matches.get_flag("flag"), "a value became a flag: {arguments}");
    let values = matches.get_many::<String>(id).map(|values| values.cloned().collect());
    Ok(values)
}

#[test]
fn hostile_argument_values_reach_the_program_unchanged() {
    let long = "é".repeat(60_000);
    let values = [
        "-x",
        "--flag",
        "--",
        "---",
        "-",
        "--option=other",
        "-s",
        "@file",
        "@",
        "\n",
        "a\nb",
        "\r\n",
        " ",
        "*",
        "$(reboot)",
        "`reboot`",
        ";reboot",
        "%s",
        "\\",
        "\"",
        "'",
        "=",
        "==",
        "=x",
        "c",
        "help",
        "--help",
        "--version",
        "-h",
        "\u{202e}",
        "\u{feff}",
        "😀",
        "-\u{301}",
        &long,
    ];
    for value in values {
        let exactly = Ok(Some(vec![value.to_owned()]));
        assert_eq!(read_back(&json!({ "place": value }), "place"), exactly, "{value:.20}");
        for (id, given) in [
            ("option", json!(value)),
            ("short", json!(value)),
            ("repeated", json!([value])),
            ("places", json!([value])),
        ] {
            let arguments = json!({ "place": "p", id: given });
            assert_eq!(read_back(&arguments, id), exactly, "{id} {value:.20}");
        }
        let three = json!({ "place": value, "repeated": [value, "", value], "places": [value, "", value] });
        let exactly = Ok(Some(vec![value.to_owned(), String::new(), value.to_owned()]));
        assert_eq!(read_back(&three, "repeated"), exactly);
        assert_eq!(read_back(&three, "places"), exactly);
    }
}

#[test]
fn empty_string_is_a_value_if_required_and_otherwise_absent() {
    assert_eq!(read_back(&json!({ "place": "" }), "place"), Ok(Some(vec![String::new()])));
    for id in ["option", "short"] {
        assert_eq!(read_back(&json!({ "place": "p", id: "" }), id), Ok(None), "{id}");
    }
    assert_eq!(
        read_back(&json!({ "place": "p", "repeated": [""] }), "repeated"),
        Ok(Some(vec![String::new()]))
    );
}

#[test]
fn inexpressible_argument_values_are_rejected_by_name() {
    let mib = "a".repeat(1 << 20);
    let most = "a".repeat((128 << 10) - 1);
    let many: Vec<&str> = std::iter::repeat_n(most.as_str(), 9).collect();
    for (arguments, expected) in [
        (json!({ "place": "a\u{0}" }), ArgvError::Nul("place".into())),
        (json!({ "place": "p", "option": "\u{0}" }), ArgvError::Nul("option".into())),
        (json!({ "place": "p", "places": ["a", "\u{0}"] }), ArgvError::Nul("places".into())),
        (json!({ "place": mib }), ArgvError::TooLong { argument: "place".into(), bytes: 1 << 20 }),
        (
            json!({ "place": "p", "option": most }),
            ArgvError::TooLong { argument: "option".into(), bytes: most.len() + "--option=".len() },
        ),
        (json!({ "place": "p", "places": many }), ArgvError::LineTooLong(9 * (128 << 10) + 2)),
    ] {
        assert_eq!(argv(&tree(program()), "c", &arguments), Err(expected));
    }
    assert_eq!(read_back(&json!({ "place": most }), "place"), Ok(Some(vec![most.clone()])));
}
