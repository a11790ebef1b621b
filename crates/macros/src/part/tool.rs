use proc_macro2::TokenStream;
use quote::quote;

use super::{BuiltPart, PartDescription, at_return_type, call, converted};
use crate::errors::MacroErrors;
use crate::handler::HandlerSignature;
use crate::name;
use crate::options::AttributeOptions;

const OPTIONS: [&str; 9] = [
    "name",
    "title",
    "description",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "replay",
    "scopes",
];

/// Generates the expression that builds a tool.
pub(super) fn build(
    options: TokenStream,
    handler: &HandlerSignature,
    problems: &mut MacroErrors,
) -> BuiltPart {
    let mut options: AttributeOptions = problems.capture(syn::parse2(options)).unwrap_or_default();
    let described = PartDescription::take(&mut options, handler, problems);
    name::check_tool(&described.name, problems);
    let hints = hints(&mut options, problems);
    // Without replay, a call that waits for input would be suspended in the memory of one replica.
    let replay = options.flag("replay", problems) || handler.inputs().next().is_some();
    let replay = replay.then(|| quote!(.replay()));
    let scopes = scopes(&mut options, problems);
    options.finish("a tool", &OPTIONS, problems);

    let (name, described) = (&described.name, described.calls());
    let mirrors = handler.arguments().filter_map(|argument| {
        let (name, header) = (&argument.name, argument.header.as_ref()?);
        Some(quote!(.mirror(#name, #header)))
    });
    let items = call::items(handler, true);
    let traits = ["ToolAsItIs", "ToolOkAsItIs", "ToolInResult", "ToolAsJson"];
    let closure = call::closure(handler, |returned| converted("for_tool", &traits, handler, returned));
    let run = at_return_type("run", handler);
    BuiltPart {
        kind: quote!(::trunkline::Tool),
        value: quote! {{
            #items
            ::trunkline::Tool::new(#name) #described #hints #replay #scopes #(#mirrors)* .#run(#closure)
        }},
    }
}

fn hints(options: &mut AttributeOptions, problems: &mut MacroErrors) -> TokenStream {
    let read_only = options.flag("read_only", problems).then(|| quote!(.read_only()));
    let destructive = options.boolean("destructive", problems).map(|destructive| match destructive {
        true => quote!(.destructive()),
        false => quote!(.additive()),
    });
    let idempotent = options.flag("idempotent", problems).then(|| quote!(.idempotent()));
    let open_world = options.boolean("open_world", problems).map(|open| quote!(.open_world(#open)));
    quote!(#read_only #destructive #idempotent #open_world)
}

/// Reads the scopes that a caller's token needs, separated by spaces as in OAuth.
fn scopes(options: &mut AttributeOptions, problems: &mut MacroErrors) -> Option<TokenStream> {
    let text = options.text("scopes", problems)?;
    let value = text.value();
    let scopes: Vec<&str> = value.split_whitespace().collect();
    if scopes.is_empty() {
        problems.add(&text, "`scopes` names no scope: write `scopes = \"files:read files:write\"`");
    }
    Some(quote!(.require_scopes([#(#scopes),*])))
}
