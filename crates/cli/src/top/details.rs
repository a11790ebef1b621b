use ratatui::text::{Line, Span};

use super::model::{TopCall, TopModel, TopServer, outcome_name};
use super::palette::Palette;
use super::screen::{shown, took};
use super::view::{FocusedList, TopView};

/// The keys, for the help.
const KEYS: [(&str, &str); 10] = [
    ("q, Ctrl-C", "quit"),
    ("Tab", "servers or calls"),
    ("↑ ↓ PgUp PgDn", "select a row"),
    ("Enter", "details of the selected row"),
    ("s, r", "sort the servers, reverse the order"),
    ("p, space", "pause"),
    ("/", "filter the calls; Esc removes the filter"),
    ("", "server:git client:cursor tool:add method:tools/call"),
    ("", "status:error  >500ms  <2s  \"two words\"  -server:git"),
    ("?", "this help"),
];

/// Returns the help.
pub(super) fn help(palette: Palette) -> Vec<Line<'static>> {
    KEYS.iter().map(|(keys, text)| member(keys, (*text).to_owned(), palette)).collect()
}

/// Returns the title and the details of the selected server or call.
pub(super) fn details(
    view: &TopView,
    model: &TopModel,
    palette: Palette,
    now: i64,
) -> (&'static str, Vec<Line<'static>>) {
    match view.focus {
        FocusedList::Servers => {
            let servers = view.servers(model, now);
            let selected = view.server_place(&servers).and_then(|place| servers.get(place).copied());
            ("server", selected.map_or_else(nothing, |server| server_details(server, palette, now)))
        }
        FocusedList::Calls => {
            let calls = view.calls(model);
            let selected = view.call_place(&calls).and_then(|place| calls.get(place).copied());
            ("call", selected.map_or_else(nothing, |call| call_details(call, palette)))
        }
    }
}

fn nothing() -> Vec<Line<'static>> {
    vec![Line::from("nothing is selected; ↑ and ↓ select a row, Tab changes the list")]
}

/// The most lines that are shown of a text.
const MAX_TEXT_LINES: usize = 8;

/// Shows the lines of a peer's text.
fn text_lines(name: &str, text: &str, palette: Palette) -> Vec<Line<'static>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_TEXT_LINES).enumerate();
    lines.map(|(place, line)| member(if place == 0 { name } else { "" }, shown(line), palette)).collect()
}

fn member(name: &str, text: String, palette: Palette) -> Line<'static> {
    Line::from(vec![Span::styled(format!("{name:<14}"), palette.dim()), Span::raw(text)])
}

fn server_details(server: &TopServer, palette: Palette, now: i64) -> Vec<Line<'static>> {
    let state = &server.state;
    let mut lines = vec![
        member("name", shown(&state.name), palette),
        member("state", shown(&state.state), palette),
        member("reached by", shown(&state.reach), palette),
    ];
    let texts = [
        ("reason", &state.reason),
        ("last failure", if state.reason.is_none() { &server.last_failure } else { &None }),
        ("calls itself", &state.identity),
        ("revision", &state.revision),
        ("transport", &state.transport),
        ("capabilities", &state.capabilities),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            lines.extend(text_lines(name, text, palette));
        }
    }
    let (calls, errors) = server.calls.totals(now);
    let (tools, prompts, resources) = (state.tools, state.prompts, state.resources);
    lines.push(member("items", format!("{tools} tools, {prompts} prompts, {resources} resources"), palette));
    lines.push(member(
        "calls",
        format!("{calls} in 5 min, {errors} errors, {} running", state.calls),
        palette,
    ));
    lines.push(member(
        "connections",
        format!("{}, connected {} times", state.connections, state.starts),
        palette,
    ));
    for (name, texts) in [("left out", &state.left_out), ("repaired", &state.repaired)] {
        lines.extend(texts.iter().take(5).map(|text| member(name, shown(text), palette)));
    }
    if let Some(output) = &state.output {
        let last: Vec<&str> = output.lines().rev().take(5).collect();
        lines.extend(last.into_iter().rev().map(|line| member("stderr", shown(line), palette)));
    }
    lines
}

fn call_details(call: &TopCall, palette: Palette) -> Vec<Line<'static>> {
    let start = &call.start;
    let mut lines = vec![
        member("call", shown(&start.call), palette),
        member("began", call.time.clone(), palette),
        member("method", shown(&start.method), palette),
        member("server", shown(&start.server), palette),
    ];
    let texts = [
        ("name", &start.name),
        ("at the server", &start.item),
        ("client", &start.client_name),
        ("session", &start.client),
        ("waits for", &call.waits_for),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            lines.push(member(name, shown(text), palette));
        }
    }
    match &call.end {
        None => lines.push(member("outcome", "it is running".to_owned(), palette)),
        Some(end) => {
            lines.push(member("outcome", outcome_name(end.outcome).to_owned(), palette));
            lines.push(member("took", took(end.micros), palette));
            lines.push(member("parameters", format!("{} bytes", end.bytes_in), palette));
            lines.push(member("result", format!("{} bytes", end.bytes_out), palette));
            if let Some(error) = &end.error {
                lines.push(member("error", shown(error), palette));
            }
        }
    }
    lines.push(member("", "`trunkline console` shows its messages".to_owned(), palette));
    lines
}
