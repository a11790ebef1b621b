//! The files of clients in their own dialects, and what import makes of them.

use crate::clients::done;
use crate::process::{file, folder, run_at_home};

#[test]
fn keys_of_other_clients_are_imported_in_our_words() {
    let home = folder("dialects");
    std::fs::create_dir_all(home.join(".codex")).unwrap();
    let codex = "[mcp_servers.remote]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOKEN\"\n\
                 http_headers = { X-A = \"1\" }\nenabled = false\nenabled_tools = [\"a\"]\ntool_timeout_sec = 30\n\
                 startup_timeout_sec = 5\n[mcp_servers.local]\ncommand = \"x\"\nenv_vars = [\"KEY\"]\n";
    file(&home.join(".codex"), "config.toml", codex, 0o600);
    done(&["import", "codex"], &home);
    let written = std::fs::read_to_string(home.join("trunkline.toml")).unwrap();
    for line in [
        "url = \"https://example.com/mcp\"",
        "headers = { Authorization = \"Bearer ${TOKEN}\", X-A = \"1\" }",
        "enabled = false",
        "timeout = \"30s\"",
        "tools.allow = [\"a\"]",
        "env = { KEY = \"${KEY}\" }",
    ] {
        assert!(written.to_lowercase().contains(&line.to_lowercase()), "{line}: {written}");
    }
    // The file of a client under another name is named as such.
    file(&home, "other.toml", codex, 0o600);
    let refused = run_at_home(&["servers", "--config", "other.toml"], &home, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("other.toml: is a file of Codex\n"), "{refused:?}");
    assert!(refused.stderr.contains("trunkline import codex"), "{refused:?}");
}

#[test]
fn project_servers_that_claude_code_has_disabled_are_imported_as_disabled() {
    let home = folder("disabled_project_servers");
    file(
        &home,
        ".mcp.json",
        r#"{"mcpServers":{"on":{"command":"a"},"off":{"command":"b"},"out":{"command":"c"}}}"#,
        0o644,
    );
    let own = format!(r#"{{"projects":{{"{}":{{"disabledMcpjsonServers":["off"]}}}}}}"#, home.display());
    file(&home, ".claude.json", &own, 0o600);
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    file(&home.join(".claude"), "settings.local.json", r#"{"disabledMcpjsonServers":["out"]}"#, 0o600);
    let told = done(&["import", "--all"], &home);
    assert_eq!(told.matches("disabled there; imported as disabled").count(), 2, "{told}");
    let written = std::fs::read_to_string(home.join("trunkline.toml")).unwrap();
    assert_eq!(written.matches("enabled = false").count(), 2, "{written}");
}
