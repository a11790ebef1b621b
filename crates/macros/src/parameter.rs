//! The parameters of a handler function.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Pat, PatType, Path, Token, Type};

use crate::docs;
use crate::errors::MacroErrors;
use crate::options::{AttributeOptions, attribute_tokens};
use crate::part::PartKind;

/// The role of a parameter.
pub(crate) enum HandlerParameter {
    Context,
    Argument(Box<ArgumentParameter>),
    Input(Box<InputParameter>),
}

/// A parameter that the caller provides as an argument.
pub(crate) struct ArgumentParameter {
    pub(crate) ident: Ident,
    /// Its name for the caller.
    pub(crate) name: String,
    pub(crate) header: Option<LitStr>,
    pub(crate) complete: Option<Path>,
    /// Its doc comment and other attributes for its schema.
    described: Vec<Attribute>,
    renamed: bool,
    default: Option<DefaultValue>,
    kind: Type,
}

enum DefaultValue {
    OfType,
    Value(Expr),
}

/// A parameter that is elicited from the user.
pub(crate) struct InputParameter {
    pub(crate) kind: Type,
    pub(crate) message: LitStr,
    pub(crate) key: String,
}

impl HandlerParameter {
    /// Reads a parameter, and removes the macro's own attributes.
    pub(crate) fn read(parameter: &mut PatType, part: PartKind, problems: &mut MacroErrors) -> Option<Self> {
        let attributes = ParameterAttributes::take(&mut parameter.attrs, part, problems);
        let ident = plain_name(&parameter.pat, part, problems);
        check_type(&parameter.ty, problems);
        if is_named(&parameter.ty, "Context") {
            attributes.reject_on_context(problems);
            return Some(Self::Context);
        }
        let ident = ident?;
        match attributes.ask {
            Some((_, message, key)) => {
                attributes.argument.reject_on_input(problems);
                let key = key.map_or_else(|| ident.unraw().to_string(), |key| key.value());
                Some(Self::Input(Box::new(InputParameter { kind: (*parameter.ty).clone(), message, key })))
            }
            None => {
                let ArgumentAttributes { described, rename, default, header, complete, .. } =
                    attributes.argument;
                let renamed = rename.is_some();
                let name = rename.map_or_else(|| ident.unraw().to_string(), |name| name.value());
                let kind = (*parameter.ty).clone();
                let argument =
                    ArgumentParameter { ident, name, header, complete, described, renamed, default, kind };
                Some(Self::Argument(Box::new(argument)))
            }
        }
    }
}

impl ArgumentParameter {
    /// Generates the argument's field of the arguments type.
    pub(crate) fn field(&self) -> TokenStream {
        let Self { ident, name, described, kind, .. } = self;
        let rename = self.renamed.then(|| quote!(#[serde(rename = #name)]));
        let default = self.default.as_ref().map(|default| match default {
            DefaultValue::OfType => quote!(#[serde(default)]),
            DefaultValue::Value(_) => {
                let function = self.default_function().to_string();
                quote!(#[serde(default = #function)])
            }
        });
        // The span of the type, so that errors about it are reported there.
        let kind = quote_spanned!(kind.span()=> <#kind as ::trunkline::__private::Argument>::Itself);
        quote!(#(#described)* #rename #default #ident: #kind)
    }

    /// Generates the function that returns the default, if there is one.
    pub(crate) fn default_item(&self) -> Option<TokenStream> {
        let Some(DefaultValue::Value(value)) = &self.default else { return None };
        let (function, kind) = (self.default_function(), &self.kind);
        let value = match value {
            Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => quote!(::core::convert::Into::into(#value)),
            value => value.to_token_stream(),
        };
        Some(quote!(fn #function() -> #kind { #value }))
    }

    fn default_function(&self) -> Ident {
        format_ident!("__default_{}", self.ident.unraw())
    }

    /// Returns the description of the argument, as an expression.
    pub(crate) fn description(&self) -> Option<TokenStream> {
        docs::description(&self.described)
    }

    /// Reports whether the caller may omit it.
    pub(crate) fn is_optional(&self) -> bool {
        self.default.is_some() || is_named(&self.kind, "Option")
    }
}

/// The attributes of one parameter.
#[derive(Default)]
struct ParameterAttributes {
    ask: Option<(Attribute, LitStr, Option<LitStr>)>,
    argument: ArgumentAttributes,
}

#[derive(Default)]
struct ArgumentAttributes {
    described: Vec<Attribute>,
    rename: Option<LitStr>,
    default: Option<DefaultValue>,
    header: Option<LitStr>,
    complete: Option<Path>,
    /// The attributes above that only arguments may have, as written.
    written: Vec<Attribute>,
}

impl ParameterAttributes {
    fn take(attributes: &mut Vec<Attribute>, part: PartKind, problems: &mut MacroErrors) -> Self {
        let mut parsed = Self::default();
        for attribute in std::mem::take(attributes) {
            let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
            if ["allow", "expect", "warn", "deny"].contains(&name.as_str()) {
                attributes.push(attribute);
            } else {
                let read = parsed.read(&name, attribute, part);
                problems.capture(read);
            }
        }
        parsed
    }

    fn read(&mut self, name: &str, attribute: Attribute, part: PartKind) -> syn::Result<()> {
        let argument = &mut self.argument;
        let tokens = || attribute_tokens(&attribute);
        match name {
            "doc" => {
                argument.described.push(attribute);
                return Ok(());
            }
            "ask" => {
                let (message, key) = with_attribute_span(read_input.parse2(tokens()?), &attribute)?;
                self.ask = Some((attribute, message, key));
                return Ok(());
            }
            "schemars" => argument.described.push(attribute.clone()),
            "default" if tokens()?.is_empty() => argument.default = Some(DefaultValue::OfType),
            "default" => argument.default = Some(DefaultValue::Value(syn::parse2(tokens()?)?)),
            "rename" => argument.rename = Some(text(&attribute, "its name: `#[rename(\"maxItems\")]`")?),
            "header" if part == PartKind::Tool => {
                argument.header = Some(text(&attribute, "the header: `#[header(\"Region\")]`")?);
            }
            "complete" if part != PartKind::Tool => {
                let path = syn::parse2(tokens()?).map_err(|error| {
                    syn::Error::new(error.span(), "name an async function: `#[complete(suggest_names)]`")
                });
                argument.complete = Some(with_attribute_span(path, &attribute)?);
            }
            _ => return Err(unknown(&attribute, part)),
        }
        argument.written.push(attribute);
        Ok(())
    }

    fn reject_on_context(&self, problems: &mut MacroErrors) {
        let inputs = self.ask.iter().map(|(attribute, ..)| attribute);
        for attribute in inputs.chain(&self.argument.written) {
            problems.add(attribute, "the context is not an argument; take this away");
        }
    }
}

impl ArgumentAttributes {
    fn reject_on_input(&self, problems: &mut MacroErrors) {
        for attribute in &self.written {
            problems.add(attribute, "a question is not an argument; take this away, or the `#[ask]`");
        }
    }
}

fn unknown(attribute: &Attribute, part: PartKind) -> syn::Error {
    let last = if part == PartKind::Tool { "header" } else { "complete" };
    let message = format!(
        "a parameter of a {part} cannot have this attribute; there are doc comments, `default`, `rename`, `schemars`, \
         `ask` and `{last}`"
    );
    syn::Error::new_spanned(attribute, message)
}

fn text(attribute: &Attribute, expected: &str) -> syn::Result<LitStr> {
    let text = syn::parse2(attribute_tokens(attribute)?)
        .map_err(|error| syn::Error::new(error.span(), format_args!("write {expected}")));
    with_attribute_span(text, attribute)
}

/// Moves an error about missing tokens to the attribute that lacks them.
fn with_attribute_span<T>(read: syn::Result<T>, attribute: &Attribute) -> syn::Result<T> {
    read.map_err(|error| match attribute_tokens(attribute) {
        Ok(tokens) if !tokens.is_empty() => error,
        _ => syn::Error::new_spanned(attribute, error),
    })
}

fn read_input(input: ParseStream<'_>) -> syn::Result<(LitStr, Option<LitStr>)> {
    let message = input
        .parse()
        .map_err(|error| syn::Error::new(error.span(), "write the question: `#[ask(\"Book it?\")]`"))?;
    input.parse::<Option<Token![,]>>()?;
    let mut options: AttributeOptions = input.parse()?;
    let mut problems = MacroErrors::default();
    let key = options.text("key", &mut problems);
    options.finish("a question", &["key"], &mut problems);
    match problems.into_error() {
        Some(error) => Err(error),
        None => Ok((message, key)),
    }
}

fn plain_name(pattern: &Pat, part: PartKind, problems: &mut MacroErrors) -> Option<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(name.ident.clone()),
        other => {
            let message = format!(
                "a parameter of a {part} needs a plain name, which callers see; take it apart in the body"
            );
            problems.add(other, message);
            None
        }
    }
}

fn check_type(kind: &Type, problems: &mut MacroErrors) {
    match kind {
        Type::Reference(reference) => {
            let owned = match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
                Type::Slice(slice) => format!("`Vec<{}>`", slice.elem.to_token_stream()),
                other if is_named(other, "Context") => "`Context`, which is cheap to clone".to_owned(),
                _ => "an owned value".to_owned(),
            };
            problems.add(kind, format_args!("a parameter cannot be a reference; take {owned}"));
        }
        Type::ImplTrait(_) => {
            problems.add(
                kind,
                "a parameter cannot be `impl Trait`, since its type makes the schema; name a type",
            );
        }
        _ => {}
    }
}

/// Reports whether a type is a path that ends in a name.
fn is_named(kind: &Type, name: &str) -> bool {
    match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        Type::Reference(reference) => is_named(&reference.elem, name),
        _ => false,
    }
}
