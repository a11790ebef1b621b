use proc_macro2::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, ExprLit, ExprUnary, Ident, Lit, LitStr, Meta, Token, UnOp, ext::IdentExt as _};

use crate::errors::MacroErrors;

/// The options of an attribute, `key` or `key = value` separated by commas, that are not taken yet.
#[derive(Default)]
pub(crate) struct AttributeOptions {
    entries: Vec<OptionEntry>,
}

struct OptionEntry {
    key: Ident,
    value: Option<Expr>,
}

impl Parse for AttributeOptions {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let entries = input.parse_terminated(OptionEntry::parse, Token![,])?;
        Ok(Self { entries: entries.into_iter().collect() })
    }
}

impl Parse for OptionEntry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(error.span(), "expected an option: `key` or `key = value`, with commas between")
        })?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { key, value })
    }
}

impl AttributeOptions {
    /// Adds the options of another attribute.
    pub(crate) fn extend(&mut self, more: Self) {
        self.entries.extend(more.entries);
    }

    /// Takes an option with a text value.
    pub(crate) fn text(&mut self, key: &str, problems: &mut MacroErrors) -> Option<LitStr> {
        let entry = self.take(key)?;
        match &entry.value {
            Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => Some(text.clone()),
            Some(value) => {
                problems.add(value, format_args!("`{key}` is text: write `{key} = \"…\"`"));
                None
            }
            None => {
                problems.add(&entry.key, format_args!("`{key}` needs a text: write `{key} = \"…\"`"));
                None
            }
        }
    }

    /// Takes an option that is true without a value, or has the value true or false.
    pub(crate) fn boolean(&mut self, key: &str, problems: &mut MacroErrors) -> Option<bool> {
        let entry = self.take(key)?;
        match &entry.value {
            None => Some(true),
            Some(Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. })) => Some(truth.value),
            Some(value) => {
                problems.add(value, format_args!("`{key}` is true or false"));
                None
            }
        }
    }

    /// Takes an option without a value.
    pub(crate) fn flag(&mut self, key: &str, problems: &mut MacroErrors) -> bool {
        let Some(entry) = self.take(key) else { return false };
        if let Some(value) = &entry.value {
            problems.add(value, format_args!("`{key}` has no value: write `{key}`, or leave it out"));
        }
        true
    }

    /// Takes an option with a number as its value.
    pub(crate) fn number(&mut self, key: &str, problems: &mut MacroErrors) -> Option<Expr> {
        let entry = self.take(key)?;
        match entry.value {
            Some(value) if is_number(&value) => Some(value),
            value => {
                let message = format!("`{key}` needs a number: write `{key} = 1`");
                match value {
                    Some(value) => problems.add(value, message),
                    None => problems.add(&entry.key, message),
                }
                None
            }
        }
    }

    /// Takes an option with any value; the inner `Option` is `None` without a value.
    pub(crate) fn expression(&mut self, key: &str) -> Option<Option<Expr>> {
        self.take(key).map(|entry| entry.value)
    }

    fn take(&mut self, key: &str) -> Option<OptionEntry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Reports the options that were not taken, after all of `known` were tried.
    pub(crate) fn finish(self, owner: &str, known: &[&str], problems: &mut MacroErrors) {
        for OptionEntry { key, .. } in self.entries {
            if known.iter().any(|known| key == known) {
                problems.add(&key, format_args!("`{key}` is given twice"));
            } else {
                let known = join_words(known);
                problems.add(&key, format_args!("there is no option `{key}`; {owner} takes {known}"));
            }
        }
    }
}

fn is_number(value: &Expr) -> bool {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => matches!(lit, Lit::Int(_) | Lit::Float(_)),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => is_number(expr),
        _ => false,
    }
}

/// Joins words as code with commas and an "and".
pub(crate) fn join_words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "no options".to_owned(),
    }
}

/// Returns the tokens in the brackets of an attribute, if there are any.
pub(crate) fn attribute_tokens(attribute: &Attribute) -> syn::Result<TokenStream> {
    match &attribute.meta {
        Meta::Path(_) => Ok(TokenStream::new()),
        Meta::List(list) => Ok(list.tokens.clone()),
        Meta::NameValue(pair) => {
            Err(syn::Error::new_spanned(pair, "write what belongs to the attribute in brackets: `(…)`"))
        }
    }
}
