use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde_json::{Value, json};

/// What is kept: things by their name, by collection.
type Things = BTreeMap<String, BTreeMap<String, Value>>;

/// Keeps things in memory and gives them out over HTTP, one request at a time.
pub(crate) fn run(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    println!("{}", listener.local_addr()?);
    let mut things = Things::new();
    for stream in listener.incoming() {
        // A client that breaks off is its own problem.
        let _ = stream.and_then(|stream| serve(&stream, &mut things));
    }
    Ok(())
}

fn serve(mut stream: &TcpStream, things: &mut Things) -> io::Result<()> {
    let mut reader = BufReader::new(stream).take(1 << 20);
    let (mut request, mut length) = (String::new(), 0);
    reader.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap_or(0);
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, answer) =
        match answer(things, method, path, serde_json::from_slice(&body).unwrap_or_default()) {
            Ok(answer) => ("200 OK", answer),
            Err(error) => ("400 Bad Request", json!({ "error": error })),
        };
    let answer = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

fn answer(things: &mut Things, method: &str, path: &str, body: Value) -> Result<Value, String> {
    let mut parts = path.trim_start_matches("/v1/").split('/');
    let collection = things.entry(parts.next().unwrap_or_default().to_owned()).or_default();
    let Some(name) = parts.next() else { return Ok(collection.values().cloned().collect()) };
    let missing = || format!("there is nothing called {name}");
    match method {
        "GET" => collection.get(name).cloned().ok_or_else(missing),
        "DELETE" => collection.remove(name).ok_or_else(missing),
        _ => {
            collection.insert(name.to_owned(), body.clone());
            Ok(body)
        }
    }
}
