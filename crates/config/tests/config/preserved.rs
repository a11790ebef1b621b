//! Edits of generated configurations: everything else stays byte for byte.

use proptest::prelude::*;
use trunkline_config::{ConfigEditor, ServerConfig};

use super::edits::server;

/// Every part of a generated file has a mark with its owner, so that the test can find lost parts.
fn mark(owner: usize, number: usize) -> String {
    format!("mark-{owner}-{number}-")
}

/// The owner of the parts that belong to no server.
const REST: usize = 9;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Header,
    Scattered,
    Dotted,
    Inline,
}

#[derive(Clone, Debug)]
struct Look {
    shapes: Vec<Shape>,
    crlf: bool,
    bom: bool,
    ended: bool,
    trailing_comma: bool,
    one_line: bool,
    blank: usize,
    indent: usize,
    enabled: Vec<Option<bool>>,
}

fn look() -> impl Strategy<Value = Look> {
    let shape =
        prop_oneof![Just(Shape::Header), Just(Shape::Scattered), Just(Shape::Dotted), Just(Shape::Inline)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let enabled = proptest::collection::vec(proptest::option::of(any::<bool>()), 5);
    (proptest::collection::vec(shape, 1..5), flags, 0..3_usize, 0..4_usize, enabled).prop_map(
        |(shapes, (crlf, bom, ended, trailing_comma, one_line), blank, indent, enabled)| Look {
            shapes,
            crlf,
            bom,
            ended,
            trailing_comma,
            one_line,
            blank,
            indent,
            enabled,
        },
    )
}

/// Finishes a text that was made with plain line ends.
fn finished(look: &Look, text: &str) -> String {
    let text = if look.ended { text.to_owned() } else { text.trim_end().to_owned() };
    let text = if look.crlf { text.replace('\n', "\r\n") } else { text };
    if look.bom { format!("\u{feff}{text}") } else { text }
}

/// Writes a `trunkline.toml`.
fn toml(look: &Look) -> String {
    let blank = "\n".repeat(look.blank);
    let pad = " ".repeat(look.indent);
    let (mut within, mut headers, mut scattered) = (String::new(), String::new(), String::new());
    for (n, shape) in look.shapes.iter().enumerate() {
        let m = |number| mark(n, number);
        let enabled = look.enabled[n].map(|enabled| format!("enabled = {enabled}"));
        let (one, two, three) = (m(1), m(2), m(3));
        match shape {
            Shape::Dotted => {
                within += &format!("{pad}# {one}\n{pad}s{n}.command = '{two}' # {three}\n");
                within += &enabled.map(|line| format!("{pad}s{n}.{line}\n")).unwrap_or_default();
            }
            Shape::Inline => {
                let enabled = enabled.map(|pair| format!(", {pair}")).unwrap_or_default();
                within += &format!("{pad}s{n} = {{ command = '{two}'{enabled} }} # {three}\n");
            }
            Shape::Header | Shape::Scattered => {
                let enabled = enabled.map(|line| format!("{pad}{line} # {}\n", m(4))).unwrap_or_default();
                headers +=
                    &format!("# {one}\n{pad}[servers.s{n}] # {two}\n{enabled}{pad}command = \"{three}\"\n");
                headers += &format!("{pad}args = [\n  '[servers.no]', # {}\n]\n# {}\n{blank}\n", m(5), m(6));
                if matches!(shape, Shape::Scattered) {
                    scattered +=
                        &format!("# {}\n[servers.s{n}.env]\nA = '''\n[x]\n{}'''\n{blank}\n", m(7), m(8));
                }
            }
        }
    }
    let (a, b, c, d) = (mark(REST, 1), mark(REST, 2), mark(REST, 3), mark(REST, 4));
    let within = if within.is_empty() { within } else { format!("[servers]\n{within}{blank}") };
    let policy = format!("# {b}\n[policy] # {c}\ndeny = ['[servers.s0]']\n");
    finished(look, &format!("# {a}\n{blank}\n{within}\n{headers}{policy}{blank}\n{scattered}# {d}\n"))
}

/// Writes an `mcp.json` in the same manner.
fn json(look: &Look) -> String {
    let unit = " ".repeat(look.indent + 1);
    let count = look.shapes.len();
    let mut servers = String::new();
    for n in 0..count {
        let enabled =
            look.enabled[n].map(|enabled| format!(", \"disabled\": {}", !enabled)).unwrap_or_default();
        let comma = if n + 1 < count || look.trailing_comma { "," } else { "" };
        let (one, two, three) = (mark(n, 1), mark(n, 2), mark(n, 3));
        servers += &if look.one_line {
            format!("\"s{n}\": {{\"command\": \"{one}\"{enabled}}}{comma} ")
        } else {
            let value = format!("{{ \"command\": \"{two} }}, \\\" //\"{enabled} }}");
            format!("{unit}{unit}// {one}\n{unit}{unit}\"s{n}\": {value}{comma} // {three}\n")
        };
    }
    let (a, b, c) = (mark(REST, 1), mark(REST, 2), mark(REST, 3));
    let text = if look.one_line {
        format!("{{\"{a}\": [1e3, {{}}], \"mcpServers\": {{{servers}}}, \"{b}\": \"{c}\"}}\n")
    } else {
        format!("// {a}\n{{\n{unit}\"mcpServers\": {{\n{servers}{unit}}}, // {b}\n{unit}\"{c}\": 1.0e0\n}}\n")
    };
    finished(look, &text)
}

fn editor(path: &str, text: &str) -> ConfigEditor {
    ConfigEditor::parse(path, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Reports whether a text becomes another by removing one piece.
fn is_without_one_piece(short: &str, long: &str) -> bool {
    let start = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    let end = short.bytes().rev().zip(long.bytes().rev()).take_while(|(a, b)| a == b).count();
    long.len() >= short.len() && start + end >= short.len()
}

/// The same, and a comma beside it.
fn is_without_a_piece_and_a_comma(short: &str, long: &str) -> bool {
    let without = |at: usize| format!("{}{}", long.get(..at).unwrap(), long.get(at + 1..).unwrap());
    is_without_one_piece(short, long)
        || long.match_indices(',').any(|(at, _)| is_without_one_piece(short, &without(at)))
}

fn marks(text: &str, owner: usize) -> usize {
    text.matches(&format!("mark-{owner}-")).count()
}

fn check_others(before: &str, after: &str, edited: Option<usize>) {
    for owner in (0..=REST).filter(|owner| Some(*owner) != edited) {
        assert_eq!(marks(before, owner), marks(after, owner), "of {owner}\n{before}\n---\n{after}");
    }
}

fn check_add(path: &str, text: &str, added: &ServerConfig) {
    let mut editor = editor(path, text);
    let before = editor.file().text().to_owned();
    editor.add(added).unwrap();
    let after = editor.file().text().to_owned();
    let is_toml = path.ends_with("toml");
    let stays = if is_toml { is_without_one_piece } else { is_without_a_piece_and_a_comma };
    assert!(stays(&before, &after), "{before}\n---\n{after}");
    editor.remove(added.name.as_str()).unwrap();
    let again = editor.file().text();
    // Only a last line that was not ended is ended now.
    let again = if before.ends_with('\n') || !is_toml { again } else { again.trim_end() };
    assert_eq!(again, before, "added and removed");
}

fn check_remove(path: &str, text: &str, count: usize) {
    for n in 0..count {
        let mut editor = editor(path, text);
        let before = editor.file().text().to_owned();
        editor.remove(&format!("s{n}")).unwrap();
        let after = editor.file().text();
        check_others(&before, after, Some(n));
        assert_eq!(marks(after, n), 0, "of the one that went\n{before}\n---\n{after}");
        assert!(after.len() < before.len());
    }
}

fn check_switch(path: &str, text: &str, count: usize) {
    for n in 0..count {
        let name = format!("s{n}");
        let mut editor = editor(path, text);
        let before = editor.file().text().to_owned();
        let was = editor.file().server(&name).unwrap().enabled;
        if was { editor.disable(&name) } else { editor.enable(&name) }.unwrap();
        let after = editor.file().text().to_owned();
        assert_eq!(editor.file().server(&name).unwrap().enabled, !was);
        check_others(&before, &after, None);
        // Every line is still there, except for the line of the switch.
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let gone = old.iter().filter(|line| !new.contains(line)).count();
        assert!(gone <= 1 && new.len() <= old.len() + 1, "{before}\n---\n{after}");
        if was { editor.enable(&name) } else { editor.disable(&name) }.unwrap();
        assert_eq!(editor.file().server(&name).unwrap().enabled, was);
        check_others(&before, editor.file().text(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn editing_trunkline_toml_preserves_everything_else(look in look()) {
        let text = toml(&look);
        check_add("t.toml", &text, &server("new", "run -y ${A}"));
        check_remove("t.toml", &text, look.shapes.len());
        check_switch("t.toml", &text, look.shapes.len());
    }

    #[test]
    fn editing_mcp_json_preserves_everything_else(look in look()) {
        let text = json(&look);
        check_add("m.json", &text, &server("new", "run -y ${A}"));
        check_remove("m.json", &text, look.shapes.len());
        check_switch("m.json", &text, look.shapes.len());
    }
}

#[test]
fn adding_and_removing_a_server_restores_every_sample() {
    for name in super::support::SAMPLES {
        check_add(name, &super::support::sample(name), &server("new", "https://h/mcp"));
    }
}
