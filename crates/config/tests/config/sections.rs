use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use trunkline_config::{ConfigDuration, ConfigFile, ConfigSection, ConfigText, VerbatimText};

use super::support::variables;

#[derive(Debug, Deserialize)]
struct Command {
    argv: Vec<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    args: BTreeMap<String, Argument>,
    script: Option<VerbatimText>,
    token: Option<ConfigText>,
    timeout: Option<ConfigDuration>,
}

#[derive(Debug, Deserialize)]
struct Argument {
    #[serde(rename = "type")]
    kind: Type,
    min: Option<u32>,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    String,
    Integer,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Any,
    One(String),
    Range { from: i64, to: i64 },
}

fn section(text: &str) -> ConfigSection {
    let file = ConfigFile::parse("trunkline.toml", text, variables()).unwrap();
    file.section("commands").unwrap()
}

#[test]
fn sections_decode_into_any_type() {
    let text = "[commands.b]\nargv = ['df']\ntimeout = '2m'\n\
        [commands.a]\nargv = ['echo', '${GITHUB_TOKEN}']\nscript = 'echo ${NOT_SET}'\ntoken = '${GITHUB_TOKEN}'\n\
        [commands.a.args.n]\ntype = 'integer'\nmin = 3\n\
        choices = ['any', { one = 'x' }, { range = { from = 1, to = 2 } }]\n";
    let tables = section(text).tables().unwrap();
    assert_eq!(tables.iter().map(ConfigSection::name).collect::<Vec<_>>(), ["b", "a"]);
    let b: Command = tables[0].read().unwrap();
    assert_eq!((b.argv.len(), b.timeout), (1, Some(ConfigDuration(Duration::from_secs(120)))));
    let a: Command = tables[1].read().unwrap();
    assert_eq!(a.argv, ["echo", "gh-canary"]);
    assert_eq!(a.script, Some(VerbatimText("echo ${NOT_SET}".into())), "a script has variables of its own");
    let token = a.token.unwrap();
    assert_eq!((token.as_written(), token.expose()), ("${GITHUB_TOKEN}", "gh-canary"));
    let n = &a.args["n"];
    assert_eq!((&n.kind, n.min), (&Type::Integer, Some(3)));
    assert_eq!(n.choices, [Choice::Any, Choice::One("x".into()), Choice::Range { from: 1, to: 2 }]);
    assert_eq!(a.description, "");
}

#[test]
fn section_errors_have_a_position_and_a_suggestion() {
    let table = [
        (
            "argv = []\ndescribtion = 'x'",
            "3:1: key `commands.a.describtion`: `describtion` is not a known key; did you mean `description`?",
        ),
        ("description = 'x'", "1:1: key `commands.a`: the key `argv` is missing"),
        ("argv = 'x'", "2:8: key `commands.a.argv`: expected a list, found a string"),
        ("argv = ['a', 1]", "2:14: key `commands.a.argv.1`: expected a string, found a number"),
        (
            "argv = []\n[commands.a.args.n]\ntype = 'strin'",
            "4:8: key `commands.a.args.n.type`: expected one of \"string\", \"integer\"; did you mean \"string\"?",
        ),
        (
            "argv = []\n[commands.a.args.n]\ntype = 'integer'\nmin = -1",
            "5:7: key `commands.a.args.n.min`: expected u32, found a number that is out of range",
        ),
        (
            "argv = []\n[commands.a.args.n]\ntype = 'integer'\nchoices = [{range = {from = 1, too = 2}}]",
            "5:32: key `commands.a.args.n.choices.0.range.too`: `too` is not a known key; did you mean `to`?",
        ),
        (
            "argv = ['${NONE}']",
            "2:9: key `commands.a.argv.0`: environment variable `NONE` is not set; set it, or use `${NONE:-default}`",
        ),
        ("argv = []\ntoken = 1", "3:9: key `commands.a.token`: expected a string, found a number"),
        ("argv = []\nscript = 1", "3:10: key `commands.a.script`: expected a string, found a number"),
    ];
    for (text, expected) in table {
        let tables = section(&format!("[commands.a]\n{text}")).tables().unwrap();
        let problem = tables[0].read::<Command>().unwrap_err();
        assert_eq!(problem.to_string(), format!("trunkline.toml:{expected}"), "{text}");
    }
}

#[test]
fn section_reader_can_report_a_problem_at_a_key() {
    let section = section("[commands.a]\nargv = ['df', '-h']\n");
    let table = [
        (&["a", "argv", "1"][..], "trunkline.toml:2:15: key `commands.a.argv.1`: no"),
        (&["a", "argv", "7"][..], "trunkline.toml:2:8: key `commands.a.argv.7`: no"),
        (&["a", "cwd"][..], "trunkline.toml:1:1: key `commands.a.cwd`: no"),
        (&[][..], "trunkline.toml:1:2: key `commands`: no"),
    ];
    for (keys, expected) in table {
        assert_eq!(section.problem(keys, "no").to_string(), expected);
    }
}

#[test]
fn missing_sections_and_non_tables_are_reported() {
    let error = section("[commands]\na = 1").tables().unwrap_err();
    assert_eq!(error.to_string(), "trunkline.toml:2:5: key `commands.a`: expected a table, found a number");
    let file = ConfigFile::parse("trunkline.toml", "", variables()).unwrap();
    assert!(file.section("commands").is_none());
    let json = ConfigFile::parse("mcp.json", r#"{"commands": {"a": {}}}"#, variables()).unwrap();
    assert!(json.section("commands").is_none(), "a client's file starts no commands");
}
