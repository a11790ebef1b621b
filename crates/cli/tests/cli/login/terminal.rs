//! A user at a terminal is offered the login that a command needs.

use super::LoginSetup;
use crate::client::PseudoTerminal;
use crate::process::file;

/// Starts a command at a terminal, with a browser that opens nothing.
fn at_terminal(setup: &LoginSetup, words: &[&str]) -> PseudoTerminal {
    let words: Vec<_> = words.iter().map(ToString::to_string).collect();
    let programs = setup.home.join("bin");
    std::fs::create_dir_all(&programs).unwrap();
    file(&programs, "xdg-open", "#!/bin/sh\n", 0o700);
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let (home, state) = (setup.home.to_str().unwrap(), setup.home.join("state"));
    let variables = [("HOME", home), ("XDG_STATE_HOME", state.to_str().unwrap()), ("PATH", &path)];
    PseudoTerminal::start(&words, 400, &variables)
}

#[test]
fn command_continues_after_an_offered_login() {
    let setup = LoginSetup::new("login_offered");
    let url = setup.server.url();
    let mut terminal = at_terminal(&setup, &["call", &url, "echo", "message=hi", "--timeout", "2s"]);
    terminal.wait_for("requires a login at 127.0.0.1:");
    // The timeout of the command does not run while the user decides and logs in.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    terminal.type_keys("y\r");
    terminal.wait_for("visit:\r\n  ");
    let page = terminal.wait_for_line();
    let redirect = setup.server.agree(&page);
    let (address, path) = redirect.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let reply = crate::bare_client::get(address.parse().unwrap(), &format!("/{path}"), &[]);
    assert_eq!(reply.status, 200, "{reply:?}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.ends_with("hi\n"), "{screen}");
}

#[test]
fn declined_login_ends_the_command_with_5() {
    let setup = LoginSetup::new("login_declined");
    let mut terminal = at_terminal(&setup, &["tools", &setup.server.url()]);
    terminal.answer("Open the browser now? [Y/n]", "n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(5), "{screen}");
    assert!(screen.contains("the login was cancelled"), "{screen}");
}

#[test]
fn ctrl_c_at_the_offer_ends_the_command_with_130() {
    let setup = LoginSetup::new("login_ctrl_c");
    let mut terminal = at_terminal(&setup, &["tools", &setup.server.url()]);
    terminal.wait_for("Open the browser now? [Y/n]");
    terminal.type_keys("\x03");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
}
