use trunkline_config::{
    BackupMode, ConfigEditor, ConfigFile, ConfigText, ConfigVariables, ConnectionSharing, EditError,
    LocalProgram, RemoteEndpoint, RemoteTransport, SaveOutcome, ServerConfig, ServerLocation, ServerName,
};

use super::support::{Folder, set_mode};

/// A server to add: a program if it begins with no scheme.
pub(crate) fn server(name: &str, words: &str) -> ServerConfig {
    let name = ServerName::parse(name).unwrap();
    if words.contains("://") {
        return ServerConfig::new(name, ServerLocation::Endpoint(RemoteEndpoint::new(words)));
    }
    let mut words = words.split(' ').map(ConfigText::from);
    let mut program = LocalProgram::new(words.next().unwrap());
    program.args = words.collect();
    ServerConfig::new(name, ServerLocation::Program(program))
}

enum Do {
    Add(&'static str, &'static str),
    Remove(&'static str),
    Enable(&'static str),
    Disable(&'static str),
}

fn edited(path: &str, text: &str, change: &Do) -> String {
    let folder = Folder::new(&format!("edit-{path}"));
    let path = folder.write(path, text);
    let mut editor = ConfigEditor::open(&path).unwrap();
    match change {
        Do::Add(name, words) => editor.add(&server(name, words)),
        Do::Remove(name) => editor.remove(name),
        Do::Enable(name) => editor.enable(name),
        Do::Disable(name) => editor.disable(name),
    }
    .unwrap();
    editor.save(BackupMode::Skip).unwrap();
    std::fs::read_to_string(&path).unwrap()
}

#[test]
fn servers_are_added_to_trunkline_toml() {
    let a = "[servers.a]\ncommand = \"a\"\n";
    let x = "[servers.x]\ncommand = \"run\"\nargs = [\"-y\"]\n";
    let table = [
        ("", x.to_owned()),
        ("# mine\n", format!("# mine\n\n{x}")),
        ("# mine", format!("# mine\n\n{x}")),
        (a, format!("{a}\n{x}")),
        ("[servers.a]\ncommand = 'a' # last", format!("[servers.a]\ncommand = 'a' # last\n\n{x}")),
        ("\u{feff}[servers.a]\r\ncommand='a'\r\n", {
            let x = x.replace('\n', "\r\n");
            format!("\u{feff}[servers.a]\r\ncommand='a'\r\n\r\n{x}")
        }),
        // Behind the other servers, and in front of what comes after them with the comments about it.
        (
            "[servers.a]\ncommand='a'\n# args = []\n\n# rules\n[policy]\n",
            format!("[servers.a]\ncommand='a'\n# args = []\n\n{x}\n# rules\n[policy]\n"),
        ),
        (
            "[servers.a]\ncommand='a'\n# rules\n[policy]\n",
            format!("[servers.a]\ncommand='a'\n\n{x}# rules\n[policy]\n"),
        ),
        ("[servers]\na.command='a'\n[policy]\n", format!("[servers]\na.command='a'\n\n{x}[policy]\n")),
        ("servers.a.command='a'\n\n[policy]\n", format!("servers.a.command='a'\n\n{x}\n[policy]\n")),
        (
            "servers = { a = { command = 'a' } }\n",
            "servers = { x = { command = \"run\", args = [\"-y\"] }, a = { command = 'a' } }\n".to_owned(),
        ),
        ("servers = {}\n", "servers = { x = { command = \"run\", args = [\"-y\"] } }\n".to_owned()),
    ];
    for (before, after) in table {
        assert_eq!(edited("t.toml", before, &Do::Add("x", "run -y")), after, "{before}");
    }
    assert_eq!(
        edited("t.toml", "", &Do::Add("x y", "https://h/mcp")),
        "[servers.\"x y\"]\nurl = \"https://h/mcp\"\n"
    );
}

#[test]
fn servers_are_removed_from_trunkline_toml_with_their_comments() {
    let table = [
        ("[servers.x]\ncommand='x'\n", ""),
        (
            "# top\n\n# about x\n[servers.x] # same\ncommand='x'\n# args = []\n\n[servers.b]\nurl='b'\n",
            "# top\n\n[servers.b]\nurl='b'\n",
        ),
        ("[servers.x]\ncommand='x'\n\n\n[servers.b]\nurl='b'\n", "[servers.b]\nurl='b'\n"),
        ("[servers.b]\nurl='b'\n\n[servers.x]\ncommand='x'", "[servers.b]\nurl='b'\n"),
        ("[servers.x]\ncommand='x'\n\n# ---- rest ----\n\n[policy]\n", "# ---- rest ----\n\n[policy]\n"),
        ("[servers.x]\ncommand='x'\n# rules\n[policy]\n", "# rules\n[policy]\n"),
        // Its tables may stand anywhere.
        (
            "[servers.x]\ncommand='x'\n\n[servers.b]\nurl='b'\n\n[servers.x.env]\nA='1'\n\n[servers.x.tools]\n\n[policy]\n",
            "[servers.b]\nurl='b'\n\n[policy]\n",
        ),
        (
            "[servers]\nb.url='b'\n# one\nx.command='x'\nx.args=[\n 'a', # [\n]\nc.url='c'\n",
            "[servers]\nb.url='b'\nc.url='c'\n",
        ),
        ("servers.x.command='x'\nservers.b.url='b'\n", "servers.b.url='b'\n"),
        ("[servers]\nx = { command='x' } # gone\nb = {url='b'}\n", "[servers]\nb = {url='b'}\n"),
        ("servers = {x={command='x'}, b={url='b'}}\n", "servers = {b={url='b'}}\n"),
        ("servers = {b={url='b'}, x={command='x'}}\n", "servers = {b={url='b'}}\n"),
        ("servers = { x={command='x'} }\n", "servers = {  }\n"),
        (
            "[servers.xx]\nurl='b'\n[servers.x]\ncommand='x'\n[servers.\"x.y\"]\nurl='c'\n",
            "[servers.xx]\nurl='b'\n[servers.\"x.y\"]\nurl='c'\n",
        ),
    ];
    for (before, after) in table {
        assert_eq!(edited("t.toml", before, &Do::Remove("x")), after, "{before}");
    }
}

#[test]
fn servers_are_disabled_and_enabled_in_trunkline_toml() {
    let off = [
        ("[servers.x] # it\ncommand='x'\n", "[servers.x] # it\nenabled = false\ncommand='x'\n"),
        (
            "[servers.x]\ncommand='x'\nenabled  =  true # yes\n",
            "[servers.x]\ncommand='x'\nenabled  =  false # yes\n",
        ),
        ("[servers.x]\ncommand='x'\nenabled = false\n", "[servers.x]\ncommand='x'\nenabled = false\n"),
        ("[servers]\n  x.command='x'\n", "[servers]\n  x.command='x'\n  x.enabled = false\n"),
        ("servers.x.command='x'", "servers.x.command='x'\nservers.x.enabled = false"),
        ("[servers]\nx = {command='x'}\n", "[servers]\nx = { enabled = false,command='x'}\n"),
        ("[servers]\nx = {command='x', enabled=true}\n", "[servers]\nx = {command='x', enabled=false}\n"),
        ("[servers.x]\r\ncommand='x'\r\n", "[servers.x]\r\nenabled = false\r\ncommand='x'\r\n"),
    ];
    for (before, after) in off {
        assert_eq!(edited("t.toml", before, &Do::Disable("x")), after, "{before}");
    }
    let on = [
        ("[servers.x]\ncommand='x'\n", "[servers.x]\ncommand='x'\n"),
        ("[servers.x]\nenabled=false\ncommand='x'\n", "[servers.x]\nenabled=true\ncommand='x'\n"),
    ];
    for (before, after) in on {
        assert_eq!(edited("t.toml", before, &Do::Enable("x")), after, "{before}");
    }
}

#[test]
fn servers_are_added_to_mcp_json_in_its_style() {
    let table = [
        ("", "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"run\"\n    }\n  }\n}\n"),
        ("{}", "{\n  \"mcpServers\": {\n    \"x\": {\n      \"command\": \"run\"\n    }\n  }\n}"),
        ("{\"theme\": 1}", "{\"theme\": 1, \"mcpServers\": {\"x\": {\"command\": \"run\"}}}"),
        (
            "{\n\t\"mcpServers\": {}\n}\n",
            "{\n\t\"mcpServers\": {\n\t\t\"x\": {\n\t\t\t\"command\": \"run\"\n\t\t}\n\t}\n}\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    // none yet\n    \"x\": {\n      \"command\": \"run\"\n    }\n  }\n}\n",
        ),
        (
            "{\n    \"servers\": {\n        \"a\": {\"command\": \"a\"} // first\n    }\n}\n",
            "{\n    \"servers\": {\n        \"a\": {\"command\": \"a\"}, // first\n        \"x\": {\n            \
             \"command\": \"run\"\n        }\n    }\n}\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // first\n  },\n}\n",
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // first\n    \"x\": {\n      \"command\": \
             \"run\"\n    },\n  },\n}\n",
        ),
        (
            "{\"mcpServers\":{\"a\":{\"command\":\"a\"}}}",
            "{\"mcpServers\":{\"a\":{\"command\":\"a\"}, \"x\": {\"command\": \"run\"}}}",
        ),
        (
            "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"}\r\n  }\r\n}",
            "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"},\r\n    \"x\": {\r\n      \"command\": \
             \"run\"\r\n    }\r\n  }\r\n}",
        ),
    ];
    for (before, after) in table {
        assert_eq!(edited("m.json", before, &Do::Add("x", "run")), after, "{before}");
    }
    assert_eq!(
        edited("m.json", "{\"mcpServers\":{\"a\":{\"command\":\"a\"}}}", &Do::Add("x", "wss://h/ws")),
        "{\"mcpServers\":{\"a\":{\"command\":\"a\"}, \"x\": {\"type\": \"websocket\", \"url\": \"wss://h/ws\"}}}"
    );
}

#[test]
fn servers_are_removed_from_mcp_json_with_their_commas() {
    let table = [
        ("{\"servers\": {\"x\": {}}}", "{\"servers\": {}}"),
        ("{\"servers\": {\"x\": {}, \"b\": {}}}", "{\"servers\": {\"b\": {}}}"),
        ("{\"servers\": {\"b\": {}, \"x\": {}}}", "{\"servers\": {\"b\": {}}}"),
        ("{\"servers\": {\"b\": {}, \"x\": {}, }}", "{\"servers\": {\"b\": {}, }}"),
        (
            "{\n \"servers\": {\n  \"b\": {}, // b, c\n  // about x\n  \"x\": {\n  } // x, y\n }\n}",
            "{\n \"servers\": {\n  \"b\": {} // b, c\n }\n}",
        ),
        (
            "{\n \"servers\": {\n  // about x\n  /* more */\n  \"x\": {\n  },\n\n  // about b\n  \"b\": {},\n },\n}",
            "{\n \"servers\": {\n\n  // about b\n  \"b\": {},\n },\n}",
        ),
        ("{\n \"servers\": {\n  \"x\": {}\n }\n}", "{\n \"servers\": {\n }\n}"),
        (
            "{\n \"servers\": {\n  \"b\": {} /* , */ , /* not\n this */ \"x\": {}\n }\n}",
            "{\n \"servers\": {\n  \"b\": {} /* , */  /* not\n this */\n }\n}",
        ),
    ];
    for (before, after) in table {
        assert_eq!(edited("m.json", before, &Do::Remove("x")), after, "{before}");
    }
}

#[test]
fn servers_are_disabled_and_enabled_in_mcp_json() {
    let off = [
        (
            "{\"servers\": {\"x\": {\"command\": \"x\"}}}",
            "{\"servers\": {\"x\": {\"command\": \"x\", \"disabled\": true}}}",
        ),
        (
            "{\n  \"servers\": {\n    \"x\": {\n      \"command\": \"x\" // it\n    }\n  }\n}",
            "{\n  \"servers\": {\n    \"x\": {\n      \"command\": \"x\", // it\n      \"disabled\": true\n    }\n  }\n}",
        ),
        (
            "{\"servers\": {\"x\": {\"command\": \"x\", \"disabled\": false}}}",
            "{\"servers\": {\"x\": {\"command\": \"x\", \"disabled\": true}}}",
        ),
        (
            "{\"servers\": {\"x\": {\"enabled\" : true, \"command\": \"x\"}}}",
            "{\"servers\": {\"x\": {\"enabled\" : false, \"command\": \"x\"}}}",
        ),
    ];
    for (before, after) in off {
        assert_eq!(edited("m.json", before, &Do::Disable("x")), after, "{before}");
    }
    let before = "{\"servers\": {\"x\": {\"command\": \"x\", \"disabled\": true}}}";
    let after = "{\"servers\": {\"x\": {\"command\": \"x\", \"disabled\": false}}}";
    assert_eq!(edited("m.json", before, &Do::Enable("x")), after);
}

#[test]
fn server_definition_round_trips_through_both_formats() {
    let text = "[servers.x]\ncommand = 'r \"u\" n'\nargs = ['${A}', 'a\\b', 'ä', '']\nenv = { A = '${B:-c}', \"x-y\" = '1' }\n\
        cwd = '/w'\nenabled = false\nrequired = true\ntimeout = '90s'\nstart = 'eager'\nidle = '1h'\nrate = '5/10s'\nshare = 'call'\n\
        revision = '2025-06-18'\ntools.allow = ['a*']\ntools.deny = ['b']\ntools.rename = { a1 = 'z' }\n\
        tools.describe = { a1 = \"two\\nlines\" }\n\
        [servers.y]\nurl = 'https://h/${P}?k=${K}'\nheaders = { authorization = 'Bearer ${T}' }\ntransport = 'sse'\nera = 'legacy'\n\
        auth = { type = 'enterprise', client_id = 'i', client_secret = '${S}', scopes = ['a', 'b'], issuer = 'https://i', dpop = 'off', \
        token_file = '/w/t', idp_token_endpoint = 'https://p/t', idp_client_id = 'j', idp_client_secret = 's' }\n";
    let servers =
        ConfigFile::parse("/w/t.toml", text, ConfigVariables::unexpanded()).unwrap().servers().unwrap();
    let folder = Folder::new("whole");
    for name in ["new.toml", "deep/er/new.json"] {
        let path = folder.0.join(name);
        let mut editor = ConfigEditor::open_or_new(&path).unwrap();
        for server in &servers {
            editor.add(server).unwrap();
        }
        assert_eq!(editor.save(BackupMode::Make).unwrap(), SaveOutcome::Written(None));
        let again = ConfigFile::open(&path, ConfigVariables::unexpanded()).unwrap().servers().unwrap();
        for (server, again) in servers.iter().zip(&again) {
            // Where a folder is absolute, nothing depends on where the file is.
            assert_eq!(format!("{server:?}"), format!("{again:?}"), "{name}");
            assert_eq!(server.tools, again.tools, "{name}");
            assert!(server.same_definition(again), "{name}: {server:?}");
            if let (ServerLocation::Program(a), ServerLocation::Program(b)) =
                (&server.location, &again.location)
            {
                assert_eq!((&a.args, &a.env, a.folder()), (&b.args, &b.env, b.folder()), "{name}");
            }
        }
    }
}

#[test]
fn remote_transport_round_trips_through_mcp_json() {
    for (url, wire, written) in [
        ("https://h/mcp", RemoteTransport::Auto, r#""type": "http", "transport": "auto""#),
        ("${URL}", RemoteTransport::Auto, r#""type": "http", "transport": "auto""#),
        ("https://h/mcp", RemoteTransport::Http, r#""type": "http", "url""#),
        ("https://h/sse", RemoteTransport::Sse, r#""type": "sse", "url""#),
        ("wss://h/ws", RemoteTransport::WebSocket, r#""type": "websocket", "url""#),
    ] {
        let folder = Folder::new("wire");
        let path = folder.write("m.json", "{\"mcpServers\":{}}");
        let endpoint = RemoteEndpoint { transport: wire, ..RemoteEndpoint::new(url) };
        let mut editor = ConfigEditor::open(&path).unwrap();
        editor
            .add(&ServerConfig::new(
                ServerName::parse("x").unwrap(),
                ServerLocation::Endpoint(endpoint.clone()),
            ))
            .unwrap();
        let text = editor.file().text().to_owned();
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(written), "{text}");
        let file = ConfigFile::parse(&path, &text, ConfigVariables::unexpanded()).unwrap();
        assert_eq!(file.server("x").unwrap().location, ServerLocation::Endpoint(endpoint), "{text}");
        assert!(file.warnings().is_empty(), "{:?}", file.warnings());
    }
}

#[test]
fn relative_cwd_is_rebased_when_a_server_is_copied() {
    let text = "[servers.x]\ncommand = 'x'\ncwd = 'data'\n[servers.y]\ncommand = 'y'\ncwd = '${D}/z'\n";
    let servers =
        ConfigFile::parse("/shop/t.toml", text, ConfigVariables::unexpanded()).unwrap().servers().unwrap();
    let folder = Folder::new("moved");
    let mut editor = ConfigEditor::open_or_new(folder.0.join("t.toml")).unwrap();
    for server in &servers {
        editor.add(server).unwrap();
    }
    assert!(editor.file().text().contains("cwd = \"/shop/data\""), "{}", editor.file().text());
    assert!(editor.file().text().contains("cwd = \"${D}/z\""), "{}", editor.file().text());
}

#[test]
fn failed_edit_reports_an_error_and_changes_nothing() {
    let folder = Folder::new("refusals");
    let text = "[servers.a]\ncommand = 'a'\n";
    let path = folder.write("t.toml", text);
    let mut editor = ConfigEditor::open(&path).unwrap();
    let told = |result: Result<(), EditError>| {
        result.unwrap_err().to_string().replace(path.to_str().unwrap(), "t.toml")
    };
    assert_eq!(told(editor.add(&server("a", "x"))), "t.toml: a server `a` already exists");
    assert_eq!(told(editor.remove("b")), "t.toml: has no server `b`; did you mean `a`?");
    assert_eq!(told(editor.disable("zzz")), "t.toml: has no server `zzz`; it has `a`");
    let mut bad = server("c", "x");
    bad.location = ServerLocation::Endpoint(RemoteEndpoint::new("ftp://x"));
    let unread = told(editor.add(&bad));
    assert!(unread.contains("server `c`, key `url`: an address begins with http://"), "{unread}");
    assert_eq!(editor.save(BackupMode::Make).unwrap(), SaveOutcome::Unchanged);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn saving_fails_if_the_config_changed_on_disk() {
    let folder = Folder::new("meanwhile");
    let path = folder.write("t.toml", "[servers.a]\ncommand = 'a'\n");
    let mut editor = ConfigEditor::open(&path).unwrap();
    editor.disable("a").unwrap();
    let theirs = "[servers.b]\ncommand = 'b'\n";
    folder.write("t.toml", theirs);
    assert!(matches!(editor.save(BackupMode::Make), Err(EditError::Changed { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
    // So is one that was not there when it was looked for.
    let fresh = folder.0.join("fresh.toml");
    let mut editor = ConfigEditor::open_or_new(&fresh).unwrap();
    editor.add(&server("a", "x")).unwrap();
    folder.write("fresh.toml", theirs);
    assert!(matches!(editor.save(BackupMode::Skip), Err(EditError::Changed { .. })));
}

#[test]
fn saving_keeps_the_file_mode_and_symlinks() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("mode");
    let real = folder.write("real.toml", "[servers.a]\ncommand = 'a'\n");
    let link = folder.0.join("trunkline.toml");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (wanted, backup) in [(0o600, "real.toml.bak"), (0o640, "real.toml.bak2")] {
        set_mode(&real, wanted);
        let before = std::fs::read_to_string(&real).unwrap();
        let mut editor = ConfigEditor::open(&link).unwrap();
        let enabled = editor.file().server("a").unwrap().enabled;
        if enabled { editor.disable("a") } else { editor.enable("a") }.unwrap();
        let backup = std::fs::canonicalize(&folder.0).unwrap().join(backup);
        assert_eq!(editor.save(BackupMode::Make).unwrap(), SaveOutcome::Written(Some(backup.clone())));
        assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
        assert_eq!((mode(&real), mode(&backup)), (wanted, wanted));
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    }
    // A new file is one that we read again, whatever the mask.
    let new = folder.0.join("new.toml");
    let mut editor = ConfigEditor::open_or_new(&new).unwrap();
    editor.add(&server("a", "x")).unwrap();
    assert!(!editor.is_private());
    editor.save(BackupMode::Skip).unwrap();
    assert_eq!(mode(&new) & 0o022, 0);
    let own = folder.0.join("own.toml");
    let mut editor = ConfigEditor::open_or_new(&own).unwrap().private();
    assert!(editor.is_new() && editor.is_private());
    editor.add(&server("a", "x")).unwrap();
    editor.save(BackupMode::Skip).unwrap();
    assert_eq!(mode(&own), 0o600);
    assert!(ConfigEditor::open(&own).unwrap().is_private());
}

#[test]
fn relative_file_name_without_folder_can_be_edited() {
    let editor = ConfigEditor::open_or_new("there-is-no-such-file.toml").unwrap();
    assert!(editor.file().server_names().is_empty());
    let mut shared = server("a", "x");
    shared.sharing = ConnectionSharing::All;
    let mut editor = editor;
    editor.add(&shared).unwrap();
    assert_eq!(editor.file().server("a").unwrap().sharing, ConnectionSharing::All);
}
