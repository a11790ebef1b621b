use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{DataStruct, DeriveInput, Expr, ExprLit, Field, Fields, Ident, Lit, LitStr};

use super::take_options;
use crate::docs;
use crate::errors::MacroErrors;

const OPTIONS: [&str; 6] = ["title", "name", "default", "min", "max", "format"];

/// The string formats that a form may have.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Implements a struct as a form of its fields.
pub(super) fn implement(input: &DeriveInput, data: &DataStruct, problems: &mut MacroErrors) -> TokenStream {
    let Fields::Named(fields) = &data.fields else {
        problems.add(&input.ident, "the fields of a form have names: write `struct … { name: String }`");
        return TokenStream::new();
    };
    if fields.named.is_empty() {
        problems.add(&input.ident, "a form has at least one field");
    }
    let mut names = Vec::new();
    let mut functions = Vec::new();
    let mut idents = Vec::new();
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let function = format_ident!("field_{}", ident.unraw());
        let name = describe(field, ident, &function, &mut functions, problems);
        if names.contains(&name) {
            problems.add(ident, format_args!("two fields have the name `{name}`"));
        }
        names.push(name);
        idents.push((ident, function));
    }
    let type_name = &input.ident;
    let calls = idents.iter().map(|(_, function)| quote!(.with(&#function())));
    let reads = idents.iter().map(|(ident, function)| quote!(#ident: answers.field(&#function())?));
    quote! {
        const _: () = {
            #(#functions)*

            impl ::trunkline::__private::Form for #type_name {
                fn schema() -> ::trunkline::__private::RawJson {
                    <::trunkline::__private::form::FormSchema as ::core::default::Default>::default()
                        #(#calls)*
                        .finish()
                }

                fn read(
                    content: &::trunkline::__private::RawJson,
                ) -> ::core::result::Result<Self, ::std::string::String> {
                    let answers = ::trunkline::__private::form::FormAnswers::read(content)?;
                    ::core::result::Result::Ok(Self { #(#reads),* })
                }
            }
        };
    }
}

/// Generates the function that describes a field, and returns the field's name.
fn describe(
    field: &Field,
    ident: &Ident,
    function: &Ident,
    functions: &mut Vec<TokenStream>,
    problems: &mut MacroErrors,
) -> String {
    let mut options = take_options(&field.attrs, problems);
    let kind = &field.ty;
    let name = options.text("name", problems).map_or_else(|| ident.unraw().to_string(), |name| name.value());
    let title = options.text("title", problems).map(|title| quote!(.title(#title)));
    let description = docs::description(&field.attrs).map(|text| quote!(.description(#text)));
    let default = options.expression("default").map(|value| default_of(value.as_ref()));
    let at_type = kind.span().resolved_at(Span::mixed_site());
    let least = options.number("min", problems).map(|bound| quote_spanned!(at_type=> .min(#bound as f64)));
    let most = options.number("max", problems).map(|bound| quote_spanned!(at_type=> .max(#bound as f64)));
    let format = options.text("format", problems);
    if let Some(format) = &format {
        check_format(format, problems);
    }
    let format = format.map(|format| quote_spanned!(at_type=> .format(#format)));
    options.finish("a field", &OPTIONS, problems);
    // The span of the type, so that errors about it are reported there.
    let new = quote_spanned!(at_type=> ::trunkline::__private::form::FieldDefinition::<#kind>::new);
    functions.push(quote! {
        #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
        fn #function() -> ::trunkline::__private::form::FieldDefinition<#kind> {
            #new(#name) #title #description #least #most #format #default
        }
    });
    name
}

fn default_of(value: Option<&Expr>) -> TokenStream {
    let value = match value {
        None => quote!(::core::default::Default::default()),
        Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => quote!(::core::convert::Into::into(#text)),
        Some(value) => value.to_token_stream(),
    };
    quote!(.default_with(|| #value))
}

fn check_format(format: &LitStr, problems: &mut MacroErrors) {
    if !FORMATS.contains(&format.value().as_str()) {
        let known = crate::options::join_words(&FORMATS);
        problems.add(format, format_args!("there is no such format; forms know {known}"));
    }
}
