use std::fmt;

use trunkline_protocol::model::{self, CacheHint};
use trunkline_protocol::template::UriTemplate;
use trunkline_protocol::{RawJson, Revision};

use super::{ReadFuture, ReadRequest, ResourceTemplate};
use crate::call::Context;
use crate::completer::Completers;
use crate::part::check_name;
use crate::registry::RenderedItem;

/// Reads one resource of a family, if the variables of its URI fit.
pub(super) type TemplateReadFn =
    Box<dyn Fn(Context, Vec<(String, String)>, ReadRequest) -> Option<ReadFuture> + Send + Sync>;

/// A resource template that is ready to be read from.
pub(crate) struct TemplateEntry {
    described: model::ResourceTemplate,
    rendered: RenderedItem,
    template: UriTemplate,
    cache: CacheHint,
    completers: Completers,
    raw_variables: bool,
    read: TemplateReadFn,
}

impl TemplateEntry {
    pub(super) fn build(resource: ResourceTemplate) -> Result<Self, Vec<String>> {
        let described = resource.described;
        let mut problems = resource.problems;
        problems.extend(check_name(&described.name).err());
        let template = UriTemplate::parse(&described.uri_template);
        if let Ok(template) = &template {
            let variables = template.variables();
            problems.extend(resource.completers.unknown(|variable| variables.contains(&variable)));
            if variables.is_empty() {
                problems.push("has no variables; make it a `Resource`".to_owned());
            }
        }
        match (template, resource.read) {
            (Ok(template), Some(read)) if problems.is_empty() => Ok(Self {
                described,
                rendered: RenderedItem::default(),
                template,
                cache: resource.cache,
                completers: resource.completers,
                raw_variables: resource.raw_variables,
                read,
            }),
            (template, read) => {
                problems.extend(template.err().map(|error| error.to_string()));
                problems.extend(read.is_none().then(|| "has no handler".to_owned()));
                Err(problems)
            }
        }
    }

    pub(crate) fn uri(&self) -> &str {
        &self.described.uri_template
    }

    pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
        self.rendered.get(revision, |dialect, writer| self.described.write(dialect, writer))
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.completers
    }

    /// Reads a resource, if its URI is one of this family.
    pub(crate) fn read(&self, context: &Context, uri: &str) -> Option<ReadFuture> {
        let variables = self.template.match_uri(uri)?;
        if !self.raw_variables && !variables.iter().all(|(_, value)| is_safe_in_a_path(value)) {
            return None;
        }
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let request = ReadRequest {
            uri: uri.to_owned(),
            mime_type: self.described.mime_type.clone(),
            cache: self.cache,
        };
        (self.read)(context.clone(), variables, request)
    }
}

/// Reports whether a value that becomes a part of a path stays below its folder: it has no segment `..`, in the syntax
/// of any system, and no NUL, at which other programs would cut it.
fn is_safe_in_a_path(value: &str) -> bool {
    !value.contains('\0') && value.split(['/', '\\']).all(|segment| segment != "..")
}

impl fmt::Debug for TemplateEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemplateEntry").field("described", &self.described).finish_non_exhaustive()
    }
}
