//! Random programs, random calls: the program reads back exactly what the call says, or the call is refused for a reason.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use trunkline_commands::ArgvError;

use crate::support::{leaf, tree};

/// How many sets of arguments each random program is called with.
const CALLS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Choice,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Flag,
    NoFlag,
    Count,
    One,
    Maybe,
    Repeated,
    Joined,
    /// So many values in words of their own behind one option.
    Spread(usize),
    /// The same, and the option may come again.
    Spreads(usize),
    /// One to three values behind one option.
    Open,
}

#[derive(Clone, Debug)]
struct Spec {
    shape: Shape,
    kind: Kind,
    required: bool,
    hyphens: bool,
    short: bool,
}

#[derive(Clone, Debug)]
struct Program {
    depth: usize,
    options: Vec<Spec>,
    required_places: Vec<Kind>,
    optional_places: Vec<Kind>,
    tail: Tail,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tail {
    None,
    Many,
    Last,
}

const TAIL: &str = "tail";

const OPTIONS: [&str; 6] = ["o0", "o1", "o2", "o3", "o4", "o5"];
const PLACES: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
const GROUPS: [&str; 4] = ["group0", "group1", "group2", "group3"];

impl Spec {
    fn arg(&self, at: usize) -> Arg {
        let arg = Arg::new(OPTIONS[at]).required(self.required && self.takes_values());
        let arg = if self.short {
            arg.short(char::from_digit(10 + u32::try_from(at).unwrap(), 36).unwrap())
        } else {
            arg.long(OPTIONS[at])
        };
        let arg = match self.shape {
            Shape::Flag => return arg.action(ArgAction::SetTrue),
            Shape::NoFlag => return arg.action(ArgAction::SetFalse),
            Shape::Count => return arg.action(ArgAction::Count),
            Shape::One => arg,
            Shape::Maybe => arg.num_args(0..=1).default_missing_value(missing(self.kind)),
            Shape::Repeated => arg.action(ArgAction::Append),
            Shape::Joined => arg.value_delimiter(','),
            Shape::Spread(values) => arg.num_args(values),
            Shape::Spreads(values) => arg.num_args(values).action(ArgAction::Append),
            Shape::Open => arg.num_args(1..=3),
        };
        typed(arg, self.kind).allow_hyphen_values(self.hyphens)
    }

    fn takes_values(&self) -> bool {
        !matches!(self.shape, Shape::Flag | Shape::NoFlag | Shape::Count)
    }

    fn is_spread(&self) -> bool {
        matches!(self.shape, Shape::Spread(_) | Shape::Spreads(_) | Shape::Open)
    }

    fn value(&self) -> BoxedStrategy<Value> {
        let one = value(self.kind);
        let list = |least, most| prop::collection::vec(value(self.kind), least..=most).prop_map(Value::from);
        match self.shape {
            Shape::Flag | Shape::NoFlag => any::<bool>().prop_map(Value::from).boxed(),
            Shape::Count => (0_u8..6).prop_map(Value::from).boxed(),
            Shape::One => one,
            Shape::Maybe => prop_oneof![Just(Value::Bool(true)), one].boxed(),
            Shape::Repeated | Shape::Joined => list(usize::from(self.required), 4).boxed(),
            Shape::Spread(values) => list(values, values).boxed(),
            Shape::Spreads(values) => {
                prop::collection::vec(list(values, values), 1..=3).prop_map(Value::from).boxed()
            }
            Shape::Open => list(1, 3).boxed(),
        }
    }
}

fn missing(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "nothing",
        Kind::Integer => "17",
        Kind::Number => "1.5",
        Kind::Boolean => "true",
        Kind::Choice => "red",
    }
}

fn typed(arg: Arg, kind: Kind) -> Arg {
    match kind {
        Kind::Text => arg,
        Kind::Integer => arg.value_parser(value_parser!(i64)),
        Kind::Number => arg.value_parser(value_parser!(f64)),
        Kind::Boolean => arg.value_parser(value_parser!(bool)),
        Kind::Choice => arg.value_parser(["red", "-x", "--", "a,b"]),
    }
}

impl Program {
    fn kind_of(&self, id: &str) -> Kind {
        let at = id.get(1..).and_then(|at| at.parse::<usize>().ok()).unwrap_or_default();
        match id.chars().next() {
            Some('o') => self.options[at].kind,
            Some('p') => *self.required_places.iter().chain(&self.optional_places).nth(at).unwrap(),
            _ => Kind::Text,
        }
    }

    fn command(&self) -> Command {
        let mut leaf = Command::new("leaf").disable_help_flag(true);
        leaf = leaf.args(self.options.iter().enumerate().map(|(at, spec)| spec.arg(at)));
        let places = self.required_places.iter().map(|kind| (kind, true));
        let places = places.chain(self.optional_places.iter().map(|kind| (kind, false)));
        for (at, (kind, required)) in places.enumerate() {
            leaf = leaf.arg(typed(Arg::new(PLACES[at]).required(required), *kind));
        }
        match self.tail {
            Tail::None => {}
            Tail::Many => leaf = leaf.arg(Arg::new(TAIL).num_args(1..)),
            Tail::Last => leaf = leaf.arg(Arg::new(TAIL).num_args(1..).last(true)),
        }
        let groups = GROUPS.into_iter().take(self.depth).rev();
        let below = groups.fold(leaf, |below, name| Command::new(name).subcommand(below));
        Command::new("program").subcommand(below)
    }

    fn tool(&self) -> String {
        GROUPS.iter().take(self.depth).map(|name| format!("{name}_")).collect::<String>() + "leaf"
    }

    fn call(&self) -> BoxedStrategy<Map<String, Value>> {
        let options = self.options.iter().enumerate().map(|(at, spec)| {
            let required = spec.required && spec.takes_values();
            let given = prop::bool::weighted(0.5).prop_map(move |given| given || required);
            (Just(OPTIONS[at].to_owned()), given, spec.value()).boxed()
        });
        let options: Vec<_> = options.collect();
        let required = self.required_places.len();
        let places: Vec<_> =
            self.required_places.iter().chain(&self.optional_places).map(|kind| value(*kind)).collect();
        let tail = prop::collection::vec(value(Kind::Text), 1..4).prop_map(Value::from);
        let has_tail = self.tail != Tail::None;
        (options, places, required..=required + self.optional_places.len(), any::<bool>(), tail)
            .prop_map(move |(options, places, count, wanted, tail)| {
                let mut call: Map<String, Value> = options
                    .into_iter()
                    .filter_map(|(id, given, value)| given.then_some((id, value)))
                    .collect();
                let all = count == places.len();
                call.extend(
                    places
                        .into_iter()
                        .take(count)
                        .enumerate()
                        .map(|(at, value)| (PLACES[at].to_owned(), value)),
                );
                if has_tail && wanted && all {
                    call.insert(TAIL.to_owned(), tail);
                }
                call
            })
            .boxed()
    }

    /// Reports whether there is a reason that no line could say a call.
    fn may_be_refused(&self, call: &Map<String, Value>) -> bool {
        let nul = |value: &str| value.contains('\0');
        let dash = |value: &str| value.starts_with('-');
        let swallows = self.options.iter().any(|spec| spec.shape == Shape::Open && spec.hyphens);
        let unescaped = self.tail == Tail::Last;
        call.iter().any(|(id, value)| {
            let texts = texts(value);
            let spec = id.strip_prefix('o').and_then(|at| self.options.get(at.parse::<usize>().ok()?));
            let by_place = id.starts_with('p') && id != TAIL;
            texts.iter().any(|text| nul(text))
                || spec.is_some_and(|spec| {
                    spec.is_spread() && texts.iter().any(|text| dash(text))
                        || spec.shape == Shape::Maybe && spec.hyphens && *value == Value::Bool(true)
                        || spec.shape == Shape::Joined && texts.iter().any(|text| text.contains(','))
                })
                || by_place && unescaped && texts.iter().any(|text| dash(text))
                // An optional value that is empty counts as not given, and leaves a gap before the next.
                || by_place && texts.iter().any(String::is_empty)
        }) || swallows
    }
}

/// Returns the texts of all values in a member of a call.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

fn value(kind: Kind) -> BoxedStrategy<Value> {
    let hostile = select(vec![
        "",
        "-",
        "--",
        "---",
        "-x",
        "-o",
        "--o1",
        "--o1=x",
        "-a",
        "=",
        "=x",
        "@file",
        "\n",
        "a\nb",
        " ",
        "*",
        ",",
        "a,b",
        "leaf",
        "group0",
        "help",
        "--help",
        "-h",
        "--version",
        "true",
        "0",
        "-1",
        "-1.5",
        "é",
        "\u{202e}",
        "$(x)",
        "\\",
        "\"",
        "'",
        "a\u{0}b",
    ]);
    match kind {
        Kind::Text => {
            let any = proptest::string::string_regex("[^\u{0}]{0,12}").unwrap();
            let dashed = proptest::string::string_regex("--?[a-z0-9=,]{0,6}").unwrap();
            prop_oneof![3 => any, 2 => dashed, 3 => hostile.prop_map(str::to_owned)]
                .prop_map(Value::from)
                .boxed()
        }
        Kind::Integer => prop_oneof![any::<i64>(), -3_i64..4].prop_map(Value::from).boxed(),
        Kind::Number => {
            prop_oneof![any::<i32>().prop_map(f64::from), -1e6..1e6].prop_map(Value::from).boxed()
        }
        Kind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Choice => select(vec!["red", "-x", "--", "a,b"]).prop_map(Value::from).boxed(),
    }
}

fn program() -> impl Strategy<Value = Program> {
    let kind =
        || select(vec![Kind::Text, Kind::Text, Kind::Integer, Kind::Number, Kind::Boolean, Kind::Choice]);
    let shape = select(vec![
        Shape::Flag,
        Shape::NoFlag,
        Shape::Count,
        Shape::One,
        Shape::One,
        Shape::Maybe,
        Shape::Repeated,
        Shape::Joined,
        Shape::Spread(2),
        Shape::Spreads(2),
        Shape::Open,
    ]);
    let spec = (shape, kind(), prop::bool::weighted(0.2), prop::bool::weighted(0.15), any::<bool>())
        .prop_map(|(shape, kind, required, hyphens, short)| Spec { shape, kind, required, hyphens, short });
    let places = || prop::collection::vec(kind(), 0..3);
    let tail = select(vec![Tail::None, Tail::None, Tail::Many, Tail::Last]);
    (0..4_usize, prop::collection::vec(spec, 0..6), places(), places(), tail).prop_map(
        |(depth, options, required_places, optional_places, tail)| Program {
            depth,
            options,
            required_places,
            optional_places,
            tail,
        },
    )
}

fn calls() -> impl Strategy<Value = (Program, Vec<Map<String, Value>>)> {
    program().prop_flat_map(|program| {
        let calls = prop::collection::vec(program.call(), CALLS);
        (Just(program), calls)
    })
}

/// Compares what the program reads to what the call says.
fn check(program: &Program, line: Vec<OsString>, call: &Map<String, Value>) -> Result<(), TestCaseError> {
    let words = [OsString::from("program")].into_iter().chain(line.iter().cloned());
    let read = program.command().try_get_matches_from(words);
    let mut read = &read.map_err(|error| TestCaseError::fail(format!("{line:?}: {error}")))?;
    while let Some((_, below)) = read.subcommand() {
        read = below;
    }
    let command = program.command();
    let mut leaf = &command;
    while let Some(below) = leaf.get_subcommands().next() {
        leaf = below;
    }
    for arg in leaf.get_arguments() {
        let id = arg.get_id().as_str();
        let given = read.value_source(id) == Some(ValueSource::CommandLine);
        let said = call.get(id).filter(|value| !is_absent(arg, value));
        prop_assert_eq!(given, said.is_some(), "{} in {:?}", id, line);
        if let Some(said) = said {
            let kind = program.kind_of(id);
            prop_assert_eq!(typed_values(read, arg, kind), expected(arg, kind, said), "{} in {:?}", id, line);
        }
    }
    Ok(())
}

fn is_absent(arg: &Arg, value: &Value) -> bool {
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, value) => *value == Value::Bool(false),
        (ArgAction::SetFalse, value) => *value == Value::Bool(true),
        (ArgAction::Count, value) => *value == json!(0),
        (_, Value::String(text)) => text.is_empty() && !arg.is_required_set(),
        (_, Value::Array(values)) => values.is_empty(),
        _ => false,
    }
}

fn expected(arg: &Arg, kind: Kind, said: &Value) -> Vec<Value> {
    match (arg.get_action(), said) {
        // The option without a value stands for the value that the program takes then.
        (ArgAction::Set, Value::Bool(true)) if is_maybe(arg) && kind != Kind::Boolean => {
            let missing = missing(kind);
            let value = match kind {
                Kind::Text | Kind::Choice => missing.into(),
                _ => serde_json::from_str(missing).unwrap(),
            };
            vec![value]
        }
        (ArgAction::Append, Value::Array(values)) if values.iter().all(Value::is_array) => {
            values.iter().flat_map(|list| list.as_array().unwrap().clone()).collect()
        }
        (_, Value::Array(values)) => values.clone(),
        (_, one) => vec![one.clone()],
    }
}

fn typed_values(read: &ArgMatches, arg: &Arg, kind: Kind) -> Vec<Value> {
    let id = arg.get_id().as_str();
    match (arg.get_action(), kind) {
        (ArgAction::SetTrue | ArgAction::SetFalse, _) => vec![read.get_flag(id).into()],
        (ArgAction::Count, _) => vec![read.get_count(id).into()],
        (_, Kind::Text | Kind::Choice) => {
            read.get_many::<String>(id).unwrap().map(|text| text.clone().into()).collect()
        }
        (_, Kind::Integer) => read.get_many::<i64>(id).unwrap().map(|number| (*number).into()).collect(),
        (_, Kind::Number) => read.get_many::<f64>(id).unwrap().map(|number| (*number).into()).collect(),
        (_, Kind::Boolean) => read.get_many::<bool>(id).unwrap().map(|value| (*value).into()).collect(),
    }
}

fn is_maybe(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.min_values() == 0 && range.max_values() == 1)
}

fn run(programs: u32) {
    let config =
        Config { cases: programs, max_shrink_iters: 20_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&calls(), |(program, calls)| {
        let tree = tree(program.command());
        let tool = leaf(&tree, &program.tool());
        for call in &calls {
            match tree.argv(tool, call) {
                Ok(line) => check(&program, line, call)?,
                Err(ArgvError::Unknown(_)) => {
                    return Err(TestCaseError::fail(format!("{call:?} is not understood")));
                }
                Err(error) => prop_assert!(program.may_be_refused(call), "{:?}: {}", call, error),
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_call_is_read_back_exactly_or_refused_for_a_reason() {
    run(400);
}

/// The campaign; `cargo xtask argv N` runs it with N sets of arguments.
#[test]
#[ignore = "a campaign of many minutes"]
fn a_million_calls_are_read_back_exactly_or_refused_for_a_reason() {
    let calls = std::env::var("TRUNKLINE_CALLS").map_or(1_000_000, |count| count.parse::<usize>().unwrap());
    run(u32::try_from(calls.div_ceil(CALLS)).unwrap());
}
