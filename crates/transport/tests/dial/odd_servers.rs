//! Servers that respond too early, or send more than the response.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;
use trunkline_transport::Url;
use trunkline_transport::http::{HttpClient, HttpClientOptions, HttpRequest};

use crate::scripted::{LONG, client, direct, post, read_request, serve, write};

const MIB: usize = 1 << 20;

fn large(client: &HttpClient, url: &Url, bytes: usize) -> HttpRequest {
    HttpRequest { body: vec![b'x'; bytes], ..post(client, url, "") }
}

#[tokio::test]
async fn head_response_has_no_body_and_its_connection_is_reused() {
    let url = serve(|_, mut stream| async move {
        while !read_request(&mut stream).await.is_empty() {
            write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
        }
    })
    .await;
    let client = client(&url);
    for _ in 0..3 {
        let request = HttpRequest { method: http::Method::HEAD, ..post(&client, &url, "") };
        let mut response = timeout(LONG, client.send(&request)).await.unwrap().unwrap();
        assert_eq!(timeout(LONG, response.body.read_all(10)).await.unwrap().unwrap(), "");
    }
    assert_eq!(client.idle(), 1);
}

#[tokio::test]
async fn early_success_response_still_receives_the_whole_request() {
    const BYTES: usize = 16 * MIB;
    let url = serve(|_, mut stream| async move {
        let mut some = vec![0; 100];
        stream.read_exact(&mut some).await.unwrap();
        write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        some.resize(MIB, 0);
        let mut left = BYTES - MIB;
        while left > 0 {
            let count = stream.read(&mut some).await.unwrap();
            assert_ne!(count, 0, "the client gives up");
            left = left.saturating_sub(count);
        }
        write(&mut stream, "2\r\nok\r\n0\r\n\r\n").await;
    })
    .await;
    let client = client(&url);
    let mut response = timeout(LONG, client.send(&large(&client, &url, BYTES))).await.unwrap().unwrap();
    assert_eq!(timeout(LONG, response.body.read_all(10)).await.unwrap().unwrap(), "ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_error_response_of_a_server_that_stops_reading_is_received() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url: Url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    // In a thread of its own, so that the end of its connection comes in the midst of a write.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The client is gone when the test is over.
            let _ = stream.read_exact(&mut [0; 100]);
            let _ = write!(stream, "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno");
        }
    });
    let client = client(&url);
    for round in 0..50 {
        let refused = timeout(LONG, client.send(&large(&client, &url, 8 * MIB))).await.unwrap();
        assert_eq!(refused.unwrap().status, 413, "{round}");
    }
}

#[tokio::test]
async fn unsolicited_response_between_requests_is_discarded_without_coop_budget() {
    let said = Arc::new(Notify::new());
    let url = {
        let said = said.clone();
        serve(move |number, mut stream| {
            let said = said.clone();
            async move {
                read_request(&mut stream).await;
                write(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}")).await;
                said.notified().await;
                write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil").await;
                said.notify_one();
                std::future::pending::<()>().await;
            }
        })
        .await
    };
    let client = client(&url);
    for number in ["0", "1", "2"] {
        let request = post(&client, &url, "{}");
        let mut sending = std::pin::pin!(client.send(&request));
        let mut is_first = true;
        let mut response = timeout(
            LONG,
            std::future::poll_fn(|cx| {
                if std::mem::take(&mut is_first) {
                    while tokio::task::coop::has_budget_remaining() {
                        let _ = std::pin::pin!(tokio::task::coop::consume_budget()).poll(cx);
                    }
                }
                sending.as_mut().poll(cx)
            }),
        )
        .await
        .unwrap()
        .unwrap();
        assert_eq!(response.body.read_all(10).await.unwrap(), number);
        said.notify_one();
        tokio::task::yield_now().await;
        said.notified().await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pool_size_zero_keeps_no_idle_connections() {
    let url = serve(|_, mut stream| async move {
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    })
    .await;
    let mut options = HttpClientOptions::default();
    options.idle_connections = 0;
    let client = HttpClient::new(direct(), url.clone(), &options);
    client.send(&post(&client, &url, "{}")).await.unwrap().body.read_all(10).await.unwrap();
    assert_eq!(client.idle(), 0);
}

#[tokio::test]
async fn pool_reuses_connections_for_a_second_burst() {
    const CROWD: usize = 64;
    let together = Arc::new(Barrier::new(CROWD));
    let url = serve(move |number, mut stream| {
        let together = together.clone();
        async move {
            // All are answered at once, so that as many connections become free at the same time.
            while !read_request(&mut stream).await.is_empty() {
                together.wait().await;
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{number:03}");
                write(&mut stream, &answer).await;
            }
        }
    })
    .await;
    let client = client(&url);
    for _ in 0..3 {
        let crowd = (0..CROWD).map(|_| async {
            let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
            String::from_utf8(response.body.read_all(10).await.unwrap().to_vec()).unwrap()
        });
        let mut used = timeout(LONG, join_all(crowd)).await.unwrap();
        used.sort();
        assert_eq!(used, (0..CROWD).map(|number| format!("{number:03}")).collect::<Vec<_>>());
        assert_eq!(client.idle(), CROWD);
    }
}

#[test]
fn target_and_request_debug_have_no_secrets() {
    let url: Url = "http://localhost/mcp?key=sentinel".parse().unwrap();
    let client = client(&url);
    let request = HttpRequest { body: b"sentinel".to_vec(), ..post(&client, &url, "") };
    let shown = format!("{:?} {request:?}", request.target);
    assert!(shown.contains("/mcp") && !shown.contains("sentinel"), "{shown}");
}
