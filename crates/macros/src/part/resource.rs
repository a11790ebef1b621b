use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser as _};
use syn::{LitStr, Token};

use super::prompt::completion;
use super::{BuiltPart, PartDescription, at_return_type, call, converted};
use crate::errors::MacroErrors;
use crate::handler::HandlerSignature;
use crate::options::AttributeOptions;
use crate::uri;

const OPTIONS: [&str; 5] = ["name", "title", "description", "mime", "raw_variables"];

/// Generates the expression that builds a resource, or a template if its URI has variables.
pub(super) fn build(
    options: TokenStream,
    handler: &HandlerSignature,
    problems: &mut MacroErrors,
) -> BuiltPart {
    let (uri, mut options) = problems.capture(read.parse2(options)).unwrap_or_default();
    let described = PartDescription::take(&mut options, handler, problems);
    let mime = options.text("mime", problems).map(|mime| quote!(.mime(#mime)));
    let raw = options.flag("raw_variables", problems);
    options.finish("a resource", &OPTIONS, problems);
    let is_template = uri.as_ref().is_some_and(|uri| check(uri, handler, problems));

    let raw = (raw && is_template).then(|| quote!(.raw_variables()));
    let (name, described) = (&described.name, described.calls());
    let completions = handler.arguments().filter_map(completion);
    let items = call::items(handler, false);
    let traits =
        ["ReadAsItIs", "ReadOkAsItIs", "ReadInResultOfOption", "ReadInResult", "ReadInOption", "ReadAsJson"];
    let closure = call::closure(handler, |returned| converted("for_read", &traits, handler, returned));
    let kind =
        if is_template { quote!(::trunkline::ResourceTemplate) } else { quote!(::trunkline::Resource) };
    let read = at_return_type("read", handler);
    let value = quote! {{
        #items
        #kind::new(#uri, #name) #described #mime #raw #(#completions)* .#read(#closure)
    }};
    BuiltPart { kind, value }
}

fn read(input: ParseStream<'_>) -> syn::Result<(Option<LitStr>, AttributeOptions)> {
    let uri = input.parse::<LitStr>().map_err(|error| {
        syn::Error::new(error.span(), "begin with the URI: `#[resource(\"users://{id}/profile\")]`")
    })?;
    input.parse::<Option<Token![,]>>()?;
    Ok((Some(uri), input.parse()?))
}

/// Checks that the variables of the URI match the parameters, and returns whether there are any.
fn check(uri: &LitStr, handler: &HandlerSignature, problems: &mut MacroErrors) -> bool {
    let text = uri.value();
    let variables = match uri::variables(&text) {
        Ok(variables) => variables,
        Err(problem) => {
            problems.add(uri, problem);
            return true;
        }
    };
    if variables.is_empty() && !uri::has_scheme(&text) {
        problems.add(uri, "a URI begins with a scheme, as in `demo://about`");
    }
    for variable in &variables {
        if !handler.arguments().any(|argument| argument.name == *variable) {
            let message = format!(
                "the variable `{variable}` of the URI is not a parameter; add `{variable}: String`, or take it out"
            );
            problems.add(uri, message);
        }
    }
    for argument in handler.arguments().filter(|argument| !variables.contains(&argument.name)) {
        let name = &argument.name;
        let message =
            format!("`{name}` is not a variable of the URI; add `{{{name}}}` to the URI, or take it out");
        problems.add(&argument.ident, message);
    }
    !variables.is_empty()
}
