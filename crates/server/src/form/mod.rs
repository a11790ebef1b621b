//! Forms made of fields with types: what `#[derive(Form)]` expands to.

mod choice;
mod field;
mod kind;
#[cfg(test)]
mod tests;

pub use self::choice::Choice;
pub use self::field::{Field, FormAnswers, FormSchema};
pub use self::kind::{Bounded, FormField, TextField};
