use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::argument::ArgumentConfig;
use super::units::{ByteSizeText, DurationText};

/// A command as a file describes it, in a table `[commands.NAME]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["argv"] }, { "required": ["script"] }]))]
pub struct CommandConfig {
    /// What it does, for the model to read.
    pub description: Option<String>,
    /// What humans call it.
    pub title: Option<String>,
    /// The program and its arguments, with `{name}` where a value goes.
    #[schemars(with = "Option<Vec<Either<String, Vec<String>>>>")]
    pub argv: Option<Vec<ArgvItem>>,
    /// A script instead, which finds the values in its environment or in a file, and never in its text.
    #[schemars(with = "Option<String>")]
    pub script: Option<Script>,
    /// What runs the script, which is given to it as its last word. Default `["sh", "-eu", "-c"]`.
    pub interpreter: Option<Vec<String>>,
    /// Where a script finds the values.
    #[serde(default)]
    pub pass: ArgumentPassing,
    /// The arguments by their names.
    #[serde(default)]
    pub arguments: BTreeMap<String, ArgumentConfig>,
    /// The folder that it runs in, from that of the file. Default that of the file.
    pub cwd: Option<String>,
    /// Variables of its environment.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: CommandEnvironment,
    /// Variables of our own environment that it gets too.
    #[serde(default)]
    pub inherit: Vec<String>,
    /// Variables of the caller, allowed with `serve --env`, that it gets.
    #[serde(default)]
    pub caller_env: Vec<String>,
    /// How long it may run. Default 60 s.
    #[schemars(with = "Option<String>", regex(pattern = DurationText::PATTERN))]
    timeout: Option<DurationText>,
    /// How much of its standard output is kept. Default 1 MiB.
    #[schemars(with = "Option<String>", regex(pattern = ByteSizeText::PATTERN))]
    output_limit: Option<ByteSizeText>,
    /// What its standard output is.
    #[serde(default)]
    pub output: OutputFormat,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Running it twice does no more than running it once.
    pub idempotent: Option<bool>,
    /// It deals with things outside of this machine.
    pub open_world: Option<bool>,
    /// The user confirms each run, with `true` or with this message, which may have `{name}` in it.
    #[schemars(with = "Option<Either<bool, String>>")]
    pub confirm: Option<Confirmation>,
}

// One of two types, for the schema of values with a hand-written deserializer. Not a doc comment, which would
// become part of the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it is never made, only described")]
enum Either<A, B> {
    One(A),
    Other(B),
}

impl CommandConfig {
    pub(super) fn timeout(&self) -> Option<std::time::Duration> {
        self.timeout.map(|DurationText(time)| time)
    }

    pub(super) fn output_limit(&self) -> Option<usize> {
        self.output_limit.map(|ByteSizeText(size)| size)
    }
}

/// A fault of a described command, with its path of keys from the command's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFault {
    /// The path of keys; a number is the index in a list.
    pub path: Vec<String>,
    /// The message.
    pub message: String,
}

impl CommandFault {
    pub(super) fn new(keys: &[&str], what: impl Into<String>) -> Self {
        Self { path: keys.iter().map(ToString::to_string).collect(), message: what.into() }
    }
}

impl fmt::Display for CommandFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path.join("."), self.message)
    }
}

/// The type name by which the reader of `trunkline.toml` recognizes a template, in which variable values must not
/// add placeholders.
const TEMPLATE_TYPE_NAME: &str = "trunkline_config::Template";

/// A text with placeholders.
#[derive(Deserialize)]
#[serde(rename = "trunkline_config::Template")]
struct TemplateText(String);

/// One element of an argument vector: a word, or a group of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgvItem {
    /// One word, which is left out if it has a placeholder without a value.
    Word(String),
    /// Several words, which are left out together.
    Group(Vec<String>),
}

impl ArgvItem {
    /// Returns its words.
    pub(super) fn words(&self) -> &[String] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::Group(words) => words,
        }
    }
}

impl<'de> Deserialize<'de> for ArgvItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgvItemVisitor;
        impl<'de> Visitor<'de> for ArgvItemVisitor {
            type Value = ArgvItem;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<ArgvItem, D::Error> {
                inner.deserialize_any(self)
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<ArgvItem, E> {
                Ok(ArgvItem::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<ArgvItem, A::Error> {
                let mut group = Vec::new();
                while let Some(TemplateText(word)) = words.next_element()? {
                    group.push(word);
                }
                Ok(ArgvItem::Group(group))
            }
        }
        deserializer.deserialize_newtype_struct(TEMPLATE_TYPE_NAME, ArgvItemVisitor)
    }
}

/// The text of a script, in which `${NAME}` belongs to the script and is not substituted by the file's reader.
///
/// The reader of `trunkline.toml` recognizes it by this type name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename = "trunkline_config::Verbatim")]
pub struct Script(pub String);

/// Environment variables of a command. Their values may be secrets, and are redacted in `Debug`.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct CommandEnvironment(pub BTreeMap<String, String>);

impl fmt::Debug for CommandEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where a script finds the values of its arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentPassing {
    /// In its environment: that of `branch-name` is `ARG_BRANCH_NAME`.
    #[default]
    Environment,
    /// In a JSON file, with its path in `ARGUMENTS_FILE`.
    File,
}

/// What the standard output of a command is.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Text.
    #[default]
    Text,
    /// JSON, which becomes structured content.
    Json,
}

/// Whether and how the user confirms a command before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Without confirmation, or with a generated question.
    Enabled(bool),
    /// With this question.
    Question(String),
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ConfirmationVisitor;
        impl<'de> Visitor<'de> for ConfirmationVisitor {
            type Value = Confirmation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a question")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Confirmation, D::Error> {
                inner.deserialize_any(self)
            }

            fn visit_bool<E: serde::de::Error>(self, is_enabled: bool) -> Result<Confirmation, E> {
                Ok(Confirmation::Enabled(is_enabled))
            }

            fn visit_str<E: serde::de::Error>(self, words: &str) -> Result<Confirmation, E> {
                Ok(Confirmation::Question(words.to_owned()))
            }
        }
        deserializer.deserialize_newtype_struct(TEMPLATE_TYPE_NAME, ConfirmationVisitor)
    }
}
