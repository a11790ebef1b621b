//! Tools: how they are described, and how a call reaches its handler.

mod arguments;
mod entry;
mod result;
mod run;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde_json::Value;
use trunkline_protocol::RawJson;
use trunkline_protocol::model::{self, ToolAnnotations};

pub(crate) use self::entry::ToolEntry;
pub use self::result::IntoToolResult;
use self::run::{RawTool, RunTool, TypedTool};
use crate::call::Context;
use crate::described::described;
use crate::function::HandlerFn;
use crate::part::{Part, Parts};
use crate::schema;

type ArgumentValidator = Box<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// A tool: its description, and the function that a call of it runs.
///
/// ```
/// # use trunkline_server::{Server, Tool};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("add").description("Adds two integers.").run(|Add { a, b }: Add| async move { a + b });
/// let server = Server::new("demo").with(add);
/// ```
#[must_use = "a tool does nothing until it is given to a server"]
pub struct Tool {
    described: model::Tool,
    aliases: Vec<String>,
    input: InputSchemaSource,
    validation_schema: Option<RawJson>,
    output: OutputSchemaSource,
    mirrors: Vec<(String, String)>,
    validators: Vec<ArgumentValidator>,
    replay: bool,
    required_scopes: Vec<Box<str>>,
    run: Option<Box<dyn RunTool>>,
    problems: Vec<String>,
}

/// Where the schema of the arguments comes from.
#[derive(Debug, Default)]
enum InputSchemaSource {
    #[default]
    Unknown,
    /// The type of the handler's arguments.
    Derived(schema::InputSchema),
    /// The author's own schema, which is always checked.
    Explicit(RawJson),
}

/// Where the schema of the structured content comes from.
#[derive(Debug, Default)]
enum OutputSchemaSource {
    #[default]
    None,
    Derived(Value),
    Explicit(RawJson),
}

impl Tool {
    /// Names a tool: 1 to 128 letters, digits, `_`, `-` and `.`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            described: model::Tool { name: name.into(), ..model::Tool::default() },
            aliases: Vec::new(),
            input: InputSchemaSource::Unknown,
            validation_schema: None,
            output: OutputSchemaSource::None,
            mirrors: Vec::new(),
            validators: Vec::new(),
            replay: false,
            required_scopes: Vec::new(),
            run: None,
            problems: Vec::new(),
        }
    }

    /// Adopts the description of a tool that is known only at run time, with its schemas.
    pub(crate) fn from_description(described: model::Tool) -> Self {
        let input = InputSchemaSource::Explicit(described.input_schema.clone());
        let output =
            described.output_schema.clone().map_or(OutputSchemaSource::None, OutputSchemaSource::Explicit);
        Self { described, input, output, ..Self::new("") }
    }

    /// Lets the tool be called by another name too, such as an older one. It is not listed, and may be any text.
    ///
    /// A tool of that name takes precedence, and so does a tool that had it as an alias earlier.
    pub fn alias(mut self, name: impl Into<String>) -> Self {
        self.aliases.push(name.into());
        self
    }

    /// Sets all hints at once.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.described.annotations = Some(annotations);
        self
    }

    /// Hints that the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.hints().read_only = Some(true);
        self
    }

    /// Hints that the tool may destroy something, which is the default that clients assume.
    pub fn destructive(mut self) -> Self {
        self.hints().destructive = Some(true);
        self
    }

    /// Hints that the tool only adds and never destroys.
    pub fn additive(mut self) -> Self {
        self.hints().destructive = Some(false);
        self
    }

    /// Hints that calling the tool twice does no more than calling it once.
    pub fn idempotent(mut self) -> Self {
        self.hints().idempotent = Some(true);
        self
    }

    /// Hints whether the tool deals with things outside of the server; clients assume so by default.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.hints().open_world = Some(open_world);
        self
    }

    fn hints(&mut self) -> &mut ToolAnnotations {
        self.described.annotations.get_or_insert_default()
    }

    /// Lets a call be run again from its start after it has requested input, on any replica, instead of being
    /// suspended in memory.
    ///
    /// The responses so far are kept and returned at once, so side effects before the last input request happen once
    /// per round.
    pub fn replay(mut self) -> Self {
        self.replay = true;
        self
    }

    /// Requires scopes of the caller's token, all of them. A call without them is refused before the handler runs: over
    /// HTTP with the status 403 and a challenge that names the scopes, elsewhere with an error that does. The tool is
    /// listed in any case.
    ///
    /// Callers without a token have no scopes; only the process at the other end of standard input and output, or this
    /// process itself, needs none.
    ///
    /// ```
    /// # use trunkline_server::{Server, Tool};
    /// let delete = Tool::new("delete").require_scopes(["files:write"]).run(async || "deleted");
    /// let server = Server::new("files").with(delete);
    /// ```
    pub fn require_scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required_scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds a check of the arguments that no schema can express; its message is for the model to read.
    pub fn validator<F>(mut self, check: F) -> Self
    where
        F: Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    {
        self.validators.push(Box::new(check));
        self
    }

    /// Has modern HTTP clients repeat an argument in the header `Mcp-Param-{header}`, for proxies to read.
    pub fn mirror(mut self, argument: impl Into<String>, header: impl Into<String>) -> Self {
        self.mirrors.push((argument.into(), header.into()));
        self
    }

    /// Sets the JSON Schema of the arguments, which every call is then checked against.
    pub fn input_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.input = InputSchemaSource::Explicit(schema.into());
        self
    }

    /// Checks calls against another JSON Schema than the one that is listed, for a handler that reports the other
    /// problems itself, and better.
    pub fn validation_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.validation_schema = Some(schema.into());
        self
    }

    /// Sets the JSON Schema of the structured content, which every result is then checked against.
    pub fn output_schema(mut self, schema: impl Into<RawJson>) -> Self {
        self.output = OutputSchemaSource::Explicit(schema.into());
        self
    }

    /// Sets the handler: an async function with types that make the schemas.
    ///
    /// Arguments that the type does not name are refused before the handler runs, as `#[serde(deny_unknown_fields)]`
    /// would. A type that is to ignore them has the attribute `#[schemars(extend("additionalProperties" = true))]`.
    pub fn run<Shape, F>(mut self, handler: F) -> Self
    where
        Shape: 'static,
        F: HandlerFn<Shape>,
        F::Arguments: JsonSchema,
        F::Output: IntoToolResult,
    {
        if !matches!(self.input, InputSchemaSource::Explicit(_)) {
            self.input = InputSchemaSource::Derived(schema::input::<F::Arguments>());
        }
        if let (Some(schema), false) =
            (F::Output::output_schema(), matches!(self.output, OutputSchemaSource::Explicit(_)))
        {
            self.output = OutputSchemaSource::Derived(schema);
        }
        self.set_handler(Box::new(TypedTool::new(handler)))
    }

    /// Sets the handler of a tool that is known only at run time: an async function of the context and the arguments.
    ///
    /// The schema of the arguments must be given too.
    pub fn run_raw<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(Context, RawJson) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        self.set_handler(Box::new(RawTool(handler)))
    }

    /// Replaces the handler of a tool, if it has one; everything else stays.
    ///
    /// The function takes the arguments unchanged, and so calls and results are checked against the tool's schemas.
    ///
    /// ```
    /// # use trunkline_server::{Server, Tool};
    /// let now = Tool::new("now").description("Says the time.").run(async || "12:00");
    /// let server = Server::new("demo").with(now.with_handler(|_context, _arguments| async { "always noon" }));
    /// ```
    pub fn with_handler<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Context, RawJson) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        // The types of the tool's own handler no longer enforce anything, so only the schemas do.
        if let InputSchemaSource::Derived(derived) = &self.input {
            self.input = InputSchemaSource::Explicit(RawJson::from(&Value::Object(derived.schema.clone())));
        }
        if let OutputSchemaSource::Derived(schema) = &self.output {
            self.output = OutputSchemaSource::Explicit(RawJson::from(schema));
        }
        self.run = Some(Box::new(RawTool(handler)));
        self
    }

    fn set_handler(mut self, handler: Box<dyn RunTool>) -> Self {
        if self.run.replace(handler).is_some() {
            self.problems.push("has two handlers".to_owned());
        }
        self
    }
}

described!(Tool, "tool");

impl Part for Tool {
    fn add_to(self, parts: &mut Parts) {
        let name = self.described.name.clone();
        match ToolEntry::build(self) {
            Ok(entry) => parts.add_tool(entry),
            Err(problems) => {
                parts.report(problems.iter().map(|problem| format!("tool `{name}`: {problem}")));
            }
        }
    }
}
