use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{Built, Description, call};
use crate::handler::Handler;
use crate::options::Options;
use crate::parameter::Argument;
use crate::problems::Problems;

/// Writes the expression that makes a prompt.
pub(super) fn build(options: TokenStream, handler: &Handler, problems: &mut Problems) -> Built {
    let mut options: Options = problems.note(syn::parse2(options)).unwrap_or_default();
    let described = Description::take(&mut options, handler, problems);
    options.finish("a prompt", &Description::OPTIONS, problems);

    let (name, described) = (&described.name, described.calls());
    let arguments = handler.arguments().map(argument);
    let completions = handler.arguments().filter_map(completion);
    let items = call::items(handler, false);
    let closure = call::closure(handler, |returned| {
        let span = handler.returns.resolved_at(Span::mixed_site());
        quote_spanned!(span=> ::trunkline::__private::returned::prompt(#returned))
    });
    Built {
        kind: quote!(::trunkline::Prompt),
        value: quote! {{
            #items
            ::trunkline::Prompt::new(#name) #described #(#arguments)* #(#completions)* .get(#closure)
        }},
    }
}

/// Writes how an argument is described: in order, since clients have people fill them in one after the other.
fn argument(argument: &Argument) -> TokenStream {
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

/// Writes how values for an argument are suggested.
pub(super) fn completion(argument: &Argument) -> Option<TokenStream> {
    let (name, complete) = (&argument.name, argument.complete.as_ref()?);
    Some(quote!(.complete(#name, #complete)))
}
