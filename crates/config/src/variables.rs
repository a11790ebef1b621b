use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::limits::MAX_EXPANDED_BYTES;

/// The source of the values of `${NAME}`.
#[derive(Clone)]
pub struct ConfigVariables(VariableSource);

#[derive(Clone)]
enum VariableSource {
    Unexpanded,
    Process,
    Fixed(Arc<BTreeMap<String, String>>),
}

impl ConfigVariables {
    /// Uses the environment of this process.
    pub fn from_environment() -> Self {
        Self(VariableSource::Process)
    }

    /// Uses only these values.
    pub fn fixed<N: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self(VariableSource::Fixed(Arc::new(values)))
    }

    /// Leaves every variable as written, as copying a server into another file requires.
    pub fn unexpanded() -> Self {
        Self(VariableSource::Unexpanded)
    }

    fn get(&self, name: &str) -> Option<String> {
        match &self.0 {
            VariableSource::Unexpanded => None,
            VariableSource::Process => std::env::var(name).ok(),
            VariableSource::Fixed(values) => values.get(name).cloned(),
        }
    }
}

/// Prints the source, never the values.
impl fmt::Debug for ConfigVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            VariableSource::Unexpanded => f.write_str("Variables(kept)"),
            VariableSource::Process => f.write_str("Variables(of this process)"),
            VariableSource::Fixed(values) => f.debug_tuple("ConfigVariables").field(&values.keys()).finish(),
        }
    }
}

/// The reason why a text cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    #[error("environment variable `{0}` is not set; set it, or use `${{{0}:-default}}`")]
    Unset(String),
    #[error(
        "`${{input:{0}}}` prompts the user of an editor, which trunkline does not support; use a variable like `${{NAME}}` instead"
    )]
    Input(String),
    #[error(
        "`${{{0}}}` is not a variable; write `${{NAME}}` or `${{NAME:-default}}`, and `$${{` for a plain `${{`"
    )]
    Malformed(String),
    #[error("`${{` is not closed with `}}`; write `$${{` for a plain `${{`")]
    Unclosed,
    #[error("the default of `{0}` contains a variable, which is not supported")]
    Nested(String),
    #[error("the environment variables of this file expand to more than {MAX_EXPANDED_BYTES} bytes")]
    TooLong,
}

/// Expands the texts of one file, within one bound for all of them.
pub(crate) struct VariableExpander<'a> {
    variables: &'a ConfigVariables,
    /// The value of `${workspaceFolder}`, a variable of editors.
    workspace: Option<PathBuf>,
    remaining_bytes: Cell<usize>,
    /// The first unset variable since the last [`VariableExpander::take_unset`].
    unset: RefCell<Option<String>>,
}

impl<'a> VariableExpander<'a> {
    pub(crate) fn new(variables: &'a ConfigVariables, workspace: Option<PathBuf>) -> Self {
        Self {
            variables,
            workspace,
            remaining_bytes: Cell::new(MAX_EXPANDED_BYTES),
            unset: RefCell::default(),
        }
    }

    /// Takes the first variable that was unset since the last call.
    pub(crate) fn take_unset(&self) -> Option<String> {
        self.unset.take()
    }

    /// Expands the variables of a text.
    pub(crate) fn expand(&self, text: &str) -> Result<String, ExpandError> {
        self.expand_into(text, |value| value)
    }

    /// Expands a text with `{name}` placeholders: the braces of a variable's value are doubled, so that they are
    /// literal braces and no placeholders.
    pub(crate) fn expand_template(&self, text: &str) -> Result<String, ExpandError> {
        self.expand_into(text, |value| value.replace('{', "{{").replace('}', "}}"))
    }

    fn expand_into(&self, text: &str, written: impl Fn(String) -> String) -> Result<String, ExpandError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(plain) = before.strip_suffix('$') {
                out.push_str(plain);
                // Unexpanded text is parsed again later, so the escape stays.
                out.push_str(if self.is_disabled() { "$${" } else { "${" });
                rest = after;
                continue;
            }
            let (inside, after) = after.split_once('}').ok_or(ExpandError::Unclosed)?;
            out.push_str(before);
            let value = written(self.value(inside)?);
            let left = self.remaining_bytes.get().checked_sub(value.len()).ok_or(ExpandError::TooLong)?;
            self.remaining_bytes.set(left);
            out.push_str(&value);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Reports whether variables stay as written.
    pub(crate) fn is_disabled(&self) -> bool {
        matches!(self.variables.0, VariableSource::Unexpanded)
    }

    fn value(&self, inside: &str) -> Result<String, ExpandError> {
        if let Some(id) = inside.strip_prefix("input:") {
            return Err(ExpandError::Input(id.to_owned()));
        }
        if let Some(folder) = self.editor_variable(inside) {
            return Ok(folder);
        }
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(ExpandError::Malformed(truncate(inside)));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(ExpandError::Nested(name.to_owned()));
        }
        if self.is_disabled() {
            return Ok(format!("${{{inside}}}"));
        }
        match (self.variables.get(name), default) {
            // As in a shell, a default also replaces an empty value.
            (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                self.unset.borrow_mut().get_or_insert_with(|| name.to_owned());
                Err(ExpandError::Unset(name.to_owned()))
            }
        }
    }

    /// Returns the value of a predefined variable of editors.
    fn editor_variable(&self, word: &str) -> Option<String> {
        match word {
            "workspaceFolder" => self.workspace.as_ref().map(|folder| folder.display().to_string()),
            "userHome" => std::env::home_dir().map(|home| home.display().to_string()),
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            _ => None,
        }
    }
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.len() <= 128 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Truncates a text for an error message.
fn truncate(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpandError> {
        let variables = ConfigVariables::fixed([("A", "one"), ("EMPTY", ""), ("DOLLAR", "${A}")]);
        VariableExpander::new(&variables, Some("/project".into())).expand(text)
    }

    #[test]
    fn variables_are_expanded_at_any_position() {
        let table = [
            ("", ""),
            ("plain $A $ {A} }", "plain $A $ {A} }"),
            ("${A}", "one"),
            ("x${A}y${A}z", "xoneyonez"),
            ("${env:A}", "one"),
            ("${env:NONE:-two}", "two"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("${EMPTY}", ""),
            ("${EMPTY:-two}", "two"),
            ("${A:-two}", "one"),
            ("$${A}", "${A}"),
            ("a$$${A}", "a$${A}"),
            ("${DOLLAR}", "${A}"),
            ("${workspaceFolder}/x", "/project/x"),
            ("ä${A}ö", "äoneö"),
        ];
        for (text, expected) in table {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_variable_references_are_rejected() {
        let table = [
            ("${NONE}", ExpandError::Unset("NONE".into())),
            ("${env:NONE}", ExpandError::Unset("NONE".into())),
            ("${", ExpandError::Unclosed),
            ("${A", ExpandError::Unclosed),
            ("${}", ExpandError::Malformed(String::new())),
            ("${1}", ExpandError::Malformed("1".into())),
            ("${A B}", ExpandError::Malformed("A B".into())),
            ("${command:x}", ExpandError::Malformed("command:x".into())),
            ("${A:?x}", ExpandError::Malformed("A:?x".into())),
            ("${A:-${B}}", ExpandError::Nested("A".into())),
            ("${input:key}", ExpandError::Input("key".into())),
        ];
        for (text, expected) in table {
            assert_eq!(expanded(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn unexpanded_variables_are_normalized() {
        let variables = ConfigVariables::unexpanded();
        let kept = VariableExpander::new(&variables, Some("/project".into()));
        let table = [
            ("${A}", "${A}"),
            ("x ${env:A}", "x ${A}"),
            ("${A:-b}", "${A:-b}"),
            ("$${A}", "$${A}"),
            ("${workspaceFolder}", "/project"),
        ];
        for (text, expected) in table {
            assert_eq!(kept.expand(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn variable_expansion_is_bounded() {
        let variables = ConfigVariables::fixed([("BIG", "x".repeat(1 << 20))]);
        let expander = VariableExpander::new(&variables, None);
        let results: Vec<_> = (0..10).map(|_| expander.expand("${BIG}").map(|text| text.len())).collect();
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 8);
        assert_eq!(results.last(), Some(&Err(ExpandError::TooLong)));
    }

    #[test]
    fn variables_debug_has_no_values() {
        let variables = ConfigVariables::fixed([("NAME", "canary")]);
        assert_eq!(format!("{variables:?}"), "ConfigVariables([\"NAME\"])");
    }
}
