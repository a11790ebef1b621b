use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Sends one request to the store and returns what it answers.
pub(crate) fn request(
    service: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, Box<dyn Error>> {
    let host = service.strip_prefix("http://").ok_or("the store is reached by http://HOST:PORT")?;
    let mut stream = TcpStream::connect(host)
        .map_err(|error| format!("the store at {service} cannot be reached: {error}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream.take(16 << 20).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the store did not answer in HTTP")?;
    let answer: Value = serde_json::from_str(body)?;
    match head.split(' ').nth(1) {
        Some("200") => Ok(answer),
        _ => {
            Err(answer.get("error").and_then(Value::as_str).unwrap_or("the store refused").to_owned().into())
        }
    }
}

/// Writes a text such that it can be one part of a path.
pub(crate) fn part(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
