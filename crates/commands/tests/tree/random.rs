//! Programs and calls by chance, with every way to take a value and values that look like something else.

use clap::{Arg, ArgAction, Command, value_parser};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
/// How many sets of arguments each random program is called with.
pub(crate) const CALLS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RandomKind {
    Text,
    Integer,
    Number,
    Boolean,
    Choice,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RandomShape {
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
struct OptionSpec {
    shape: RandomShape,
    kind: RandomKind,
    required: bool,
    hyphens: bool,
    short: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct RandomProgram {
    depth: usize,
    options: Vec<OptionSpec>,
    required_places: Vec<RandomKind>,
    optional_places: Vec<RandomKind>,
    tail: TrailingArgument,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TrailingArgument {
    None,
    Many,
    Last,
}

const TAIL: &str = "tail";

const OPTIONS: [&str; 6] = ["o0", "o1", "o2", "o3", "o4", "o5"];
const PLACES: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
const GROUPS: [&str; 4] = ["group0", "group1", "group2", "group3"];

impl OptionSpec {
    fn arg(&self, at: usize) -> Arg {
        let arg = Arg::new(OPTIONS[at]).required(self.required && self.takes_values());
        let arg = if self.short {
            arg.short(char::from_digit(10 + u32::try_from(at).unwrap(), 36).unwrap())
        } else {
            arg.long(OPTIONS[at])
        };
        let arg = match self.shape {
            RandomShape::Flag => return arg.action(ArgAction::SetTrue),
            RandomShape::NoFlag => return arg.action(ArgAction::SetFalse),
            RandomShape::Count => return arg.action(ArgAction::Count),
            RandomShape::One => arg,
            RandomShape::Maybe => arg.num_args(0..=1).default_missing_value(missing(self.kind)),
            RandomShape::Repeated => arg.action(ArgAction::Append),
            RandomShape::Joined => arg.value_delimiter(','),
            RandomShape::Spread(values) => arg.num_args(values),
            RandomShape::Spreads(values) => arg.num_args(values).action(ArgAction::Append),
            RandomShape::Open => arg.num_args(1..=3),
        };
        typed(arg, self.kind).allow_hyphen_values(self.hyphens)
    }

    fn takes_values(&self) -> bool {
        !matches!(self.shape, RandomShape::Flag | RandomShape::NoFlag | RandomShape::Count)
    }

    fn is_spread(&self) -> bool {
        matches!(self.shape, RandomShape::Spread(_) | RandomShape::Spreads(_) | RandomShape::Open)
    }

    fn value(&self) -> BoxedStrategy<Value> {
        let one = value(self.kind);
        let list = |least, most| prop::collection::vec(value(self.kind), least..=most).prop_map(Value::from);
        match self.shape {
            RandomShape::Flag | RandomShape::NoFlag => any::<bool>().prop_map(Value::from).boxed(),
            RandomShape::Count => (0_u8..6).prop_map(Value::from).boxed(),
            RandomShape::One => one,
            RandomShape::Maybe => prop_oneof![Just(Value::Bool(true)), one].boxed(),
            RandomShape::Repeated | RandomShape::Joined => list(usize::from(self.required), 4).boxed(),
            RandomShape::Spread(values) => list(values, values).boxed(),
            RandomShape::Spreads(values) => {
                prop::collection::vec(list(values, values), 1..=3).prop_map(Value::from).boxed()
            }
            RandomShape::Open => list(1, 3).boxed(),
        }
    }
}

pub(crate) fn missing(kind: RandomKind) -> &'static str {
    match kind {
        RandomKind::Text => "nothing",
        RandomKind::Integer => "17",
        RandomKind::Number => "1.5",
        RandomKind::Boolean => "true",
        RandomKind::Choice => "red",
    }
}

fn typed(arg: Arg, kind: RandomKind) -> Arg {
    match kind {
        RandomKind::Text => arg,
        RandomKind::Integer => arg.value_parser(value_parser!(i64)),
        RandomKind::Number => arg.value_parser(value_parser!(f64)),
        RandomKind::Boolean => arg.value_parser(value_parser!(bool)),
        RandomKind::Choice => arg.value_parser(["red", "-x", "--", "a,b"]),
    }
}

impl RandomProgram {
    pub(crate) fn kind_of(&self, id: &str) -> RandomKind {
        let at = id.get(1..).and_then(|at| at.parse::<usize>().ok()).unwrap_or_default();
        match id.chars().next() {
            Some('o') => self.options[at].kind,
            Some('p') => *self.required_places.iter().chain(&self.optional_places).nth(at).unwrap(),
            _ => RandomKind::Text,
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut leaf = Command::new("leaf").disable_help_flag(true);
        leaf = leaf.args(self.options.iter().enumerate().map(|(at, spec)| spec.arg(at)));
        let places = self.required_places.iter().map(|kind| (kind, true));
        let places = places.chain(self.optional_places.iter().map(|kind| (kind, false)));
        for (at, (kind, required)) in places.enumerate() {
            leaf = leaf.arg(typed(Arg::new(PLACES[at]).required(required), *kind));
        }
        match self.tail {
            TrailingArgument::None => {}
            TrailingArgument::Many => leaf = leaf.arg(Arg::new(TAIL).num_args(1..)),
            TrailingArgument::Last => leaf = leaf.arg(Arg::new(TAIL).num_args(1..).last(true)),
        }
        let groups = GROUPS.into_iter().take(self.depth).rev();
        let below = groups.fold(leaf, |below, name| Command::new(name).subcommand(below));
        Command::new("program").subcommand(below)
    }

    pub(crate) fn tool(&self) -> String {
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
        let tail = prop::collection::vec(value(RandomKind::Text), 1..4).prop_map(Value::from);
        let has_tail = self.tail != TrailingArgument::None;
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

    /// Reports whether a call may have no command line.
    pub(crate) fn may_be_refused(&self, call: &Map<String, Value>) -> bool {
        let nul = |value: &str| value.contains('\0');
        let dash = |value: &str| value.starts_with('-');
        let swallows = self.options.iter().any(|spec| spec.shape == RandomShape::Open && spec.hyphens);
        let unescaped = self.tail == TrailingArgument::Last;
        call.iter().any(|(id, value)| {
            let texts = texts(value);
            let spec = id.strip_prefix('o').and_then(|at| self.options.get(at.parse::<usize>().ok()?));
            let by_place = id.starts_with('p') && id != TAIL;
            texts.iter().any(|text| nul(text))
                || spec.is_some_and(|spec| {
                    spec.is_spread() && texts.iter().any(|text| dash(text))
                        || spec.shape == RandomShape::Maybe && spec.hyphens && *value == Value::Bool(true)
                        || spec.shape == RandomShape::Joined && texts.iter().any(|text| text.contains(','))
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

fn value(kind: RandomKind) -> BoxedStrategy<Value> {
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
        RandomKind::Text => {
            let any = proptest::string::string_regex("[^\u{0}]{0,12}").unwrap();
            let dashed = proptest::string::string_regex("--?[a-z0-9=,]{0,6}").unwrap();
            prop_oneof![3 => any, 2 => dashed, 3 => hostile.prop_map(str::to_owned)]
                .prop_map(Value::from)
                .boxed()
        }
        RandomKind::Integer => prop_oneof![any::<i64>(), -3_i64..4].prop_map(Value::from).boxed(),
        RandomKind::Number => {
            prop_oneof![any::<i32>().prop_map(f64::from), -1e6..1e6].prop_map(Value::from).boxed()
        }
        RandomKind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        RandomKind::Choice => select(vec!["red", "-x", "--", "a,b"]).prop_map(Value::from).boxed(),
    }
}

fn program() -> impl Strategy<Value = RandomProgram> {
    let kind = || {
        select(vec![
            RandomKind::Text,
            RandomKind::Text,
            RandomKind::Integer,
            RandomKind::Number,
            RandomKind::Boolean,
            RandomKind::Choice,
        ])
    };
    let shape = select(vec![
        RandomShape::Flag,
        RandomShape::NoFlag,
        RandomShape::Count,
        RandomShape::One,
        RandomShape::One,
        RandomShape::Maybe,
        RandomShape::Repeated,
        RandomShape::Joined,
        RandomShape::Spread(2),
        RandomShape::Spreads(2),
        RandomShape::Open,
    ]);
    let spec =
        (shape, kind(), prop::bool::weighted(0.2), prop::bool::weighted(0.15), any::<bool>()).prop_map(
            |(shape, kind, required, hyphens, short)| OptionSpec { shape, kind, required, hyphens, short },
        );
    let places = || prop::collection::vec(kind(), 0..3);
    let tail = select(vec![
        TrailingArgument::None,
        TrailingArgument::None,
        TrailingArgument::Many,
        TrailingArgument::Last,
    ]);
    (0..4_usize, prop::collection::vec(spec, 0..6), places(), places(), tail).prop_map(
        |(depth, options, required_places, optional_places, tail)| RandomProgram {
            depth,
            options,
            required_places,
            optional_places,
            tail,
        },
    )
}

pub(crate) fn calls() -> impl Strategy<Value = (RandomProgram, Vec<Map<String, Value>>)> {
    program().prop_flat_map(|program| {
        let calls = prop::collection::vec(program.call(), CALLS);
        (Just(program), calls)
    })
}
