//! `cargo xtask browser`: a page of a foreign origin, in a real browser, cannot reach a server; one of ours can.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::run::{self, BackgroundProcess};
use crate::{TaskResult, root};

const BROWSER: &str = "chromium";
const PAGE: &str = "interop/browser/page.html";

/// A browser that starts for the first time may take its time.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(60);

/// The names under which the page is opened, and what it must report.
const VISITS: &[(&str, &str)] = &[
    ("localhost", "fetch reached it, eventSource reached it, cookie reached it, webSocket reached it"),
    ("evil.example", "fetch did not, eventSource did not, cookie did not, webSocket did not"),
];

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    install(BROWSER)?;
    let binary = fixture::build("everything-server")?;
    let server = FixtureServer::start_by(|address| {
        let mut command = run::command(&binary);
        command.args(["--cookie-sessions", "--http", &address.to_string()]);
        command
    })?;
    let profile = fixture::results_folder("browser")?;
    let (page, reports) = serve_page()?;
    let mut wrong = Vec::new();
    for (name, expected) in VISITS {
        let url = format!("http://{name}:{}/?server={}", page.port(), server.address());
        let report = visit(&url, &profile.join(name), &reports)?;
        println!("a page of {name}: {report}");
        if report != *expected {
            wrong.push(format!("a page of {name} should say: {expected}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Installs a browser of the distribution, unless it is there.
pub(crate) fn install(browser: &str) -> TaskResult {
    let version = run::command(browser).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if version.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    println!("installing {browser}");
    run::run(run::command("apt-get").args(["update", "--quiet"]))?;
    run::run(run::command("apt-get").args([
        "install",
        "--yes",
        "--quiet",
        "--no-install-recommends",
        browser,
    ]))
}

/// Opens a page and returns what it reports.
fn visit(url: &str, profile: &Path, reports: &Receiver<String>) -> TaskResult<String> {
    let mut command = run::command(BROWSER);
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        // The foreign name leads to this machine, as it would after its owner had pointed it here.
        .arg("--host-resolver-rules=MAP evil.example 127.0.0.1, EXCLUDE localhost, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _browser = BackgroundProcess::start(&mut command)?;
    reports.recv_timeout(BROWSER_TIMEOUT).map_err(|_| format!("the page at {url} reported nothing").into())
}

/// Serves the page, and hands on what it posts.
fn serve_page() -> TaskResult<(SocketAddr, Receiver<String>)> {
    let page = std::fs::read_to_string(root().join(PAGE))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (sender, reports) = sync_channel(8);
    // It lives as long as the process: this command is the last thing that the process does with it.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Ok(Some(report)) = answer(stream, &page) else { continue };
            if sender.send(report).is_err() {
                return;
            }
        }
    });
    Ok((address, reports))
}

/// Answers one request; returns the body of a report.
fn answer(stream: TcpStream, page: &str) -> std::io::Result<Option<String>> {
    // A browser opens connections before it needs them, and this serves one after the other.
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut reader = BufReader::new(stream);
    let mut start = String::new();
    reader.read_line(&mut start)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = String::new();
    reader.by_ref().take(length).read_to_string(&mut body)?;
    let (status, text) = match start.split(' ').nth(1) {
        Some(path) if path.starts_with("/?") => ("200 OK", page),
        Some("/result") => ("200 OK", ""),
        _ => ("404 Not Found", ""),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())?;
    Ok(start.starts_with("POST /result ").then_some(body))
}
