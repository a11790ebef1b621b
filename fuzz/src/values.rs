//! Values in headers and URIs.

use std::borrow::Cow;

use trunkline_protocol::header::{decode_value, encode_value, matches};
use trunkline_protocol::template::UriTemplate;

/// Reads the bytes as a header's value, and sends them through a header if they are text.
pub fn header_values(data: &[u8]) {
    if let Ok(value) = decode_value(data) {
        assert!(matches(data, &value));
        let encoded = encode_value(&value);
        assert_eq!(decode_value(encoded.as_bytes()), Ok(value.clone()));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let encoded = encode_value(text);
        assert!(encoded.bytes().all(|byte| matches!(byte, 0x20..=0x7E)));
        assert_eq!(decode_value(encoded.as_bytes()), Ok(Cow::Borrowed(text)));
        assert!(matches(encoded.as_bytes(), text));
    }
}

/// Parses a template, matches a URI against it, and matches what the template expands to.
///
/// The first line is the template and the rest the URI.
pub fn uri_template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (source, uri) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(template) = UriTemplate::parse(source) else { return };
    let names = template.variables();
    if let Some(values) = template.match_uri(uri) {
        for (index, (name, _)) in values.iter().enumerate() {
            assert!(names.contains(name), "an unknown variable has a value");
            assert!(
                values.iter().skip(index + 1).all(|(other, _)| other != name),
                "a variable has two values"
            );
        }
    }
    let expanded = template.expand(|_| Some(Cow::Borrowed(uri)));
    assert!(expanded.is_ascii(), "an expansion is not a URI");
    // Where only one variable is mentioned, a plain letter in its place can always be read back.
    if let [name] = names.as_slice()
        && source.matches('{').count() == 1
        && !source.contains(',')
    {
        let plain = template.expand(|_| Some(Cow::Borrowed("v")));
        assert_eq!(template.match_uri(&plain), Some(vec![(*name, "v".to_owned())]), "uri {plain}");
    }
}
