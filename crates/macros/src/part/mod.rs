//! The expansions of `#[tool]`, `#[prompt]` and `#[resource]`.

mod call;
mod function;
mod prompt;
mod resource;
mod tool;

use std::fmt;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::LitStr;

pub(crate) use self::function::{expand, signature_lints};
use crate::errors::MacroErrors;
use crate::handler::HandlerSignature;
use crate::name;
use crate::options::AttributeOptions;

/// The kind of part that a function becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Tool,
    Prompt,
    Resource,
}

impl fmt::Display for PartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        })
    }
}

/// The expression of a part, and its type.
pub(crate) struct BuiltPart {
    pub(crate) kind: TokenStream,
    pub(crate) value: TokenStream,
}

/// Generates the expression that builds a part from a function and the options of its attribute.
pub(crate) fn build(
    kind: PartKind,
    options: TokenStream,
    handler: &HandlerSignature,
    problems: &mut MacroErrors,
) -> BuiltPart {
    match kind {
        PartKind::Tool => tool::build(options, handler, problems),
        PartKind::Prompt => prompt::build(options, handler, problems),
        PartKind::Resource => resource::build(options, handler, problems),
    }
}

/// The description of any part.
struct PartDescription {
    name: LitStr,
    title: Option<LitStr>,
    description: Option<TokenStream>,
}

impl PartDescription {
    const OPTIONS: [&'static str; 3] = ["name", "title", "description"];

    fn take(options: &mut AttributeOptions, handler: &HandlerSignature, problems: &mut MacroErrors) -> Self {
        let name = name::of_part(options.text("name", problems), &handler.name);
        let title = options.text("title", problems);
        let description = options.text("description", problems);
        let description = description.map(|text| quote!(#text)).or_else(|| handler.description.clone());
        Self { name, title, description }
    }

    /// Generates the builder calls.
    fn calls(&self) -> TokenStream {
        let title = self.title.as_ref().map(|title| quote!(.title(#title)));
        let description = self.description.as_ref().map(|description| quote!(.description(#description)));
        quote!(#title #description)
    }
}

/// Returns an identifier with the span of the return type, so that errors about that type are reported there.
fn at_return_type(name: &str, handler: &HandlerSignature) -> Ident {
    Ident::new(name, handler.returns.resolved_at(Span::mixed_site()))
}

/// Generates the conversion of the returned value into the part's result, by the first trait that applies.
fn converted(
    choice: &str,
    traits: &[&str],
    handler: &HandlerSignature,
    returned: &TokenStream,
) -> TokenStream {
    let choice = at_return_type(choice, handler);
    let span = choice.span();
    let references = std::iter::repeat_n(quote_spanned!(span=> &), traits.len());
    let traits = traits.iter().map(|name| at_return_type(name, handler));
    quote_spanned! {span=> {
        use ::trunkline::__private::returned::{Returned, #(#traits as _),*};
        (#(#references)* Returned::of(&#returned)).#choice().convert(#returned)
    }}
}
