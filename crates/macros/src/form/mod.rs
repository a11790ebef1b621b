//! The expansion of `#[derive(Form)]`.

mod choice;
mod fields;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Generics};

use crate::errors::MacroErrors;
use crate::options::{AttributeOptions, attribute_tokens};

/// Implements the form traits for a type.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut problems = MacroErrors::default();
    check_generics(&input.generics, &mut problems);
    take_options(&input.attrs, &mut problems).finish("the type of a form", &[], &mut problems);
    let implementation = match &input.data {
        Data::Struct(data) => fields::implement(&input, data, &mut problems),
        Data::Enum(data) => choice::implement(&input, data, &mut problems),
        Data::Union(data) => {
            problems.add(data.union_token, "a form is a struct with named fields, or an enum without data");
            TokenStream::new()
        }
    };
    match problems.into_compile_errors() {
        None => implementation,
        Some(errors) => {
            let name = &input.ident;
            // The trait is still implemented, so that the compiler does not report it as missing too.
            let (parameters, arguments, conditions) = input.generics.split_for_impl();
            quote! {
                #errors
                impl #parameters ::trunkline::__private::Form for #name #arguments #conditions {
                    fn schema() -> ::trunkline::__private::RawJson {
                        ::core::unreachable!()
                    }

                    fn read(_: &::trunkline::__private::RawJson) -> ::core::result::Result<Self, ::std::string::String> {
                        ::core::unreachable!()
                    }
                }
            }
        }
    }
}

fn check_generics(generics: &Generics, problems: &mut MacroErrors) {
    if !generics.params.is_empty() {
        problems.add(generics, "a form cannot be generic, since its fields make its schema; name the types");
    }
}

/// Merges the options of all `#[form(…)]` attributes.
fn take_options(attributes: &[Attribute], problems: &mut MacroErrors) -> AttributeOptions {
    let mut options = AttributeOptions::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("form")) {
        if let Some(more) = problems.capture(attribute_tokens(attribute).and_then(syn::parse2)) {
            options.extend(more);
        }
    }
    options
}
