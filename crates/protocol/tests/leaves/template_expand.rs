use std::borrow::Cow;

use proptest::prelude::*;
use trunkline_protocol::template::{MAX_LENGTH, MAX_VARIABLES, TemplateError, UriTemplate};

/// The string values that RFC 6570 defines for its examples in section 3.2.
const VALUES: [(&str, &str); 16] = [
    ("dub", "me/too"),
    ("hello", "Hello World!"),
    ("half", "50%"),
    ("var", "value"),
    ("who", "fred"),
    ("base", "http://example.com/home/"),
    ("path", "/foo/bar"),
    ("v", "6"),
    ("x", "1024"),
    ("y", "768"),
    ("empty", ""),
    ("semi", ";"),
    ("dom.a", "example"),
    ("dom_b", "com"),
    ("%20", "blank"),
    ("lang", "en/é"),
];

fn expand(template: &str) -> String {
    let value_of =
        |name: &str| VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| Cow::Borrowed(*value));
    UriTemplate::parse(template).unwrap().expand(value_of)
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (template, expected) in table {
        assert_eq!(expand(template), *expected, "template {template}");
    }
}

#[test]
fn simple_expressions_expand_as_in_the_rfc() {
    check(&[
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("map?{x,y}", "map?1024,768"),
    ]);
}

#[test]
fn reserved_expressions_expand_as_in_the_rfc() {
    check(&[
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("O{+undef}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
    ]);
}

#[test]
fn fragment_label_and_path_expressions_expand_as_in_the_rfc() {
    check(&[
        ("{#var}", "#value"),
        ("{#hello}", "#Hello%20World!"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("X{.var}", "X.value"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("{/who}", "/fred"),
        ("{/who,who}", "/fred/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var}", "/value"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
    ]);
}

#[test]
fn named_expressions_expand_as_in_the_rfc() {
    check(&[
        ("{;who}", ";who=fred"),
        ("{;half}", ";half=50%25"),
        ("{;empty}", ";empty"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,bar,who}", ";v=6;who=fred"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;x,y,undef}", ";x=1024;y=768"),
        ("{?who}", "?who=fred"),
        ("{?half}", "?half=50%25"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?undef,y}", "?y=768"),
        ("{&who}", "&who=fred"),
        ("{&half}", "&half=50%25"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ("{&x,y,undef}", "&x=1024&y=768"),
    ]);
}

#[test]
fn names_and_literals_may_hold_escapes_and_other_scripts() {
    check(&[
        ("", ""),
        ("{dom.a}.{dom_b}", "example.com"),
        ("{%20}", "blank"),
        ("{semi}", "%3B"),
        ("{lang}", "en%2F%C3%A9"),
        ("a%c3b/é", "a%c3b/%C3%A9"),
        ("it's:(all)/[fine]", "it's:(all)/[fine]"),
    ]);
    let escaped = UriTemplate::parse("{+v}").unwrap().expand(|_| Some("a%20b%2 é%é".into()));
    assert_eq!(escaped, "a%20b%252%20%C3%A9%25%C3%A9");
}

#[test]
fn variables_are_listed_once_in_order() {
    let template = UriTemplate::parse("{b}{/a,b}{?c}").unwrap();
    assert_eq!(template.variables(), ["b", "a", "c"]);
    assert_eq!(template.as_str(), "{b}{/a,b}{?c}");
}

#[test]
fn bad_templates_are_refused() {
    use TemplateError::{BadEscape, BadLiteral, BadName, Modifier, ReservedOperator, Unclosed};
    let table = [
        ("{a", Unclosed),
        ("a{", Unclosed),
        ("a}", BadLiteral('}')),
        ("a b", BadLiteral(' ')),
        ("a\nb", BadLiteral('\n')),
        ("<a>", BadLiteral('<')),
        ("100%", BadEscape),
        ("%zz{a}", BadEscape),
        ("{}", BadName(String::new())),
        ("{?}", BadName(String::new())),
        ("{a,}", BadName(String::new())),
        ("{a b}", BadName("a b".into())),
        ("{a.}", BadName("a.".into())),
        ("{.a..b}", BadName("a..b".into())),
        ("{a-b}", BadName("a-b".into())),
        ("{%2}", BadName("%2".into())),
        ("{{a}}", BadName("{a".into())),
        ("{é}", BadName("é".into())),
        ("{a*}", Modifier("a*".into())),
        ("{/id*}", Modifier("id*".into())),
        ("{a:3}", Modifier("a:3".into())),
        ("{=a}", ReservedOperator('=')),
        ("{|a}", ReservedOperator('|')),
        ("{,a}", ReservedOperator(',')),
    ];
    for (template, expected) in table {
        assert_eq!(UriTemplate::parse(template).err(), Some(expected), "template {template}");
    }
}

#[test]
fn template_size_is_bounded() {
    assert!(UriTemplate::parse(&"a".repeat(MAX_LENGTH)).is_ok());
    assert_eq!(UriTemplate::parse(&"a".repeat(MAX_LENGTH + 1)).err(), Some(TemplateError::TooLong));
    assert!(UriTemplate::parse(&"{a}".repeat(MAX_VARIABLES)).is_ok());
    let list = format!("{{a{}}}", ",a".repeat(MAX_VARIABLES));
    assert_eq!(UriTemplate::parse(&list).err(), Some(TemplateError::TooManyVariables));
}

proptest! {
    #[test]
    fn parsing_any_text_never_panics_and_what_parses_expands(source in any::<String>(), value in any::<String>()) {
        if let Ok(template) = UriTemplate::parse(&source) {
            let uri = template.expand(|_| Some(Cow::Borrowed(&value)));
            prop_assert!(uri.is_ascii());
        }
    }
}
