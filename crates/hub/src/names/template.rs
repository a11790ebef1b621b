use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// The most characters that a name may have: some models refuse tools with longer ones.
pub(super) const MAX_NAME_LENGTH: usize = 64;

/// The characters of the digest that tells shortened names apart.
const DIGEST_LENGTH: usize = 6;

/// How tools and prompts of servers are called on this side.
///
/// A template is a text with `{server}` and `{tool}` in it, in this order. What it makes is legal for every model: letters,
/// digits, `_` and `-`, 64 at most. Names are never parsed back, so that it does not matter what they look like.
///
/// ```
/// use trunkline_hub::NameTemplate;
///
/// let template: NameTemplate = "mcp__{server}__{tool}".parse()?;
/// assert_eq!(template, NameTemplate::agent());
/// # Ok::<(), trunkline_hub::NameTemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate(TemplateForm);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplateForm {
    Verbatim,
    Composed { before: Arc<str>, between: Arc<str>, after: Arc<str> },
}

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameTemplateError {
    /// It lacks a part, or has one twice, or has them in the wrong order.
    #[error(
        "a name template must have `{{server}}` once and then `{{tool}}` once, such as `{{server}}__{{tool}}`"
    )]
    Parts,
    /// It has a character that names may not have, or more of them than leave room for a name.
    #[error(
        "around `{{server}}` and `{{tool}}` a name template may have at most 24 letters, digits, `_` and `-`"
    )]
    Characters,
}

/// A name as the template makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GeneratedName {
    pub(super) text: String,
    /// Whether it says all of what it was made of.
    pub(super) is_exact: bool,
}

impl NameTemplate {
    /// The names on a hub's own endpoint: `server__tool`.
    pub fn hub() -> Self {
        Self(TemplateForm::Composed { before: "".into(), between: "__".into(), after: "".into() })
    }

    /// The names for agents that embed a hub: `mcp__server__tool`.
    pub fn agent() -> Self {
        Self(TemplateForm::Composed { before: "mcp__".into(), between: "__".into(), after: "".into() })
    }

    /// The names that the server itself gives, whatever they are; right only where there is one server.
    pub const fn verbatim() -> Self {
        Self(TemplateForm::Verbatim)
    }

    /// Makes the name of a server's item.
    pub(super) fn generate(&self, server: &str, item: &str) -> GeneratedName {
        let TemplateForm::Composed { before, between, after } = &self.0 else {
            return GeneratedName { text: item.to_owned(), is_exact: true };
        };
        let (legal_server, legal_item) = (sanitize(server), sanitize(item));
        let text = format!("{before}{legal_server}{between}{legal_item}{after}");
        if text.len() <= MAX_NAME_LENGTH {
            let exact = legal_server == server && legal_item == item;
            return GeneratedName { text, is_exact: exact };
        }
        let room = MAX_NAME_LENGTH - before.len() - between.len() - after.len() - DIGEST_LENGTH - 1;
        // Whichever is short leaves its room to the other.
        let for_server = legal_server.len().min((room / 2).max(room.saturating_sub(legal_item.len())));
        let digest = item_digest(server, item);
        let server = prefix(&legal_server, for_server);
        let item = prefix(&legal_item, room - server.len());
        GeneratedName { text: format!("{before}{server}{between}{item}{after}_{digest}"), is_exact: false }
    }

    /// Reports whether an item of a server could have a name, without knowing what the server has.
    pub(crate) fn could_match(&self, server: &str, name: &str) -> bool {
        let TemplateForm::Composed { before, between, after } = &self.0 else { return true };
        let server = sanitize(server);
        let room = MAX_NAME_LENGTH - before.len() - between.len() - after.len() - DIGEST_LENGTH - 1;
        let Some(rest) = name.strip_prefix(&**before) else { return false };
        let is_whole = rest.strip_prefix(&*server).is_some_and(|rest| rest.starts_with(&**between));
        // Where name and server are long together, the server's part is shortened, to half of the room at least.
        is_whole || (server.len() > room / 2 && rest.starts_with(prefix(&server, room / 2)))
    }

    /// Makes a name that tells an item apart from others for which the template makes the same one.
    pub(super) fn generate_with_digest(&self, server: &str, item: &str) -> Option<String> {
        if self.0 == TemplateForm::Verbatim {
            return None;
        }
        let made = self.generate(server, item).text;
        Some(format!("{}_{}", prefix(&made, MAX_NAME_LENGTH - DIGEST_LENGTH - 1), item_digest(server, item)))
    }
}

impl FromStr for NameTemplate {
    type Err = NameTemplateError;

    fn from_str(text: &str) -> Result<Self, NameTemplateError> {
        if text == "{tool}" {
            return Ok(Self::verbatim());
        }
        let (before, rest) = text.split_once("{server}").ok_or(NameTemplateError::Parts)?;
        let (between, after) = rest.split_once("{tool}").ok_or(NameTemplateError::Parts)?;
        if [before, between, after].iter().any(|part| part.contains(['{', '}'])) {
            return Err(NameTemplateError::Parts);
        }
        let around = format!("{before}{between}{after}");
        if around.len() > 24 || around != sanitize(&around) {
            return Err(NameTemplateError::Characters);
        }
        Ok(Self(TemplateForm::Composed {
            before: before.into(),
            between: between.into(),
            after: after.into(),
        }))
    }
}

impl fmt::Display for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TemplateForm::Verbatim => f.write_str("{tool}"),
            TemplateForm::Composed { before, between, after } => {
                write!(f, "{before}{{server}}{between}{{tool}}{after}")
            }
        }
    }
}

/// Replaces every character that a model would not take.
fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// Returns the beginning of a text that has only characters of one byte.
fn prefix(text: &str, most: usize) -> &str {
    text.get(..most.min(text.len())).unwrap_or(text)
}

/// Tells items apart whose names begin alike; the two parts are fed so that no other two feed the same bytes.
fn item_digest(server: &str, item: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((server.len() as u64).to_le_bytes());
    hash.update(server.as_bytes());
    hash.update(item.as_bytes());
    let bytes = hash.finalize();
    bytes.iter().take(DIGEST_LENGTH / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_makes_legal_names_of_at_most_64_characters() {
        let (long_server, long_tool) = ("s".repeat(64), "t".repeat(128));
        let hub = NameTemplate::hub();
        for (template, server, tool, expected) in [
            (&hub, "github", "search", "github__search"),
            (&NameTemplate::agent(), "github", "search", "mcp__github__search"),
            (&hub, "Figma Dev Mode", "get.code", "Figma_Dev_Mode__get_code"),
            (&hub, "a", "工具", "a____"),
            (&NameTemplate::verbatim(), "a", "工具.x y", "工具.x y"),
            (&hub, &long_server, "list", "sssssssssssssssssssssssssssssssssssssssssssssssssss__list_e51bde"),
            (&hub, "a", &long_tool, "a__tttttttttttttttttttttttttttttttttttttttttttttttttttttt_b0029f"),
            (
                &hub,
                &long_server,
                &long_tool,
                "sssssssssssssssssssssssssss__tttttttttttttttttttttttttttt_4369a1",
            ),
        ] {
            let made = template.generate(server, tool);
            assert_eq!(made.text, expected);
            assert!(template == &NameTemplate::verbatim() || made.text.len() <= MAX_NAME_LENGTH);
        }
    }

    #[test]
    fn a_template_is_read_back_as_it_was_written_and_refused_where_it_makes_no_names() {
        for text in ["{tool}", "{server}__{tool}", "mcp__{server}__{tool}", "x-{server}_{tool}-y"] {
            assert_eq!(
                text.parse::<NameTemplate>().map(|template| template.to_string()).as_deref(),
                Ok(text)
            );
        }
        for (text, error) in [
            ("", NameTemplateError::Parts),
            ("{server}", NameTemplateError::Parts),
            ("{tool}{server}", NameTemplateError::Parts),
            ("{server}{server}{tool}", NameTemplateError::Parts),
            ("{server}.{tool}", NameTemplateError::Characters),
            ("{server}{tool}ä", NameTemplateError::Characters),
            ("aaaaaaaaaaaaaaaaaaaaaaaaa{server}{tool}", NameTemplateError::Characters),
        ] {
            assert_eq!(text.parse::<NameTemplate>(), Err(error), "{text}");
        }
    }
}
