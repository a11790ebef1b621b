//! Attributes that make tools, prompts and resources of functions, and a derive that makes forms of types.
//!
//! They are used through the facade, as `trunkline::tool` and so on, and expand to calls of its builders: whatever an
//! attribute can say, a builder can say too.

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

/// Makes a tool of a function.
///
/// `async fn add(a: i64, b: i64) -> i64` becomes `fn add() -> Tool`, for `Server::with(add)`. The doc comment is the
/// description, the parameters and their doc comments are the schema of the arguments. `Option<T>` may be left out.
///
/// A tool returns text, a number, a boolean, `Content`, `CallToolResult`, nothing, or anything that derives
/// `serde::Serialize` and `schemars::JsonSchema`, which becomes structured content with a schema; or a `Result` of one of
/// these whose error is a `ToolError` or a `std::error::Error`.
///
/// The options are `name = "…"`, `title = "…"`, `description = "…"`, the hints `read_only`, `idempotent`, `destructive`
/// (or `destructive = false`) and `open_world = false`, and `replay`. What else a tool can have, its builder sets:
/// `Server::with(add().icon(…))`.
///
/// A parameter is an argument of the tool unless its type is `Context`. It may have
///
/// - `#[default]` or `#[default(…)]`: what it is when it is left out; text is converted into its type,
/// - `#[rename("…")]`: its name for the caller,
/// - `#[schemars(…)]`: more for its schema, such as `range(min = 1)`, which the arguments are then held to,
/// - `#[header("…")]`: modern HTTP clients repeat it in the header `Mcp-Param-…`,
/// - `#[ask("…")]` or `#[ask("…", key = "…")]`: it is no argument but a question to the user, and its type is a form.
///
/// All questions are asked in one round before the function runs, and their texts may name arguments, as in
/// `#[ask("Book {day}?")]`. If the user says no to one, the tool says so and does not run. A tool with questions is run
/// again from its start with the answers, on any replica.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Tool, options.into(), &item.into()).into()
}

/// Makes a prompt of a function.
///
/// `async fn greeting(name: String) -> String` becomes `fn greeting() -> Prompt`. The doc comment is the description, and
/// the parameters are the arguments, which are read from text; see `tool` for what they may have, except `#[header]`. A
/// parameter with `#[complete(path)]` has values suggested by that async function of what was typed so far and of the other
/// arguments.
///
/// A prompt returns text, which is one message of the user, a `PromptMessage`, several of them, a `GetPromptResult`, or a
/// `Result` of one of these. The options are `name = "…"`, `title = "…"` and `description = "…"`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Prompt, options.into(), &item.into()).into()
}

/// Makes a resource of a function, or a family of resources if the URI has variables.
///
/// `#[resource("users://{id}/profile")] async fn profile(id: u64) -> …` becomes `fn profile() -> ResourceTemplate`; without
/// variables it becomes a function that makes a `Resource`. The parameters are the variables, which are read from text; see
/// `prompt` for what they may have.
///
/// A resource returns text, bytes, `ResourceContents`, anything that derives `serde::Serialize`, which becomes JSON, or an
/// `Option` or a `Result` of one of these; nothing is "not found". The options after the URI are `name = "…"`,
/// `title = "…"`, `description = "…"` and `mime = "…"`.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    part::expand(PartKind::Resource, options.into(), &item.into()).into()
}

/// Makes the methods of an `impl` block that have `#[tool]`, `#[prompt]` or `#[resource]` parts of a server.
///
/// The methods stay what they are. The type becomes a part: `Server::with(Calculator::new())` has all of them, and they
/// share the value. A server takes it in an `Arc` too, for programs that go on using it.
#[proc_macro_attribute]
pub fn parts(options: TokenStream, item: TokenStream) -> TokenStream {
    parts::expand(&options.into(), item.into()).into()
}

/// Makes a form that a user can be asked to fill in.
///
/// A struct is a form of its fields: text, numbers, booleans, enums that derive `Form`, a `Vec` of such an enum, or an
/// `Option` of one of these. The doc comment of a field is its description. `#[form(…)]` on a field takes
/// `title = "…"`, `name = "…"`, `default` or `default = …`, `min = …` and `max = …` (of the number, of the length of text,
/// of how many are chosen) and `format = "…"` (`email`, `uri`, `date` or `date-time`).
///
/// An enum is a choice, and a form of one field, `choice`. The doc comment of a variant is its title, or
/// `#[form(title = "…")]` is; `#[form(name = "…")]` is the value that stands for it.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(item: TokenStream) -> TokenStream {
    form::expand(item.into()).into()
}
