use jsonschema::Validator;
use trunkline_protocol::RawJson;

use super::interactive_terminal::InteractiveTerminal;
use super::preset_answers::PresetValue;
use crate::schema::{JsonType, Property, ValueShape, coerce, literal, type_text};
use crate::terminal::{escape_line, escape_text};

/// The user's input for a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldInput {
    /// Filled it in.
    Value(RawJson),
    /// Left it out.
    Skipped,
    /// Declined the whole form.
    Declined,
    /// Broke off.
    Cancelled,
}

/// One field of a form, with the check of its schema.
pub(super) struct FormFieldPrompt<'f> {
    property: &'f Property,
    validator: Option<Validator>,
}

impl<'f> FormFieldPrompt<'f> {
    /// Prepares a field; a schema that cannot be checked is left to the server.
    pub(super) fn new(property: &'f Property, schema: Option<&RawJson>) -> Self {
        let compile = |schema: &RawJson| {
            let schema: serde_json::Value = schema.get().ok()?;
            jsonschema::options().offline().should_validate_formats(true).build(&schema).ok()
        };
        Self { property, validator: schema.and_then(compile) }
    }

    pub(super) fn name(&self) -> &str {
        &self.property.name
    }

    fn shape(&self) -> &'f ValueShape {
        &self.property.shape
    }

    /// Takes an answer that was given in advance.
    ///
    /// # Errors
    /// What the field must be.
    pub(super) fn parse_preset(&self, value: &PresetValue) -> Result<RawJson, String> {
        match value {
            PresetValue::Json(value) => self.validated(value.clone()),
            PresetValue::Text(text) if self.is_list() => self.parse_list(text),
            PresetValue::Text(text) => coerce(text, self.shape()).and_then(|value| self.validated(value)),
        }
    }

    /// Returns the value of an empty field: its default, or nothing if the field is optional.
    pub(super) fn default_input(&self) -> Option<FieldInput> {
        match &self.shape().default {
            Some(default) if !default.is_null() => Some(FieldInput::Value(default.clone())),
            _ if !self.property.required => Some(FieldInput::Skipped),
            _ => None,
        }
    }

    /// Prompts the user until the answer is valid.
    pub(super) fn prompt_user(&self, terminal: &mut dyn InteractiveTerminal) -> std::io::Result<FieldInput> {
        terminal.print(&self.introduction());
        let prompt = self.prompt_text();
        loop {
            let Some(line) = terminal.read_line(&prompt)? else { return Ok(FieldInput::Cancelled) };
            match line.trim() {
                ":decline" => return Ok(FieldInput::Declined),
                ":cancel" => return Ok(FieldInput::Cancelled),
                ":skip" if !self.property.required => return Ok(FieldInput::Skipped),
                ":none" if self.is_list() => match self.validated(empty_list()) {
                    Ok(value) => return Ok(FieldInput::Value(value)),
                    Err(problem) => terminal.print(&self.error_line(&problem)),
                },
                "" => match self.default_input() {
                    Some(filled) => return Ok(filled),
                    None => terminal.print(&self.error_line("is required")),
                },
                line => match self.parse_line(line) {
                    Ok(value) => return Ok(FieldInput::Value(value)),
                    Err(_) if self.shape().is_exactly(JsonType::Boolean) => {
                        terminal.print("  please answer yes or no\n");
                    }
                    Err(problem) => terminal.print(&self.error_line(&problem)),
                },
            }
        }
    }

    fn parse_line(&self, line: &str) -> Result<RawJson, String> {
        if self.is_list() {
            return self.parse_list(line);
        }
        let value = match choice_by_number(line, self.shape()) {
            Some(value) => Ok(value),
            None => coerce(line, self.shape()),
        };
        value.and_then(|value| self.validated(value))
    }

    /// Reads several choices with commas between them, or a list in JSON.
    fn parse_list(&self, line: &str) -> Result<RawJson, String> {
        if let Some(list) = RawJson::parse(line.to_owned()).ok().filter(|raw| raw.elements().is_ok()) {
            return self.validated(list);
        }
        let Some(items) = &self.shape().items else { return Err("must be a list".to_owned()) };
        let mut chosen = Vec::new();
        for part in line.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let value = match choice_by_number(part, items) {
                Some(value) => value,
                None => coerce(part, items)?,
            };
            chosen.push(value.as_str().to_owned());
        }
        let list = RawJson::parse(format!("[{}]", chosen.join(","))).map_err(|error| error.to_string())?;
        self.validated(list)
    }

    fn validated(&self, value: RawJson) -> Result<RawJson, String> {
        let Some(check) = &self.validator else { return Ok(value) };
        let instance: serde_json::Value = value.get().map_err(|error| error.to_string())?;
        match check.validate(&instance) {
            Ok(()) => Ok(value),
            Err(error) => Err(format!("is invalid: {}", escape_line(&error.to_string()))),
        }
    }

    /// A list of which one chooses some.
    fn is_list(&self) -> bool {
        self.shape().is_exactly(JsonType::Array)
    }

    fn choices(&self) -> &[crate::schema::EnumChoice] {
        let items = self.shape().items.as_ref().filter(|_| self.is_list());
        items.map_or(self.shape().choices.as_slice(), |items| items.choices.as_slice())
    }

    /// Describes the field, with its choices if it has any.
    fn introduction(&self) -> String {
        let shape = self.shape();
        let about = shape.title.iter().chain(&shape.description).map(|text| escape_text(text).into_owned());
        let mut words = about.collect::<Vec<_>>().join(": ");
        if !words.is_empty() {
            words.push('\n');
        }
        for (at, choice) in self.choices().iter().enumerate() {
            let title = choice.title.as_deref().map(|title| format!("  {}", escape_line(title)));
            words.push_str(&format!(
                "  {}) {}{}\n",
                at + 1,
                plain_text(&choice.value),
                title.unwrap_or_default()
            ));
        }
        words
    }

    fn prompt_text(&self) -> String {
        let shape = self.shape();
        let kind = if self.is_list() && !self.choices().is_empty() {
            Some("one or more, separated by commas".to_owned())
        } else if !self.choices().is_empty() {
            Some(format!("1-{}", self.choices().len()))
        } else if shape.is_exactly(JsonType::Boolean) {
            Some("yes or no".to_owned())
        } else {
            let format = shape.format.as_deref().map(|format| escape_line(format).into_owned());
            format.or_else(|| type_text(shape, false)).filter(|words| words != "str")
        };
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let default = match &shape.default {
            Some(default) if !default.is_null() => format!(" [{}]", plain_text(default)),
            _ if !self.property.required => " [skip]".to_owned(),
            _ => String::new(),
        };
        format!("{}{kind}{default}: ", escape_line(self.name()))
    }

    fn error_line(&self, problem: &str) -> String {
        format!("  `{}` {problem}\n", escape_line(self.name()))
    }
}

/// Takes a number for the choice that has it in the menu.
fn choice_by_number(line: &str, shape: &ValueShape) -> Option<RawJson> {
    let number: usize = line.parse().ok()?;
    shape.choices.get(number.checked_sub(1)?).map(|choice| choice.value.clone())
}

fn plain_text(value: &RawJson) -> String {
    value.as_text().map_or_else(|| literal(value), |text| escape_line(&text).into_owned())
}

fn empty_list() -> RawJson {
    RawJson::from(serde_json::Value::Array(Vec::new()))
}
