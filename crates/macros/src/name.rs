use syn::{Ident, LitStr, ext::IdentExt as _};

use crate::errors::MacroErrors;

/// The longest tool name.
const MAX_CHARACTERS: usize = 128;

/// Returns the name of a part: the explicit one, or that of its function.
pub(crate) fn of_part(explicit: Option<LitStr>, function: &Ident) -> LitStr {
    explicit.unwrap_or_else(|| LitStr::new(&function.unraw().to_string(), function.span()))
}

/// Checks the name of a tool against the rules of some clients; a server would reject it too, but only at run time.
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
