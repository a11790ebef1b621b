//! `import` and `install`: the files of clients, in every dialect, where each of them has its own.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{FinishedCommand, file, folder, run_at_home};

/// The clients that have a file of a person, with a sample of it and the path within a home folder.
const CLIENTS: &[(&str, &str, &str)] = &[
    ("claude-code", "claude.json", ".claude.json"),
    ("claude-desktop", "claude_desktop_config.json", ".config/Claude/claude_desktop_config.json"),
    ("cursor", "cursor.mcp.json", ".cursor/mcp.json"),
    ("vscode", "vscode.mcp.json", ".config/Code/User/mcp.json"),
    ("windsurf", "windsurf_mcp_config.json", ".codeium/windsurf/mcp_config.json"),
];

/// A file as a client writes it.
fn sample(name: &str) -> String {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/tests/samples");
    std::fs::read_to_string(samples.join(name)).unwrap()
}

/// Makes a home folder in which every client has a file, and a folder of a project in it.
fn home(test: &str) -> PathBuf {
    let home = folder(test);
    for (_, name, path) in CLIENTS {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = sample(name).replace("/home/ann/shop", home.to_str().unwrap());
        file(path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap(), &text, 0o600);
    }
    file(&home, ".mcp.json", &sample("claude_code.mcp.json"), 0o644);
    home
}

const VARIABLES: &[(&str, &str)] = &[("GITHUB_TOKEN", "t"), ("STRIPE_KEY", "s"), ("CONTEXT7_KEY", "c")];

#[track_caller]
pub(crate) fn done(words: &[&str], home: &Path) -> String {
    let finished = run_at_home(words, home, VARIABLES);
    assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
    let told = finished.stdout + &finished.stderr;
    assert!(!told.contains("canary"), "no secret is printed: {told}");
    told
}

/// Runs an import and returns what became of each server, by its name and where it was found.
#[track_caller]
fn imported(words: &[&str], home: &Path) -> Vec<String> {
    let told = done(&[words, &["--json"]].concat(), home);
    let told: Value = serde_json::from_str(&told).unwrap();
    let text = |server: &Value, key: &str| server[key].as_str().unwrap().to_owned();
    let servers = told["servers"].as_array().unwrap();
    servers
        .iter()
        .map(|server| {
            format!("{} ({}) {}", text(server, "name"), text(server, "from"), text(server, "outcome"))
        })
        .collect()
}

#[test]
fn import_lists_and_imports_the_servers_of_every_client() {
    let home = home("import_all");
    let expected = [
        "postgres (Claude Code, local) imported",
        "github (Claude Code, project) imported",
        "filesystem (Claude Code, project) imported",
        "asana (Claude Code, project) imported",
        "memory (Claude Code, user) imported",
        "filesystem (Claude Desktop, user) name_taken",
        "brave-search (Claude Desktop, user) imported",
        "figma (Cursor, user) imported",
        "stripe (Cursor, user) imported",
        "old (Cursor, user) imported",
        "Perplexity (VS Code, user) invalid",
        "playwright (VS Code, user) imported",
        "context7 (VS Code, user) imported",
    ];
    let config = home.join("trunkline.toml");
    for only_looks in [&["import"][..], &["import", "--all", "--dry-run"]] {
        let told = imported(only_looks, &home);
        assert!(!told.iter().any(|line| line.ends_with(" imported")), "nothing was imported: {told:#?}");
        let would_be = expected.map(|line| line.replace(" imported", " importable"));
        assert_eq!(told[..expected.len()], would_be, "{told:#?}");
        assert!(!config.exists(), "{only_looks:?} writes nothing");
    }
    let told = imported(&["import", "--all"], &home);
    assert_eq!(told[..expected.len()], expected, "{told:#?}");
    // Everything that was taken is as the client has it, and can be used at once.
    let listed = run_at_home(&["servers", "--json"], &home, VARIABLES);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let taken = told.iter().filter(|line| line.ends_with(" imported")).count();
    let servers = listed["servers"].as_array().unwrap();
    assert_eq!(servers.len(), taken);
    assert!(servers.iter().all(|server| server["state"] != "invalid"), "{listed}");
    let text = std::fs::read_to_string(&config).unwrap();
    for part in [
        "[servers.postgres]\ncommand = \"uvx\"",
        "headers = { authorization = \"Bearer ${GITHUB_TOKEN}\" }",
        "env = { STRIPE_SECRET_KEY = \"${STRIPE_KEY}\" }",
        "enabled = false",
        "transport = \"sse\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Another time there is nothing more to take.
    let again = imported(&["import", "--all"], &home);
    let same = again.iter().filter(|line| line.ends_with(" already_present")).count();
    assert_eq!(same, taken, "{again:#?}");
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    for (client, name, path) in CLIENTS {
        let now = std::fs::read_to_string(home.join(path)).unwrap();
        assert_eq!(
            now,
            sample(name).replace("/home/ann/shop", home.to_str().unwrap()),
            "{client} is read alone"
        );
    }
}

#[test]
fn import_prints_the_reason_for_skipped_servers() {
    let home = home("import_reasons");
    let told = done(&["import", "--all"], &home);
    for part in [
        "skip    filesystem    (Claude Desktop, user) another server of this name comes from Claude Code\n",
        "(VS Code, user) `env.PERPLEXITY_API_KEY`: `${input:perplexity-key}` prompts the user of an editor",
        "`envFile` is ignored\n",
        "disabled there; imported as disabled\n",
        "were added to trunkline.toml; start the hub with `trunkline serve`\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let unset = run_at_home(&["import", "cursor", "--config", "other.toml"], &home, &[]);
    assert!(unset.stdout.contains("environment variable `STRIPE_KEY` is not set"), "{unset:?}");
    // An unreadable file affects no other client, unless it is the one of the command line.
    file(&home.join(".cursor"), "mcp.json", "{ broken", 0o600);
    let told = done(&["import", "--all", "--config", "third.toml"], &home);
    assert!(told.contains("cannot import from Cursor: ") && told.contains("added   memory"), "{told}");
    let FinishedCommand { code, stderr, .. } = run_at_home(&["import", "cursor"], &home, &[]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains(".cursor/mcp.json:1:"), "{stderr}");
    std::fs::remove_file(home.join(".cursor/mcp.json")).unwrap();
    let FinishedCommand { code, stderr, .. } = run_at_home(&["import", "cursor"], &home, &[]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("no servers found in Cursor\nhint: searched "), "{stderr}");
    let wrong = run_at_home(&["import", "emacs"], &home, &[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("[possible values: claude-code, claude-desktop, cursor"), "{wrong:?}");
}

#[test]
fn import_writes_secrets_only_to_files_that_other_users_cannot_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home("import_secrets");
    let config = home.join("trunkline.toml");
    done(&["import", "claude-desktop"], &home);
    assert!(std::fs::read_to_string(&config).unwrap().contains("BSA-canary"));
    assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(&config).unwrap();
    file(&home, "trunkline.toml", "# Ours.\n", 0o644);
    let told = done(&["import", "claude-desktop"], &home);
    let reason = "it has a literal secret (env BRAVE_API_KEY), and other users can read trunkline.toml";
    assert!(told.contains(reason), "{told}");
    assert!(!std::fs::read_to_string(&config).unwrap().contains("canary"));
    assert!(done(&["import", "claude-desktop", "--json"], &home).contains("\"exposed_secrets\""));
}

#[test]
fn install_and_uninstall_restore_the_file_of_every_client() {
    let home = home("install_all");
    file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
    let config = home.join("trunkline.toml");
    for (client, name, path) in CLIENTS {
        let path = home.join(path);
        let read = || std::fs::read_to_string(&path).unwrap();
        let before = read();
        let shown = done(&["install", client, "--dry-run"], &home);
        assert!(
            shown.contains("+   \"trunkline\": {\n+     \"command\": ")
                && shown.ends_with("nothing was written\n"),
            "{shown}"
        );
        assert_eq!(read(), before, "{client}");
        let told = done(&["install", client], &home);
        let copy = path.with_file_name(format!("{}.bak", path.file_name().unwrap().to_str().unwrap()));
        assert!(told.contains(&format!("the previous version was saved as {}", copy.display())), "{told}");
        assert_eq!(std::fs::read_to_string(copy).unwrap(), before, "{client}");
        let installed = read();
        let args = format!("\"args\": [\"serve\", \"--stdio\", \"--config\", \"{}\"]", config.display());
        assert!(installed.contains(&args), "{client}: {installed}");
        // Every line of the file is still there, in its order; a comma more is no other line.
        let mut lines = installed.lines().map(|line| line.trim_end_matches(','));
        for line in before.lines().map(|line| line.trim_end_matches(',')) {
            assert!(lines.any(|kept| kept == line), "{client}: {line:?} is gone from {installed}");
        }
        let again = done(&["install", client], &home);
        assert!(again.contains("is already in") && read() == installed, "{client}: {again}");
        let skipped = imported(&["import", client], &home);
        assert!(
            skipped.iter().any(|line| line.starts_with("trunkline ") && line.ends_with(" own_hub")),
            "{skipped:?}"
        );
        let out = done(&["install", client, "--uninstall"], &home);
        assert!(out.contains("-   \"trunkline\"\n") && out.contains("removed `trunkline` from"), "{out}");
        assert_eq!(read(), before, "{client} {name}");
        assert!(done(&["install", client, "--uninstall"], &home).contains("is not in"));
    }
}

#[test]
fn installed_client_entry_starts_the_hub() {
    let home = home("install_starts");
    let toml = format!(
        "[servers.clock]\ncommand = {:?}\nargs = [\"serve\", \"--stdio\", \"--no-config\"]\n",
        env!("CARGO_BIN_EXE_trunkline")
    );
    file(&home, "trunkline.toml", &toml, 0o600);
    for (client, _, path) in CLIENTS {
        done(&["install", client], &home);
        let path = home.join(path);
        let path = path.to_str().unwrap();
        let tools = done(&["tools", "--config", path, "trunkline", "--json"], &home);
        assert!(tools.contains("clock__echo"), "{client}: {tools}");
    }
}

#[test]
fn install_http_writes_a_url_or_a_bridge_for_program_only_clients() {
    let home = home("install_http");
    let url = "http://127.0.0.1:7411/mcp";
    for (client, _, path) in CLIENTS {
        done(&["install", client, "--http", url, "--name", "hub"], &home);
        let text = std::fs::read_to_string(home.join(path)).unwrap();
        let takes_addresses = ["claude-code", "cursor", "vscode"].contains(client);
        let entry = format!("\"type\": \"http\",\n      \"url\": \"{url}\"");
        assert_eq!(text.contains(&entry), takes_addresses, "{client}: {text}");
        assert_eq!(
            text.contains(&format!("\"args\": [\"bridge\", \"{url}\"]")),
            !takes_addresses,
            "{client}: {text}"
        );
        let skipped = imported(&["import", client], &home);
        assert!(
            skipped.iter().any(|line| line.starts_with("hub ") && line.ends_with(" own_hub")),
            "{skipped:?}"
        );
        // Another way to the same hub takes its place.
        let told =
            done(&["install", client, "--http", "http://127.0.0.1:7411/other", "--name", "hub"], &home);
        assert!(told.contains("-   \"hub\"\n+   \"hub\": {"), "{told}");
    }
}

#[test]
fn install_creates_missing_client_and_project_files() {
    let home = folder("install_fresh");
    file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
    for (client, _, path) in CLIENTS {
        done(&["install", client], &home);
        let text = std::fs::read_to_string(home.join(path)).unwrap();
        let key = if *client == "vscode" { "servers" } else { "mcpServers" };
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json[key]["trunkline"]["args"][0], "serve", "{client}: {text}");
    }
    for (client, path) in
        [("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")]
    {
        done(&["install", client, "--project", "--config", "trunkline.toml"], &home);
        assert!(std::fs::read_to_string(home.join(path)).unwrap().contains("\"trunkline\""), "{client}");
    }
    let desktop = run_at_home(&["install", "claude-desktop", "--project"], &home, &[]);
    assert_eq!(desktop.code, Some(2), "{desktop:?}");
}

#[test]
fn install_leaves_another_server_of_the_same_name_unchanged() {
    let home = folder("install_refusals");
    let none = run_at_home(&["install", "cursor"], &home, &[]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.stderr.contains("no trunkline.toml or mcp.json"), "{none:?}");
    std::fs::create_dir(home.join(".cursor")).unwrap();
    let theirs = "{\"mcpServers\": {\"trunkline\": {\"command\": \"other\"}}}";
    let path = file(&home, ".cursor/mcp.json", theirs, 0o600);
    file(
        &home,
        "trunkline.toml",
        "[servers.a]\ncommand = \"x\"\nenv = { T = \"${NOT_SET_ANYWHERE}\" }\n",
        0o600,
    );
    for words in [&["install", "cursor"][..], &["install", "cursor", "--uninstall"]] {
        let refused = run_at_home(words, &home, &[]);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("`trunkline` is already another server\nhint: choose another name for the hub with `--name NAME`"), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
    }
    file(
        &home,
        ".cursor/mcp.json",
        r#"{"mcpServers": {"trunkline": {"command": "other"}, "b": {"command": "y"}}}"#,
        0o600,
    );
    done(&["add", "b", "--", "y"], &home);
    let told = done(&["install", "cursor", "--name", "hub"], &home);
    assert!(told.contains("Cursor still lists `b` directly, so its tools now appear twice\n"), "{told}");
    assert!(
        told.contains("trunkline.toml uses environment variables for a; Cursor must set them too"),
        "{told}"
    );
    std::fs::remove_file(home.join("trunkline.toml")).unwrap();
    let itself = run_at_home(&["install", "cursor", "--project", "--name", "x"], &home, &[]);
    assert_eq!(itself.code, Some(3), "{itself:?}");
    assert!(
        itself.stderr.contains("is the client's own config file; the hub would start itself"),
        "{itself:?}"
    );
}

#[test]
fn install_rejects_a_url_secret_in_a_readable_file() {
    let home = folder("install_secret");
    std::fs::create_dir(home.join(".cursor")).unwrap();
    file(&home.join(".cursor"), "mcp.json", "{}\n", 0o644);
    let words = ["install", "cursor", "--http", "http://127.0.0.1:7411/mcp?token=canary"];
    let refused = run_at_home(&words, &home, &[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("url token would be written to"), "{}", refused.stderr);
    assert!(refused.stderr.contains("chmod 600") && !refused.stderr.contains("canary"), "{}", refused.stderr);
    let path = home.join(".cursor/mcp.json");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
    // Who alone can read the file may have a secret in it.
    file(&home.join(".cursor"), "mcp.json", "{}\n", 0o600);
    done(&words, &home);
    assert!(std::fs::read_to_string(&path).unwrap().contains("?token=canary"));
}

#[test]
fn install_reports_in_json_what_it_did() {
    let home = folder("install_json");
    file(&home, "trunkline.toml", "[servers.a]\ncommand = \"x\"\n", 0o600);
    let url = ["install", "cursor", "--json", "--http", "http://127.0.0.1:7411/mcp"];
    let out = ["install", "cursor", "--json", "--uninstall"];
    let plain = ["install", "cursor", "--json"];
    for (words, outcome) in [
        (&plain[..], "added"),
        (&plain, "unchanged"),
        (&url, "replaced"),
        (&out, "removed"),
        (&out, "unchanged"),
    ] {
        let report: Value = serde_json::from_str(&done(words, &home)).unwrap();
        assert_eq!(report["done"], outcome, "{words:?}: {report}");
        assert_eq!(report["written"], outcome != "unchanged", "{words:?}: {report}");
    }
}

#[test]
fn import_that_adds_nothing_does_not_hide_the_mcp_json_of_the_folder() {
    let home = folder("import_nothing");
    file(&home, "mcp.json", "{ \"mcpServers\": { \"own\": { \"command\": \"x\" } } }", 0o600);
    assert!(done(&["import", "--all"], &home).contains("no servers found in any client"));
    assert!(!home.join("trunkline.toml").exists());
    assert!(done(&["servers"], &home).contains("own"));
    std::fs::create_dir(home.join(".cursor")).unwrap();
    let cursor = "{ \"mcpServers\": { \"other\": { \"command\": \"y\" } } }";
    file(&home.join(".cursor"), "mcp.json", cursor, 0o600);
    let note = "trunkline.toml is used instead of mcp.json from now on\n";
    assert!(done(&["import", "--all"], &home).ends_with(note));
    std::fs::remove_file(home.join("mcp.json")).unwrap();
    std::fs::remove_file(home.join("trunkline.toml")).unwrap();
    assert!(!done(&["import", "--all"], &home).contains(note));
}
