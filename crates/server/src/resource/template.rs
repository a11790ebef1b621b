use std::collections::BTreeMap;

use trunkline_protocol::model::{self, CacheHint};

use super::template_entry::{TemplateEntry, TemplateReadFn};
use super::{IntoReadResult, finish};
use crate::call::Context;
use crate::completer::Completers;
use crate::described::{described, readable};
use crate::function::HandlerFn;
use crate::part::{Part, Parts};
use crate::text_arguments;

/// A family of resources with URIs that match an RFC 6570 template: its description, and the function that reads one.
#[must_use = "a resource template does nothing until it is given to a server"]
pub struct ResourceTemplate {
    pub(super) described: model::ResourceTemplate,
    pub(super) cache: CacheHint,
    pub(super) completers: Completers,
    pub(super) raw_variables: bool,
    pub(super) read: Option<TemplateReadFn>,
    pub(super) problems: Vec<String>,
}

impl ResourceTemplate {
    /// Names a family of resources and the template of their URIs, such as `users://{id}/profile`.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            described: model::ResourceTemplate::new(uri_template, name),
            cache: CacheHint::default(),
            completers: Completers::default(),
            raw_variables: false,
            read: None,
            problems: Vec::new(),
        }
    }

    /// Adopts the description of a family that is known only at run time.
    pub(crate) fn from_description(described: model::ResourceTemplate) -> Self {
        Self { described, ..Self::new("", "") }
    }

    /// Sets the handler of a family that is known only at run time: an async function of the context and the full
    /// URI.
    pub(crate) fn read_uri<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Context, &str) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoReadResult> + Send + 'static,
    {
        // It gets no variable, and reads the URI itself.
        self.raw_variables = true;
        self.read = Some(Box::new(move |context, _, request| {
            let future = handler(context, &request.uri);
            Some(Box::pin(async move { finish(future.await, request) }))
        }));
        self
    }

    /// Passes every value of a variable to the handler, for one that checks them itself.
    ///
    /// Without this, a URI does not match if a decoded value has a segment `..` or a NUL character: a handler that
    /// makes a path of the value would otherwise leave its folder.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// # use trunkline_server::{ResourceTemplate, Server};
    /// let notes = ResourceTemplate::new("notes://{+path}", "notes")
    ///     .raw_variables()
    ///     .read(|variables: BTreeMap<String, String>| async move { format!("{variables:?}") });
    /// let server = Server::new("notes").with(notes);
    /// ```
    pub fn raw_variables(mut self) -> Self {
        self.raw_variables = true;
        self
    }

    /// Suggests values for a variable: an async function of what was typed so far and of the other variables.
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, complete: F) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.problems.extend(self.completers.add(variable.into(), complete).err());
        self
    }

    /// Sets the handler: an async function with the template's variables as arguments, as a type or as a map of
    /// texts.
    ///
    /// Numbers and booleans are read from their texts. A URI with variables that do not fit the type does not match
    /// this family.
    pub fn read<Shape, F>(mut self, handler: F) -> Self
    where
        F: HandlerFn<Shape>,
        F::Output: IntoReadResult,
    {
        let read: TemplateReadFn = Box::new(move |context, variables, request| {
            let future = handler.invoke(context, text_arguments::read(variables).ok()?);
            Some(Box::pin(async move { finish(future.await, request) }))
        });
        if self.read.replace(read).is_some() {
            self.problems.push("has two handlers".to_owned());
        }
        self
    }
}

described!(ResourceTemplate, "family of resources");
readable!(ResourceTemplate, "family of resources");

impl Part for ResourceTemplate {
    fn add_to(self, parts: &mut Parts) {
        let uri = self.described.uri_template.clone();
        match TemplateEntry::build(self) {
            Ok(entry) => parts.add_template(entry),
            Err(problems) => {
                parts.report(problems.iter().map(|problem| format!("resource template `{uri}`: {problem}")));
            }
        }
    }
}
