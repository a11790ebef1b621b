use syn::{Ident, LitStr, ext::IdentExt as _};

use crate::errors::MacroErrors;

/// The most characters that a name may have.
const MAX_CHARACTERS: usize = 128;

/// Returns the name of a part: the one that was given, or that of its function.
pub(crate) fn of_part(given: Option<LitStr>, function: &Ident) -> LitStr {
    given.unwrap_or_else(|| LitStr::new(&function.unraw().to_string(), function.span()))
}

/// Checks what some clients demand of the name of a tool; a server would refuse it too, but only when it is built.
pub(crate) fn check_tool(name: &LitStr, problems: &mut MacroErrors) {
    let text = name.value();
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !(1..=MAX_CHARACTERS).contains(&text.chars().count()) || !text.chars().all(legal) {
        problems.add(
            name,
            format_args!(
                "the name of a tool is 1 to {MAX_CHARACTERS} letters, digits, `_`, `-` and `.`; give another with \
                 `#[tool(name = \"…\")]`"
            ),
        );
    }
}
