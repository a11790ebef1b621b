use trunkline_config::{ConfigFile, ConfigVariables};

use super::support::variables;

fn told(path: &str, text: &str) -> String {
    let file = ConfigFile::parse(path, text, variables());
    file.and_then(|file| file.servers()).map_or_else(|error| error.to_string(), |_| "fine".to_owned())
}

#[test]
fn toml_errors_have_a_position_and_a_suggestion() {
    let table = [
        ("[servers.a]\ncommand = 'x'\n", "fine"),
        ("", "fine"),
        (
            "[servers.a]\ncomand = 'x'\n",
            "t.toml:2:1: server `a`, key `comand`: `comand` is not a known key; did you mean `command`?",
        ),
        (
            "[server.a]\ncommand = 'x'\n",
            "t.toml:1:2: key `server`: `server` is not a known key; did you mean `servers`?",
        ),
        (
            "[colours]\n",
            "t.toml:1:2: key `colours`: `colours` is not a known key; known keys are `servers`, `env`, `commands`, `policy`, \
             `manifests`, `serve`, `store`, `vault`, `audit`, `auth`, `telemetry`, `limits`, `access`",
        ),
        ("servers = 1\n", "t.toml:1:11: key `servers`: expected a table, found a number"),
        ("[servers]\na = 'x'\n", "t.toml:2:5: server `a`: expected a table, found a string"),
        (
            "[servers.a]\ncommand = ['x', 'y']\n",
            "t.toml:2:11: server `a`, key `command`: expected a string, found a list",
        ),
        (
            "[servers.a]\nargs = 'x'\ncommand = 'x'",
            "t.toml:2:8: server `a`, key `args`: expected a list, found a string",
        ),
        (
            "[servers.a]\ncommand = 'x'\nargs = ['ok', 2]",
            "t.toml:3:15: server `a`, key `args.1`: expected a string, found a number",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.env]\nTOKEN = '${NONE}'\n",
            "t.toml:4:9: server `a`, key `env.TOKEN`: environment variable `NONE` is not set; set it, or use `${NONE:-default}`",
        ),
        ("[servers.a]\nenabled = true\n", "t.toml:1:1: server `a`: it has neither a `command` nor a `url`"),
        (
            "[servers.a]\ncommand = 'x'\nurl = 'http://h/'\n",
            "t.toml:3:7: server `a`, key `url`: there is a `command` as well; a server has either of them",
        ),
        (
            "[servers.a]\nurl = 'ftp://x'\n",
            "t.toml:2:7: server `a`, key `url`: an address begins with http://, https://, ws:// or wss://",
        ),
        (
            "[servers.a]\nurl = ''\n",
            "t.toml:2:7: server `a`, key `url`: an address begins with http://, https://, ws:// or wss://",
        ),
        (
            "[servers.a]\nurl = 'https://u:p@h/'\n",
            "t.toml:2:7: server `a`, key `url`: the address has a user name or password, which would end up in logs; use `headers`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nargs = ['x']\n",
            "t.toml:3:8: server `a`, key `args`: it is for a server with a `command`, and this one has a `url`",
        ),
        (
            "[servers.a]\ncommand = 'x'\nheaders.A = 'b'\n",
            "t.toml:3:1: server `a`, key `headers`: it is for a server with a `url`, and this one has a `command`",
        ),
        (
            "[servers.a]\ncommand = 'x'\nauth.type = 'user'\n",
            "t.toml:3:1: server `a`, key `auth`: it is for a server with a `url`, and this one has a `command`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth.type = 'client-credentials'\n",
            "t.toml:3:1: server `a`, key `auth`: `type = \"client-credentials\"` needs `client_id`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { type = 'client-credentials', client_id = 'i' }\n",
            "t.toml:3:8: server `a`, key `auth`: `type = \"client-credentials\"` needs `client_secret` or `private_key`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { type = 'token-exchange', client_id = 'i' }\n",
            "t.toml:3:8: server `a`, key `auth`: `type = \"token-exchange\"` needs `token_endpoint`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { type = 'token-exchange', client_id = 'i', token_endpoint = 'https://t', dpop = 'required' }\n",
            "t.toml:3:89: server `a`, key `auth.dpop`: exchanged tokens are not bound to a key",
        ),
        (
            "[servers.a]\nurl = 'wss://h/'\nauth = { type = 'token-exchange', client_id = 'i', token_endpoint = 'https://t' }\n",
            "t.toml:2:7: server `a`, key `url`: tokens of callers are exchanged over Streamable HTTP only: other transports are authorized once for all calls",
        ),
        (
            "[servers.a]\nurl = 'WS://h/'\nauth = { type = 'token-exchange', client_id = 'i', token_endpoint = 'https://t' }\n",
            "t.toml:2:7: server `a`, key `url`: tokens of callers are exchanged over Streamable HTTP only: other transports are authorized once for all calls",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\ntransport = 'sse'\nauth = { type = 'token-exchange', client_id = 'i', token_endpoint = 'https://t' }\n",
            "t.toml:3:13: server `a`, key `transport`: tokens of callers are exchanged over Streamable HTTP only: other transports are authorized once for all calls",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { type = 'user', token_file = 'f' }\n",
            "t.toml:3:38: server `a`, key `auth.token_file`: it has no meaning for `type = \"user\"`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth.client_secret = 's'\n",
            "t.toml:3:1: server `a`, key `auth`: `client_secret` and `private_key` need `client_id`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { client_document = 'http://hub/client.json' }\n",
            "t.toml:3:28: server `a`, key `auth.client_document`: it has to be an https URL with a path",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nauth = { client_document = 'https://hub/c', client_secret = 's' }\n",
            "t.toml:3:8: server `a`, key `auth`: `client_secret` and `private_key` need `client_id`",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\ntransport = 'ws'\n",
            "t.toml:3:13: server `a`, key `transport`: the address is of another transport",
        ),
        ("[servers.a]\ncommand = ' '\n", "t.toml:2:11: server `a`, key `command`: it is empty"),
        (
            "[servers.a]\ncommand = 'x'\nargs = [\"a\\u0000b\"]\n",
            "t.toml:3:9: server `a`, key `args.0`: it has a NUL character in it",
        ),
        (
            "[servers.a]\ncommand = 'x'\nera = 'old'\n",
            "t.toml:3:7: server `a`, key `era`: expected one of \"legacy\", \"modern\"",
        ),
        (
            "[servers.a]\ncommand = 'x'\nrevision = '2025-11-26'\n",
            "t.toml:3:12: server `a`, key `revision`: expected one of \"2024-11-05\", \"2025-03-26\", \"2025-06-18\", \
             \"2025-11-25\", \"2026-07-28\"; did you mean \"2025-11-25\"?",
        ),
        (
            "[servers.a]\ncommand = 'x'\nera = 'legacy'\nrevision = '2026-07-28'\n",
            "t.toml:4:12: server `a`, key `revision`: it is a revision of the modern era, but `era` is legacy",
        ),
        (
            "[servers.a]\ncommand = 'x'\nshare = 'sesion'\n",
            "t.toml:3:9: server `a`, key `share`: expected one of \"principal\", \"session\", \"call\", \"all\"; did you mean \"session\"?",
        ),
        (
            "[servers.a]\ncommand = 'x'\ntimeout = 30\n",
            "t.toml:3:11: server `a`, key `timeout`: expected a duration with a unit, such as \
             \"500ms\", \"30s\", \"2m\" or \"1h\", found a number",
        ),
        (
            "[servers.a]\ncommand = 'x'\ntools.alow = ['x']\n",
            "t.toml:3:7: server `a`, key `tools.alow`: `alow` is not a known key; did you mean `allow`?",
        ),
        (
            "[servers.a]\ncommand = 'x'\ntools.rename = { a = 'z', b = 'z' }\n",
            "t.toml:3:31: server `a`, key `tools.rename.b`: the tool `a` is renamed to `z` as well",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nheaders = { 'a b' = 'x' }\n",
            "t.toml:3:21: server `a`, key `headers.a b`: not a valid header name",
        ),
        (
            "[servers.a]\nurl = 'http://h/'\nheaders = { X = 'x', x = 'y' }\n",
            "t.toml:3:26: server `a`, key `headers.x`: the header is set twice, spelled differently",
        ),
        (
            "[servers.' a']\ncommand = 'x'\n",
            "t.toml:1:1: server ` a`: a server name must have 1 to 64 characters, no control characters, and no leading or trailing spaces",
        ),
        ("[servers.a\n", "t.toml:1:11: unclosed table, expected `]`"),
        ("[servers.a]\ncommand = 'x'\ncommand = 'y'\n", "t.toml:3:1: duplicate key"),
    ];
    for (text, expected) in table {
        assert_eq!(told("t.toml", text), expected, "{text}");
    }
}

#[test]
fn mcp_json_errors_have_a_position() {
    let table = [
        ("{}", "fine"),
        ("", "fine"),
        ("// nothing yet\n", "fine"),
        ("\u{feff}{}", "fine"),
        ("[]", "m.json:1:1: expected an object, found a list"),
        (r#"{"mcpServers": []}"#, "m.json:1:16: key `mcpServers`: expected an object, found a list"),
        (r#"{"mcpServers": {"a": {}}}"#, "m.json:1:22: server `a`: it has neither a `command` nor a `url`"),
        (
            r#"{"mcpServers": {"a": {"command": "x", "url": "http://h/"}}}"#,
            "m.json:1:46: server `a`, key `url`: there is a `command` as well; a server has either of them",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#,
            "m.json:1:40: `a` is set twice in the same object",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}}}"#,
            "m.json:1:53: server `a`: there is another server of this name",
        ),
        (r#"{"mcpServers": {"a": {"command": 'x'}}}"#, "m.json:1:34: Single-quoted strings are not allowed"),
        (
            r#"{"mcpServers": {"a": {"url": "https://h/", "type": "carrier-pigeon"}}}"#,
            "m.json:1:52: server `a`, key `type`: expected one of \"auto\", \"http\", \
             \"streamable-http\", \"streamableHttp\", \"streamable_http\", \"sse\", \"websocket\", \"ws\"",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "disabled": "yes"}}}"#,
            "m.json:1:51: server `a`, key `disabled`: expected a boolean, found a string",
        ),
        (
            r#"{"mcpServers": {"a": {"comand": "x"}}}"#,
            "m.json:1:23: server `a`, key `comand`: `comand` is not a known key; did you mean `command`?",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "args": "-y"}}}"#,
            "m.json:1:47: server `a`, key `args`: expected a list, found a string",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "env": []}, "b": {"command": "x", "env": ["A"]}}}"#,
            "m.json:1:80: server `b`, key `env`: expected an object, found a list",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(told("m.json", text), expected, "{text}");
    }
}

#[test]
fn unknown_table_does_not_hide_the_mistakes_of_servers() {
    let text = "[polcy]\n[servers.a]\ncomand = 'x'\n[colours]\n";
    assert_eq!(
        told("t.toml", text).lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["t.toml:1:2:", "t.toml:4:2:", "t.toml:3:1:"]
    );
}

#[test]
fn client_file_without_servers_is_a_problem_with_the_key_that_was_meant() {
    for (text, expected) in [
        (
            r#"{"mcpServer": {}}"#,
            Some("m.json:1:2: key `mcpServer`: `mcpServer` is not a known key; did you mean `mcpServers`?"),
        ),
        ("{}", Some("m.json: has no servers; expected")),
        (r#"{"mcpServers": {}}"#, None),
        (r#"{"mcp": {"servers": {}}}"#, None),
    ] {
        let file = ConfigFile::parse("m.json", text, variables()).unwrap();
        let problem = file.missing_servers().map(|problem| problem.to_string());
        match expected {
            Some(expected) => {
                assert!(problem.as_ref().is_some_and(|told| told.starts_with(expected)), "{problem:?}");
            }
            None => assert_eq!(problem, None, "{text}"),
        }
    }
}

#[test]
fn all_config_errors_are_reported_and_one_server_loads_alone() {
    let text = "[servers.a]\ncomand = 'x'\n[servers.b]\ncommand = 'y'\n[servers.c]\nurl = 'c'\n";
    let file = ConfigFile::parse("t.toml", text, variables()).unwrap();
    let error = file.servers().unwrap_err();
    let names: Vec<_> = error.problems().map(|problem| problem.server_name().unwrap()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(file.server("b").unwrap().name, "b");
    assert_eq!(file.server("a").unwrap_err().problems().count(), 1);
}

#[test]
fn unset_variable_of_a_disabled_server_is_no_error() {
    let toml = |rest: &str| format!("[servers.a]\ncommand = 'x'\nargs = ['${{NONE}}', '${{TOKEN}}']\n{rest}");
    let read = |path: &str, text: &str| {
        ConfigFile::parse(path, text, ConfigVariables::fixed([("TOKEN", "canary")])).unwrap()
    };
    let json = r#"{"mcpServers":{"a":{"url":"${NONE}","disabled":true},"b":{"command":"y"}}}"#;
    for (path, text) in
        [("t.toml", toml("enabled = false\n[servers.b]\ncommand = 'y'")), ("m.json", json.to_owned())]
    {
        let file = read(path, &text);
        let servers = file.servers().unwrap();
        assert_eq!(servers[0].unset_variable.as_deref(), Some("NONE"), "{path}");
        assert_eq!((servers[1].name.as_str(), &servers[1].unset_variable), ("b", &None), "{path}");
        // To use it by name is an error.
        assert!(
            file.server("a").unwrap_err().to_string().contains("environment variable `NONE` is not set"),
            "{path}"
        );
    }
    for (rest, problem) in [
        ("", "environment variable `NONE` is not set"),
        ("enabled = true", "environment variable `NONE` is not set"),
        ("enabled = false\nshare = 'nobody'", "server `a`"),
    ] {
        let error = read("t.toml", &toml(rest)).servers().unwrap_err().to_string();
        assert!(error.contains(problem), "{rest}: {error}");
    }
}

#[test]
fn unknown_server_error_lists_known_servers() {
    let table = [
        ("[servers.github]\ncommand = 'x'", "githb", "t.toml: has no server `githb`; did you mean `github`?"),
        ("[servers.github]\ncommand = 'x'", "files", "t.toml: has no server `files`; it has `github`"),
        ("", "files", "t.toml: has no server `files`; it has no servers"),
    ];
    for (text, name, expected) in table {
        let file = ConfigFile::parse("t.toml", text, variables()).unwrap();
        assert_eq!(file.server(name).unwrap_err().to_string(), expected);
    }
}

#[test]
fn config_errors_never_contain_values() {
    let texts = [
        "[servers.a]\ncommand = 'x'\nshare = 'canary'",
        "[servers.a]\ncommand = 'x'\ntimeout = 'canary'",
        "[servers.a]\ncommand = 'x'\nenabled = 'canary'",
        "[servers.a]\nurl = 'canary'",
        "[servers.a]\nurl = 'http://h:canary/'",
        "[servers.a]\nurl = 'http://h/'\nheaders.A = \"canary\\u0007\"",
        "[servers.a]\ncommand = 'x'\nenv.A = \"canary\\u0000\"",
        "[servers.a]\ncommand = '${TOKEN}'\nshare = '${TOKEN}'",
    ];
    for text in texts {
        let file = ConfigFile::parse("t.toml", text, ConfigVariables::fixed([("TOKEN", "canary")])).unwrap();
        let error = file.servers().unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn deeply_nested_config_is_rejected_without_recursion() {
    let deep = 200_000;
    let texts = [
        ("t.toml", format!("a = {}", "[".repeat(deep))),
        ("t.toml", format!("{}a = 1", "a.".repeat(deep))),
        ("t.toml", format!("[{}a]", "a.".repeat(deep))),
        ("t.toml", format!("a = {}", "{a=".repeat(deep))),
        ("m.json", "[".repeat(deep)),
        ("m.json", "{\"a\":".repeat(deep)),
        ("m.json", "/*".repeat(deep)),
    ];
    for (path, text) in texts {
        assert!(ConfigFile::parse(path, &text, variables()).is_err(), "{path}");
    }
}

#[test]
fn too_many_servers_are_rejected() {
    let text =
        |count: usize| (0..count).map(|n| format!("[servers.s{n}]\ncommand = 'x'\n")).collect::<String>();
    assert!(ConfigFile::parse("t.toml", &text(1024), variables()).is_ok());
    let error = ConfigFile::parse("t.toml", &text(1025), variables()).unwrap_err();
    assert_eq!(error.to_string(), "t.toml: has 1025 servers; at most 1024 are possible");
}

#[test]
fn mistakes_in_access_rules_have_a_position() {
    let long = format!("[[access]]\naction = 'allow'\ntools = '{}'\n", "x".repeat(1025));
    let many = "[[access]]\naction = 'allow'\n".repeat(1025);
    for (text, expected) in [
        ("[[access]]\naction = 'allow'\n", "fine"),
        (
            "[access]\naction = 'allow'\n",
            "t.toml:1:1: key `access`: expected a list of tables, `[[access]]`, found a table",
        ),
        ("[[access]]\ntools = 'x'\n", "t.toml:1:1: key `access.0`: the key `action` is missing"),
        ("[[access]]\naction = 'permit'\n", "t.toml:2:10: key `access.0.action`: "),
        (
            "[[access]]\naction = 'allow'\ntool = 'x'\n",
            "t.toml:3:1: key `access.0.tool`: `tool` is not a known key; did you mean `tools`?",
        ),
        (
            "[[access]]\naction = 'allow'\ntools = []\n",
            "t.toml:3:9: key `access.0.tools`: an empty list matches nothing; leave the key out to match everything",
        ),
        (
            "[[access]]\naction = 'allow'\ntools = 3\n",
            "t.toml:3:9: key `access.0.tools`: expected a string, or a list of strings, found a number",
        ),
        (
            "[[access]]\naction = 'deny'\nread_only = true\n",
            "t.toml:3:13: key `access.0.read_only`: only a rule that allows can be limited to read-only tools",
        ),
        (
            "[[access]]\naction = 'allow'\nscope = 'a b'\n",
            "t.toml:3:9: key `access.0.scope`: a scope has neither spaces nor quotes, and no pattern is possible",
        ),
        (
            "[[access]]\naction = 'allow'\nscope = 'a:*'\n",
            "t.toml:3:9: key `access.0.scope`: a scope has neither spaces nor quotes, and no pattern is possible",
        ),
        (
            "[[access]]\naction = 'allow'\nname = 'a'\n[[access]]\naction = 'deny'\nname = 'a'\n",
            "t.toml:6:8: key `access.1.name`: there is another rule of this name",
        ),
        (&*long, "t.toml:3:9: key `access.0.tools`: a pattern has at most 1024 bytes"),
        (&*many, "t.toml:1:1: key `access`: there are 1025 access rules; at most 1024 are possible"),
    ] {
        let file = ConfigFile::parse("t.toml", text, variables());
        let read = file.map_err(|error| error.to_string());
        let read = read.and_then(|file| file.access_rules().map_err(|problem| problem.to_string()));
        let told = read.map_or_else(|error| error, |_| "fine".to_owned());
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[test]
fn mistakes_in_rates_have_a_position() {
    let parse = |text: &str| ConfigFile::parse("t.toml", text, variables()).unwrap();
    for text in
        ["[limits]\nprincipal = '60'\n", "[limits]\nprincipal = 60\n", "[limits]\nprincipal = '0/s'\n"]
    {
        let problem = parse(text).call_limits().unwrap_err().to_string();
        assert!(
            problem.starts_with("t.toml:2:13: key `limits.principal`: expected a number of calls"),
            "{problem}"
        );
    }
    let problem = parse("[limits]\nprincipals = '1/s'\n").call_limits().unwrap_err().to_string();
    assert!(problem.contains("did you mean `principal`?"), "{problem}");
    let problem = parse("[servers.a]\ncommand = 'x'\nrate = '0/s'\n").servers().unwrap_err().to_string();
    assert!(problem.contains("t.toml:3:8: server `a`, key `rate`: expected a number of calls"), "{problem}");
}
