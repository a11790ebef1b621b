use serde_json::{Value, json};
use trunkline_protocol::RawJson;

use super::*;

#[derive(Debug, PartialEq)]
enum FormSize {
    Small,
    Large,
}

impl FormChoice for FormSize {
    const CHOICES: &'static [(&'static str, Option<&'static str>)] =
        &[("small", None), ("large", Some("As large as it gets"))];

    fn value(&self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }

    fn from_value(value: &str) -> Option<Self> {
        match value {
            "small" => Some(Self::Small),
            "large" => Some(Self::Large),
            _ => None,
        }
    }
}

#[track_caller]
fn assert_described<T: FormField>(field: &FieldDefinition<T>, required: bool, expected: &Value) {
    let schema: Value = FormSchema::default().with(field).finish().decode().unwrap();
    assert_eq!(schema["properties"]["x"], *expected);
    assert_eq!(schema.get("required"), required.then(|| json!(["x"])).as_ref(), "{expected}");
}

fn read<T: FormField>(field: &FieldDefinition<T>, x: &Value) -> Result<T, String> {
    let content = if x.is_null() { json!({}) } else { json!({ "x": x }) };
    FormAnswers::read(&content.into())?.field(field)
}

#[test]
fn fields_are_described_by_their_types_and_bounds() {
    let text =
        FieldDefinition::<String>::new("x").title("X").description("What?").format("email").min(1.0).max(5.0);
    let described = json!({
        "type": "string", "title": "X", "description": "What?", "format": "email", "minLength": 1, "maxLength": 5,
    });
    assert_described(&text, true, &described);
    let number = json!({ "type": "integer", "minimum": -1, "maximum": 9.5, "default": 3 });
    assert_described(&FieldDefinition::<i64>::new("x").min(-1.0).max(9.5).default_with(|| 3), false, &number);
    assert_described(&FieldDefinition::<Option<f32>>::new("x"), false, &json!({ "type": "number" }));
    assert_described(&FieldDefinition::<bool>::new("x"), true, &json!({ "type": "boolean" }));
    let titled =
        json!([{ "const": "small", "title": "small" }, { "const": "large", "title": "As large as it gets" }]);
    assert_described(
        &FieldDefinition::<FormSize>::new("x").default_with(|| FormSize::Small),
        false,
        &json!({ "type": "string", "oneOf": titled, "default": "small" }),
    );
    assert_described(
        &FieldDefinition::<Vec<FormSize>>::new("x").max(1.0),
        true,
        &json!({ "type": "array", "items": { "anyOf": titled }, "maxItems": 1 }),
    );
}

#[test]
fn form_fields_keep_their_order() {
    let form = FormSchema::default()
        .with(&FieldDefinition::<bool>::new("z"))
        .with(&FieldDefinition::<bool>::new("a"))
        .finish();
    let properties = r#""properties":{"z":{"type":"boolean"},"a":{"type":"boolean"}}"#;
    assert_eq!(form.as_str(), format!(r#"{{"type":"object",{properties},"required":["z","a"]}}"#));
}

#[test]
fn form_responses_are_parsed_and_invalid_fields_named() {
    let level = FieldDefinition::<u8>::new("x").min(1.0).max(5.0);
    for (given, expected) in [
        (json!(3), Ok(3)),
        (json!(0), Err("`x` must be at least 1")),
        (json!(6), Err("`x` must be at most 5")),
        (json!(-1), Err("`x` must be an integer that is not negative")),
        (json!("3"), Err("`x` must be an integer that is not negative")),
        (Value::Null, Err("`x` is missing")),
    ] {
        assert_eq!(read(&level, &given), expected.map_err(str::to_owned));
    }
    assert_eq!(read(&FieldDefinition::<u8>::new("x").default_with(|| 7), &Value::Null), Ok(7));
    assert_eq!(read(&FieldDefinition::<Option<u8>>::new("x"), &Value::Null), Ok(None));
    assert_eq!(read(&FieldDefinition::<Option<u8>>::new("x").max(3.0), &json!(2)), Ok(Some(2)));
    assert_eq!(read(&FieldDefinition::<String>::new("x").max(2.0), &json!("äö")), Ok("äö".to_owned()));
    let long = read(&FieldDefinition::<String>::new("x").max(2.0), &json!("abc")).unwrap_err();
    assert_eq!(long, "`x` must have a length of at most 2");
    assert_eq!(read(&FieldDefinition::<FormSize>::new("x"), &json!("large")), Ok(FormSize::Large));
    let unknown = read(&FieldDefinition::<FormSize>::new("x"), &json!("huge")).unwrap_err();
    assert_eq!(unknown, "`x` must be one of `small`, `large`");
    let several = FieldDefinition::<Vec<FormSize>>::new("x").min(1.0);
    assert_eq!(read(&several, &json!(["large", "small"])), Ok(vec![FormSize::Large, FormSize::Small]));
    assert_eq!(read(&several, &json!([])).unwrap_err(), "`x` must choose at least 1");
    assert!(FormAnswers::read(&RawJson::parse("[1]").unwrap()).is_err());
}
