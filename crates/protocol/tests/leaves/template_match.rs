use std::borrow::Cow;

use proptest::prelude::*;
use trunkline_protocol::template::{MAX_LENGTH, UriTemplate};

/// Writes the matched variables as `a=1 b=2`, or `-` if nothing matched.
fn outcome(template: &str, uri: &str) -> String {
    let template = UriTemplate::parse(template).unwrap();
    let Some(values) = template.match_uri(uri) else { return "-".to_owned() };
    values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(table: &[(&str, &str, &str)]) {
    for (template, uri, expected) in table {
        assert_eq!(outcome(template, uri), *expected, "template {template}, uri {uri}");
    }
}

#[test]
fn simple_variables_match_one_segment() {
    check(&[
        ("users://{id}/profile", "users://7/profile", "id=7"),
        ("users://{id}/profile", "users://a%2Fb%20c/profile", "id=a/b c"),
        ("users://{id}/profile", "users://7/8/profile", "-"),
        ("users://{id}/profile", "users:///profile", "-"),
        ("users://{id}/profile", "users://7/profile/", "-"),
        ("users://{id}/profile", "Users://7/profile", "-"),
        ("users://{id}", "users://7?x", "-"),
        ("users://{id}", "users://7#x", "-"),
        ("{name}.{ext}", "archive.tar.gz", "name=archive.tar ext=gz"),
        ("{a}{b}", "xyz", "a=xy b=z"),
        ("{a}-{a}", "x-x", "a=x"),
        ("{a}-{a}", "x-y", "-"),
        ("{x,y}", "1,2", "x=1 y=2"),
        ("{x,y}", "1", "x=1"),
        ("{x,y}", "1,", "x=1 y="),
        ("{x,y}", "1,2,3", "-"),
        ("plain", "plain", ""),
        ("plain", "plainer", "-"),
        ("", "", ""),
    ]);
}

#[test]
fn reserved_variables_match_across_segments() {
    check(&[
        ("file:///{+path}", "file:///a/b.txt", "path=a/b.txt"),
        ("file:///{+path}", "file:///a%20b?c#d", "path=a b?c#d"),
        ("{+dir}/{name}", "a/b/c", "dir=a/b name=c"),
        ("{+a}-{b}", "x-y/z-w", "a=x-y/z b=w"),
        ("{a}-{+b}", "x-y/z-w", "a=x b=y/z-w"),
        ("{+x,y}", "/a,/b", "x=/a y=/b"),
        ("{+x,y}", "/a,/b,/c", "x=/a y=/b,/c"),
        ("doc{#part}", "doc#a/b", "part=a/b"),
        ("doc{#part}", "doc", ""),
        ("doc{#part}", "doc#", "part="),
    ]);
}

#[test]
fn label_and_path_expressions_match_their_prefix() {
    check(&[
        ("www{.dom}", "www.example.com", "dom=example.com"),
        ("www{.a,b}", "www.example.com", "a=example b=com"),
        ("www{.a,b}", "www.a.b.c", "a=a b=b.c"),
        ("www{.a}", "www", ""),
        ("a{/b,c}", "a/1/2", "b=1 c=2"),
        ("a{/b,c}", "a/1", "b=1"),
        ("a{/b,c}/z", "a/1/z", "b=1"),
        ("a{/b,c}", "a/", "b="),
        ("a{/b,c}", "a/1/2/3", "-"),
    ]);
}

#[test]
fn named_values_match_in_any_order() {
    check(&[
        ("s{?q,lang}", "s", ""),
        ("s{?q,lang}", "s?q=1&lang=en", "q=1 lang=en"),
        ("s{?q,lang}", "s?lang=en&q=1", "lang=en q=1"),
        ("s{?q,lang}", "s?lang=", "lang="),
        ("s{?q,lang}", "s?lang", "-"),
        ("s{?q,lang}", "s?other=1", "-"),
        ("s{?q,lang}", "s?q=1&q=2", "-"),
        ("s{?q,lang}", "s?q=1&", "-"),
        ("s{?q}{&lang}", "s?q=1&lang=en", "q=1 lang=en"),
        ("s?v=1{&q}", "s?v=1&q=2", "q=2"),
        ("s{?q}&fixed=1", "s?q=1&fixed=1", "q=1"),
        ("{a}{?q}", "x?q=y", "a=x q=y"),
        ("{a}{&q}", "x&q=y", "a=x q=y"),
        ("m{;x,y}", "m;y=2;x", "y=2 x="),
        ("m{;x}", "m;xy=2", "-"),
        ("m{;x}/e", "m;x=2/e", "x=2"),
        ("m{;x}/e", "m;x/e", "x="),
        ("s{?page}.json", "s?page=1.json", "page=1"),
        ("s{?a,page}.json", "s?page=1.json&a=2.json", "page=1.json a=2"),
        ("s{?%c3%a9}", "s?%C3%a9=1", "%C3%A9=1"),
    ]);
}

#[test]
fn unencoded_characters_match_in_lenient_mode() {
    check(&[
        ("users://{id}", "users://joe@example.com", "id=joe@example.com"),
        ("note://{title}", "note://two words", "title=two words"),
        ("note://{title}", "note://Zürich", "title=Zürich"),
        ("note://é/{title}", "note://é/x", "title=x"),
        ("note://é/{title}", "note://%c3%a9/x", "title=x"),
        ("s{?path}", "s?path=/a/b", "path=/a/b"),
        ("s{?a,b}", "s?a=x=y&b=1", "a=x=y b=1"),
    ]);
}

#[test]
fn broken_uris_match_nothing() {
    check(&[
        ("{+a}", "100%", "-"),
        ("{+a}", "%4", "-"),
        ("{+a}", "%zz", "-"),
        ("{+a}", "%FF", "-"),
        ("{+a}", "%C3", "-"),
        ("{+a}", "a\nb", "-"),
        ("{+a}", "a\0b", "-"),
        ("a%41", "a%41", ""),
        ("a%41", "aA", "-"),
        ("{a}1", "%41", "-"),
    ]);
}

#[test]
fn uri_length_is_bounded_in_its_encoded_form() {
    let template = UriTemplate::parse("{+a}").unwrap();
    assert!(template.match_uri(&"a".repeat(MAX_LENGTH)).is_some());
    assert!(template.match_uri(&"a".repeat(MAX_LENGTH + 1)).is_none());
    assert!(template.match_uri(&"é".repeat(MAX_LENGTH / 2)).is_none());
}

/// Templates and URIs on which a backtracking matcher would not finish in a lifetime.
#[test]
fn hostile_uris_match_without_backtracking() {
    let many = |expression: &str| UriTemplate::parse(&format!("{}!", expression.repeat(64))).unwrap();
    let long = "a".repeat(MAX_LENGTH);
    let pairs = "&a=".repeat(MAX_LENGTH / 3);
    let slashes = "/".repeat(MAX_LENGTH);
    for template in [many("{a}"), many("{+a}"), many("{/a}"), many("{.a}"), many("{&a}"), many("{+a}a")] {
        for uri in [&long, &pairs, &slashes] {
            assert!(template.match_uri(uri).is_none());
        }
    }
}

/// Templates for which every expansion with non-empty values can be read in one way only.
const UNAMBIGUOUS: [&str; 11] = [
    "x://{a}/{b}/{c}",
    "x://{a}{/b,c}",
    "x://{a,b,c}",
    "x://{a}{?b,c}",
    "x://{a}/y?z=1{&b,c}",
    "x://{a}{;b,c}",
    "x://{a}{;b}{?c}",
    "x://{a}/{b}{#c}",
    "{a}:{b}:{c}",
    "{/a,b}{?c}",
    "{?a,b,c}",
];

/// Any template made of literals and expressions, each variable mentioned once.
fn template() -> impl Strategy<Value = String> {
    let sign = prop::sample::select(vec!["", "+", "#", ".", "/", ";", "?", "&"]);
    let part = prop_oneof![
        2 => (sign, 1..4_usize).prop_map(|(sign, variables)| format!("{{{sign}{}}}", vec!["v"; variables].join(","))),
        1 => "[abx,;./?&#-]{1,2}",
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| {
        let mut unnamed = parts.concat();
        for number in 0.. {
            let Some(at) = unnamed.find('v') else { break };
            unnamed.replace_range(at..=at, &format!("n{number}"));
        }
        unnamed
    })
}

proptest! {
    #[test]
    fn matching_an_expansion_returns_its_values(
        source in prop::sample::select(&UNAMBIGUOUS[..]),
        values in prop::array::uniform3(".{1,20}"),
    ) {
        // An escape in a fragment's value passes through an expansion unchanged and comes back decoded.
        let values = values.map(|value: String| value.replace('%', "p"));
        let named = ["a", "b", "c"].into_iter().zip(&values);
        let expected: Vec<_> = named.map(|(name, value)| (name, value.clone())).collect();
        let value_of = |name: &str| {
            expected.iter().find(|(known, _)| *known == name).map(|(_, value)| Cow::Borrowed(value.as_str()))
        };
        let template = UriTemplate::parse(source).unwrap();
        let uri = template.expand(value_of);
        prop_assert_eq!(template.match_uri(&uri), Some(expected.clone()), "uri {}", uri);
    }

    #[test]
    fn every_expansion_matches_even_if_ambiguous(
        source in template(),
        values in prop::collection::vec("[abxé;./?&#-]{1,4}", 15),
    ) {
        let template = UriTemplate::parse(&source).unwrap();
        let names: Vec<String> = template.variables().iter().map(ToString::to_string).collect();
        let value_of = |name: &str| {
            let index = names.iter().position(|known| known == name)?;
            values.get(index).map(|value| Cow::Borrowed(value.as_str()))
        };
        let uri = template.expand(value_of);
        prop_assert!(template.match_uri(&uri).is_some(), "template {}, uri {}", source, uri);
    }

    #[test]
    fn matching_any_text_never_panics(uri in any::<String>()) {
        for source in UNAMBIGUOUS {
            let _ = UriTemplate::parse(source).unwrap().match_uri(&uri);
        }
    }
}
