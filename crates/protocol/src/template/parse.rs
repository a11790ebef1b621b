//! Reading a template's text.

use std::borrow::Cow;

use super::percent::{canonical, encode_into, is_escape};
use super::{MAX_LENGTH, MAX_VARIABLES};

/// The reason why a text is not a supported template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template has more than [`MAX_LENGTH`] bytes.
    #[error("URI template is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The template mentions more than [`MAX_VARIABLES`] variables.
    #[error("URI template has more than {MAX_VARIABLES} variables")]
    TooManyVariables,
    /// A `{` has no `}`.
    #[error("URI template has a `{{` that is never closed")]
    Unclosed,
    /// The text outside the braces has a character that no URI may have.
    #[error("URI template has {0:?} outside an expression")]
    BadLiteral(char),
    /// A `%` outside the braces is not followed by two hexadecimal digits.
    #[error("URI template has a `%` that starts no escape")]
    BadEscape,
    /// A variable's name is empty or has a character that names may not have.
    #[error("URI template has a bad variable name `{0}`")]
    BadName(String),
    /// The expression begins with an operator that RFC 6570 keeps for later use.
    #[error("URI template uses the reserved operator `{0}`")]
    ReservedOperator(char),
    /// The variable has a prefix length or `*`, which belong to level 4.
    #[error("URI template uses a level 4 modifier on `{0}`")]
    Modifier(String),
}

/// One piece of a template.
#[derive(Debug, Clone)]
pub(super) enum TemplatePart {
    /// Literal text, already encoded for a URI.
    Literal(String),
    Expression(TemplateExpression),
}

#[derive(Debug, Clone)]
pub(super) struct TemplateExpression {
    pub(super) operator: TemplateOperator,
    pub(super) names: Vec<String>,
}

/// The sign that opens an expression and decides how its values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateOperator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameters,
    Query,
    Continuation,
}

impl TemplateOperator {
    fn from_sign(sign: char) -> Option<Self> {
        match sign {
            '+' => Some(Self::Reserved),
            '#' => Some(Self::Fragment),
            '.' => Some(Self::Label),
            '/' => Some(Self::Path),
            ';' => Some(Self::Parameters),
            '?' => Some(Self::Query),
            '&' => Some(Self::Continuation),
            _ => None,
        }
    }

    /// Returns the text before the first value (RFC 6570, appendix A: `first`).
    pub(super) fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameters => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// Returns the text between two values (RFC 6570, appendix A: `sep`).
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameters => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// Reports whether values are written with their names.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameters | Self::Query | Self::Continuation)
    }

    /// Reports whether characters with a meaning in URIs stay unencoded in values.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

pub(super) fn parse(source: &str) -> Result<Vec<TemplatePart>, TemplateError> {
    if source.len() > MAX_LENGTH {
        return Err(TemplateError::TooLong);
    }
    let mut parts = Vec::new();
    let mut variables = 0;
    let mut rest = source;
    while !rest.is_empty() {
        let (text, after_brace) =
            rest.split_once('{').map_or((rest, None), |(text, rest)| (text, Some(rest)));
        if !text.is_empty() {
            parts.push(TemplatePart::Literal(literal(text)?));
        }
        let Some(after_brace) = after_brace else { break };
        let (body, after) = after_brace.split_once('}').ok_or(TemplateError::Unclosed)?;
        let expression = expression(body)?;
        variables += expression.names.len();
        if variables > MAX_VARIABLES {
            return Err(TemplateError::TooManyVariables);
        }
        parts.push(TemplatePart::Expression(expression));
        rest = after;
    }
    Ok(parts)
}

fn literal(text: &str) -> Result<String, TemplateError> {
    let mut literal = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        match character {
            '%' if !text.get(at..).is_some_and(is_escape) => return Err(TemplateError::BadEscape),
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '}' => {
                return Err(TemplateError::BadLiteral(character));
            }
            _ if character.is_control() => return Err(TemplateError::BadLiteral(character)),
            _ if character.is_ascii() => literal.push(character),
            _ => encode_into(&mut literal, character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(literal)
}

fn expression(body: &str) -> Result<TemplateExpression, TemplateError> {
    let sign = body.chars().next().filter(|sign| !sign.is_ascii_alphanumeric());
    if let Some(sign) = sign.filter(|sign| "=,!@|".contains(*sign)) {
        return Err(TemplateError::ReservedOperator(sign));
    }
    let (operator, list) = match sign.and_then(TemplateOperator::from_sign) {
        Some(operator) => (operator, body.get(1..).unwrap_or_default()),
        None => (TemplateOperator::Simple, body),
    };
    let names = list.split(',').map(variable_name).collect::<Result<_, _>>()?;
    Ok(TemplateExpression { operator, names })
}

fn variable_name(name: &str) -> Result<String, TemplateError> {
    if name.contains(['*', ':']) {
        return Err(TemplateError::Modifier(name.to_owned()));
    }
    let well_formed = |segment: &str| {
        !segment.is_empty()
            && segment.char_indices().all(|(at, character)| match character {
                '%' => segment.get(at..).is_some_and(is_escape),
                _ => character.is_ascii_alphanumeric() || character == '_',
            })
    };
    // Escapes in a name are spelled as in a canonical URI, so that the two can be compared.
    let spelled = name.split('.').all(well_formed).then(|| canonical(name)).flatten();
    spelled.map(Cow::into_owned).ok_or_else(|| TemplateError::BadName(name.to_owned()))
}
