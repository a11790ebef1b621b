use std::sync::Arc;

use serde::Serialize;
use trunkline_protocol::{JsonObject, RawJson};

use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, TemplateEntry};
use crate::tool::ToolEntry;

/// A part of a server: a [`Tool`](crate::Tool), a [`Prompt`](crate::Prompt), a [`Resource`](crate::Resource), a
/// [`ResourceTemplate`](crate::ResourceTemplate), several of these, or a function that makes any of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a part of a server",
    note = "parts are tools, prompts, resources, resource templates, vectors and tuples of these, and functions without \
            parameters that return one"
)]
pub trait Part {
    /// Adds the part, or reports why it cannot be one.
    fn add_to(self, parts: &mut Parts);
}

/// Parts with handlers that share one value, such as those of an `impl` block; a server takes it in an [`Arc`].
pub trait SharedPart: Send + Sync + 'static {
    /// Adds the parts, each with its own reference to the value.
    fn add_shared(self: Arc<Self>, parts: &mut Parts);
}

impl<P: SharedPart> Part for Arc<P> {
    fn add_to(self, parts: &mut Parts) {
        self.add_shared(parts);
    }
}

impl<P: Part> Part for Vec<P> {
    fn add_to(self, parts: &mut Parts) {
        for part in self {
            part.add_to(parts);
        }
    }
}

impl<F, P> Part for F
where
    F: Fn() -> P,
    P: Part,
{
    fn add_to(self, parts: &mut Parts) {
        self().add_to(parts);
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Part),+> Part for ($($name,)+) {
            fn add_to(self, parts: &mut Parts) {
                #[expect(non_snake_case, reason = "a variable for each type parameter")]
                let ($($name,)+) = self;
                $($name.add_to(parts);)+
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);

/// Parts that are ready to be served, and the problems of the others.
///
/// A [`Part`] of an author's own adds the parts that it consists of.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    pub(crate) prompts: Vec<Arc<PromptEntry>>,
    pub(crate) resources: Vec<Arc<ResourceEntry>>,
    pub(crate) templates: Vec<Arc<TemplateEntry>>,
    pub(crate) problems: Vec<String>,
}

impl Parts {
    pub(crate) fn of(part: impl Part) -> Self {
        let mut parts = Self::default();
        part.add_to(&mut parts);
        parts
    }

    pub(crate) fn add_tool(&mut self, tool: ToolEntry) {
        self.tools.push(Arc::new(tool));
    }

    pub(crate) fn add_prompt(&mut self, prompt: PromptEntry) {
        self.prompts.push(Arc::new(prompt));
    }

    pub(crate) fn add_resource(&mut self, resource: ResourceEntry) {
        self.resources.push(Arc::new(resource));
    }

    pub(crate) fn add_template(&mut self, template: TemplateEntry) {
        self.templates.push(Arc::new(template));
    }

    pub(crate) fn report(&mut self, problems: impl IntoIterator<Item = String>) {
        self.problems.extend(problems);
    }
}

/// Sets a member of a part's `_meta`, or reports that its value has no JSON form.
pub(crate) fn set_meta(
    meta: &mut Option<JsonObject>,
    problems: &mut Vec<String>,
    key: String,
    value: &impl Serialize,
) {
    match RawJson::from_value(value) {
        Ok(value) => meta.get_or_insert_with(JsonObject::new).set(key, value),
        Err(error) => problems.push(format!("its `_meta` member `{key}` has no JSON form: {error}")),
    }
}

/// The most characters that a name may have.
const MAX_NAME_LENGTH: usize = 128;

/// Checks the name of a tool, which some clients allow only these characters.
pub(crate) fn check_tool_name(name: &str) -> Result<(), String> {
    check_name(name)?;
    match name.chars().find(|c| !c.is_ascii_alphanumeric() && !"_-.".contains(*c)) {
        Some(bad) => Err(format!("its name has {bad:?}; only letters, digits, `_`, `-` and `.` are allowed")),
        None => Ok(()),
    }
}

/// Checks the name of anything else.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("its name is empty".to_owned());
    }
    if name.chars().any(char::is_control) {
        return Err("its name has a control character".to_owned());
    }
    match name.chars().count() {
        0..=MAX_NAME_LENGTH => Ok(()),
        count => Err(format!("its name has {count} characters; at most {MAX_NAME_LENGTH} are allowed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_checked_more_strictly_than_others() {
        let (longest, longer) = ("a".repeat(128), "a".repeat(129));
        for (name, tool, other) in [
            ("add", true, true),
            ("Get_user-2.name", true, true),
            (&*longest, true, true),
            (&*longer, false, false),
            ("", false, false),
            (" ", false, false),
            ("a b", false, true),
            ("git/commit", false, true),
            ("größe", false, true),
            ("a\nb", false, false),
        ] {
            assert_eq!(check_tool_name(name).is_ok(), tool, "{name:?}");
            assert_eq!(check_name(name).is_ok(), other, "{name:?}");
        }
    }
}
