use proc_macro2::TokenStream;
use quote::quote;

use super::{Built, Description, at_returned, call, converted};
use crate::handler::Handler;
use crate::name;
use crate::options::Options;
use crate::problems::Problems;

const OPTIONS: [&str; 8] =
    ["name", "title", "description", "read_only", "destructive", "idempotent", "open_world", "replay"];

/// Writes the expression that makes a tool.
pub(super) fn build(options: TokenStream, handler: &Handler, problems: &mut Problems) -> Built {
    let mut options: Options = problems.note(syn::parse2(options)).unwrap_or_default();
    let described = Description::take(&mut options, handler, problems);
    name::check_tool(&described.name, problems);
    let hints = hints(&mut options, problems);
    // What runs before the last question would otherwise wait in the memory of one replica.
    let replay = options.flag("replay", problems) || handler.questions().next().is_some();
    let replay = replay.then(|| quote!(.replay()));
    options.finish("a tool", &OPTIONS, problems);

    let (name, described) = (&described.name, described.calls());
    let mirrors = handler.arguments().filter_map(|argument| {
        let (name, header) = (&argument.name, argument.header.as_ref()?);
        Some(quote!(.mirror(#name, #header)))
    });
    let items = call::items(handler, true);
    let traits = ["ToolAsItIs", "ToolOkAsItIs", "ToolInResult", "ToolAsJson"];
    let closure = call::closure(handler, |returned| converted("for_tool", &traits, handler, returned));
    let run = at_returned("run", handler);
    Built {
        kind: quote!(::trunkline::Tool),
        value: quote! {{
            #items
            ::trunkline::Tool::new(#name) #described #hints #replay #(#mirrors)* .#run(#closure)
        }},
    }
}

fn hints(options: &mut Options, problems: &mut Problems) -> TokenStream {
    let read_only = options.flag("read_only", problems).then(|| quote!(.read_only()));
    let destructive = options.truth("destructive", problems).map(|destructive| match destructive {
        true => quote!(.destructive()),
        false => quote!(.additive()),
    });
    let idempotent = options.flag("idempotent", problems).then(|| quote!(.idempotent()));
    let open_world = options.truth("open_world", problems).map(|open| quote!(.open_world(#open)));
    quote!(#read_only #destructive #idempotent #open_world)
}
