//! A server with every feature, over every transport at once, that reports to the test what reaches it.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trunkline_protocol::LoggingLevel;
use trunkline_server::http::{HttpServerOptions, serve};
use trunkline_server::{
    Context, HostOptions, Json, Server, Shutdown, Tool, ToolError, elicit, open_url, stdio,
};

use crate::process::DEADLINE;

/// The ways in which the peer can be talked to: each is a target, an era and a transport.
pub(crate) const TRANSPORTS: &[&str] = &["modern", "legacy", "sse", "websocket", "pipes"];

/// A server in this process that listens on a port of its own until the test is over.
pub(crate) struct TestPeer {
    pub(crate) address: SocketAddr,
    shutdown: Shutdown,
    events: Receiver<&'static str>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl TestPeer {
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_with(HttpServerOptions::default())
    }

    /// Starts the peer with an endpoint that is served otherwise.
    #[track_caller]
    pub(crate) fn start_with(endpoint: HttpServerOptions) -> Self {
        let (sender, events) = channel();
        Self::listen(&server(sender), endpoint, events)
    }

    /// Starts another server.
    #[track_caller]
    pub(crate) fn serving(server: &Server) -> Self {
        Self::listen(server, HttpServerOptions::default(), channel().1)
    }

    #[track_caller]
    fn listen(server: &Server, endpoint: HttpServerOptions, events: Receiver<&'static str>) -> Self {
        let (told, address) = channel();
        let shutdown = Shutdown::new();
        let options = HostOptions { shutdown: shutdown.clone(), ..HostOptions::default() };
        let host = server.host(options).unwrap();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                let endpoint = host.http_service(endpoint);
                let _ = serve(listener, &endpoint, endpoint.clone(), Duration::ZERO).await;
            });
        });
        let address = address.recv_timeout(DEADLINE).unwrap();
        Self { address, shutdown, events, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Makes a command line of its words, the target put where it belongs.
    pub(crate) fn command(&self, way: &str, words: &[&str]) -> Vec<String> {
        let (name, rest) = words.split_first().unwrap();
        let (options, target) = match way {
            "modern" => (vec!["--era", "modern"], self.url()),
            "legacy" => (vec!["--era", "legacy"], self.url()),
            "sse" => (vec![], format!("http://{}/sse", self.address)),
            "websocket" => (vec![], format!("ws://{}/ws", self.address)),
            "pipes" => (vec!["--env", "PEER=1"], over_pipes()),
            other => panic!("no way {other}"),
        };
        let mut command = vec![*name];
        command.extend(options);
        command.push(&target);
        command.extend(rest);
        command.into_iter().map(str::to_owned).collect()
    }

    /// Waits until something happens at the peer.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) {
        let next = self.events.recv_timeout(DEADLINE);
        assert_eq!(next, Ok(event));
    }
}

impl Drop for TestPeer {
    fn drop(&mut self) {
        self.shutdown.stop();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// The command line that starts this test program as a server; what it prints before is noise.
pub(crate) fn over_pipes() -> String {
    let program = std::env::current_exe().unwrap();
    format!("'{}' --exact client::peer::serves_pipes --ignored --nocapture", program.display())
}

/// Not a test: the server that others start.
#[test]
#[ignore = "it is started by other tests"]
fn serves_pipes() {
    if std::env::var_os("PEER").is_none() {
        return;
    }
    let (sender, events) = channel();
    std::thread::spawn(move || {
        while let Ok(event) = events.recv() {
            eprintln!("{event}");
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server(sender).serve(stdio())).unwrap();
}

fn server(events: Sender<&'static str>) -> Server {
    trunkline_conformance::everything().with(vec![
        Tool::new("add")
            .description("Adds two numbers.\nThe second is one unless given.")
            .read_only()
            .run(add),
        Tool::new("wait").description("Waits for ever.").run(move |cx| wait(cx, events.clone())),
        Tool::new("steer").description("Says what no terminal should obey.\x1b[2J").run(control_sequences),
        Tool::new("page").description("Asks the user to visit a page.").run(page),
        Tool::new("book").description("Books a table.").run(book),
        Tool::new("table").description("Returns a table.").run(table),
        Tool::new("around").description("Says what is around it.").run(around),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    #[serde(default = "one")]
    b: i64,
}

fn one() -> i64 {
    1
}

async fn add(Add { a, b }: Add) -> i64 {
    a + b
}

/// Reports to the test that a call began, and that it was cancelled.
async fn wait(cx: Context, events: Sender<&'static str>) -> &'static str {
    struct CallEndNotice(Sender<&'static str>);
    impl Drop for CallEndNotice {
        fn drop(&mut self) {
            let _ = self.0.send("cancelled");
        }
    }
    cx.progress_with(1, Some(4.0), "working");
    let _ = events.send("called");
    let _ending = CallEndNotice(events);
    pending().await
}

async fn control_sequences(cx: Context) -> String {
    cx.progress_with(1, Some(2.0), "half\x1b[2J\nway");
    cx.log(LoggingLevel::Warning, "log\x1b]0;title\x07");
    "\x1b[31mred\x1b[0m \u{202e}drow \x07\r\nnext".to_owned()
}

async fn page(cx: Context) -> Result<String, ToolError> {
    let reply = cx.ask(open_url("Log in, please.", "https://example.com/login?from=peer")).await?;
    Ok(format!("{:?}", reply.action))
}

/// A form with every kind of field, in an order of its own.
async fn book(cx: Context) -> Result<String, ToolError> {
    let schema = r#"{"type":"object","properties":{
        "name":{"type":"string","title":"Your name","minLength":2},
        "guests":{"type":"integer","minimum":1,"maximum":8,"default":2},
        "seat":{"type":"string","oneOf":[{"const":"w","title":"Window"},{"const":"a","title":"Aisle"}]},
        "extras":{"type":"array","items":{"type":"string","enum":["cake","wine"]}},
        "vip":{"type":"boolean","default":false}
    },"required":["name","seat"]}"#;
    let reply = cx.ask(elicit("A table?", trunkline_protocol::RawJson::parse(schema).unwrap())).await?;
    let content = reply.content.map_or_else(String::new, |content| format!(" {content}"));
    Ok(format!("{:?}{content}", reply.action))
}

#[derive(Serialize, JsonSchema)]
struct Table {
    rows: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    city: &'static str,
    warm: i64,
}

async fn table() -> Json<Table> {
    Json(Table { rows: vec![Row { city: "Oslo", warm: 3 }, Row { city: "Zürich", warm: 11 }] })
}

async fn around() -> String {
    let variable = std::env::var("AROUND").unwrap_or_default();
    let folder = std::env::current_dir().unwrap();
    format!("{variable} {}", folder.display())
}
