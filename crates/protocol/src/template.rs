//! URI templates after RFC 6570, levels 1 to 3: expanded for a client, matched for a server.

mod expand;
mod matching;
mod parse;
mod percent;
mod value;

use std::borrow::Cow;

pub use self::parse::TemplateError;
use self::parse::{TemplateExpression, TemplatePart};

/// The longest template, and the longest URI to match, in bytes.
pub const MAX_LENGTH: usize = 8 * 1024;

/// The most variables one template may name, counting each mention.
pub const MAX_VARIABLES: usize = 64;

/// Holds a parsed template such as `users://{id}/posts{?tag,page}`.
///
/// # Limits
/// Matching takes time and memory in proportion to the URI's length times the number of expressions,
/// whatever the URI; both are bounded by [`MAX_LENGTH`] and [`MAX_VARIABLES`].
#[derive(Debug, Clone)]
pub struct UriTemplate {
    source: String,
    parts: Vec<TemplatePart>,
    steps: Vec<matching::MatchStep>,
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`] if the text is not a template of level 3 or below, or passes a limit.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let parts = parse::parse(source)?;
        let steps = matching::compile(&parts);
        Ok(Self { source: source.to_owned(), parts, steps })
    }

    /// Returns the template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the names of the variables, each once, in the order of first mention.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.expressions().flat_map(|expression| &expression.names) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Writes the URI for the values that `value_of` gives; a variable without value is left out.
    pub fn expand<'v>(&self, mut value_of: impl FnMut(&str) -> Option<Cow<'v, str>>) -> String {
        let mut uri = String::with_capacity(self.source.len());
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => uri.push_str(text),
                TemplatePart::Expression(expression) => expand::expand(&mut uri, expression, &mut value_of),
            }
        }
        uri
    }

    /// Returns the variables' decoded values if the template matches `uri`.
    ///
    /// Variables that the URI leaves out are not listed. Where a URI can be read in several ways, the earlier
    /// variable takes as much as it can. `{name}` takes at least one character and never a `/`, `?` or `#`,
    /// though a value may hold an encoded one; `{+name}` and `{#name}` take anything. Parameters of `{?…}`,
    /// `{&…}` and `{;…}` may come in any order. A variable that is mentioned twice must have one value.
    ///
    /// The URI is read as RFC 6570 would have written it; if that fails, it is read once more taking characters
    /// that should have been encoded as meant.
    ///
    /// No URI over [`MAX_LENGTH`], with an invalid `%` escape, or with a value that is not UTF-8, matches.
    #[must_use]
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        matching::match_uri(&self.steps, uri)
    }

    fn expressions(&self) -> impl Iterator<Item = &TemplateExpression> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Expression(expression) => Some(expression),
        })
    }
}
