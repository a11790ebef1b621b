//! The web console: who gets its page, its sessions and the events of whom.

mod requests;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::*;
use crate::bare_client::{HttpReply, RawConnection, request, send};

/// The last event of a call: the response on its way to the client.
const RESPONSE: &str = "\"wire\":\"client\",\"direction\":\"sent\"";

const HEADER: &str = "X-Trunkline-Console";

/// A hub with an echo server and its console.
pub(super) struct ConsoleHub {
    running: RunningCommand,
    pub(super) address: SocketAddr,
    pub(super) place: HubFolder,
    /// The token of the link in the banner.
    pub(super) token: String,
}

impl ConsoleHub {
    #[track_caller]
    pub(super) fn start(test: &str, args: &[&str]) -> Self {
        Self::with_servers(test, args, &[("say", builtin("echo"))])
    }

    #[track_caller]
    pub(super) fn with_servers(test: &str, args: &[&str], servers: &[(&str, Value)]) -> Self {
        let place = HubFolder::new(test, "mcp.json", &mcp_json(servers));
        let socket = place.socket();
        let socket = ["--admin-socket", socket.to_str().unwrap()];
        let (mut running, address) = place.serve(&[&socket[..], args].concat());
        let token = operator_token(&mut running, &place, args.contains(&"--auth"));
        Self { running, address, place, token }
    }

    #[track_caller]
    pub(super) fn begin(&self, token: &str) -> PageSession {
        PageSession::begin(self.address, &json!({ "token": token }))
    }

    /// Begins a session that sees everything and changes nothing.
    #[track_caller]
    pub(super) fn begin_read_only(&self) -> PageSession {
        let socket = self.place.socket();
        let made = ["console", "--read-only", "--json", "--admin-socket", socket.to_str().unwrap()];
        let made: Value = serde_json::from_str(&run_in(&made, &self.place.folder).stdout).unwrap();
        self.begin(&token_of(made["url"].as_str().unwrap()))
    }

    pub(super) fn echo(&self, message: &str, headers: &[(&str, &str)]) {
        let sent = modern(1, "tools/call", call("say__echo", json!({ "message": message })));
        assert_eq!(post(self.address, &sent, headers).status, 200);
    }
}

/// Returns the token of a link: the one that is printed, which no log has of a hub that authenticates clients, or a further one.
#[track_caller]
fn operator_token(running: &mut RunningCommand, place: &HubFolder, has_auth: bool) -> String {
    if !has_auth {
        return token_of(&running.wait_for("#token="));
    }
    running.wait_for("`trunkline console` prints a link");
    assert!(!running.seen().contains("#token="), "a log gets no link: {}", running.seen());
    let socket = place.socket();
    let made = ["console", "--json", "--admin-socket", socket.to_str().unwrap()];
    let made: Value = serde_json::from_str(&run_in(&made, &place.folder).stdout).unwrap();
    token_of(made["url"].as_str().unwrap())
}

fn token_of(line: &str) -> String {
    line.trim().split_once("#token=").unwrap().1.to_owned()
}

/// The two secrets of a page.
#[derive(Clone)]
pub(super) struct PageSession {
    address: SocketAddr,
    cookie: String,
    token: String,
}

impl PageSession {
    #[track_caller]
    pub(super) fn begin(address: SocketAddr, proof: &Value) -> Self {
        let reply = send(address, "POST /console/api/session", &[], &proof.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        let set = reply.header("set-cookie").unwrap().to_owned();
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/console"] {
            assert!(set.contains(attribute), "{set}");
        }
        let token = reply.json()["header_token"].as_str().unwrap().to_owned();
        assert!(!set.contains(&token));
        Self { address, cookie: set.split(';').next().unwrap().to_owned(), token }
    }

    pub(super) fn headers(&self) -> [(&str, &str); 2] {
        [("Cookie", &self.cookie), (HEADER, &self.token)]
    }

    /// Sends a request with a body of JSON.
    pub(super) fn send(&self, start: &str, body: &Value) -> HttpReply {
        send(self.address, start, &self.headers(), &body.to_string())
    }

    pub(super) fn get(&self, path: &str, more: &[(&str, &str)]) -> HttpReply {
        get(self.address, path, &[&self.headers()[..], more].concat())
    }

    /// Opens the stream of events, which has begun when this returns.
    #[track_caller]
    fn events(&self, query: &str) -> RawConnection {
        let mut connection = RawConnection::open(self.address);
        connection.write(&request(
            self.address,
            &format!("GET /console/api/events{query}"),
            &self.headers(),
            "",
        ));
        let head = connection.read_until("\r\n\r\n1\r\n\n");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        connection
    }
}

/// Returns the events of a stream so far, each as it came.
fn events_of(connection: &RawConnection) -> Vec<Value> {
    connection
        .seen()
        .lines()
        .filter_map(|line| serde_json::from_str(line.trim()).ok())
        .filter(Value::is_object)
        .collect()
}

/// Returns the number of the last event that has begun to come.
fn last_number(connection: &RawConnection) -> u64 {
    let seen = connection.seen();
    let (_, rest) = seen.rsplit_once("\"seq\":").unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn api_needs_the_cookie_and_the_header_token_of_one_session() {
    let hub = ConsoleHub::start("console_secrets", &[]);
    let session = hub.begin(&hub.token);
    assert_eq!(session.get("/console/api/hub", &[]).status, 200);
    let again =
        send(hub.address, "POST /console/api/session", &[], &json!({ "token": hub.token }).to_string());
    assert_eq!(again.status, 401, "a link opens once");

    let made =
        run_in(&["console", "--admin-socket", hub.place.socket().to_str().unwrap()], &hub.place.folder);
    assert_eq!(made.code, Some(0), "{made:?}");
    let other = hub.begin(&token_of(&made.stdout));
    let cookie = ("Cookie", session.cookie.as_str());
    for (headers, what) in [
        (&[][..], "nothing"),
        (&[cookie], "the cookie alone, as another local port sees it"),
        (&[(HEADER, session.token.as_str())], "the header token alone"),
        (&[cookie, (HEADER, other.token.as_str())], "the header token of another session"),
        (&[cookie, (HEADER, hub.token.as_str())], "the token of the link"),
        (
            &[("Cookie", "trunkline_console_1=x"), (HEADER, session.token.as_str())],
            "the cookie of another port",
        ),
    ] {
        for path in ["/console/api/hub", "/console/api/events", "/console/api/record", "/console/api/other"] {
            let reply = get(hub.address, path, headers);
            assert_eq!(reply.status, 401, "{what}: {path}");
            assert!(reply.json()["error"].is_string());
        }
    }
    let ended = send(hub.address, "DELETE /console/api/session", &session.headers(), "");
    assert_eq!(ended.status, 200);
    assert_eq!(session.get("/console/api/hub", &[]).status, 401);
    assert_eq!(other.get("/console/api/hub", &[]).status, 200);
}

#[test]
fn requests_of_other_origins_are_refused() {
    let hub = ConsoleHub::start("console_origins", &[]);
    let session = hub.begin(&hub.token);
    let own = format!("http://{}", hub.address);
    let other_port = "http://127.0.0.1:1";
    for (header, value, status) in [
        ("Origin", own.as_str(), 200),
        ("Origin", other_port, 403),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Host", "evil.example", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("X-Forwarded-For", "192.0.2.1", 403),
    ] {
        let reply = session.get("/console/api/hub", &[(header, value)]);
        assert_eq!(reply.status, status, "{header}: {value}");
        assert!(reply.header("access-control-allow-origin").is_none());
    }
    // An endpoint of MCP may be called by every origin of the loopback; its console may not.
    let made =
        run_in(&["console", "--admin-socket", hub.place.socket().to_str().unwrap()], &hub.place.folder);
    let proof = json!({ "token": token_of(&made.stdout) }).to_string();
    let stolen = send(hub.address, "POST /console/api/session", &[("Origin", other_port)], &proof);
    assert_eq!(stolen.status, 403);
    assert_eq!(send(hub.address, "OPTIONS /console/api/hub", &[("Origin", other_port)], "").status, 403);
    let taken = send(hub.address, "POST /console/api/session", &[("Origin", &own)], &proof);
    assert_eq!(taken.status, 200, "the refused request did not use the link up");
}

#[test]
fn page_has_a_strict_policy_and_loads_nothing_from_elsewhere() {
    let hub = ConsoleHub::start("console_page", &[]);
    for path in ["/console/", "/console/main.js", "/console/style.css", "/console/api/hub", "/console/none"] {
        let reply = get(hub.address, path, &[]);
        let policy = reply.header("content-security-policy").unwrap();
        for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert_eq!(get(hub.address, "/console", &[]).status, 308);
    assert_eq!(get(hub.address, "/console/../Cargo.toml", &[]).status, 404);
    assert_eq!(get(hub.address, "/consoles", &[]).status, 404);
    assert_eq!(send(hub.address, "POST /console/main.js", &[], "").status, 405);
}

#[test]
fn read_only_session_is_refused_what_changes_something() {
    let hub = ConsoleHub::start("console_roles", &[]);
    let operator = hub.begin(&hub.token);
    let viewer = hub.begin_read_only();
    assert_eq!(viewer.get("/console/api/hub", &[]).json()["role"], "viewer");
    assert_eq!(operator.get("/console/api/hub", &[]).json()["role"], "operator");
    let link = |session: &PageSession, role: &str| {
        let body = json!({ "role": role }).to_string();
        send(hub.address, "POST /console/api/links", &session.headers(), &body)
    };
    assert_eq!(link(&viewer, "viewer").status, 403);
    assert_eq!(link(&viewer, "operator").status, 403);
    let made = link(&operator, "viewer").json();
    let third = hub.begin(&token_of(made["url"].as_str().unwrap()));
    assert_eq!(third.get("/console/api/hub", &[]).json()["role"], "viewer");
    assert_eq!(link(&operator, "nonsense").status, 400);
}

#[test]
fn stream_continues_after_the_last_event_without_a_gap() {
    let hub = ConsoleHub::start("console_stream", &[]);
    let session = hub.begin(&hub.token);
    let mut first = session.events("");
    hub.echo("one", &[]);
    first.read_until(RESPONSE);
    let last = last_number(&first);
    drop(first);
    // No page is open now.
    hub.echo("two", &[]);
    let mut second = session.events(&format!("?after={last}"));
    second.read_until(RESPONSE);
    let numbers: Vec<u64> = events_of(&second).iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (last + 1..=last + numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    assert!(second.seen().contains("two") && !second.seen().contains("\"one\""), "{}", second.seen());
    for message in ["\"wire\":\"client\"", "\"wire\":\"server\""] {
        assert!(second.seen().contains(message), "{}", second.seen());
    }
    assert_eq!(session.get("/console/api/events?after=x", &[]).status, 400);
}

#[test]
fn open_page_does_not_delay_the_shutdown() {
    let hub = ConsoleHub::start("console_shutdown", &["--grace", "1h"]);
    let session = hub.begin(&hub.token);
    let mut stream = session.events("");
    hub.running.signal(Signal::TERM);
    stream.read_to_end();
    assert_eq!(hub.running.wait().code, Some(0));
}

#[test]
fn user_sees_only_events_of_its_own_principal() {
    let tokens_folder = folder("console_users_tokens");
    let tokens = file(&tokens_folder, "tokens", "ann 0123456789abcdef\nbob fedcba9876543210\n", 0o600);
    let hub = ConsoleHub::start("console_users", &["--auth", &format!("bearer:{tokens}")]);
    let operator = hub.begin(&hub.token);
    let ann = PageSession::begin(hub.address, &json!({ "bearer": "0123456789abcdef" }));
    let wrong =
        send(hub.address, "POST /console/api/session", &[], &json!({ "bearer": "wrong" }).to_string());
    assert_eq!(wrong.status, 401);
    let report = ann.get("/console/api/hub", &[]).json();
    assert_eq!((&report["role"], &report["servers"]), (&json!("viewer"), &json!([])), "users change nothing");
    assert_eq!(operator.get("/console/api/hub", &[]).json()["servers"][0]["name"], "say");

    let (mut all, mut own) = (operator.events(""), ann.events(""));
    let headers = |token| [("Authorization", token)];
    hub.echo("of bob", &headers("Bearer fedcba9876543210"));
    hub.echo("of ann", &headers("Bearer 0123456789abcdef"));
    all.read_until("of bob");
    all.read_until("of ann");
    own.read_until("\"call_ended\"");
    let seen = own.seen();
    assert!(seen.contains("of ann") && !seen.contains("of bob") && !seen.contains("bob"), "{seen}");
    for secret in ["0123456789abcdef", "fedcba9876543210"] {
        assert!(!all.seen().contains(secret), "{}", all.seen());
    }
}

#[test]
fn session_of_a_revoked_token_ends_with_its_stream() {
    let tokens_folder = folder("console_revoked_tokens");
    let tokens = file(&tokens_folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let hub = ConsoleHub::start("console_revoked", &["--auth", &format!("bearer:{tokens}")]);
    let ann = PageSession::begin(hub.address, &json!({ "bearer": "0123456789abcdef" }));
    let mut stream = ann.events("");
    file(&tokens_folder, "tokens", "bob fedcba9876543210\n", 0o600);
    hub.running.signal(Signal::HUP);
    stream.read_to_end();
    assert_eq!(ann.get("/console/api/hub", &[]).status, 401);
}

#[test]
fn anonymous_hub_accepts_no_access_token_for_its_console() {
    let hub = ConsoleHub::start("console_anonymous", &[]);
    let reply =
        send(hub.address, "POST /console/api/session", &[], &json!({ "bearer": "anything" }).to_string());
    assert_eq!(reply.status, 401);
    for body in ["", "{}", "[]", "{\"token\":1}", &"x".repeat(100_000)] {
        assert_eq!(send(hub.address, "POST /console/api/session", &[], body).status, 400, "{:.40}", body);
    }
}

#[test]
fn console_leaves_the_loopback_only_with_admin_and_auth() {
    let folder = folder("console_public");
    let tokens = file(&folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let place = HubFolder::new("console_public_hub", "mcp.json", &mcp_json(&[("say", builtin("echo"))]));
    let auth = format!("bearer:{tokens}");
    for (args, on_public, on_admin) in [
        (&["--auth", &auth][..], 404, 200),
        (&["--insecure-no-auth"], 404, 404),
        (&["--auth", &auth, "--no-console"], 404, 401),
    ] {
        let port_file = place.folder.join("address");
        let fixed = [
            "serve",
            "--trust",
            "--http",
            "0.0.0.0:0",
            "--admin",
            "0.0.0.0:0",
            "--log-format",
            "json",
            "--port-file",
            port_file.to_str().unwrap(),
        ];
        let mut running = RunningCommand::start_in(&[&fixed[..], args].concat(), &place.folder);
        let metrics: Value = serde_json::from_str(&running.wait_for("metrics on ")).unwrap();
        let url = metrics["message"].as_str().unwrap().replace("0.0.0.0", "127.0.0.1");
        let admin: SocketAddr =
            url.split("http://").nth(1).unwrap().strip_suffix("/metrics").unwrap().parse().unwrap();
        running.wait_for("ready");
        assert!(!running.seen().contains("#token="), "a log gets no link: {}", running.seen());
        let public = std::fs::read_to_string(&port_file).unwrap().trim_end().replace("0.0.0.0", "127.0.0.1");
        assert_eq!(get(public.parse().unwrap(), "/console/", &[]).status, on_public, "{args:?}");
        assert_eq!(get(admin, "/console/", &[]).status, on_admin, "{args:?}");
        if on_admin == 200 {
            assert_eq!(get(admin, "/console/api/hub", &[]).status, 401);
            let ann = PageSession::begin(admin, &json!({ "bearer": "0123456789abcdef" }));
            assert_eq!(ann.get("/console/api/hub", &[]).json()["role"], "viewer");
        }
    }
}

#[test]
fn record_file_is_served_as_a_view_without_a_hub() {
    let folder = folder("console_view");
    let record = "{\"trunkline_record\":1,\"started\":\"2026-11-19T04:00:00Z\",\"version\":\"0.1.0\"}\n\
                  {\"seq\":1,\"time\":\"2026-11-19T04:00:00.000001Z\",\"kind\":\"stderr\",\"server\":\"a\",\"line\":\"b\"}\n";
    let path = file(&folder, "an hour.jsonl", record, 0o600);
    let running = RunningCommand::start(&["console", &path]);
    let link = running.read_line();
    let address: SocketAddr =
        link.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap();
    let session = PageSession::begin(address, &json!({ "token": token_of(&link) }));
    assert_eq!(session.get("/console/api/hub", &[]).json()["live"], false);
    let reply = session.get("/console/api/record", &[]);
    assert_eq!((reply.body.as_str(), reply.header("x-file-name")), (record, Some("an%20hour.jsonl")));
    assert_eq!(session.get("/console/api/events", &[]).status, 404);
    assert_eq!(get(address, "/mcp", &[]).status, 404);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    let newer =
        file(&folder, "newer.jsonl", "{\"trunkline_record\":2,\"started\":\"\",\"version\":\"9\"}\n", 0o600);
    let refused = crate::process::run(&["console", &newer], "");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("newer"), "{}", refused.stderr);
    let public = crate::process::run(&["console", "--http", "0.0.0.0:0", &path], "");
    assert_eq!(public.code, Some(3), "{public:?}");
}
