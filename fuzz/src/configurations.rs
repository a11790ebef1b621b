//! Configurations as people and their clients write them.

use trunkline_config::{
    ConfigEditor, ConfigFile, ConfigVariables, LocalProgram, ServerConfig, ServerLocation, ServerName,
};

/// Reads any text as a configuration, and edits what can be read. Every edit that is made is the one that was meant.
///
/// The first byte selects TOML or JSON.
pub fn config_file(data: &[u8]) {
    let [format, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let path = if format.is_multiple_of(2) { "trunkline.toml" } else { "mcp.json" };
    let variables = ConfigVariables::fixed([("A", "canary-of-a-variable")]);
    let file = match ConfigFile::parse(path, text, variables) {
        Ok(file) => file,
        Err(error) => return check_told(&error.to_string()),
    };
    let (servers, invalid) = file.valid_and_invalid_servers();
    assert_eq!(servers.len() + invalid.len(), file.server_names().len());
    for problem in invalid.iter().map(|server| &server.problem).chain(&file.warnings()) {
        check_told(&problem.to_string());
    }
    assert!(!format!("{file:?}{servers:?}{invalid:?}").contains("canary-of-a-variable"));
    for name in file.server_names().into_iter().take(4) {
        edit(path, text, name);
    }
    add(path, text);
}

/// A message is one readable line of text.
fn check_told(text: &str) {
    assert!(text.contains(": "), "{text:?}");
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
}

fn edit(path: &str, text: &str, name: &str) {
    let mut editor = ConfigEditor::parse(path, text).expect("it was read before");
    let others = |editor: &ConfigEditor| -> Vec<String> {
        editor.file().server_names().iter().filter(|other| **other != name).map(ToString::to_string).collect()
    };
    let before = others(&editor);
    if editor.disable(name).is_ok() {
        assert!(
            editor.file().server(name).is_ok_and(|server| !server.enabled) || is_broken(path, text, name)
        );
        assert_eq!(others(&editor), before);
    }
    if editor.remove(name).is_ok() {
        assert_eq!(editor.file().server_names(), before);
    }
}

/// A server that cannot be read can be removed all the same, and may be switched off.
fn is_broken(path: &str, text: &str, name: &str) -> bool {
    let file = ConfigFile::parse(path, text, ConfigVariables::unexpanded());
    file.is_ok_and(|file| file.server(name).is_err())
}

fn add(path: &str, text: &str) {
    let name = ServerName::parse("a new one").expect("a name");
    let server = ServerConfig::new(name, ServerLocation::Program(LocalProgram::new("run")));
    let mut editor = ConfigEditor::parse(path, text).expect("it was read before");
    if editor.add(&server).is_ok() {
        let before = editor.file().server_names().len();
        assert!(editor.file().server("a new one").is_ok());
        assert!(editor.file().text().len() > text.trim_start_matches('\u{feff}').len());
        if editor.remove("a new one").is_ok() {
            assert_eq!(editor.file().server_names().len() + 1, before);
        }
    }
}
