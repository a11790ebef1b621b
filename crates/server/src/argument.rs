use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A type that an argument of a function can have.
///
/// The attributes of functions name types through it, so that one which cannot be read is told in one sentence and not in those
/// of the code that they make.
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
