use super::Secret;

/// The replacement of a secret.
const REPLACEMENT: &str = "[secret]";

/// The shortest secret that is redacted. A shorter value is a word rather than a key, and would match everywhere.
const MIN_SECRET_LENGTH: usize = 8;

/// Redacts secrets in the texts of a message, which must be JSON.
///
/// It is the last safeguard and not the protection: it finds a secret that a handler repeats, not one that it
/// encodes. Keys of objects, and the members of the message itself, are not changed.
pub(crate) fn redact(message: String, secrets: &[Secret]) -> String {
    let mut secrets: Vec<&str> =
        secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= MIN_SECRET_LENGTH).collect();
    // One secret may be a part of another; were it replaced first, the rest of the longer one would stay.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    // A text without escapes holds a secret only if the message does as well.
    let may_hold =
        |message: &str| message.contains('\\') || secrets.iter().any(|secret| message.contains(secret));
    if secrets.is_empty() || !may_hold(&message) { message } else { rewrite(&message, &secrets) }
}

fn rewrite(message: &str, secrets: &[&str]) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    let mut depth = 0_usize;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let token = if from.starts_with('"') { string_length(from) } else { 1 };
        match from.as_bytes().first() {
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let (token, after) = from.split_at_checked(token).unwrap_or((from, ""));
        let is_key = after.trim_start().starts_with(':');
        match redact_string(token, secrets).filter(|_| depth > 1 && !is_key) {
            Some(clean) => out.push_str(&clean),
            None => out.push_str(token),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the length of the string literal that a text begins with.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            // The opening quote counts as escaped, so that it does not end the literal.
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns a string literal without the secrets in it; `None` if there are none, or it is no such literal.
fn redact_string(literal: &str, secrets: &[&str]) -> Option<String> {
    let text: String = serde_json::from_str(literal).ok()?;
    let found = secrets.iter().filter(|secret| text.contains(**secret));
    let clean = found.fold(None, |clean: Option<String>, secret| {
        Some(clean.as_ref().unwrap_or(&text).replace(secret, REPLACEMENT))
    })?;
    serde_json::to_string(&clean).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redaction_replaces_secrets_only_in_string_values() {
        let secrets = [
            Secret::new("sk-12345678"),
            Secret::new("sk-12345678-and-more"),
            Secret::new("quo\"te\\d\n!"),
            Secret::new("short"),
        ];
        for (message, expected) in [
            (r#"{"a":{"text":"no secret"}}"#, r#"{"a":{"text":"no secret"}}"#),
            (r#"{"a":{"text":"sk-12345678-and-more"}}"#, r#"{"a":{"text":"[secret]"}}"#),
            (r#"{"a":{"text":"is sk-12345678."}}"#, r#"{"a":{"text":"is [secret]."}}"#),
            (r#"{"a":["sk-12345678","sk-12345678x"]}"#, r#"{"a":["[secret]","[secret]x"]}"#),
            (r#"{"a":{"sk-12345678":"sk-12345678"}}"#, r#"{"a":{"sk-12345678":"[secret]"}}"#),
            (r#"{"a":{"text":"sk\u002d12345678"}}"#, r#"{"a":{"text":"[secret]"}}"#),
            (r#"{"a":{"text":"<quo\"te\\d\n!>"}}"#, r#"{"a":{"text":"<[secret]>"}}"#),
            (r#"{"a":{"t":"\"","b":"{sk-12345678"}}"#, r#"{"a":{"t":"\"","b":"{[secret]"}}"#),
            (r#"{"id":"sk-12345678","a":{"t":"short"}}"#, r#"{"id":"sk-12345678","a":{"t":"short"}}"#),
            (r#"{"a":{ "t" : "sk-12345678" , "n" : 1 }}"#, r#"{"a":{ "t" : "[secret]" , "n" : 1 }}"#),
        ] {
            assert_eq!(redact(message.to_owned(), &secrets), expected);
        }
    }

    #[test]
    fn redaction_of_truncated_json_never_fails() {
        let secrets = [Secret::new("sk-12345678")];
        let whole = r#"{"a":{"t":"\"sk-12345678é","b":[1,"x\\"]}}"#;
        for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let prefix = whole.get(..end).unwrap();
            assert!(redact(prefix.to_owned(), &secrets).len() <= prefix.len());
        }
    }
}
