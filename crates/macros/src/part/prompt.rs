use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{BuiltPart, PartDescription, call};
use crate::errors::MacroErrors;
use crate::handler::HandlerSignature;
use crate::options::AttributeOptions;
use crate::parameter::ArgumentParameter;

/// Generates the expression that builds a prompt.
pub(super) fn build(
    options: TokenStream,
    handler: &HandlerSignature,
    problems: &mut MacroErrors,
) -> BuiltPart {
    let mut options: AttributeOptions = problems.capture(syn::parse2(options)).unwrap_or_default();
    let described = PartDescription::take(&mut options, handler, problems);
    options.finish("a prompt", &PartDescription::OPTIONS, problems);

    let (name, described) = (&described.name, described.calls());
    let arguments = handler.arguments().map(argument);
    let completions = handler.arguments().filter_map(completion);
    let items = call::items(handler, false);
    let closure = call::closure(handler, |returned| {
        let span = handler.returns.resolved_at(Span::mixed_site());
        quote_spanned!(span=> ::trunkline::__private::returned::prompt(#returned))
    });
    BuiltPart {
        kind: quote!(::trunkline::Prompt),
        value: quote! {{
            #items
            ::trunkline::Prompt::new(#name) #described #(#arguments)* #(#completions)* .get(#closure)
        }},
    }
}

/// Generates the description of an argument; the order is kept, since clients prompt the user for one after the
/// other.
fn argument(argument: &ArgumentParameter) -> TokenStream {
    let name = &argument.name;
    let make = if argument.is_optional() { quote!(new) } else { quote!(required) };
    let described = quote!(::trunkline::__private::PromptArgument::#make(#name));
    match argument.description() {
        None => quote!(.argument(#described)),
        Some(text) => quote! {
            .argument(::trunkline::__private::PromptArgument {
                description: ::core::option::Option::Some(::std::string::String::from(#text)),
                ..#described
            })
        },
    }
}

/// Generates the completion of an argument.
pub(super) fn completion(argument: &ArgumentParameter) -> Option<TokenStream> {
    let (name, complete) = (&argument.name, argument.complete.as_ref()?);
    Some(quote!(.complete(#name, #complete)))
}
