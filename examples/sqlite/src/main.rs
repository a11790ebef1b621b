//! A database that stays open between calls.
//!
//! A legacy client opens one and queries it in the same session. A modern client has no session: it is given a handle when
//! it opens the database, and brings it with every query. The handlers are the same for both.
//!
//! `cargo run --manifest-path examples/sqlite/Cargo.toml` serves it over standard input and output. With an address and a
//! file, such as `127.0.0.1:8080 sessions.db`, it serves HTTP and keeps its sessions in that file: a client goes on after a
//! restart as if nothing had been. What the handlers keep is not in it, so that the database has to be opened again.

mod sessions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value, json};
use trunkline::HostOptions;
use trunkline::prelude::*;
use trunkline::server::http::{self, HttpServerOptions};
use trunkline::session::SessionLimits;

use crate::sessions::SqliteSessions;

/// The rows that one query returns at most.
const MOST_ROWS: usize = 100;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Open {
    /// The file; a database in memory if left out.
    path: Option<String>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    /// The statement.
    sql: String,
    /// What `sqlite_open` returned; not needed within a session.
    handle: Option<String>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Opened {
    handle: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Rows {
    rows: Vec<Value>,
}

/// What is kept between calls.
#[derive(Default)]
struct Database(Option<Connection>);

async fn open(cx: Context, Open { path }: Open) -> Result<Json<Opened>, ToolError> {
    let connection = match path {
        Some(path) => Connection::open(path)?,
        None => Connection::open_in_memory()?,
    };
    let state = cx.state::<Database>(None)?;
    state.update(|database| database.0 = Some(connection));
    Ok(Json(Opened { handle: state.handle() }))
}

async fn query(cx: Context, Query { sql, handle }: Query) -> Result<Json<Rows>, ToolError> {
    let state = cx.state::<Database>(handle.as_deref())?;
    let rows = tokio::task::spawn_blocking(move || {
        state.update(|database| match &database.0 {
            Some(connection) => rows(connection, &sql),
            None => Err(ToolError::new("no database is open; call sqlite_open first")),
        })
    });
    Ok(Json(Rows { rows: rows.await?? }))
}

fn rows(connection: &Connection, sql: &str) -> Result<Vec<Value>, ToolError> {
    let mut statement = connection.prepare(sql)?;
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if found.len() >= MOST_ROWS {
            return Err(ToolError::new(format!("there are more than {MOST_ROWS} rows; ask for fewer")));
        }
        let mut object = serde_json::Map::new();
        for (at, name) in names.iter().enumerate() {
            object.insert(name.clone(), value(row.get_ref(at)?));
        }
        found.push(Value::Object(object));
    }
    Ok(found)
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!(format!("{} bytes", bytes.len())),
    }
}

fn server() -> Server {
    Server::new("sqlite")
        .with(Tool::new("sqlite_open").description("Opens a database.").run(open))
        .with(Tool::new("sqlite_query").description("Runs a statement on the open database.").run(query))
}

/// Serves HTTP with sessions that are kept in a file.
async fn serve_http(address: &str, file: &Path) -> trunkline::Result<()> {
    let limits = SessionLimits::default();
    let sessions = SqliteSessions::open(file, limits.clone())?;
    let options = HttpServerOptions {
        sessions: Some(Arc::new(sessions)),
        session_limits: limits,
        ..HttpServerOptions::default()
    };
    let endpoint = server().host(HostOptions::default())?.http_service(options);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on {}", listener.local_addr()?);
    http::serve(listener, &endpoint, endpoint.clone(), Duration::from_secs(5)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => Ok(server().serve(stdio()).await?),
        [address, file] => serve_http(address, Path::new(file)).await,
        _ => Err("either nothing is said, or an address and a file".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use trunkline::transport::{Channel as _, MemoryChannel};

    use super::*;

    async fn call(channel: &mut MemoryChannel, message: &Value) -> Value {
        channel.send(&message.to_string());
        poll_fn(|cx| channel.poll_flush(cx)).await.unwrap();
        let answer = poll_fn(|cx| channel.poll_receive(cx)).await.unwrap().unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    fn tool(name: &str, arguments: &Value, about: &Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments, "_meta": about });
        json!({ "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params })
    }

    fn modern(name: &str, arguments: &Value) -> Value {
        let about = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        tool(name, arguments, &about)
    }

    const FILL: &str = "create table t as select 7 as number, 'seven' as name";
    const READ: &str = "select number, name from t";

    fn expected() -> Value {
        json!([{ "number": 7, "name": "seven" }])
    }

    #[tokio::test]
    async fn session_queries_its_opened_database_without_a_handle() {
        let host = server().host(HostOptions::default()).unwrap();
        let mut channel = host.connect();
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        call(&mut channel, &hello).await;
        let early = call(&mut channel, &tool("sqlite_query", &json!({ "sql": READ }), &json!({}))).await;
        assert_eq!(early["result"]["isError"], true, "{early}");
        call(&mut channel, &tool("sqlite_open", &json!({}), &json!({}))).await;
        for (sql, rows) in [(FILL, json!([])), (READ, expected())] {
            let answer = call(&mut channel, &tool("sqlite_query", &json!({ "sql": sql }), &json!({}))).await;
            assert_eq!(answer["result"]["structuredContent"]["rows"], rows, "{answer}");
        }
    }

    #[tokio::test]
    async fn modern_client_uses_its_handle_over_any_connection() {
        let host = server().host(HostOptions::default()).unwrap();
        let opened = call(&mut host.connect(), &modern("sqlite_open", &json!({}))).await;
        let handle = &opened["result"]["structuredContent"]["handle"];
        for (sql, rows) in [(FILL, json!([])), (READ, expected())] {
            let query = modern("sqlite_query", &json!({ "sql": sql, "handle": handle }));
            let answer = call(&mut host.connect(), &query).await;
            assert_eq!(answer["result"]["structuredContent"]["rows"], rows, "{answer}");
        }
        let without = call(&mut host.connect(), &modern("sqlite_query", &json!({ "sql": READ }))).await;
        assert_eq!(without["result"]["isError"], true, "{without}");
    }
}
