use std::error::Error;

use clap::ArgMatches;
use serde_json::{Map, Value, json};

use crate::service::{part, request};
use crate::{convert, debug, store};

/// Runs the command of the command line.
pub(crate) fn run(matches: &ArgMatches) -> Result<(), Box<dyn Error>> {
    match matches.subcommand() {
        Some(("convert", matches)) => convert::run(matches),
        Some(("debug", matches)) => debug::run(matches)?,
        Some(("store", matches)) => store::run(matches.get_one("port").copied().unwrap_or_default())?,
        _ => in_store(matches)?,
    }
    Ok(())
}

/// Does something with a collection of the store.
fn in_store(matches: &ArgMatches) -> Result<(), Box<dyn Error>> {
    let mut path = Vec::new();
    let mut at = matches;
    while let Some((word, below)) = at.subcommand() {
        path.push(word);
        at = below;
    }
    let (Some(verb), service) = (path.pop(), matches.get_one::<String>("service")) else { return Ok(()) };
    let service = service.ok_or("where is the store?")?;
    let collection = format!("/v1/{}s", path.join("-"));
    let name = at.get_one::<String>("component_name");
    let one = name.map(|name| format!("{collection}/{}", part(name))).unwrap_or_default();
    let thing = |name: Option<&String>| {
        let fields = at.try_get_many::<(String, String)>("field").ok().flatten().into_iter().flatten();
        let mut thing: Map<String, Value> = fields.map(|(key, value)| (key.clone(), json!(value))).collect();
        thing.insert("name".to_owned(), json!(name));
        Value::Object(thing)
    };
    let answer = match verb {
        "list" => listed(&request(service, "GET", &collection, None)?, name, at.get_one::<u16>("limit")),
        "get" => request(service, "GET", &one, None)?,
        "delete" => request(service, "DELETE", &one, None)?,
        "rename" => {
            request(service, "DELETE", &one, None)?;
            let new = at.get_one::<String>("new_name");
            let place = format!("{collection}/{}", part(new.map_or("", String::as_str)));
            request(service, "PUT", &place, Some(&thing(new)))?
        }
        _ => request(service, "PUT", &one, Some(&thing(name)))?,
    };
    let as_json = at.get_one::<String>("format").is_some_and(|format| format == "json");
    print!("{}", if as_json { format!("{answer}\n") } else { table(&answer) });
    Ok(())
}

fn listed(all: &Value, name: Option<&String>, limit: Option<&u16>) -> Value {
    let all = all.as_array().cloned().unwrap_or_default();
    let named =
        all.into_iter().filter(|thing| name.is_none_or(|name| thing.get("name") == Some(&json!(name))));
    named.take(limit.map_or(usize::MAX, |limit| usize::from(*limit))).collect()
}

/// Prints items one below the other, or that there are none.
fn table(answer: &Value) -> String {
    let one = |thing: &Value| {
        let fields = thing.as_object().into_iter().flatten();
        let fields = fields.filter(|(key, _)| *key != "name").map(|(key, value)| format!("{key}={value}"));
        let name = thing.get("name").and_then(Value::as_str).unwrap_or_default();
        format!("{name}\t{}\n", fields.collect::<Vec<_>>().join(" "))
    };
    match answer {
        Value::Array(things) if things.is_empty() => "NAME\tFIELDS\n(none)\n".to_owned(),
        Value::Array(things) => format!("NAME\tFIELDS\n{}", things.iter().map(one).collect::<String>()),
        thing => format!("NAME\tFIELDS\n{}", one(thing)),
    }
}
