use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::argument::ArgumentConfig;
use super::units::{Size, Time};

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
    pub argv: Option<Vec<Item>>,
    /// A script instead, which finds the values in its environment or in a file, and never in its text.
    #[schemars(with = "Option<String>")]
    pub script: Option<Script>,
    /// What runs the script, which is given to it as its last word. Default `["sh", "-eu", "-c"]`.
    pub interpreter: Option<Vec<String>>,
    /// Where a script finds the values.
    #[serde(default)]
    pub pass: Pass,
    /// The arguments by their names.
    #[serde(default)]
    pub arguments: BTreeMap<String, ArgumentConfig>,
    /// The folder that it runs in, from that of the file. Default that of the file.
    pub cwd: Option<String>,
    /// Variables of its environment.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub env: Environment,
    /// Variables of our own environment that it gets too.
    #[serde(default)]
    pub inherit: Vec<String>,
    /// How long it may run. Default 60 s.
    #[schemars(with = "Option<String>", regex(pattern = Time::PATTERN))]
    timeout: Option<Time>,
    /// How much of its standard output is kept. Default 1 MiB.
    #[schemars(with = "Option<String>", regex(pattern = Size::PATTERN))]
    output_limit: Option<Size>,
    /// What its standard output is.
    #[serde(default)]
    pub output: Output,
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Running it twice does no more than running it once.
    pub idempotent: Option<bool>,
    /// It deals with things outside of this machine.
    pub open_world: Option<bool>,
    /// The user is asked before it runs, with `true` or in these words, which may have `{name}` in them.
    #[schemars(with = "Option<Either<bool, String>>")]
    pub confirm: Option<Confirmation>,
}

// One of two types, for the schema of what is read by hand. What were said of it here would be in the schema too.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it is never made, only described")]
enum Either<A, B> {
    One(A),
    Other(B),
}

impl CommandConfig {
    pub(super) fn timeout(&self) -> Option<std::time::Duration> {
        self.timeout.map(|Time(time)| time)
    }

    pub(super) fn output_limit(&self) -> Option<usize> {
        self.output_limit.map(|Size(size)| size)
    }
}

/// What a described command has that is wrong, and where: the keys lead to it from the command's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The way to it; a number stands for an element of a list.
    pub keys: Vec<String>,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    pub(super) fn at(keys: &[&str], what: impl Into<String>) -> Self {
        Self { keys: keys.iter().map(ToString::to_string).collect(), what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.keys.join("."), self.what)
    }
}

/// The name by which the reader of `trunkline.toml` knows that no value of a variable may make a place for a value.
const PLACES: &str = "trunkline_config::Template";

/// A text with places for values.
#[derive(Deserialize)]
#[serde(rename = "trunkline_config::Template")]
struct Places(String);

/// One element of an argument vector: a word, or words that are there only together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One word, which is left out if it has the place of a value that is not given.
    Word(String),
    /// Several words, which are left out together.
    Together(Vec<String>),
}

impl Item {
    /// Returns its words.
    pub(super) fn words(&self) -> &[String] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::Together(words) => words,
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Item, D::Error> {
                inner.deserialize_any(self)
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Item, E> {
                Ok(Item::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Item, A::Error> {
                let mut together = Vec::new();
                while let Some(Places(word)) = words.next_element()? {
                    together.push(word);
                }
                Ok(Item::Together(together))
            }
        }
        deserializer.deserialize_newtype_struct(PLACES, Either)
    }
}

/// The text of a script, in which `${NAME}` is the script's own and no variable of the file.
///
/// The name is the one by which the reader of `trunkline.toml` knows that.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename = "trunkline_config::Verbatim")]
pub struct Script(pub String);

/// Variables of a command's environment. Their values may be secrets, and are not printed.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where a script finds the values of its arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Pass {
    /// In its environment: that of `branch-name` is `ARG_BRANCH_NAME`.
    #[default]
    Environment,
    /// In a file of JSON whose path is in `ARGUMENTS_FILE`.
    File,
}

/// What the standard output of a command is.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Text.
    #[default]
    Text,
    /// JSON, which becomes structured content.
    Json,
}

/// How the user is asked before a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Not at all, or in words of ours.
    Asked(bool),
    /// In these words.
    Words(String),
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Confirmation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a question")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Confirmation, D::Error> {
                inner.deserialize_any(self)
            }

            fn visit_bool<E: serde::de::Error>(self, asked: bool) -> Result<Confirmation, E> {
                Ok(Confirmation::Asked(asked))
            }

            fn visit_str<E: serde::de::Error>(self, words: &str) -> Result<Confirmation, E> {
                Ok(Confirmation::Words(words.to_owned()))
            }
        }
        deserializer.deserialize_newtype_struct(PLACES, Either)
    }
}
