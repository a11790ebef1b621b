use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::proxy::{HttpProxy, ProxyError};

/// The most bytes of a proxy's response headers before a tunnel.
const MAX_RESPONSE_BYTES: usize = 16 * 1024;

/// Opens a tunnel to a host and a port with `CONNECT` (RFC 9110 §9.3.6).
pub(super) async fn open(
    stream: &mut TcpStream,
    proxy: &HttpProxy,
    authority: &str,
) -> Result<(), ProxyError> {
    let head = exchange(stream, proxy, authority).await.map_err(|_| ProxyError::Malformed(proxy.name()))?;
    match status(&head) {
        Some(200..300) => Ok(()),
        Some(407) => Err(ProxyError::Unauthorized(proxy.name())),
        Some(status) => Err(ProxyError::Refused { proxy: proxy.name(), status }),
        None => Err(ProxyError::Malformed(proxy.name())),
    }
}

async fn exchange(stream: &mut TcpStream, proxy: &HttpProxy, authority: &str) -> io::Result<Vec<u8>> {
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(credentials) = &proxy.credentials {
        request.push_str("Proxy-Authorization: ");
        request.push_str(credentials.expose());
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(256);
    // Byte by byte, so that no byte of the tunnel after the header section is consumed; it is short and read once.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_RESPONSE_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

/// Parses the status line.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let version = words.next()?;
    let status = words.next()?;
    (version.starts_with("HTTP/1.") && status.len() == 3).then(|| status.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_status_is_parsed_only_from_http() {
        let table: &[(&[u8], Option<u16>)] = &[
            (b"HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            (b"HTTP/1.0 200\r\n\r\n", Some(200)),
            (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Some(407)),
            (b"HTTP/1.1 2000 \r\n\r\n", None),
            (b"SSH-2.0-OpenSSH\r\n\r\n", None),
            (b"HTTP/2 200\r\n\r\n", None),
            (b"\xff\r\n\r\n", None),
            (b"", None),
        ];
        for (head, expected) in table {
            assert_eq!(status(head), *expected, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
