use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::json;
use trunkline_hub::events::HubEvent;

use super::view::KeyOutcome;
use super::*;
use crate::admin::{HubReport, ServerState, SessionReport, SessionState};
use crate::terminal::is_unsafe_char;

/// The time of the tests, in microseconds since 1970.
const NOW: i64 = 1_800_000_000_000_000;

const HOSTILE: &str = "\u{1b}[2J\u{202e}evil\u{7}\r\n\t\u{9b}31m\u{200b}";

fn event(seq: u64, micros_before: i64, body: &serde_json::Value) -> HubEvent {
    let at = jiff::Timestamp::from_microsecond(NOW - micros_before).unwrap();
    let mut line = json!({ "seq": seq, "time": at.to_string() });
    line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    HubEvent::parse(&line.to_string()).unwrap()
}

fn server(name: &str, state: &str, reason: Option<&str>) -> ServerState {
    ServerState {
        name: name.to_owned(),
        state: state.to_owned(),
        reason: reason.map(str::to_owned),
        retry_in_ms: reason.map(|_| 3000),
        revision: Some("2025-11-25".to_owned()),
        transport: Some("stdio".to_owned()),
        tools: 12,
        starts: 3,
        reach: name.to_owned(),
        identity: Some(name.to_owned()),
        output: Some(format!("{name} has started")),
        ..ServerState::default()
    }
}

/// A hub with three servers, a client with a session, and calls of all kinds.
fn model(text: &str) -> TopModel {
    let mut model = TopModel::default();
    model.apply_report(HubReport {
        version: "0.1.0".to_owned(),
        pid: 7,
        url: Some(format!("http://127.0.0.1:7412/mcp{text}")),
        config: "trunkline.toml".to_owned(),
        servers: vec![
            server(&format!("git{text}"), "ready", None),
            server("search", "failed", Some(&format!("it exited with code 1{text}\nstderr"))),
            server("notes", &format!("pending{text}"), None),
        ],
        collisions: Vec::new(),
    });
    let session = SessionState {
        id: "0a1b2c3d".to_owned(),
        principal: format!("ann{text}"),
        client: Some(format!("Cursor 1.0{text}")),
        revision: "2025-06-18".to_owned(),
        transport: "http".to_owned(),
        age_s: 60,
        idle_s: Some(5),
        ..SessionState::default()
    };
    model.apply_sessions(SessionReport { sessions: vec![session], ..SessionReport::default() }, NOW);
    let outcomes = [Some("ok"), Some("tool_error"), Some("error"), Some("cancelled"), None, None];
    for (place, outcome) in outcomes.into_iter().enumerate() {
        let seq = u64::try_from(place).unwrap() * 2 + 1;
        let call = format!("c{place}");
        let before = i64::try_from(10 - place).unwrap() * 1_000_000;
        model.apply(&event(seq, before, &json!({
            "kind": "call_started", "call": call, "client": "0a1b2c3d", "client_name": format!("Cursor{text}"),
            "method": "tools/call", "name": format!("git__log{place}{text}"), "server": format!("git{text}"), "item": "log",
        })));
        if let Some(outcome) = outcome {
            model.apply(&event(seq + 1, before - 1000, &json!({
                "kind": "call_ended", "call": call, "outcome": outcome, "micros": 1500 * (place + 1), "bytes_in": 10,
                "bytes_out": 20, "error": format!("no branch{text}"),
            })));
        }
    }
    let asks = json!({ "kind": "input_requested", "call": "c5", "method": format!("elicitation/create{text}"), "key": "k" });
    model.apply(&event(20, 0, &asks));
    model
}

fn press(view: &mut TopView, model: &TopModel, keys: &str) -> KeyOutcome {
    let mut outcome = KeyOutcome::Continue;
    for c in keys.chars() {
        let code = match c {
            '\r' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '↓' => KeyCode::Down,
            '␛' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        outcome = view.press(KeyEvent::new(code, KeyModifiers::NONE), model, NOW);
    }
    outcome
}

fn terminal(
    model: &TopModel,
    view: &TopView,
    (width, height): (u16, u16),
    is_colored: bool,
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, view, Palette::new(is_colored), NOW)).unwrap();
    terminal
}

fn screen(model: &TopModel, view: &TopView, size: (u16, u16)) -> String {
    terminal(model, view, size, true).backend().to_string()
}

#[track_caller]
fn assert_has(screen: &str, texts: &[&str]) {
    for text in texts {
        assert!(screen.contains(text), "no `{text}` in\n{screen}");
    }
}

#[test]
fn screen_shows_servers_clients_and_calls_at_every_size() {
    let (model, view) = (model(""), TopView::default());
    let common = [
        "trunkline top",
        "0.3 calls/s",
        "2 errors",
        "2 running",
        "git",
        "ready",
        "search",
        "failed",
        "Cursor",
        "git__log0",
        "tool_error",
        "cancelled",
        "running",
        "asking",
        "search: it exited with code 1, retry in 3.0s",
        "?:help",
    ];
    for size in [(60, 24), (80, 24), (160, 50)] {
        let screen = screen(&model, &view, size);
        assert_has(&screen, &common);
    }
    assert_has(&screen(&model, &view, (80, 24)), &["2025-11-25", "3.0ms", "P95", "STARTS"]);
    assert_has(&screen(&model, &view, (160, 50)), &["TOOLS", "WHY"]);
    // Nothing to show, and hardly room for it.
    for size in [(1, 1), (8, 3), (20, 8), (300, 100)] {
        screen_of_everything(&model, size);
        screen_of_everything(&TopModel::default(), size);
    }
}

fn screen_of_everything(model: &TopModel, size: (u16, u16)) {
    for keys in ["", "?", "↓\r", "\t↓\r", "/server:git"] {
        let mut view = TopView::default();
        press(&mut view, model, keys);
        screen(model, &view, size);
    }
}

#[test]
fn hostile_texts_are_escaped_on_every_screen() {
    let model = model(HOSTILE);
    for size in [(60, 24), (80, 24), (200, 60)] {
        for keys in ["", "?", "↓\r", "↓↓\r", "\t↓\r", "\t↓↓↓↓↓↓\r"] {
            let mut view = TopView::default();
            press(&mut view, &model, keys);
            let terminal = terminal(&model, &view, size, true);
            let cells = terminal.backend().buffer().content();
            let hazards: Vec<_> =
                cells.iter().filter(|cell| cell.symbol().chars().any(is_unsafe_char)).collect();
            assert!(hazards.is_empty(), "{keys:?} at {size:?}: {hazards:?}");
        }
    }
    assert_has(&screen(&model, &TopView::default(), (200, 60)), &["git\\x1b[2J\\u{202e}evil\\x07"]);
}

#[test]
fn filter_sort_pause_and_details_follow_the_keys() {
    let mut model = model("");
    let mut view = TopView::default();
    press(&mut view, &model, "/status:error\r");
    let filtered = screen(&model, &view, (100, 30));
    assert_has(&filtered, &["git__log1", "git__log2", "filter: status:error"]);
    assert!(!filtered.contains("git__log0") && !filtered.contains("git__log4"), "{filtered}");
    press(&mut view, &model, "/␛");
    assert_has(&screen(&model, &view, (100, 30)), &["git__log0"]);
    press(&mut view, &model, "/>wrong");
    assert_has(&screen(&model, &view, (100, 30)), &["filter: >wrong_", "write >500ms"]);
    press(&mut view, &model, "␛");

    press(&mut view, &model, "\ts");
    let by_name = screen(&model, &view, (100, 30));
    assert!(by_name.find("notes").unwrap() < by_name.find("search ").unwrap(), "{by_name}");
    press(&mut view, &model, "r");
    let reversed = screen(&model, &view, (100, 30));
    assert!(reversed.find("search ").unwrap() < reversed.find("notes").unwrap(), "{reversed}");

    press(&mut view, &model, "↓\r");
    assert_has(
        &screen(&model, &view, (100, 30)),
        &["it exited with code 1", "search has started", "12 tools"],
    );
    press(&mut view, &model, "␛\t↓↓↓\r");
    assert_has(&screen(&model, &view, (100, 30)), &["cancelled", "git__log3", "6.0ms", "Esc closes"]);
    press(&mut view, &model, "␛p");
    model.apply(&event(
        30,
        0,
        &json!({
            "kind": "call_started", "call": "c9", "method": "prompts/get", "name": "later", "server": "git",
        }),
    ));
    let paused = screen(&model, &view, (100, 30));
    assert!(paused.contains("PAUSED") && !paused.contains("later"), "{paused}");
    press(&mut view, &model, "p");
    assert_has(&screen(&model, &view, (100, 30)), &["later"]);
    assert_eq!(press(&mut view, &model, "q"), KeyOutcome::Quit);
}

#[test]
fn screen_without_colors_has_none() {
    let model = model("");
    let is_colored = |is_wanted| {
        let terminal = terminal(&model, &TopView::default(), (80, 24), is_wanted);
        terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(is_colored(true) && !is_colored(false));
}

#[test]
fn model_keeps_a_bounded_number_of_calls_and_clients() {
    let mut model = TopModel::default();
    for number in 0..3000_u64 {
        model.apply(&event(number, 0, &json!({
            "kind": "call_started", "call": format!("c{number}"), "client": format!("s{number}"), "method": "tools/call",
            "server": "git",
        })));
    }
    let (calls, running, clients) = model.sizes();
    assert_eq!((calls, running, clients), (1000, 1000, 500));
    // A call that is no longer kept ends without a trace.
    model.apply(&event(
        1,
        0,
        &json!({
            "kind": "call_ended", "call": "c1", "outcome": "ok", "micros": 1, "bytes_in": 0, "bytes_out": 0,
        }),
    ));
    assert_eq!(model.sizes(), (1000, 1000, 500));
}

#[test]
fn snapshot_has_the_figures_of_the_screen() {
    let shown = snapshot(&model(""), 2.0, NOW);
    let git = &shown["servers"][0];
    assert_eq!((&git["calls"], &git["errors"]), (&json!(4), &json!(2)), "{git}");
    assert_eq!(
        (&git["p50_us"], &git["p99_us"], &git["starts"]),
        (&json!(3000), &json!(6000), &json!(3)),
        "{git}"
    );
    assert_eq!(shown["servers"][1]["reason"], "it exited with code 1\nstderr");
    assert_eq!(shown["servers"][1]["p50_us"], json!(null));
    assert_eq!(shown["clients"][0]["name"], "Cursor 1.0");
    assert_eq!(
        (&shown["calls"][1]["outcome"], &shown["calls"][5]["outcome"]),
        (&json!("tool_error"), &json!(null))
    );
}
