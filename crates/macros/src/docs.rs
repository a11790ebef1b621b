use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the text of doc comments as an expression, if there is any.
pub(crate) fn description(attributes: &[Attribute]) -> Option<TokenStream> {
    let docs: Vec<&Expr> = attributes.iter().filter_map(doc).collect();
    let lines: Option<Vec<String>> = docs.iter().map(|doc| literal(doc)).collect();
    match lines {
        Some(lines) => {
            let text = join(&lines);
            (!text.is_empty()).then(|| text.to_token_stream())
        }
        // Such as `#[doc = include_str!("…")]`.
        None => Some(quote!(::core::concat!(#(#docs, "\n"),*).trim())),
    }
}

fn doc(attribute: &Attribute) -> Option<&Expr> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
        _ => None,
    }
}

fn literal(doc: &Expr) -> Option<String> {
    match doc {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Joins the lines of a comment, without their leading space.
fn join(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_text_without_their_indentation() {
        for (lines, expected) in [
            (&[][..], ""),
            (&[" Adds two integers."], "Adds two integers."),
            (&[" One.", "", "   - two ", " "], "One.\n\n  - two"),
            (&["\n One.\n Two.\n "], "One.\nTwo."),
        ] {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            assert_eq!(join(&lines), expected);
        }
    }
}
