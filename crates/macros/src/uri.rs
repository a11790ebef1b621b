/// Returns the names of the variables in a URI template, each once.
///
/// # Errors
/// Returns a message if the template is not valid.
pub(crate) fn variables(template: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        reject_stray(literal)?;
        let (expression, after) =
            after.split_once('}').ok_or("the URI has a `{` that is never closed; close it with `}`")?;
        let listed = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
        for name in listed.split(',') {
            check(name, expression)?;
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        rest = after;
    }
    reject_stray(rest)?;
    Ok(names)
}

fn reject_stray(literal: &str) -> Result<(), String> {
    match literal.contains('}') {
        true => Err("the URI has a `}` without its `{`".to_owned()),
        false => Ok(()),
    }
}

fn check(name: &str, expression: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.%".contains(c);
    if !name.is_empty() && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!(
        "`{{{expression}}}` is not a variable of a URI template; write `{{name}}`, and for more `{{+path}}` or `{{?a,b}}`"
    ))
}

/// Reports whether a text begins with a scheme, as every URI does.
pub(crate) fn has_scheme(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    !rest.is_empty() && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_every_kind_of_expression() {
        for (template, expected) in [
            ("demo://about", Some("")),
            ("users://{id}/profile", Some("id")),
            ("x://{a}/{b}/{a}", Some("a b")),
            ("file:///{+path}{?from,to}{#line}", Some("path from to line")),
            ("x://{a.b}", Some("a.b")),
            ("x://{}", None),
            ("x://{a", None),
            ("x://a}", None),
            ("x://{a*}", None),
            ("x://{a:3}", None),
            ("x://{a,}", None),
            ("x://{{a}}", None),
        ] {
            let found = variables(template).ok().map(|names| names.join(" "));
            assert_eq!(found.as_deref(), expected, "{template}");
        }
    }

    #[test]
    fn uris_begin_with_a_scheme() {
        for (uri, expected) in
            [("demo://about", true), ("x-y+1.z:a", true), ("about", false), ("a/b:c", false), ("a:", false)]
        {
            assert_eq!(has_scheme(uri), expected, "{uri}");
        }
    }
}
