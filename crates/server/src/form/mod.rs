//! Forms made of fields with types: what `#[derive(Form)]` expands to.

mod choice;
mod field;
mod field_type;
#[cfg(test)]
mod tests;

pub use self::choice::FormChoice;
pub use self::field::{FieldDefinition, FormAnswers, FormSchema};
pub use self::field_type::{BoundedField, FormField, TextField};
