use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{DataEnum, DeriveInput, Fields, Ident, Variant};

use super::take_options;
use crate::docs;
use crate::errors::MacroErrors;

/// Implements an enum as a choice, and as a form with this one choice.
pub(super) fn implement(input: &DeriveInput, data: &DataEnum, problems: &mut MacroErrors) -> TokenStream {
    if data.variants.is_empty() {
        problems.add(&input.ident, "there is nothing to choose from; add a variant");
    }
    let mut names: Vec<String> = Vec::new();
    let mut idents: Vec<&Ident> = Vec::new();
    let mut titles = Vec::new();
    for variant in &data.variants {
        let (name, title) = read_variant(variant, problems);
        if names.contains(&name) {
            problems.add(&variant.ident, format_args!("two choices have the name `{name}`"));
        }
        names.push(name);
        idents.push(&variant.ident);
        titles.push(match title {
            Some(title) => quote!(::core::option::Option::Some(#title)),
            None => quote!(::core::option::Option::None),
        });
    }
    let type_name = &input.ident;
    let form = implement_form(input);
    quote! {
        const _: () = {
            impl ::trunkline::__private::form::FormChoice for #type_name {
                const CHOICES: &'static [(&'static str, ::core::option::Option<&'static str>)] =
                    &[#((#names, #titles)),*];

                fn value(&self) -> &'static str {
                    match self {
                        #(Self::#idents => #names),*
                    }
                }

                fn from_value(value: &str) -> ::core::option::Option<Self> {
                    match value {
                        #(#names => ::core::option::Option::Some(Self::#idents),)*
                        _ => ::core::option::Option::None,
                    }
                }
            }

            #form
        };
    }
}

/// Implements the form with the choice as its only field.
fn implement_form(input: &DeriveInput) -> TokenStream {
    let type_name = &input.ident;
    let description = docs::description(&input.attrs).map(|text| quote!(.description(#text)));
    quote! {
        fn field() -> ::trunkline::__private::form::FieldDefinition<#type_name> {
            ::trunkline::__private::form::FieldDefinition::new("choice") #description
        }

        impl ::trunkline::__private::Form for #type_name {
            fn schema() -> ::trunkline::__private::RawJson {
                <::trunkline::__private::form::FormSchema as ::core::default::Default>::default()
                    .with(&field())
                    .finish()
            }

            fn read(
                content: &::trunkline::__private::RawJson,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                ::trunkline::__private::form::FormAnswers::read(content)?.field(&field())
            }
        }
    }
}

/// Returns the value and the title of a variant.
fn read_variant(variant: &Variant, problems: &mut MacroErrors) -> (String, Option<TokenStream>) {
    if !matches!(variant.fields, Fields::Unit) {
        problems
            .add(&variant.fields, "a choice has no data; take it out, and ask for it in a field of its own");
    }
    let mut options = take_options(&variant.attrs, problems);
    let name = options.text("name", problems);
    let title = options.text("title", problems).map(|title| quote!(#title));
    options.finish("a choice", &["name", "title"], problems);
    let name = name.map_or_else(|| variant.ident.unraw().to_string(), |name| name.value());
    (name, title.or_else(|| docs::description(&variant.attrs)))
}
