use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, ItemFn};

use super::{PartKind, build};
use crate::errors::MacroErrors;
use crate::handler::{FunctionContext, HandlerSignature};

/// Attributes that set lint levels.
const ATTRIBUTES_OF_LINTS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];

/// Attributes that belong to the generated function; the others belong to the user's function inside it.
const ITEM_ATTRIBUTES: [&str; 5] = ["doc", "cfg", "deprecated", "must_use", "inline"];

/// Allows the lints that a handler's signature may trigger.
pub(crate) fn signature_lints() -> Attribute {
    syn::parse_quote!(#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::unused_async)])
}

/// Replaces a function by one without parameters that returns the part.
pub(crate) fn expand(kind: PartKind, options: TokenStream, item: &TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => return not_a_function(kind, item),
    };
    let mut problems = MacroErrors::default();
    let handler = HandlerSignature::read(
        kind,
        FunctionContext::Free,
        &function.attrs,
        &mut function.sig,
        &mut problems,
    );
    let built = build(kind, options, &handler, &mut problems);
    let (outer, inner): (Vec<Attribute>, Vec<Attribute>) =
        function.attrs.into_iter().partition(is_item_attribute);
    let (visibility, name, part) = (&function.vis, &function.sig.ident, &built.kind);
    if let Some(errors) = problems.into_compile_errors() {
        // The function is still generated, so that the compiler does not report it as missing too.
        return quote!(#errors #(#outer)* #visibility fn #name() -> #part { ::core::unreachable!() });
    }
    let (signature, body, value) = (&function.sig, &function.block, &built.value);
    let lints = signature_lints();
    quote! {
        #(#outer)*
        #visibility fn #name() -> #part {
            #(#inner)*
            #lints
            #signature #body
            #value
        }
    }
}

fn is_item_attribute(attribute: &Attribute) -> bool {
    ITEM_ATTRIBUTES.iter().chain(&ATTRIBUTES_OF_LINTS).any(|name| attribute.path().is_ident(name))
}

fn not_a_function(kind: PartKind, item: &TokenStream) -> TokenStream {
    let message =
        format!("`#[{kind}]` goes on a function, or on a method in an `impl` block with `#[parts]`");
    let place: TokenStream = item.clone().into_iter().take(1).collect();
    let error = syn::Error::new_spanned(place, message).to_compile_error();
    quote!(#error #item)
}
