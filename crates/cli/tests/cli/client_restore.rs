//! The files of clients after `install` and `install --uninstall`, byte for byte.

use std::path::{Path, PathBuf};

use crate::clients::done;
use crate::process::{file, folder, run_at_home};

/// Every client, with the path of its file within a home folder and the key of its servers.
const ALL_CLIENTS: &[(&str, &str, &str)] = &[
    ("claude-code", ".claude.json", "mcpServers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
    ("lm-studio", ".lmstudio/mcp.json", "mcpServers"),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "mcpServers",
    ),
    (
        "roo",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "mcpServers",
    ),
    ("junie", ".junie/mcp/mcp.json", "mcpServers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("amazon-q", ".aws/amazonq/mcp.json", "mcpServers"),
    ("kiro", ".kiro/settings/mcp.json", "mcpServers"),
    ("amp", ".config/amp/settings.json", "amp.mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
    ("opencode", ".config/opencode/opencode.json", "mcp"),
    ("goose", ".config/goose/config.yaml", "extensions"),
    ("continue", ".continue/config.yaml", "mcpServers"),
    ("qwen", ".qwen/settings.json", "mcpServers"),
];

/// Writes the file of a client as it has it, with a server `of-CLIENT` and something else.
fn client_text(client: &str, key: &str) -> String {
    let program = format!("{client}-server");
    match client {
        "codex" => format!(
            "# Kept as it is.\nmodel = \"x\"\n\n[{key}.of-{client}]\ncommand = \"{program}\"\nargs = [\"-y\"]\n\n[tui]\n\
             notifications = true\n"
        ),
        "goose" => format!(
            "# Kept as it is: \u{e4}.\nGOOSE_PROVIDER: anthropic\n{key}:\n  developer:\n    type: builtin\n    \
             enabled: true\n    timeout: 300\n  of-{client}:\n    type: stdio\n    enabled: true\n    cmd: {program}\n    \
             args:\n      - '-y'\n    envs: {{}}\n    timeout: 300\n\n# Kept too.\nGOOSE_MODEL: x\n"
        ),
        "continue" => format!(
            "name: Local\nversion: 1.0.0\nschema: v1\n{key}:\n  # The server.\n  - name: of-{client}\n    command: \
             {program}\n    args: [\"-y\"]\nmodels:\n  - name: m\n    provider: p\n"
        ),
        "opencode" => format!(
            "{{\n  // Kept as it is.\n  \"theme\": \"dark\",\n  \"{key}\": {{\n    \"of-{client}\": {{ \"type\": \"local\", \
             \"command\": [\"{program}\", \"-y\"] }}\n  }}\n}}\n"
        ),
        _ => format!(
            "{{\n  // Kept as it is.\n  \"theme\": \"dark\",\n  \"{key}\": {{\n    \"of-{client}\": {{ \"command\": \
             \"{program}\", \"args\": [\"-y\"] }}\n  }}\n}}\n"
        ),
    }
}

/// Writes the file of a client below a home folder, and returns its path.
fn client_file(home: &Path, path: &str, text: &str) -> PathBuf {
    let path = home.join(path);
    let folder = path.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    file(folder, path.file_name().unwrap().to_str().unwrap(), text, 0o600);
    path
}

#[test]
fn every_client_is_imported_from_installed_into_and_uninstalled_byte_for_byte() {
    let home = folder("all_clients");
    for (client, path, key) in ALL_CLIENTS {
        client_file(&home, path, &client_text(client, key));
    }
    let found = done(&["import"], &home);
    done(&["import", "--all"], &home);
    let written = std::fs::read_to_string(home.join("trunkline.toml")).unwrap();
    for (client, path, key) in ALL_CLIENTS {
        assert!(found.contains(&format!("of-{client} ")), "{client}: {found}");
        let imported = format!("command = \"{client}-server\"\nargs = [\"-y\"]\n");
        assert!(written.contains(&imported), "{client}: {written}");
        let path = home.join(path);
        let report = done(&["install", client], &home);
        assert!(!report.contains("restart the client"), "{client} is named: {report}");
        let installed = std::fs::read_to_string(&path).unwrap();
        let entry = match *client {
            "codex" => "[mcp_servers.trunkline]\ncommand = \"",
            "goose" => "\n  trunkline:\n    name: trunkline\n    type: stdio\n    enabled: true\n    cmd: \"",
            "continue" => "\n  - name: trunkline\n    command: \"",
            "opencode" => "\"trunkline\": {\n      \"type\": \"local\",\n      \"command\": [\"",
            _ => "\"trunkline\": {",
        };
        assert!(installed.contains(entry), "{client}: {installed}");
        done(&["install", client, "--uninstall"], &home);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), client_text(client, key), "{client}");
    }
}

#[test]
fn clients_without_servers_get_one_and_are_restored_byte_for_byte() {
    for (client, path, text) in [
        ("codex", ".codex/config.toml", "model = \"x\"\n"),
        ("codex", ".codex/config.toml", "model = \"x\""),
        ("codex", ".codex/config.toml", ""),
        ("goose", ".config/goose/config.yaml", "GOOSE_MODEL: x\n"),
        ("goose", ".config/goose/config.yaml", "extensions: {}\nGOOSE_MODEL: x\n"),
        ("goose", ".config/goose/config.yaml", "GOOSE_MODEL: x\nextensions:"),
        ("continue", ".continue/config.yaml", "name: x\nmcpServers: []\nversion: 1.0.0\n"),
        ("continue", ".continue/config.yaml", ""),
        ("opencode", ".config/opencode/opencode.json", "{ \"mcp\": {} }"),
        ("opencode", ".config/opencode/opencode.json", "{\n  \"theme\": \"x\"\n}\n"),
        ("opencode", ".config/opencode/opencode.json", "{ \"mcp\": { \"jira\": { \"enabled\": false } } }\n"),
        ("cursor", ".cursor/mcp.json", "{}"),
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": null\n}\n"),
        ("cursor", ".cursor/mcp.json", ""),
        ("cursor", ".cursor/mcp.json", "{\r\n\t\"mcpServers\": {\r\n\t}\r\n}\r\n"),
        ("zed", ".config/zed/settings.json", "// Mine.\n{ \"theme\": \"x\" }"),
        ("vscode", ".config/Code/User/mcp.json", "\u{feff}{ \"inputs\": [], }\n"),
    ] {
        let home = folder("empty_clients");
        file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
        let path = client_file(&home, path, text);
        // The second time the newest copy is one with the hub in it.
        for _ in 0..2 {
            done(&["install", client], &home);
            let installed = std::fs::read_to_string(&path).unwrap();
            assert!(
                installed.contains("trunkline") && installed.contains("--stdio"),
                "{client}: {installed}"
            );
            let again = run_at_home(&["install", client], &home, &[]);
            assert!(again.stderr.contains("is already in"), "{client}: {again:?}\n{installed}");
            done(&["install", client, "--uninstall"], &home);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{client}");
        }
    }
}

#[test]
fn uninstall_removes_a_file_that_install_made_and_that_has_nothing_else() {
    let home = folder("new_clients");
    file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
    for (client, path, _) in ALL_CLIENTS {
        let path = home.join(path);
        done(&["install", client], &home);
        let installed = std::fs::read_to_string(&path).unwrap();
        let shown = done(&["install", client, "--uninstall", "--dry-run"], &home);
        assert!(shown.ends_with("nothing was written\n") && path.exists(), "{client}: {shown}");
        let removed = done(&["install", client, "--uninstall"], &home);
        let wanted = format!("removed {}, which had only `trunkline`\n", path.display());
        assert!(removed.contains(&wanted) && !path.exists(), "{client}: {removed}");
        // What a user has written into it stays.
        let comment = if installed.starts_with('{') { "// Mine.\n" } else { "# Mine.\n\n" };
        done(&["install", client], &home);
        std::fs::write(&path, format!("{comment}{installed}")).unwrap();
        done(&["install", client, "--uninstall"], &home);
        assert!(std::fs::read_to_string(&path).unwrap().contains("Mine."), "{client}");
    }
}

#[test]
fn unknown_command_uninstall_names_the_option_of_install() {
    let home = folder("no_uninstall");
    let run = run_at_home(&["uninstall", "cursor"], &home, &[]);
    assert!(run.stderr.contains("`trunkline install CLIENT --uninstall`"), "{run:?}");
    assert_eq!(run.stderr.matches("tip:").count(), 1, "{run:?}");
}

#[test]
fn uninstall_removes_the_table_that_install_made_from_a_file_that_has_changed_since() {
    for (client, path, before, comment, after) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"a\": 1\n}\n", "// New.\n", "// New.\n{\n  \"a\": 1\n}\n"),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {}\n}\n",
            "// New.\n",
            "// New.\n{\n  \"mcpServers\": {\n  }\n}\n",
        ),
        ("goose", ".config/goose/config.yaml", "A: x\n", "# New.\n", "# New.\nA: x\n"),
        ("codex", ".codex/config.toml", "a = 1\n", "# New.\n", "# New.\na = 1\n"),
    ] {
        let home = folder("changed_clients");
        file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
        let path = client_file(&home, path, before);
        done(&["install", client], &home);
        let installed = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{comment}{installed}")).unwrap();
        done(&["install", client, "--uninstall"], &home);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{client}");
    }
}
