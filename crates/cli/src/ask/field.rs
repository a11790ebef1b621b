use jsonschema::Validator;
use trunkline_protocol::Raw;

use super::dialogue::Dialogue;
use super::given::GivenValue;
use crate::schema::{Kind, Property, Shape, coerce, literal, type_words};
use crate::terminal::{visible, visible_line};

/// What somebody did with a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filled {
    /// Filled it in.
    Value(Raw),
    /// Left it out.
    Skipped,
    /// Said no to the whole form.
    Declined,
    /// Broke off.
    Cancelled,
}

/// One field of a form, with the check of its schema.
pub(super) struct Field<'f> {
    property: &'f Property,
    check: Option<Validator>,
}

impl<'f> Field<'f> {
    /// Prepares a field; a schema that cannot be checked is left to the server.
    pub(super) fn new(property: &'f Property, schema: Option<&Raw>) -> Self {
        let compile = |schema: &Raw| {
            let schema: serde_json::Value = schema.get().ok()?;
            jsonschema::options().offline().should_validate_formats(true).build(&schema).ok()
        };
        Self { property, check: schema.and_then(compile) }
    }

    pub(super) fn name(&self) -> &str {
        &self.property.name
    }

    fn shape(&self) -> &'f Shape {
        &self.property.shape
    }

    /// Takes an answer that was given in advance.
    ///
    /// # Errors
    /// What the field must be.
    pub(super) fn take(&self, value: &GivenValue) -> Result<Raw, String> {
        match value {
            GivenValue::Json(value) => self.checked(value.clone()),
            GivenValue::Text(text) if self.is_several() => self.read_several(text),
            GivenValue::Text(text) => coerce(text, self.shape()).and_then(|value| self.checked(value)),
        }
    }

    /// Returns what the field is if nobody fills it in: its default, or nothing where it may be left out.
    pub(super) fn unfilled(&self) -> Option<Filled> {
        match &self.shape().default {
            Some(default) if !default.is_null() => Some(Filled::Value(default.clone())),
            _ if !self.property.required => Some(Filled::Skipped),
            _ => None,
        }
    }

    /// Asks a person until there is an answer that the schema allows.
    pub(super) fn ask(&self, person: &mut dyn Dialogue) -> std::io::Result<Filled> {
        person.say(&self.introduction());
        let prompt = self.prompt();
        loop {
            let Some(line) = person.ask(&prompt)? else { return Ok(Filled::Cancelled) };
            match line.trim() {
                ":decline" => return Ok(Filled::Declined),
                ":cancel" => return Ok(Filled::Cancelled),
                ":skip" if !self.property.required => return Ok(Filled::Skipped),
                ":none" if self.is_several() => match self.checked(empty_list()) {
                    Ok(value) => return Ok(Filled::Value(value)),
                    Err(problem) => person.say(&complaint(&problem)),
                },
                "" => match self.unfilled() {
                    Some(filled) => return Ok(filled),
                    None => person.say(&complaint("is needed")),
                },
                line => match self.read(line) {
                    Ok(value) => return Ok(Filled::Value(value)),
                    Err(problem) => person.say(&complaint(&problem)),
                },
            }
        }
    }

    fn read(&self, line: &str) -> Result<Raw, String> {
        if self.is_several() {
            return self.read_several(line);
        }
        let value = match by_number(line, self.shape()) {
            Some(value) => Ok(value),
            None => coerce(line, self.shape()),
        };
        value.and_then(|value| self.checked(value))
    }

    /// Reads several choices with commas between them, or a list in JSON.
    fn read_several(&self, line: &str) -> Result<Raw, String> {
        if let Some(list) = Raw::parse(line.to_owned()).ok().filter(|raw| raw.elements().is_ok()) {
            return self.checked(list);
        }
        let Some(items) = &self.shape().items else { return Err("must be a list".to_owned()) };
        let mut chosen = Vec::new();
        for part in line.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let value = match by_number(part, items) {
                Some(value) => value,
                None => coerce(part, items)?,
            };
            chosen.push(value.as_str().to_owned());
        }
        let list = Raw::parse(format!("[{}]", chosen.join(","))).map_err(|error| error.to_string())?;
        self.checked(list)
    }

    fn checked(&self, value: Raw) -> Result<Raw, String> {
        let Some(check) = &self.check else { return Ok(value) };
        let instance: serde_json::Value = value.get().map_err(|error| error.to_string())?;
        match check.validate(&instance) {
            Ok(()) => Ok(value),
            Err(error) => Err(format!("does not fit: {}", visible_line(&error.to_string()))),
        }
    }

    /// A list of which one chooses some.
    fn is_several(&self) -> bool {
        self.shape().is_only(Kind::Array)
    }

    fn choices(&self) -> &[crate::schema::Choice] {
        let items = self.shape().items.as_ref().filter(|_| self.is_several());
        items.map_or(self.shape().choices.as_slice(), |items| items.choices.as_slice())
    }

    /// Says what the field is about, with the choices if there are any.
    fn introduction(&self) -> String {
        let shape = self.shape();
        let about = shape.title.iter().chain(&shape.description).map(|text| visible(text).into_owned());
        let mut words = about.collect::<Vec<_>>().join(": ");
        if !words.is_empty() {
            words.push('\n');
        }
        for (at, choice) in self.choices().iter().enumerate() {
            let title = choice.title.as_deref().map(|title| format!("  {}", visible_line(title)));
            words.push_str(&format!("  {}) {}{}\n", at + 1, plain(&choice.value), title.unwrap_or_default()));
        }
        words
    }

    fn prompt(&self) -> String {
        let shape = self.shape();
        let kind = if self.is_several() && !self.choices().is_empty() {
            Some("some of them, with commas".to_owned())
        } else if !self.choices().is_empty() {
            Some(format!("1-{}", self.choices().len()))
        } else if shape.is_only(Kind::Boolean) {
            Some("yes or no".to_owned())
        } else {
            let format = shape.format.as_deref().map(|format| visible_line(format).into_owned());
            format.or_else(|| type_words(shape, false)).filter(|words| words != "str")
        };
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let default = match &shape.default {
            Some(default) if !default.is_null() => format!(" [{}]", plain(default)),
            _ if !self.property.required => " [leave out]".to_owned(),
            _ => String::new(),
        };
        format!("{}{kind}{default}: ", visible_line(self.name()))
    }
}

/// Takes a number for the choice that has it in the menu.
fn by_number(line: &str, shape: &Shape) -> Option<Raw> {
    let number: usize = line.parse().ok()?;
    shape.choices.get(number.checked_sub(1)?).map(|choice| choice.value.clone())
}

fn plain(value: &Raw) -> String {
    value.as_text().map_or_else(|| literal(value), |text| visible_line(&text).into_owned())
}

fn complaint(problem: &str) -> String {
    format!("  that {problem}\n")
}

fn empty_list() -> Raw {
    Raw::from(serde_json::Value::Array(Vec::new()))
}
