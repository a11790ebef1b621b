use std::io;

use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, RawJson};

use super::coerce::coerce;
use super::shape::{JsonType, ValueShape};
use super::suggest::did_you_mean;
use crate::exit::{CliFailure, ExitReason};

/// Reads a file by its name, where `-` is standard input.
pub(crate) type ReadFile<'r> = dyn FnMut(&str) -> io::Result<String> + 'r;

/// Reads arguments as they were typed into the object that a schema wants.
///
/// `k=v` is text that becomes what the schema wants, `k:=v` is JSON, and a value that begins with `@` is the file of that
/// name. A name with dots reaches into objects, and a list is given by repeating its name. `@file` alone, like `whole`, is an
/// object of arguments that the others are put into.
///
/// # Errors
/// The first mistake, by the name of its argument, with what would be right.
pub(crate) fn read_arguments(
    words: &[String],
    whole: Option<&str>,
    shape: &ValueShape,
    read: &mut ReadFile<'_>,
) -> Result<RawJson, CliFailure> {
    let mut arguments =
        ArgumentsBuilder { members: JsonObject::new(), assigned_paths: Vec::new(), shape, read };
    if let Some(json) = whole {
        arguments.add_object(json)?;
    }
    for word in words {
        arguments.add_word(word)?;
    }
    arguments.check_required()?;
    Ok(arguments.members.to_raw())
}

struct ArgumentsBuilder<'a, 'r> {
    members: JsonObject,
    /// The paths that words have set, so that one is not set twice by mistake.
    assigned_paths: Vec<Vec<String>>,
    shape: &'a ValueShape,
    read: &'a mut ReadFile<'r>,
}

impl ArgumentsBuilder<'_, '_> {
    fn add_word(&mut self, word: &str) -> Result<(), CliFailure> {
        if word.starts_with('@') {
            return self.add_object(word);
        }
        let Some((name, value)) = word.split_once('=') else { return Err(self.not_an_argument(word)) };
        match name.strip_suffix(':') {
            Some(name) => self.add_json(name, value),
            None => self.add_text(name, value),
        }
    }

    /// Takes an object of arguments, or the name of a file that has one.
    fn add_object(&mut self, json: &str) -> Result<(), CliFailure> {
        let json = match json.strip_prefix('@') {
            Some(file) => self.read_file(file)?,
            None => json.to_owned(),
        };
        let members = RawJson::parse(json).map_err(|error| error.to_string());
        let members = members.and_then(|raw| raw.members().map_err(|error| error.to_string()));
        let members = members.map_err(|problem| {
            usage_failure(format!("the arguments are not a JSON object: {problem}"))
                .hint("use an object such as '{\"a\":1}'")
        })?;
        for (name, value) in members.iter() {
            self.members.set(name.clone(), value.clone());
        }
        Ok(())
    }

    fn add_json(&mut self, name: &str, value: &str) -> Result<(), CliFailure> {
        let (path, _) = self.resolve_name(name)?;
        let json = match value.strip_prefix('@') {
            Some(file) => self.read_file(file)?,
            None => value.to_owned(),
        };
        let value = RawJson::parse(json).map_err(|error| {
            usage_failure(format!("argument `{name}` is not valid JSON: {error}"))
                .hint(format!("use `{name}=…` for plain text"))
        })?;
        self.set(name, path, value)
    }

    fn add_text(&mut self, name: &str, value: &str) -> Result<(), CliFailure> {
        let (path, shape) = self.resolve_name(name)?;
        let text = match value.strip_prefix('@') {
            // The line end after the last line is the file's and not the value's, unless the value is text.
            Some(file) => {
                let text = self.read_file(file)?;
                if shape.allows(JsonType::String) { text } else { text.trim_end().to_owned() }
            }
            None => value.to_owned(),
        };
        let value = coerce(&text, &shape).map_err(|problem| {
            usage_failure(format!("argument `{name}` {problem}")).hint(hint_of(name, &shape))
        })?;
        if shape.is_exactly(JsonType::Array) && self.assigned_paths.contains(&path) {
            return self.append(name, &path, &value);
        }
        self.set(name, path, value)
    }

    fn read_file(&mut self, name: &str) -> Result<String, CliFailure> {
        (self.read)(name).map_err(|error| {
            let what = if name == "-" { "standard input".to_owned() } else { format!("file {name}") };
            usage_failure(format!("cannot read {what}: {error}"))
                .hint("a value that begins with @ is a file name; for text, use JSON: k:='\"@x\"'")
        })
    }

    /// Resolves a name: a property of that exact name, or a path through objects, separated by dots.
    fn resolve_name(&self, name: &str) -> Result<(Vec<String>, ValueShape), CliFailure> {
        if let Some(property) = self.shape.property(name) {
            return Ok((vec![name.to_owned()], property.shape.clone()));
        }
        let mut shape = self.shape;
        let mut path = Vec::new();
        for step in name.split('.') {
            path.push(step.to_owned());
            match shape.property(step) {
                Some(property) => shape = &property.shape,
                // The schema leaves open what is here, and so do we.
                None if shape.allows_additional || (shape.properties.is_empty() && path.len() > 1) => {
                    let rest = name.split('.').skip(path.len()).map(str::to_owned);
                    let path = path.into_iter().chain(rest).collect();
                    return Ok((path, ValueShape::default()));
                }
                None => return Err(unknown_argument(name, step, shape)),
            }
        }
        Ok((path, shape.clone()))
    }

    fn set(&mut self, name: &str, path: Vec<String>, value: RawJson) -> Result<(), CliFailure> {
        if self.assigned_paths.contains(&path) {
            return Err(usage_failure(format!("argument `{name}` is given twice")).hint("pass it once"));
        }
        set_at(&mut self.members, &path, value);
        self.assigned_paths.push(path);
        Ok(())
    }

    fn append(&mut self, name: &str, path: &[String], value: &RawJson) -> Result<(), CliFailure> {
        let mut elements =
            get_at(&self.members, path).and_then(|list| list.elements().ok()).unwrap_or_default();
        elements.extend(value.elements().unwrap_or_default());
        let texts: Vec<_> = elements.iter().map(RawJson::as_str).collect();
        let list = RawJson::parse(format!("[{}]", texts.join(",")));
        let list = list.map_err(|error| usage_failure(format!("argument `{name}`: {error}")))?;
        set_at(&mut self.members, path, list);
        Ok(())
    }

    fn check_required(&self) -> Result<(), CliFailure> {
        let missing: Vec<_> = self
            .shape
            .properties
            .iter()
            .filter(|property| property.required && self.members.get(&property.name).is_none())
            .map(|property| format!("`{}`", property.name))
            .collect();
        match missing.as_slice() {
            [] => Ok(()),
            [one] => Err(usage_failure(format!("missing argument {one}"))),
            several => Err(usage_failure(format!("missing arguments {}", several.join(", ")))),
        }
    }

    fn not_an_argument(&self, word: &str) -> CliFailure {
        let open = self.shape.properties.iter().find(|property| self.members.get(&property.name).is_none());
        let example = open.map_or("NAME", |property| property.name.as_str());
        usage_failure(format!("invalid argument `{word}`"))
            .hint(format!("use NAME=VALUE, such as {example}={word}"))
    }
}

fn unknown_argument(name: &str, step: &str, shape: &ValueShape) -> CliFailure {
    let names: Vec<_> = shape.properties.iter().map(|property| property.name.as_str()).collect();
    let failure = usage_failure(format!("unknown argument `{name}`"));
    if names.is_empty() {
        return failure.hint("no arguments are accepted");
    }
    let suggestion = did_you_mean(step, names.iter().copied()).unwrap_or_default();
    let listed = format!("known arguments: {}", names.join(", "));
    failure.hint([suggestion, listed].join(" ").trim_start())
}

fn hint_of(name: &str, shape: &ValueShape) -> String {
    let description =
        shape.description.as_deref().map(crate::terminal::first_line).filter(|line| !line.is_empty());
    description.map_or_else(|| format!("use `{name}:=JSON` for any value"), |line| format!("{name}: {line}"))
}

fn get_at(members: &JsonObject, path: &[String]) -> Option<RawJson> {
    match path {
        [] => None,
        [name] => members.get(name).cloned(),
        [name, rest @ ..] => get_at(&members.get(name)?.members().ok()?, rest),
    }
}

fn set_at(members: &mut JsonObject, path: &[String], value: RawJson) {
    match path {
        [] => {}
        [name] => members.set(name.as_str(), value),
        [name, rest @ ..] => {
            let inner = members.get(name).filter(|raw| raw.kind() == JsonKind::Object);
            let mut inner = inner.and_then(|raw| raw.members().ok()).unwrap_or_default();
            set_at(&mut inner, rest, value);
            members.set(name.as_str(), inner.to_raw());
        }
    }
}

fn usage_failure(what: String) -> CliFailure {
    CliFailure::new(ExitReason::Usage, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What to look for." },
            "limit": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "at": { "type": "object", "properties": { "city": { "type": "string" }, "zip": { "type": "integer" } } },
            "a.b": { "type": "integer" },
            "free": { "type": "object" }
        },
        "required": ["query"]
    }"#;

    fn read(words: &[&str], whole: Option<&str>) -> Result<String, String> {
        read_with(SCHEMA, words, whole)
    }

    fn read_with(schema: &str, words: &[&str], whole: Option<&str>) -> Result<String, String> {
        let shape = ValueShape::from_schema(&RawJson::parse(schema.to_owned()).unwrap());
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        let mut file = |name: &str| match name {
            "-" => Ok("from stdin\n".to_owned()),
            "number" => Ok("42\n".to_owned()),
            "object" => Ok(r#"{"query":"in a file","limit":1}"#.to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let read = read_arguments(&words, whole, &shape, &mut file);
        read.map(|raw| raw.as_str().to_owned()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn arguments_are_coerced_to_the_schema_object() {
        for (words, whole, expected) in [
            (&["query=x", "limit=3"][..], None, r#"{"query":"x","limit":3}"#),
            (&["query=a=b"], None, r#"{"query":"a=b"}"#),
            (&["query="], None, r#"{"query":""}"#),
            (&["query:=null"], None, r#"{"query":null}"#),
            (&["query=x", "tags=a", "tags=b c"], None, r#"{"query":"x","tags":["a","b c"]}"#),
            (&["query=x", r#"tags=["a","b"]"#, "tags=c"], None, r#"{"query":"x","tags":["a","b","c"]}"#),
            (
                &["query=x", "at.city=Paris", "at.zip=7"],
                None,
                r#"{"query":"x","at":{"city":"Paris","zip":7}}"#,
            ),
            (&["query=x", "a.b=7"], None, r#"{"query":"x","a.b":7}"#),
            (&["query=x", "free.deep.key=7"], None, r#"{"query":"x","free":{"deep":{"key":7}}}"#),
            (&["query=@-"], None, r#"{"query":"from stdin\n"}"#),
            (&["query=x", "limit=@number"], None, r#"{"query":"x","limit":42}"#),
            (&["query=x", "limit:=@number"], None, r#"{"query":"x","limit":42}"#),
            (&["@object", "limit=2"], None, r#"{"query":"in a file","limit":2}"#),
            (
                &["limit=2"],
                Some(r#"{"query":"x","limit":1,"extra":true}"#),
                r#"{"query":"x","limit":2,"extra":true}"#,
            ),
            (&[], Some("@object"), r#"{"query":"in a file","limit":1}"#),
        ] {
            assert_eq!(read(words, whole).as_deref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn argument_errors_name_the_argument() {
        for (words, whole, expected) in [
            (&[][..], None, "missing argument `query`"),
            (&["query=x", "limit=many"], None, "argument `limit` must be a whole number"),
            (&["quary=x"], None, "unknown argument `quary`; did you mean `query`?"),
            (&["query=x", "at.town=x"], None, "unknown argument `at.town`; known arguments: city, zip"),
            (&["query=x", "at.zip=x"], None, "argument `at.zip` must be a whole number"),
            (&["query=x", "query=y"], None, "argument `query` is given twice"),
            (&["query:=x"], None, "argument `query` is not valid JSON"),
            (&["hello"], None, "invalid argument `hello`; use NAME=VALUE, such as query=hello"),
            (&["query=@nowhere"], None, "cannot read file nowhere"),
            (&["query=x"], Some("[1]"), "the arguments are not a JSON object"),
            (&["@number"], None, "the arguments are not a JSON object"),
        ] {
            let error = read(words, whole).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }

    #[test]
    fn names_that_the_schema_invites_are_taken() {
        let open = r#"{"type":"object","additionalProperties":true}"#;
        assert_eq!(read_with(open, &["any=1", "o.p=x"], None).as_deref(), Ok(r#"{"any":1,"o":{"p":"x"}}"#));
        let none = read_with(r#"{"type":"object","properties":{}}"#, &["any=1"], None);
        assert!(none.unwrap_err().contains("no arguments are accepted"));
    }
}
