use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A type that an argument of a function can have.
///
/// The attribute macros name types through it, so that a type without an implementation produces one readable
/// compiler error, and not the errors of the generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that an argument can have",
    label = "an argument cannot be read into this",
    note = "an argument is text, a number, a boolean, an `Option` or `Vec` of something that can be one, or a type that \
            derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait Argument {
    /// The type itself.
    type Itself;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {
    type Itself = T;
}
