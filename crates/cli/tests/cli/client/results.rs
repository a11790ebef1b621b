//! What results look like to people, to programs and on disk.

use serde_json::Value;

use super::{TRANSPORTS, TestPeer, ask, output};
use crate::process::{folder, run};

#[test]
fn text_and_tables_are_readable() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let text = output(&peer, way, &["call", "test_simple_text"]);
        assert_eq!(text, "This is a simple text response for testing.\n", "{way}");
        let table = output(&peer, way, &["call", "table"]);
        assert_eq!(table, "rows:\n  city    warm\n  Oslo    3\n  Zürich  11\n", "{way}");
    }
}

#[test]
fn programs_get_the_result_on_one_line() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let printed = output(&peer, way, &["call", "table", "--json"]);
        assert_eq!(printed.lines().count(), 1, "{way}: {printed}");
        let result: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(result["structuredContent"]["rows"][1]["city"], "Zürich", "{way}: {printed}");
    }
    let read = output(&peer, "legacy", &["read", "test://static-text", "--json"]);
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["contents"][0]["uri"], "test://static-text");
}

#[test]
fn failed_tool_prints_the_reason_and_exits_with_1() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let failed = ask(&peer, way, &["call", "test_error_handling"]);
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{way}: {failed:?}");
        assert!(
            failed.stderr.contains("error: tool `test_error_handling` failed: This tool"),
            "{way}: {failed:?}"
        );
        let json = ask(&peer, way, &["call", "test_error_handling", "--json"]);
        let result: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!((json.code, &result["isError"]), (Some(1), &Value::Bool(true)), "{way}");
    }
    let told: Value =
        serde_json::from_str(&ask(&peer, "modern", &["read", "nowhere://", "--json"]).stderr).unwrap();
    assert_eq!(told["exit"], 1, "{told}");
    assert!(told["error"].as_str().unwrap().contains("the server refused"), "{told}");
}

#[test]
fn media_are_named_and_saved_byte_for_byte() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let shown = output(&peer, way, &["call", "test_image_content"]);
        assert!(
            shown.starts_with("[image: image/png, ") && shown.ends_with("; --out saves it]\n"),
            "{way}: {shown}"
        );
        let folder = folder(&format!("media_are_saved_{way}"));
        let place = format!("{}/", folder.display());
        let saved = ask(&peer, way, &["call", "test_multiple_content_types", "--out", &place]);
        assert_eq!(saved.code, Some(0), "{way}: {saved:?}");
        assert!(saved.stdout.contains("Multiple content types"), "{way}: the text is still shown: {saved:?}");
        let picture = std::fs::read(folder.join("test_multiple_content_types.png")).unwrap();
        assert_eq!(picture.get(1..4), Some(&b"PNG"[..]), "{way}");
        let file = folder.join("sound.wav");
        output(&peer, way, &["call", "test_audio_content", "--out", file.to_str().unwrap()]);
        assert_eq!(std::fs::read(&file).unwrap().get(..4), Some(&b"RIFF"[..]), "{way}");
    }
    let url = peer.url();
    let text = run(&["read", &url, "test://static-text", "--out", "-"], "");
    assert!(!text.stdout.ends_with('\n') || text.stdout.lines().count() == 1, "{text:?}");
}

#[test]
fn progress_and_logs_go_to_standard_error_where_they_are_wanted() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let silent = ask(&peer, way, &["call", "test_tool_with_progress"]);
        assert_eq!((silent.stdout.as_str(), silent.stderr.as_str()), ("done\n", ""), "{way}");
        let told = ask(&peer, way, &["call", "test_tool_with_progress", "-v"]);
        assert!(told.stderr.contains("progress: 50/100\n"), "{way}: {told:?}");
        let logged = ask(&peer, way, &["call", "test_tool_with_logging", "--log-level", "info"]);
        assert!(logged.stderr.contains("info: Tool processing data\n"), "{way}: {logged:?}");
        assert_eq!(logged.stdout, "done\n", "{way}");
        let above = ask(&peer, way, &["call", "test_tool_with_logging", "--log-level", "error"]);
        assert_eq!(above.stderr, "", "{way}");
    }
}
