use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue};
use trunkline_transport::dial::WebSocketError;
use trunkline_transport::{Channel as _, Url, accept_key};

use crate::scripted::{direct, read_request, serve, write};

fn ws(url: &Url) -> Url {
    url.to_full_string().replacen("http://", "ws://", 1).parse().unwrap()
}

/// Returns the value of a header of a request.
fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(name)).unwrap();
    line.split_once(": ").unwrap().1
}

#[tokio::test]
async fn websocket_keeps_messages_received_with_the_handshake() {
    let url = serve(|_, mut stream| async move {
        let request = read_request(&mut stream).await;
        assert_eq!(header(&request, "sec-websocket-protocol"), "mcp");
        assert_eq!(header(&request, "sec-websocket-version"), "13");
        assert_eq!(header(&request, "authorization"), "Bearer token");
        let accept = accept_key(header(&request, "sec-websocket-key").as_bytes());
        // A text message is in the same packet as the handshake.
        let answer = format!(
            "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-protocol: mcp\r\nsec-websocket-accept: {accept}\r\n\r\n\u{1}"
        );
        let mut bytes = answer.into_bytes();
        bytes.pop();
        bytes.extend(b"\x81\x02{}");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes).await.unwrap();
        let mut rest = [0; 1];
        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await;
    })
    .await;
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer token"));
    let mut channel = direct().websocket(&ws(&url), headers, 1024).await.unwrap();
    let message = std::future::poll_fn(|cx| channel.poll_receive(cx)).await.unwrap().unwrap();
    assert_eq!(message, "{}");
}

#[tokio::test]
async fn rejected_upgrade_and_invalid_handshake_are_distinguished() {
    let url = serve(|_, mut stream| async move {
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 4\r\n\r\nnope")
            .await;
    })
    .await;
    let error = direct().websocket(&ws(&url), HeaderMap::new(), 1024).await.unwrap_err();
    let WebSocketError::Refused { status, headers, excerpt } = error else { panic!("{error}") };
    assert_eq!(
        (status.as_u16(), headers.get_text(&WWW_AUTHENTICATE).unwrap(), &*excerpt),
        (401, "Bearer", "nope")
    );

    let url = serve(|_, mut stream| async move {
        read_request(&mut stream).await;
        let answer = "HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                      sec-websocket-accept: AAAA\r\n\r\n";
        write(&mut stream, answer).await;
    })
    .await;
    let error = direct().websocket(&ws(&url), HeaderMap::new(), 1024).await.unwrap_err();
    assert!(matches!(error, WebSocketError::Handshake(_)), "{error}");
}
