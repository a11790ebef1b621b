//! Random programs, random calls: the program parses exactly the arguments of the call, or the call is refused.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use trunkline_commands::ArgvError;

use crate::random::{CALLS, RandomKind, RandomProgram, calls, missing};
use crate::support::{leaf, tree};

/// Compares the parsed arguments with those of the call.
fn check(program: &RandomProgram, line: &[OsString], call: &Map<String, Value>) -> Result<(), TestCaseError> {
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

fn expected(arg: &Arg, kind: RandomKind, said: &Value) -> Vec<Value> {
    match (arg.get_action(), said) {
        // The option without a value stands for the value that the program takes then.
        (ArgAction::Set, Value::Bool(true)) if is_maybe(arg) && kind != RandomKind::Boolean => {
            let missing = missing(kind);
            let value = match kind {
                RandomKind::Text | RandomKind::Choice => missing.into(),
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

fn typed_values(read: &ArgMatches, arg: &Arg, kind: RandomKind) -> Vec<Value> {
    let id = arg.get_id().as_str();
    match (arg.get_action(), kind) {
        (ArgAction::SetTrue | ArgAction::SetFalse, _) => vec![read.get_flag(id).into()],
        (ArgAction::Count, _) => vec![read.get_count(id).into()],
        (_, RandomKind::Text | RandomKind::Choice) => {
            read.get_many::<String>(id).unwrap().map(|text| text.clone().into()).collect()
        }
        (_, RandomKind::Integer) => {
            read.get_many::<i64>(id).unwrap().map(|number| (*number).into()).collect()
        }
        (_, RandomKind::Number) => read.get_many::<f64>(id).unwrap().map(|number| (*number).into()).collect(),
        (_, RandomKind::Boolean) => read.get_many::<bool>(id).unwrap().map(|value| (*value).into()).collect(),
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
                Ok(line) => check(&program, &line, call)?,
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
fn built_argv_parses_back_to_the_same_arguments_or_is_rejected() {
    run(400);
}

/// The campaign; `cargo xtask argv N` runs it with N sets of arguments.
#[test]
#[ignore = "a campaign of many minutes"]
fn million_built_argvs_parse_back_or_are_rejected() {
    let calls = std::env::var("TRUNKLINE_CALLS").map_or(1_000_000, |count| count.parse::<usize>().unwrap());
    run(u32::try_from(calls.div_ceil(CALLS)).unwrap());
}
