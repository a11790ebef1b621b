//! The signature and attributes of a function that becomes the handler of a part.

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, Ident, Receiver as SelfParameter, ReturnType, Signature, Type};

use crate::docs;
use crate::errors::MacroErrors;
use crate::parameter::{ArgumentParameter, HandlerParameter, InputParameter};
use crate::part::PartKind;

/// The most input requests of one round.
const MAX_INPUTS: usize = 4;

/// The properties of a function that the expansion needs.
pub(crate) struct HandlerSignature {
    pub(crate) name: Ident,
    pub(crate) context: FunctionContext,
    /// The doc comment, as an expression.
    pub(crate) description: Option<TokenStream>,
    pub(crate) is_async: bool,
    pub(crate) receiver: SelfReceiver,
    pub(crate) parameters: Vec<HandlerParameter>,
    /// The span of its return type.
    pub(crate) returns: Span,
}

/// How a method takes the shared value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelfReceiver {
    /// Not at all.
    None,
    /// `&self`
    Reference,
    /// `self: Arc<Self>`
    Shared,
}

/// Where a function is defined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionContext {
    Free,
    ImplBlock,
}

impl HandlerSignature {
    /// Reads a function, and removes the macro's own attributes of its parameters.
    pub(crate) fn read(
        part: PartKind,
        context: FunctionContext,
        attributes: &[Attribute],
        signature: &mut Signature,
        problems: &mut MacroErrors,
    ) -> Self {
        check_signature(part, signature, problems);
        let mut receiver = SelfReceiver::None;
        let mut parameters = Vec::new();
        let mut contexts = 0;
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(this) => receiver = read_receiver(this, part, context, problems),
                FnArg::Typed(parameter) => {
                    let read = HandlerParameter::read(parameter, part, problems);
                    contexts += usize::from(matches!(read, Some(HandlerParameter::Context)));
                    if contexts > 1 && matches!(read, Some(HandlerParameter::Context)) {
                        problems.add(parameter, "there is only one context; take it once");
                    }
                    parameters.extend(read);
                }
            }
        }
        let returns = match &signature.output {
            ReturnType::Default => signature.ident.span(),
            ReturnType::Type(_, returned) => returned.span(),
        };
        let handler = Self {
            name: signature.ident.clone(),
            context,
            description: docs::description(attributes),
            is_async: signature.asyncness.is_some(),
            receiver,
            parameters,
            returns,
        };
        handler.check_names(signature, problems);
        handler
    }

    fn check_names(&self, signature: &Signature, problems: &mut MacroErrors) {
        if self.inputs().count() > MAX_INPUTS {
            let message = format!(
                "at most {MAX_INPUTS} questions can be asked at once; put several into one type that derives `Form`"
            );
            problems.add(&signature.inputs, message);
        }
        let mut names = Vec::new();
        for argument in self.arguments() {
            if names.contains(&argument.name.as_str()) {
                let name = &argument.name;
                problems.add(&argument.ident, format_args!("two parameters have the name `{name}`"));
            }
            names.push(&argument.name);
        }
        let mut keys = Vec::new();
        for question in self.inputs() {
            if keys.contains(&question.key.as_str()) {
                let key = &question.key;
                problems.add(&question.message, format_args!("two questions have the key `{key}`"));
            }
            keys.push(&question.key);
        }
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &ArgumentParameter> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            HandlerParameter::Argument(argument) => Some(&**argument),
            _ => None,
        })
    }

    pub(crate) fn inputs(&self) -> impl Iterator<Item = &InputParameter> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            HandlerParameter::Input(question) => Some(&**question),
            _ => None,
        })
    }

    pub(crate) fn takes_context(&self) -> bool {
        self.parameters.iter().any(|parameter| matches!(parameter, HandlerParameter::Context))
    }
}

fn check_signature(part: PartKind, signature: &Signature, problems: &mut MacroErrors) {
    if !signature.generics.params.is_empty() {
        let message = format!("a {part} cannot be generic, since callers see one schema; name the types");
        problems.add(&signature.generics, message);
    }
    if let Some(word) = &signature.unsafety {
        problems.add(word, format_args!("a {part} cannot be unsafe, since anybody may call it"));
    }
    if let Some(word) = &signature.constness {
        problems.add(word, format_args!("a {part} cannot be const; take the word away"));
    }
    if let Some(words) = &signature.abi {
        problems.add(words, format_args!("a {part} is a Rust function; take the ABI away"));
    }
    if let Some(dots) = &signature.variadic {
        problems.add(dots, format_args!("a {part} has a fixed number of parameters; take a `Vec`"));
    }
}

fn read_receiver(
    this: &SelfParameter,
    part: PartKind,
    context: FunctionContext,
    problems: &mut MacroErrors,
) -> SelfReceiver {
    if context == FunctionContext::Free {
        let message =
            format!("`#[{part}]` on a method needs `#[parts]` on its `impl` block; a function has no `self`");
        problems.add(this, message);
        return SelfReceiver::None;
    }
    if this.reference.is_some() && this.mutability.is_none() && this.colon_token.is_none() {
        return SelfReceiver::Reference;
    }
    if this.colon_token.is_some() && is_arc(&this.ty) {
        return SelfReceiver::Shared;
    }
    problems.add(
        this,
        "take `&self` or `self: Arc<Self>`, since calls run at the same time; what changes goes into a `Mutex`",
    );
    SelfReceiver::None
}

fn is_arc(kind: &Type) -> bool {
    match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Arc"),
        _ => false,
    }
}
