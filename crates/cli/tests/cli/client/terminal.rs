//! What a person at a terminal sees and types.

use super::TestPeer;
use super::tty::PseudoTerminal;

const TRANSPORTS: &[&str] = &["modern", "legacy", "sse", "websocket"];

#[track_caller]
fn at_terminal(peer: &TestPeer, way: &str, words: &[&str]) -> PseudoTerminal {
    PseudoTerminal::start(&peer.command(way, words), 80, &[])
}

#[test]
fn form_is_filled_in_field_by_field() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "book"]);
        terminal.wait_for("Everything asks: A table?");
        terminal.answer("name: ", "A");
        terminal.answer("`name` is invalid: \"A\" is shorter than 2 characters", "Ann");
        terminal.answer("guests (int) [2]: ", "");
        terminal.wait_for("  1) w  Window");
        terminal.answer("seat (1-2): ", "2");
        terminal.answer("extras (one or more, separated by commas) [skip]: ", "cake, 2");
        terminal.answer("vip (yes or no) [false]: ", "yes");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{way}: {screen}");
        let said = r#"Accept {"name":"Ann","guests":2,"seat":"a","extras":["cake","wine"],"vip":true}"#;
        assert!(screen.contains(said), "{way}: {screen}");
    }
}

#[test]
fn sampling_prompt_can_be_declined() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        for (typed, said) in [(":decline\r", "Decline\n"), (":cancel\r", "Cancel\n"), ("\x04", "Cancel\n")] {
            let mut terminal = at_terminal(&peer, way, &["call", "book"]);
            terminal.wait_for("name: ");
            terminal.type_keys(typed);
            let (code, screen) = terminal.finish();
            assert_eq!(code, Some(0), "{way}: {screen}");
            assert!(screen.ends_with(said), "{way}: {typed:?}: {screen:?}");
        }
    }
}

#[test]
fn url_elicitation_is_shown_and_accepted_at_a_terminal() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "page"]);
        terminal.wait_for("Everything asks you to visit a URL: Log in, please.");
        terminal.wait_for("https://example.com/login?from=peer");
        terminal.wait_for("host: example.com");
        terminal.answer("It is not opened automatically. Will you open it yourself?", "y");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{way}: {screen}");
        assert!(screen.ends_with("Accept\n"), "{way}: {screen}");
    }
}

#[test]
fn user_replies_to_sampling_at_a_terminal() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "test_sampling", "prompt=Capital?", "--sample"]);
        terminal.wait_for("Capital?");
        terminal.answer("> ", "Paris");
        terminal.answer("> ", ".");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{way}: {screen}");
        assert!(screen.ends_with("the model said: Paris\n"), "{way}: {screen}");
    }
}

#[test]
fn control_c_at_a_question_cancels_and_exits_with_130() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "book"]);
        terminal.wait_for("name: ");
        terminal.type_keys("\x03");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(130), "{way}: {screen}");
        assert!(screen.ends_with("error: interrupted\n"), "{way}: {screen:?}");
    }
}

#[test]
fn ctrl_c_cancels_the_call_at_the_server_and_clears_the_progress_bar() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "wait"]);
        terminal.wait_for("[#####---------------]  25% 1/4 working");
        peer.wait_for("called");
        terminal.type_keys("\x03");
        peer.wait_for("cancelled");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(130), "{way}: {screen}");
        assert!(screen.ends_with("\r\x1b[2Kerror: interrupted\n"), "{way}: {screen:?}");
    }
}

#[test]
fn ctrl_c_at_a_narrow_terminal_leaves_nothing_of_the_bar() {
    let peer = TestPeer::start();
    let mut terminal = PseudoTerminal::start(&peer.command("modern", &["call", "wait"]), 38, &[]);
    terminal.wait_for("25% 1/4");
    peer.wait_for("called");
    terminal.type_keys("\x03");
    peer.wait_for("cancelled");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    let (before, after) = screen.split_once("^C").unwrap();
    let bar = before.rsplit("\x1b[2K").next().unwrap();
    assert!(bar.chars().count() + "^C".len() < 38, "both are on one line, which is cleared: {bar:?}");
    assert_eq!(after, "\r\x1b[2Kerror: interrupted\n");
}

#[test]
fn help_and_forms_break_lines_between_words() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for args in [&["help", "call"][..], &["call", "--help"], &["help", "answers"], &["--nothing"]] {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let plain = [("NO_COLOR", "1")];
        let (code, narrow) = PseudoTerminal::start(&args, 50, &plain).finish();
        let (_, wide) = PseudoTerminal::start(&args, 120, &plain).finish();
        assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{args:?}: {narrow}");
        assert_eq!((code.is_some(), words(&narrow)), (true, words(&wide)), "{args:?}");
    }
    let peer = TestPeer::start();
    let mut terminal = PseudoTerminal::start(&peer.command("modern", &["call", "book"]), 40, &[]);
    terminal.wait_for("name: ");
    terminal.type_keys(":cancel\r");
    let (_, screen) = terminal.finish();
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
    assert!(screen.contains("(Enter = default in brackets; or type"), "{screen}");
}

#[test]
fn progress_bar_is_erased_at_the_end() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let mut terminal = at_terminal(&peer, way, &["call", "test_tool_with_progress"]);
        terminal.wait_for("[--------------------]   0% 0/100");
        let (code, screen) = terminal.finish();
        assert_eq!(code, Some(0), "{way}: {screen}");
        assert!(screen.ends_with("\r\x1b[2Kdone\n"), "{way}: {screen:?}");
    }
    let quiet = at_terminal(&peer, "modern", &["call", "test_tool_with_progress", "--quiet"]);
    assert_eq!(quiet.finish(), (Some(0), "done\n".to_owned()));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let peer = TestPeer::start();
    let tools = peer.command("modern", &["tools", "add"]);
    let (_, coloured) = PseudoTerminal::start(&tools, 80, &[]).finish();
    assert!(coloured.starts_with("\x1b[1madd("), "{coloured:?}");
    let (_, plain) = PseudoTerminal::start(&tools, 80, &[("NO_COLOR", "1")]).finish();
    assert!(plain.starts_with("add("), "{plain:?}");
}

#[test]
fn lines_are_as_wide_as_the_terminal() {
    let peer = TestPeer::start();
    let command = peer.command("modern", &["tools"]);
    let (_, narrow) = PseudoTerminal::start(&command, 40, &[("NO_COLOR", "1")]).finish();
    let descriptions = narrow.lines().filter(|line| line.starts_with("    "));
    assert!(descriptions.clone().all(|line| line.chars().count() <= 40), "{narrow}");
    assert!(descriptions.clone().any(|line| line.ends_with('…')), "{narrow}");
    let (_, table) = PseudoTerminal::start(&peer.command("modern", &["resources"]), 60, &[]).finish();
    assert!(table.lines().all(|line| line.chars().count() <= 60), "{table}");
}
