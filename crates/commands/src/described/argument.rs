use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::config::CommandFault;

/// An argument of a described command, as a file has it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentConfig {
    /// What a value of it is. Default a string.
    #[serde(default, rename = "type")]
    pub kind: ArgumentKind,
    /// What it is for, for the model to read.
    pub description: Option<String>,
    /// What it is unless it is given.
    pub default: Option<Value>,
    /// Whether it has to be given. Default yes, unless it has a default or is a flag.
    pub required: Option<bool>,
    /// Whether there may be several values of it.
    #[serde(default)]
    pub repeated: bool,
    /// The values that it may have.
    #[serde(rename = "enum")]
    pub choices: Option<Vec<Value>>,
    /// The least that a number may be, or the fewest characters of a string.
    pub min: Option<f64>,
    /// The most that a number may be, or the most characters of a string.
    pub max: Option<f64>,
    /// A regular expression that a string has to match.
    pub pattern: Option<String>,
    /// The word that stands for a boolean that is true, such as `--verbose`; for one that is false there is none.
    pub flag: Option<String>,
    /// Whether the value is a program of its own, such as a statement of SQL, all of which is for the caller to choose.
    #[serde(default)]
    pub program: bool,
    /// Whether a value that begins with `-` may stand where the program could read it as an option. Default no.
    #[serde(default)]
    pub allow_dash: bool,
}

/// What one value of an argument is.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentKind {
    /// A text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
}

impl ArgumentKind {
    const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }

    /// Formats a value as a word; `None` if it is of another kind.
    fn text(self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::String, Value::String(text)) => Some(text.clone()),
            (Self::Integer, Value::Number(number)) => integer_text(number),
            (Self::Number, Value::Number(number)) => Some(number.to_string()),
            (Self::Boolean, Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// Formats an integer without a fraction, even if it was sent with one.
fn integer_text(number: &serde_json::Number) -> Option<String> {
    if number.is_i64() || number.is_u64() {
        return Some(number.to_string());
    }
    let float =
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0)?;
    Some(format!("{float:.0}"))
}

/// A validated argument.
#[derive(Clone, Debug)]
pub(super) struct DescribedArgument {
    pub(super) name: String,
    pub(super) config: ArgumentConfig,
    pub(super) required: bool,
}

impl DescribedArgument {
    /// Validates an argument, and adds its faults.
    pub(super) fn new(name: String, config: ArgumentConfig, faults: &mut Vec<CommandFault>) -> Self {
        let required = config.required.unwrap_or(config.default.is_none() && config.flag.is_none());
        let argument = Self { name, config, required };
        let mut found_faults = argument.config.faults();
        found_faults.extend(argument.name_fault());
        if found_faults.is_empty() {
            found_faults.extend(argument.default_fault());
        }
        let path = |key: &str| vec!["arguments".to_owned(), argument.name.clone(), key.to_owned()];
        faults.extend(
            found_faults.into_iter().map(|(key, what)| CommandFault { path: path(key), message: what }),
        );
        argument
    }

    fn name_fault(&self) -> Option<(&'static str, String)> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_legal = self.name.len() <= 64
            && self.name.starts_with(|c: char| c.is_ascii_alphabetic())
            && self.name.chars().all(legal);
        let what = "its name must be a letter, and then up to 63 letters, digits, `_` and `-`";
        (!is_legal).then(|| ("", what.to_owned()))
    }

    /// Validates the default against the argument's own schema.
    fn default_fault(&self) -> Option<(&'static str, String)> {
        let check = compile(&self.schema()).ok()?;
        let error = check.iter_errors(self.config.default.as_ref()?).next()?.to_string();
        Some(("default", error))
    }

    /// Returns the JSON Schema of the argument.
    pub(super) fn schema(&self) -> Value {
        let config = &self.config;
        let mut one = Map::new();
        one.insert("type".to_owned(), config.kind.name().into());
        let (least, most) = match config.kind {
            ArgumentKind::String => ("minLength", "maxLength"),
            _ => ("minimum", "maximum"),
        };
        for (key, bound) in [(least, config.min), (most, config.max)] {
            one.extend(bound.map(|bound| (key.to_owned(), bound_value(bound))));
        }
        one.extend(config.pattern.as_ref().map(|pattern| ("pattern".to_owned(), json!(pattern))));
        one.extend(config.choices.as_ref().map(|choices| ("enum".to_owned(), json!(choices))));
        let mut schema = if config.repeated {
            let least = usize::from(self.required);
            Map::from_iter([("type".to_owned(), json!("array")), ("items".to_owned(), one.into())])
                .into_iter()
                .chain((least > 0).then(|| ("minItems".to_owned(), json!(least))))
                .collect()
        } else {
            one
        };
        schema.extend(config.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
        schema.extend(config.default.as_ref().map(|default| ("default".to_owned(), default.clone())));
        schema.into()
    }

    /// Returns the words for the values of a call, or for the default; `None` without values.
    ///
    /// # Errors
    /// A value is of another kind.
    pub(super) fn texts(&self, given: Option<&Value>) -> Result<Option<Vec<String>>, ()> {
        let Some(value) = given.or(self.config.default.as_ref()) else { return Ok(None) };
        let text = |value| self.config.kind.text(value).ok_or(());
        match (self.config.repeated, value) {
            (true, Value::Array(values)) => values.iter().map(text).collect::<Result<_, ()>>().map(Some),
            (true, _) => Err(()),
            (false, value) => Ok(Some(vec![text(value)?])),
        }
    }
}

impl ArgumentConfig {
    /// Returns the faults, each with its key.
    fn faults(&self) -> Vec<(&'static str, String)> {
        let kind = self.kind;
        let mut faults = Vec::new();
        let mut fault = |key: &'static str, what: String| faults.push((key, what));
        if let Some(default) = self.default.as_ref().filter(|default| !self.accepts(default)) {
            fault("default", format!("{default} is not {}", self.type_description()));
        }
        if let Some(other) = self.choices.iter().flatten().find(|choice| !kind.accepts(choice)) {
            fault("enum", format!("{other} is not a valid {}", kind.name()));
        }
        if self.choices.as_ref().is_some_and(Vec::is_empty) {
            fault("enum", "it has no values".to_owned());
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min > max
        {
            fault("min", format!("{min} is more than `max`, which is {max}"));
        }
        let is_length = |bound: &f64| bound.fract() == 0.0 && *bound >= 0.0;
        for (key, bound) in [("min", self.min), ("max", self.max)] {
            match (kind, bound) {
                (ArgumentKind::Boolean, Some(_)) => {
                    fault(key, "a boolean has no least and no most".to_owned());
                }
                (ArgumentKind::String, Some(bound)) if !is_length(&bound) => {
                    fault(key, format!("a text cannot have {bound} characters"));
                }
                _ => {}
            }
        }
        match self.pattern.as_ref().map(|pattern| compile(&json!({ "pattern": pattern }))) {
            Some(_) if kind != ArgumentKind::String => {
                fault("pattern", "only a string can match a pattern".to_owned());
            }
            Some(Err(what)) => fault("pattern", format!("not a valid regular expression: {what}")),
            _ => {}
        }
        if self.flag.is_some() && (kind != ArgumentKind::Boolean || self.repeated) {
            fault("flag", "only one boolean can be a flag".to_owned());
        }
        if self.flag.as_ref().is_some_and(|flag| !flag.starts_with('-')) {
            fault("flag", "a flag begins with `-`".to_owned());
        }
        if self.required == Some(true) && self.default.is_some() {
            fault("required", "what has a default need not be given".to_owned());
        }
        faults
    }

    fn accepts(&self, value: &Value) -> bool {
        match (self.repeated, value) {
            (true, Value::Array(values)) => values.iter().all(|value| self.kind.accepts(value)),
            (true, _) => false,
            (false, value) => self.kind.accepts(value),
        }
    }

    pub(super) fn type_description(&self) -> String {
        match (self.repeated, self.kind.name()) {
            (true, kind) => format!("a list of {kind}s"),
            (false, "integer") => "an integer".to_owned(),
            (false, kind) => format!("a {kind}"),
        }
    }
}

/// Compiles a schema as the server will.
fn compile(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().offline().with_draft(jsonschema::Draft::Draft202012);
    options.build(schema).map_err(|error| error.to_string())
}

/// Converts a bound to an integer if it is one, as usual in schemas.
fn bound_value(bound: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "it was just seen to be whole and small")]
    if bound.fract() == 0.0 && bound.abs() <= 9_007_199_254_740_992.0 {
        json!(bound as i64)
    } else {
        json!(bound)
    }
}
