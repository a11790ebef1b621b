//! The expansion of `#[parts]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, ImplItem, ImplItemFn, ItemImpl};

use crate::errors::MacroErrors;
use crate::handler::{FunctionContext, HandlerSignature};
use crate::options::attribute_tokens;
use crate::part::{PartKind, build, signature_lints};

/// Leaves an `impl` block unchanged, and implements `Part` for its type.
pub(crate) fn expand(options: &TokenStream, item: TokenStream) -> TokenStream {
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let first: TokenStream = item.into_iter().take(1).collect();
            let span = if first.is_empty() { error.span() } else { first.span() };
            return syn::Error::new(span, "`#[parts]` goes on an `impl` block").to_compile_error();
        }
    };
    let mut problems = MacroErrors::default();
    if !options.is_empty() {
        problems.add(options, "`#[parts]` takes no options; they belong to the methods");
    }
    if let Some((_, path, _)) = &block.trait_ {
        problems.add(
            path,
            "`#[parts]` goes on an `impl` block of a type, not of a trait; move the methods there",
        );
        let errors = problems.into_compile_errors();
        return quote!(#errors);
    }
    let mut registrations = Vec::new();
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            registrations.extend(register(method, &mut problems));
        }
    }
    if registrations.is_empty() {
        problems.add(&block.self_ty, "there is no method with `#[tool]`, `#[prompt]` or `#[resource]` here");
    }
    let errors = problems.into_compile_errors();
    if errors.is_some() {
        registrations.clear();
    }
    let implementations = implement(&block, &registrations);
    quote!(#errors #block #implementations)
}

/// Removes the attribute of a method, and generates the statement that adds the part to a server.
fn register(method: &mut ImplItemFn, problems: &mut MacroErrors) -> Option<TokenStream> {
    let (kind, attribute) = take_attribute(&mut method.attrs, problems)?;
    let handler =
        HandlerSignature::read(kind, FunctionContext::ImplBlock, &method.attrs, &mut method.sig, problems);
    let options = problems.capture(attribute_tokens(&attribute)).unwrap_or_default();
    let value = build(kind, options, &handler, problems).value;
    let conditions: Vec<_> =
        method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    method.attrs.push(signature_lints());
    method.attrs.push(syn::parse_quote!(#[allow(clippy::unused_self)]));
    Some(quote! {
        #(#conditions)*
        {
            ::trunkline::__private::Part::add_to(#value, parts);
        }
    })
}

fn take_attribute(
    attributes: &mut Vec<Attribute>,
    problems: &mut MacroErrors,
) -> Option<(PartKind, Attribute)> {
    let mut found = None;
    for attribute in std::mem::take(attributes) {
        match kind_of(&attribute) {
            Some(_) if found.is_some() => {
                problems.add(&attribute, "a method becomes one part; write another method for the other");
            }
            Some(kind) => found = Some((kind, attribute)),
            None => attributes.push(attribute),
        }
    }
    found
}

fn kind_of(attribute: &Attribute) -> Option<PartKind> {
    let name = &attribute.path().segments.last()?.ident;
    [PartKind::Tool, PartKind::Prompt, PartKind::Resource].into_iter().find(|kind| name == &kind.to_string())
}

fn implement(block: &ItemImpl, registrations: &[TokenStream]) -> TokenStream {
    let (generics, kind) = (&block.generics, &block.self_ty);
    let (parameters, _, conditions) = generics.split_for_impl();
    let span = kind.span().resolved_at(Span::mixed_site());
    let shared = quote_spanned! {span=>
        impl #parameters ::trunkline::__private::SharedPart for #kind #conditions
    };
    quote! {
        #shared {
            fn add_shared(self: ::std::sync::Arc<Self>, parts: &mut ::trunkline::__private::Parts) {
                #(#registrations)*
            }
        }

        impl #parameters ::trunkline::__private::Part for #kind #conditions {
            fn add_to(self, parts: &mut ::trunkline::__private::Parts) {
                ::trunkline::__private::SharedPart::add_shared(::std::sync::Arc::new(self), parts);
            }
        }
    }
}
