use serde_json::{Value, json};
use trunkline::prelude::*;
use trunkline::protocol::RawJson;

#[derive(Form, Debug, PartialEq)]
enum Size {
    Small,
    Large,
}

/// Which colour?
#[derive(Form, Debug, PartialEq, Default)]
enum Colour {
    /// Like the sky
    #[form(name = "blue")]
    Blue,
    #[default]
    #[form(title = "Rosso")]
    Red,
}

#[derive(Form, Debug, PartialEq)]
struct Order {
    /// Who orders.
    #[form(title = "Name", min = 1, max = 20)]
    name: String,
    #[form(format = "email", name = "e-mail")]
    email: Option<String>,
    #[form(min = 1, max = 9, default = 1)]
    pieces: u8,
    #[form(min = -0.5)]
    discount: Option<f64>,
    #[form(default)]
    gift: bool,
    size: Size,
    #[form(default)]
    colour: Colour,
    #[form(max = 2)]
    others: Vec<Colour>,
    #[form(default = "none")]
    r#type: String,
}

fn schema<T: Form>() -> Value {
    T::schema().decode().unwrap()
}

fn read<T: Form>(content: Value) -> Result<T, String> {
    T::read(&RawJson::from(content))
}

#[test]
fn struct_becomes_a_form_with_its_fields_in_order() {
    let colours = json!([{ "const": "blue", "title": "Like the sky" }, { "const": "Red", "title": "Rosso" }]);
    assert_eq!(
        schema::<Order>(),
        json!({
            "type": "object",
            "properties": {
                "name": {
                    "type": "string", "title": "Name", "description": "Who orders.", "minLength": 1, "maxLength": 20,
                },
                "e-mail": { "type": "string", "format": "email" },
                "pieces": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
                "discount": { "type": "number", "minimum": -0.5 },
                "gift": { "type": "boolean", "default": false },
                "size": { "type": "string", "enum": ["Small", "Large"] },
                "colour": { "type": "string", "oneOf": colours, "default": "Red" },
                "others": { "type": "array", "items": { "anyOf": colours }, "maxItems": 2 },
                "type": { "type": "string", "default": "none" },
            },
            "required": ["name", "size", "others"],
        })
    );
    let written = Order::schema();
    let places: Vec<_> =
        ["\"name\"", "\"pieces\"", "\"colour\""].map(|key| written.as_str().find(key)).into();
    assert!(places.is_sorted(), "{}", written.as_str());
}

#[test]
fn answers_become_the_type() {
    let least = json!({ "name": "Ann", "size": "Large", "others": [] });
    let expected = Order {
        name: "Ann".to_owned(),
        email: None,
        pieces: 1,
        discount: None,
        gift: false,
        size: Size::Large,
        colour: Colour::Red,
        others: vec![],
        r#type: "none".to_owned(),
    };
    assert_eq!(read::<Order>(least), Ok(expected));
    let most = json!({
        "name": "Ann", "e-mail": "ann@example.com", "pieces": 9, "discount": 0.5, "gift": true, "size": "Small",
        "colour": "blue", "others": ["Red", "blue"], "type": "x",
    });
    let expected = Order {
        name: "Ann".to_owned(),
        email: Some("ann@example.com".to_owned()),
        pieces: 9,
        discount: Some(0.5),
        gift: true,
        size: Size::Small,
        colour: Colour::Blue,
        others: vec![Colour::Red, Colour::Blue],
        r#type: "x".to_owned(),
    };
    assert_eq!(read::<Order>(most), Ok(expected));
}

#[test]
fn answers_that_do_not_fit_name_the_field() {
    for (change, expected) in [
        (json!({ "name": null }), "`name` is missing"),
        (json!({ "pieces": 10 }), "`pieces` must be at most 9"),
        (json!({ "size": "Huge" }), "`size` must be one of `Small`, `Large`"),
        (json!({ "others": "Red" }), "`others` must be a list"),
    ] {
        let mut content = json!({ "name": "Ann", "size": "Large", "others": [] });
        content.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert_eq!(read::<Order>(content), Err(expected.to_owned()));
    }
}

#[test]
fn enum_becomes_a_form_with_one_choice() {
    let choices = json!([{ "const": "blue", "title": "Like the sky" }, { "const": "Red", "title": "Rosso" }]);
    let choice = json!({ "type": "string", "oneOf": choices, "description": "Which colour?" });
    let expected = json!({ "type": "object", "properties": { "choice": choice }, "required": ["choice"] });
    assert_eq!(schema::<Colour>(), expected);
    assert_eq!(read(json!({ "choice": "blue" })), Ok(Colour::Blue));
}
