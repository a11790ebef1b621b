use std::sync::Arc;

use http::HeaderMap;
use tokio::net::TcpStream;
use tokio::time::timeout;
use trunkline_transport::Url;
use trunkline_transport::dial::ProxySettings;
use trunkline_transport::http::{HeaderLines, HttpClient, HttpClientOptions, HttpRequest, RequestDelivery};

use crate::scripted::{LONG, Seen, dialer, post, read_request, serve, write};

fn through(proxy: &Url, url: &Url) -> HttpClient {
    let proxies = ProxySettings::all(&format!("http://user:word@{}", proxy.authority())).unwrap();
    HttpClient::new(dialer(proxies), url.clone(), &HttpClientOptions::default())
}

#[tokio::test]
async fn proxied_plain_request_has_absolute_form_and_proxy_credentials() {
    let seen = Seen::default();
    let proxy = serve({
        let seen = seen.clone();
        move |_, mut stream| {
            let seen = seen.clone();
            async move {
                loop {
                    let request = read_request(&mut stream).await;
                    if request.is_empty() {
                        break;
                    }
                    seen.push(request);
                    write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
                }
            }
        }
    })
    .await;
    let url: Url = "http://server.example/mcp?a=b".parse().unwrap();
    let client = through(&proxy, &url);
    for _ in 0..2 {
        client.send(&post(&client, &url, "{}")).await.unwrap().body.read_all(10).await.unwrap();
    }
    let all = seen.all();
    assert_eq!(all.len(), 2);
    for request in all {
        assert!(request.starts_with("POST http://server.example/mcp?a=b HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nhost: server.example\r\n"), "{request}");
        assert!(request.contains("\r\nproxy-authorization: Basic dXNlcjp3b3Jk\r\n"), "{request}");
    }
}

#[tokio::test]
async fn tls_and_websocket_connections_tunnel_through_the_proxy() {
    // The proxy connects the client to this server, whatever the requested address.
    let server = serve(|_, mut stream| async move {
        let request = read_request(&mut stream).await;
        assert!(!request.contains("proxy-authorization"), "{request}");
        write(&mut stream, "HTTP/1.1 418 Teapot\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let seen = Seen::default();
    let proxy = serve({
        let seen = seen.clone();
        move |_, mut stream| {
            let (seen, server) = (seen.clone(), server.clone());
            async move {
                seen.push(read_request(&mut stream).await);
                write(&mut stream, "HTTP/1.1 200 Connection established\r\n\r\n").await;
                let mut there = TcpStream::connect((server.host(), server.port())).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            }
        }
    })
    .await;
    let proxies = ProxySettings::all(&format!("http://user:word@{}", proxy.authority())).unwrap();
    let url: Url = "ws://server.example/ws".parse().unwrap();
    let error = dialer(proxies).websocket(&url, HeaderMap::new(), 1024).await.unwrap_err();
    assert!(error.to_string().contains("status 418"), "{error}");
    let expected = "CONNECT server.example:80 HTTP/1.1\r\nHost: server.example:80\r\n\
                    Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n\r\n";
    assert_eq!(seen.all(), [expected]);
}

#[tokio::test]
async fn rejected_tunnel_names_the_proxy_and_sends_nothing() {
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(10_000));
    let table = [
        ("HTTP/1.1 407 Who\r\n\r\n", "wants credentials"),
        ("HTTP/1.1 403 No\r\n\r\n", "status 403"),
        ("SSH-2.0\r\n\r\n", "did not answer as a proxy does"),
        ("", "did not answer as a proxy does"),
        (&endless, "did not answer as a proxy does"),
    ];
    for (answer, expected) in table {
        let answer: Arc<str> = answer.into();
        let proxy = serve(move |_, mut stream| {
            let answer = answer.clone();
            async move {
                read_request(&mut stream).await;
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
            }
        })
        .await;
        let url: Url = "https://server.example/".parse().unwrap();
        let client = through(&proxy, &url);
        let request = HttpRequest {
            method: http::Method::GET,
            target: client.target(&url).unwrap(),
            headers: HeaderLines::default(),
            body: Vec::new(),
        };
        let error = timeout(LONG, client.send(&request)).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(error.to_string().contains(&proxy.authority()), "{error}");
        assert!(!error.to_string().contains(":word"), "{error}");
        assert_eq!(error.delivery(), RequestDelivery::NotSent);
    }
}

#[tokio::test]
async fn unreachable_proxy_is_named_in_the_error() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxies = ProxySettings::all(&format!("http://user:word@{free}")).unwrap();
    for url in ["http://server.example/mcp", "https://server.example/mcp"] {
        let error = dialer(proxies.clone()).dial(&url.parse().unwrap()).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("the proxy `{free}` cannot be used: ")), "{error}");
        assert!(!error.contains("word"), "{error}");
    }
}
