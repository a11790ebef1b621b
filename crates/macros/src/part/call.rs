use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::LitStr;

use super::at_return_type;
use crate::handler::{FunctionContext, HandlerSignature, SelfReceiver};
use crate::parameter::{ArgumentParameter, HandlerParameter, InputParameter};

/// Hygienic identifiers, which cannot clash with the user's.
struct HygienicNames {
    context: Ident,
    arguments: Ident,
    returned: Ident,
    this: Ident,
}

impl HygienicNames {
    fn new(handler: &HandlerSignature) -> Self {
        let name = |text| Ident::new(text, Span::mixed_site());
        Self {
            context: name("context"),
            arguments: name("arguments"),
            returned: at_return_type("returned", handler),
            this: name("this"),
        }
    }

    fn answers(&self, count: usize) -> Vec<Ident> {
        (0..count).map(|index| format_ident!("answer_{index}", span = self.context.span())).collect()
    }
}

/// Generates the items that a handler's closure needs: the type of its arguments, and their defaults.
///
/// If `strict`, the type rejects arguments that the function does not have; the `x-trunkline-strict` mark lets the
/// server skip that check.
pub(super) fn items(handler: &HandlerSignature, strict: bool) -> TokenStream {
    let mut fields = handler.arguments().map(ArgumentParameter::field).peekable();
    if fields.peek().is_none() {
        return TokenStream::new();
    }
    let defaults = handler.arguments().filter_map(ArgumentParameter::default_item);
    let strict = strict.then(|| {
        quote! {
            #[serde(deny_unknown_fields)]
            #[schemars(extend("x-trunkline-strict" = true))]
        }
    });
    quote! {
        #(#defaults)*

        #[derive(::trunkline::__private::serde::Deserialize, ::trunkline::__private::schemars::JsonSchema)]
        #[serde(crate = "::trunkline::__private::serde")]
        #[schemars(crate = "::trunkline::__private::schemars")]
        #strict
        struct __Arguments {
            #(#fields),*
        }
    }
}

/// Generates the closure for a builder: it requests input, calls the function and converts the returned value.
pub(super) fn closure(
    handler: &HandlerSignature,
    convert: impl FnOnce(&TokenStream) -> TokenStream,
) -> TokenStream {
    let names = HygienicNames::new(handler);
    let HygienicNames { context, arguments, returned, this } = &names;
    let (input_round, requests_input) = request_input(handler, &names);
    let called = call(handler, &names);
    let converted = convert(&quote!(#returned));
    let result = if requests_input {
        quote!(::core::result::Result::Ok::<_, ::trunkline::AskError>(#converted))
    } else {
        converted
    };
    // The span of the return type, so that errors about it are reported there, although the closure returns it.
    let span = returned.span();
    let body = quote_spanned! {span=>
        async move {
            #input_round
            let #returned = #called;
            #result
        }
    };
    let has_arguments = handler.arguments().next().is_some();
    let arguments_kind =
        if has_arguments { quote!(__Arguments) } else { quote!(::trunkline::__private::NoArguments) };
    let arguments = if has_arguments { quote!(#arguments) } else { quote!(_) };
    let context = if requests_input || handler.takes_context() { quote!(#context) } else { quote!(_) };
    let parameters = quote!(#context: ::trunkline::Context, #arguments: #arguments_kind);
    let myself = quote!(self);
    match handler.receiver {
        SelfReceiver::None => quote_spanned!(span=> move |#parameters| #body),
        SelfReceiver::Reference | SelfReceiver::Shared => quote_spanned! {span=> {
            let #this = ::std::sync::Arc::clone(&#myself);
            move |#parameters| {
                let #this = ::std::sync::Arc::clone(&#this);
                #body
            }
        }},
    }
}

/// Generates the call of the user's function.
fn call(handler: &HandlerSignature, names: &HygienicNames) -> TokenStream {
    let HygienicNames { context, arguments, this, .. } = names;
    let mut answers = names.answers(handler.inputs().count()).into_iter();
    let values = handler.parameters.iter().map(|parameter| match parameter {
        HandlerParameter::Context => quote!(#context),
        HandlerParameter::Argument(argument) => {
            let field = &argument.ident;
            quote!(#arguments.#field)
        }
        HandlerParameter::Input(_) => {
            let answer = answers.next();
            quote!(#answer)
        }
    });
    let name = &handler.name;
    let wait = handler.is_async.then(|| quote!(.await));
    match handler.receiver {
        SelfReceiver::None if handler.context == FunctionContext::Free => quote!(#name(#(#values),*) #wait),
        SelfReceiver::None => quote!(Self::#name(#(#values),*) #wait),
        SelfReceiver::Reference => quote!(Self::#name(&#this #(, #values)*) #wait),
        SelfReceiver::Shared => quote!(Self::#name(#this #(, #values)*) #wait),
    }
}

/// Generates the input round, and returns whether there is one.
fn request_input(handler: &HandlerSignature, names: &HygienicNames) -> (TokenStream, bool) {
    let HygienicNames { context, arguments, .. } = names;
    let questions: Vec<TokenStream> = handler.inputs().map(input_request).collect();
    if questions.is_empty() {
        return (TokenStream::new(), false);
    }
    let answers = names.answers(questions.len());
    // A message may name any of the arguments.
    let bound = handler.arguments().next().is_some().then(|| {
        let fields = handler.arguments().map(|argument| &argument.ident);
        quote! {
            #[allow(unused_variables)]
            let __Arguments { #(#fields),* } = &#arguments;
        }
    });
    let input_round = quote! {
        let (#(#answers,)*) = {
            let questions = { #bound (#(#questions,)*) };
            #context.ask_all(questions).await?
        };
    };
    (input_round, true)
}

fn input_request(question: &InputParameter) -> TokenStream {
    let InputParameter { kind, message, key } = question;
    let message = message_of(message);
    quote!(::trunkline::__private::ask::<#kind>(#message).key(#key))
}

/// Generates the message of an input request; braces name arguments.
fn message_of(message: &LitStr) -> TokenStream {
    match message.value().contains(['{', '}']) {
        true => quote!(::std::format!(#message)),
        false => quote!(#message),
    }
}
