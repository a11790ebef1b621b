//! Attribute macros for tools, prompts and resources, and a derive macro for forms.
//!
//! They are used through the facade, as `trunkline::tool` and so on, and expand to calls of its builders: every
//! option of an attribute has a builder method.

mod docs;
mod errors;
mod form;
mod handler;
mod name;
mod options;
mod parameter;
mod part;
mod parts;
mod uri;

use proc_macro::TokenStream;

use self::part::PartKind;

/// Turns a function into a tool.
///
/// `async fn add(a: i64, b: i64) -> i64` becomes `fn add() -> Tool`, for `Server::with(add)`. The doc comment is the
/// description, the parameters and their doc comments are the schema of the arguments. `Option<T>` may be left out.
///
/// A tool returns text, a number, a boolean, `Content`, `CallToolResult`, nothing, or anything that derives
/// `serde::Serialize` and `schemars::JsonSchema`, which becomes structured content with a schema; or a `Result` of
/// one of these with a `ToolError` or a `std::error::Error` as its error.
///
/// The options are `name = "…"`, `title = "…"`, `description = "…"`, the hints `read_only`, `idempotent`,
/// `destructive` (or `destructive = false`) and `open_world = false`, `replay`, and `scopes = "…"` with the scopes that
/// the caller's token needs, separated by spaces. Other properties are set with the builder: `Server::with(add().icon(…))`.
///
/// A parameter is an argument of the tool unless its type is `Context`. It may have
///
/// - `#[default]` or `#[default(…)]`: its value if it is left out; text is converted into its type,
/// - `#[rename("…")]`: its name for the caller,
/// - `#[schemars(…)]`: additions to its schema, such as `range(min = 1)`, which is then enforced,
/// - `#[header("…")]`: modern HTTP clients mirror it in the header `Mcp-Param-…`,
/// - `#[ask("…")]` or `#[ask("…", key = "…")]`: not an argument but an elicitation, and its type is a form.
///
/// All elicitations are sent in one round before the function runs, and their messages may name arguments, as in
/// `#[ask("Book {day}?")]`. If the user declines one, the tool returns an error and does not run. A tool with
/// elicitations is run again from its start with the responses, on any replica.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Tool, options.into(), &item.into()).into()
}

/// Turns a function into a prompt.
///
/// `async fn greeting(name: String) -> String` becomes `fn greeting() -> Prompt`. The doc comment is the description,
/// and the parameters are the arguments, which are read from text; see `tool` for what they may have, except
/// `#[header]`. A parameter with `#[complete(path)]` gets its completions from that async function, which takes the
/// text typed so far and the other arguments.
///
/// A prompt returns text, which is one message of the user, a `PromptMessage`, several of them, a `GetPromptResult`, or a
/// `Result` of one of these. The options are `name = "…"`, `title = "…"` and `description = "…"`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Prompt, options.into(), &item.into()).into()
}

/// Turns a function into a resource, or into a resource template if the URI has variables.
///
/// `#[resource("users://{id}/profile")] async fn profile(id: u64) -> …` becomes `fn profile() -> ResourceTemplate`;
/// without variables it becomes a function that returns a `Resource`. The parameters are the variables, which are
/// read from text; see `prompt` for what they may have.
///
/// A resource returns text, bytes, `ResourceContents`, anything that derives `serde::Serialize`, which becomes JSON, or an
/// `Option` or a `Result` of one of these; nothing is "not found". The options after the URI are `name = "…"`,
/// `title = "…"`, `description = "…"` and `mime = "…"`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Resource, options.into(), &item.into()).into()
}

/// Turns the methods of an `impl` block with `#[tool]`, `#[prompt]` or `#[resource]` into parts of a server.
///
/// The methods themselves are unchanged. The type becomes a part: `Server::with(Calculator::new())` adds all of them,
/// and they share the value. A server accepts it in an `Arc` too, for programs that use the value elsewhere.
#[proc_macro_attribute]
pub fn parts(options: TokenStream, item: TokenStream) -> TokenStream {
    parts::expand(&options.into(), item.into()).into()
}

/// Derives a form for elicitation.
///
/// A struct is a form of its fields: text, numbers, booleans, enums that derive `Form`, a `Vec` of such an enum, or
/// an `Option` of one of these. The doc comment of a field is its description. `#[form(…)]` on a field takes `title =
/// "…"`, `name = "…"`, `default` or `default = …`, `min = …` and `max = …` (of a number, of the length of text, of
/// the number of choices) and `format = "…"` (`email`, `uri`, `date` or `date-time`).
///
/// An enum is a choice, and a form of one field, `choice`. The title of a variant is its doc comment, or
/// `#[form(title = "…")]`; `#[form(name = "…")]` is its value.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(item: TokenStream) -> TokenStream {
    form::expand(item.into()).into()
}
