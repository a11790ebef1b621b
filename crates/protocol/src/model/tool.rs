use std::borrow::Cow;

use crate::codec::{Dialect, narrow_output_schema};
use crate::json::{JsonObject, RawJson};

use super::{Icon, ToolAnnotations};

object! {
    /// A tool that a server offers.
    struct Tool + meta via narrowed {
        /// The name by which it is called.
        name: String => "name",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What it does, for the model to read.
        description: Option<String> => "description",
        /// The JSON Schema of its arguments, which is always that of an object.
        input_schema: RawJson => "inputSchema",
        /// The JSON Schema of its structured content.
        output_schema: Option<RawJson> => "outputSchema" if structured,
        /// Hints about what it does.
        annotations: Option<ToolAnnotations> => "annotations" if tool_annotations,
        /// The icons.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl Tool {
    /// Creates a tool from its name and the schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: RawJson) -> Self {
        Self { name: name.into(), input_schema, ..Self::default() }
    }

    /// Returns the display name: the title, the title among the annotations, or the name.
    pub fn display_name(&self) -> &str {
        let hinted = || self.annotations.as_ref().and_then(|hints| hints.title.as_deref());
        self.title.as_deref().or_else(hinted).unwrap_or(&self.name)
    }

    /// Converts what a dialect does not have to its older form.
    fn narrowed(&self, dialect: &Dialect) -> Cow<'_, Self> {
        let mut tool = Cow::Borrowed(self);
        if let Some(schema) =
            self.output_schema.as_ref().filter(|_| dialect.structured && !dialect.structured_any)
            && let Some(narrowed) = narrow_output_schema(schema)
        {
            tool.to_mut().output_schema = Some(narrowed);
        }
        if let Some(title) = self.title.as_ref().filter(|_| dialect.tool_annotations && !dialect.title) {
            // The only place that the dialect has for a title.
            tool.to_mut().annotations.get_or_insert_default().title.get_or_insert_with(|| title.clone());
        }
        tool
    }
}

/// A tool without arguments.
impl Default for Tool {
    fn default() -> Self {
        Self {
            name: String::new(),
            title: None,
            description: None,
            input_schema: RawJson::from_trusted(r#"{"type":"object","additionalProperties":false}"#.into()),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
            rest: JsonObject::new(),
        }
    }
}
