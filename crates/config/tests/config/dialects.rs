use trunkline_config::{ConfigFile, ConfigText, ConfigVariables, ServerLocation};

use super::support::{SAMPLES, read, sample, variables};

/// Describes a server in a line, secrets exposed, to compare with the expected line.
fn line(file: &ConfigFile, name: &str) -> String {
    let server = match file.server(name) {
        Ok(server) => server,
        Err(error) => return format!("refused: {error}"),
    };
    let texts = |texts: &std::collections::BTreeMap<String, ConfigText>| {
        texts.iter().map(|(name, text)| format!("{name}={}", text.expose())).collect::<Vec<_>>().join(",")
    };
    let reach = match &server.location {
        ServerLocation::Program(program) => {
            let args: Vec<&str> = program.args.iter().map(ConfigText::expose).collect();
            format!("{} {} [{}]", program.command.expose(), args.join(" "), texts(&program.env))
        }
        ServerLocation::Endpoint(endpoint) => {
            format!(
                "{} {} [{}]",
                endpoint.transport.as_str(),
                endpoint.url.expose(),
                texts(&endpoint.headers)
            )
        }
    };
    let state = if server.enabled { "" } else { " disabled" };
    let tools = if server.tools.is_empty() {
        String::new()
    } else {
        format!(" +{:?} -{:?}", server.tools.allow, server.tools.deny)
    };
    format!("{reach}{state}{tools}")
}

#[test]
fn servers_of_every_client_are_read_into_one_form() {
    let table = [
        (
            "claude_code.mcp.json",
            "github",
            "http https://api.githubcopilot.com/mcp/ [authorization=Bearer gh-canary]",
        ),
        ("claude_code.mcp.json", "filesystem", "npx -y @modelcontextprotocol/server-filesystem . []"),
        ("claude_code.mcp.json", "asana", "sse https://mcp.asana.com/sse []"),
        ("claude.json", "memory", "npx -y @modelcontextprotocol/server-memory []"),
        (
            "claude_desktop_config.json",
            "filesystem",
            "npx -y @modelcontextprotocol/server-filesystem /Users/ann/Desktop /Users/ann/Downloads []",
        ),
        (
            "claude_desktop_config.json",
            "brave-search",
            "docker run -i --rm -e BRAVE_API_KEY mcp/brave-search [BRAVE_API_KEY=BSA-canary]",
        ),
        ("cursor.mcp.json", "figma", "auto http://127.0.0.1:3845/mcp []"),
        ("cursor.mcp.json", "stripe", "npx -y @stripe/mcp --tools=all [STRIPE_SECRET_KEY=sk-canary]"),
        (
            "vscode.mcp.json",
            "Perplexity",
            "refused: /project/vscode.mcp.json:18:31: server `Perplexity`, key `env.PERPLEXITY_API_KEY`: \
             `${input:perplexity-key}` prompts the user of an editor, which trunkline does not support; \
             use a variable like `${NAME}` instead",
        ),
        ("vscode.mcp.json", "playwright", "npx -y @microsoft/mcp-server-playwright []"),
        ("vscode.mcp.json", "context7", "http https://mcp.context7.com/mcp [context7_api_key=c7-canary]"),
        ("vscode_settings.json", "time", "uvx mcp-server-time []"),
        (
            "windsurf_mcp_config.json",
            "deepwiki",
            "auto https://mcp.deepwiki.com/sse [] +[] -[\"ask_question\"]",
        ),
        ("windsurf_mcp_config.json", "git", "uvx mcp-server-git --repository /home/ann/shop [] disabled"),
        ("cline_mcp_settings.json", "weather", "http https://weather.example.com/mcp []"),
        (
            "gemini_settings.json",
            "docs",
            "auto http://localhost:3000/mcp [] +[\"search\", \"read_*\"] -[\"read_secret\"]",
        ),
    ];
    for (name, server, expected) in table {
        assert_eq!(line(&read(name), server), expected, "{name} {server}");
    }
}

#[test]
fn keys_without_effect_are_warnings_with_a_position() {
    let table: &[(&str, &[&str])] = &[
        ("claude_code.mcp.json", &[]),
        (
            "claude_desktop_config.json",
            &["/project/claude_desktop_config.json:2:3: key `globalShortcut`: is ignored"],
        ),
        ("cursor.mcp.json", &["/project/cursor.mcp.json:10:7: server `stripe`, key `envFile`: is ignored"]),
        (
            "vscode.mcp.json",
            &["/project/vscode.mcp.json:3:3: key `inputs`: questions to the user of an editor are not \
               supported; use variables like `${NAME}` instead"],
        ),
        (
            "cline_mcp_settings.json",
            &["/project/cline_mcp_settings.json:6:7: server `weather`, key `timeout`: is ignored: clients \
               disagree about its unit; write it like \"30s\""],
        ),
        ("windsurf_mcp_config.json", &[]),
        ("trunkline.toml", &[]),
    ];
    for (name, expected) in table {
        let notes: Vec<String> = read(name).warnings().iter().map(ToString::to_string).collect();
        assert_eq!(notes, *expected, "{name}");
    }
}

#[test]
fn editor_variables_expand_to_the_project_folder() {
    let text = r#"{"servers": {"a": {"command": "${workspaceFolder}/run", "cwd": "sub"}}}"#;
    for path in ["/shop/.vscode/mcp.json", "/shop/.cursor/mcp.json", "/shop/.mcp.json"] {
        let server = ConfigFile::parse(path, text, variables()).unwrap().server("a").unwrap();
        let ServerLocation::Program(program) = server.location else { panic!("it has a command") };
        assert_eq!(program.command.expose(), "/shop/run", "{path}");
        assert_eq!(program.folder().unwrap(), std::path::Path::new("/shop/sub"), "{path}");
    }
}

#[test]
fn our_own_keys_work_in_a_clients_file_as_well() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "timeout": "30s", "share": "call", "required": true, "era": "legacy",
        "revision": "2025-06-18",
        "tools": {"allow": ["get_*"], "rename": {"get_a": "a"}}}}}"#;
    let server = ConfigFile::parse("mcp.json", text, variables()).unwrap().server("a").unwrap();
    assert_eq!(server.timeout, Some(std::time::Duration::from_secs(30)));
    assert_eq!(server.sharing, trunkline_config::ConnectionSharing::Call);
    assert_eq!(server.era, Some(trunkline_config::ProtocolEra::Legacy));
    assert_eq!(server.revision, Some(trunkline_config::ProtocolRevision::V2025_06_18));
    assert!(server.required && server.tools.allows("get_a") && !server.tools.allows("put_a"));
    assert_eq!(server.tools.exposed_name("get_a"), "a");
}

#[test]
fn obsolete_key_is_accepted_with_a_warning() {
    let toml = "[servers.a]\ncommand = 'x'\nattribution = 'oldest'\nshare = 'session'\n";
    let json = r#"{"mcpServers": {"a": {"command": "x", "attribution": "exact", "share": "session"}}}"#;
    for (name, text, place) in [("t.toml", toml, "3:1"), ("mcp.json", json, "1:39")] {
        let file = ConfigFile::parse(name, text, variables()).unwrap();
        assert_eq!(file.server("a").unwrap().sharing, trunkline_config::ConnectionSharing::Session, "{name}");
        let notes: Vec<String> = file.warnings().iter().map(ToString::to_string).collect();
        let expected = format!(
            "{name}:{place}: server `a`, key `attribution`: no longer has any effect and can be removed: an input request always \
             reaches the client whose call caused it"
        );
        assert_eq!(notes, [expected], "{name}");
    }
}

#[test]
fn project_servers_of_a_client_file_are_separate() {
    let file = read("claude.json");
    assert_eq!(file.server_names(), ["memory"]);
    let project = file.for_project(std::path::Path::new("/home/ann/shop")).unwrap();
    assert_eq!(project.server_names(), ["postgres"]);
    assert!(file.for_project(std::path::Path::new("/elsewhere")).is_none());
}

#[test]
fn debug_output_of_sample_configs_has_no_secrets() {
    for name in SAMPLES {
        let file = read(name);
        let (servers, invalid) = file.valid_and_invalid_servers();
        let shown = format!("{file:?} {servers:?} {servers:#?} {invalid:?} {:?}", file.warnings());
        assert!(!shown.contains("canary"), "{name}: {shown}");
    }
}

#[test]
fn unexpanded_config_keeps_variables_as_written() {
    let table = [
        (
            "claude_code.mcp.json",
            "github",
            "http https://api.githubcopilot.com/mcp/ [authorization=Bearer ${GITHUB_TOKEN}]",
        ),
        (
            "claude_code.mcp.json",
            "filesystem",
            "npx -y @modelcontextprotocol/server-filesystem ${PROJECT_DIR:-.} []",
        ),
        ("cursor.mcp.json", "stripe", "npx -y @stripe/mcp --tools=all [STRIPE_SECRET_KEY=${STRIPE_KEY}]"),
    ];
    for (name, server, expected) in table {
        let file = ConfigFile::parse(name, &sample(name), ConfigVariables::unexpanded()).unwrap();
        assert_eq!(line(&file, server), expected, "{name} {server}");
    }
}

#[test]
fn files_of_clients_are_read_or_named_under_any_name() {
    let zed = r#"{"context_servers": {"a": {"command": "x"}}}"#;
    let vscode = r#"// Mine.
{"servers": {"a": {"command": "x"}}}"#;
    let opencode = r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#;
    let cursor = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let goose = "# Mine.\nextensions:\n  a:\n    cmd: x\n";
    let continued = "mcpServers:\n  - name: a\n    command: x\n";
    let codex = "[mcp_servers.a]\ncommand = 'x'\n";
    let ours = "[servers.a]\ncommand = 'x'\n";
    for (path, text, expected) in [
        ("x.json", zed, "read"),
        ("x.json", vscode, "read"),
        ("x.json", opencode, "read"),
        ("x.json", r#"{"amp.mcpServers": {"a": {"command": "x"}}}"#, "read"),
        ("x.yml", goose, "read"),
        ("x.yaml", continued, "read"),
        ("x.yaml", cursor, "read"),
        (
            "x.json",
            goose,
            "x.json: is a file of Goose, in YAML and not in JSON; rename it to `x.yaml`, or import its servers with `trunkline import goose`",
        ),
        (
            "x.json",
            continued,
            "x.json: is a file of Continue, in YAML and not in JSON; rename it to `x.yaml`, or import its servers with `trunkline import continue`",
        ),
        (
            "x.json",
            codex,
            "x.json: is a file of Codex, in TOML and not in JSON; import its servers with `trunkline import codex`",
        ),
        ("x.json", ours, "x.json: is in TOML and not in JSON; rename it to `x.toml`"),
        (
            "x.yaml",
            zed,
            "x.yaml: is a file of Zed, in JSON and not in YAML; rename it to `x.json`, or import its servers with `trunkline import zed`",
        ),
        ("x.yaml", ours, "x.yaml: is in TOML and not in YAML; rename it to `x.toml`"),
        ("x.toml", codex, "x.toml: is a file of Codex; import its servers with `trunkline import codex`"),
        (
            "x.toml",
            vscode,
            "x.toml: is a file of VS Code, in JSON and not in TOML; rename it to `x.json`, or import its servers with `trunkline import vscode`",
        ),
        (
            "x.toml",
            opencode,
            "x.toml: is a file of opencode, in JSON and not in TOML; rename it to `x.json`, or import its servers with `trunkline import opencode`",
        ),
        ("x.toml", cursor, "x.toml: is in JSON and not in TOML; rename it to `x.json`"),
        (
            "x.toml",
            goose,
            "x.toml: is a file of Goose, in YAML and not in TOML; rename it to `x.yaml`, or import its servers with `trunkline import goose`",
        ),
        (
            "x.yaml",
            "a: b\n",
            "x.yaml: has no servers; expected a list `mcpServers` as in Continue, or a mapping `extensions` as in Goose; add a server with `trunkline add NAME COMMAND`, or ignore the file with `--no-config`",
        ),
        // A mistake in the right format is reported as such.
        (
            "x.json",
            r#"{"context_servers": {"a": {"command": "x"}"#,
            "x.json:1:21: the object that begins here has no closing `}`",
        ),
        ("x.toml", "[servers.a\ncommand = 'x'\n", "x.toml:1:11: unclosed table, expected `]`"),
    ] {
        let parsed = ConfigFile::parse(path, text, variables());
        let problem = match &parsed {
            Ok(file) => file.missing_servers(),
            Err(error) => error.problems().next().cloned(),
        };
        let found = match problem {
            Some(problem) => match problem.hint_text() {
                Some(hint) => format!("{problem}; {hint}"),
                None => problem.to_string(),
            },
            None => line(&parsed.unwrap(), "a").split(' ').next().unwrap().replace('x', "read"),
        };
        assert_eq!(found, expected, "{path}: {text}");
    }
}

#[test]
fn opencode_servers_need_no_type_and_may_be_defined_elsewhere() {
    let text = r#"{"mcp": {
        "local": {"command": ["x", "-y"]},
        "remote": {"url": "https://example.com/mcp"},
        "elsewhere": {"enabled": true}
    }}"#;
    let file = ConfigFile::parse("opencode.json", text, variables()).unwrap();
    assert_eq!(file.server_names(), ["local", "remote"]);
    assert_eq!(line(&file, "local"), "x -y []");
    assert_eq!(line(&file, "remote"), "auto https://example.com/mcp []");
    assert!(file.missing_servers().is_none());
    // The settings of VS Code have the same key, and their servers one level below.
    let settings = r#"{"mcp": {"inputs": [], "servers": {"command": {"command": "x"}}}}"#;
    let settings = ConfigFile::parse("settings.json", settings, variables()).unwrap();
    assert_eq!(settings.server_names(), ["command"]);
}

#[test]
fn logins_of_every_client_are_read_into_one_form() {
    for (entry, expected) in [
        ("", "auto - - [] 0"),
        (r#""oauth": { "clientId": "i", "callbackPort": 8080 }"#, "auto i - [] 1"),
        (
            r#""oauth": { "clientId": "i", "clientSecret": "${T}", "scope": "a  b" }"#,
            "auto i t-canary [\"a\", \"b\"] 0",
        ),
        (r#""auth": { "CLIENT_ID": "i", "CLIENT_SECRET": "s", "scopes": ["a"] }"#, "auto i s [\"a\"] 0"),
        (r#""oauth": false"#, "none - - [] 0"),
        (r#""oauth": true"#, "auto - - [] 0"),
        (r#""auth": { "type": "user", "client_id": "i" }"#, "user i - [] 0"),
    ] {
        let comma = if entry.is_empty() { "" } else { "," };
        let text = format!(r#"{{ "mcpServers": {{ "a": {{ "url": "https://h/"{comma} {entry} }} }} }}"#);
        let variables = ConfigVariables::fixed([("T", "t-canary")]);
        let file = ConfigFile::parse("/p/.mcp.json", &text, variables).unwrap();
        let auth = file.server("a").unwrap().auth.clone();
        let text = |text: &Option<ConfigText>| text.as_ref().map_or("-", |text| text.expose()).to_owned();
        let ignored = file.warnings().len();
        let found = format!(
            "{} {} {} {:?} {ignored}",
            auth.kind.as_str(),
            text(&auth.client_id),
            text(&auth.client_secret),
            auth.scopes
        );
        assert_eq!(found, expected, "{entry}");
        assert!(!format!("{auth:?}").contains("canary"));
    }
}
