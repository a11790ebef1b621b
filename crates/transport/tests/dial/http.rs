use std::sync::Arc;

use http::header::LOCATION;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Notify;
use tokio::time::timeout;
use trunkline_transport::http::{HttpClient, HttpClientOptions, HttpError, RequestDelivery};

use crate::scripted::{LONG, Seen, client, direct, post, read_request, serve, write};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn connection_is_reused_once_its_response_was_read() {
    let url = serve(|number, mut stream| async move {
        while !read_request(&mut stream).await.is_empty() {
            let body = number.to_string();
            write(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
                .await;
        }
    })
    .await;
    let client = client(&url);
    for _ in 0..3 {
        let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
        assert_eq!(response.body.read_all(10).await.unwrap(), "0");
        assert_eq!(client.idle(), 1);
    }
    // A response that is dropped before its end closes its connection.
    drop(client.send(&post(&client, &url, "{}")).await.unwrap());
    assert_eq!(client.idle(), 0);
    let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
    assert_eq!(response.body.read_all(10).await.unwrap(), "1");
}

#[tokio::test]
async fn partially_read_response_returns_its_connection_at_its_end() {
    let (may_end, may_end_too) = tokio::sync::watch::channel(false);
    let url = serve(move |number, mut stream| {
        let mut may_end = may_end_too.clone();
        async move {
            while !read_request(&mut stream).await.is_empty() {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                write(&mut stream, &format!("{head}1\r\n{number}\r\n")).await;
                may_end.wait_for(|may_end| *may_end).await.unwrap();
                write(&mut stream, "4\r\nlate\r\n0\r\n\r\n").await;
            }
        }
    })
    .await;
    let client = client(&url);
    let answered_on = async || {
        let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
        let number = response.body.chunk().await.unwrap().unwrap();
        response.body.finish();
        String::from_utf8(number.to_vec()).unwrap()
    };
    // As long as the first has not ended, the second has to have a connection of its own.
    assert_eq!([answered_on().await, answered_on().await], ["0", "1"]);
    may_end.send(true).unwrap();
    let used_again = async { while !["0", "1"].contains(&answered_on().await.as_str()) {} };
    timeout(LONG, used_again).await.unwrap();
}

#[tokio::test]
async fn short_unread_body_is_drained_and_long_one_closes_the_connection() {
    let whole = |bytes: usize| format!("content-length: {bytes}\r\n\r\n{}", "x".repeat(bytes));
    let halves = |bytes: usize| {
        let (half, rest) = ("x".repeat(512), "x".repeat(bytes - 512));
        format!("transfer-encoding: chunked\r\n\r\n200\r\n{half}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len())
    };
    let announced = "content-length: 1025\r\n\r\n".to_owned();
    for (rest, expected) in [
        (whole(0), "000"),
        (whole(8), "000"),
        (whole(1024), "000"),
        (whole(1025), "012"),
        (halves(1024), "000"),
        (halves(1025), "012"),
        (announced, "012"),
    ] {
        let seen = Seen::default();
        let answer = format!("HTTP/1.1 202 Accepted\r\n{rest}");
        let url = serve({
            let (seen, answer) = (seen.clone(), answer.clone());
            move |number, mut stream| {
                let (seen, answer) = (seen.clone(), answer.clone());
                async move {
                    while !read_request(&mut stream).await.is_empty() {
                        seen.push(number.to_string());
                        write(&mut stream, &answer).await;
                    }
                }
            }
        })
        .await;
        let client = client(&url);
        for _ in 0..3 {
            client.send(&post(&client, &url, "{}")).await.unwrap().body.finish();
        }
        assert_eq!(seen.all().concat(), expected, "{} bytes: {:.80}", answer.len(), answer);
        assert_eq!(client.idle(), usize::from(expected == "000"));
    }
}

#[tokio::test]
async fn number_of_draining_responses_is_limited() {
    let url = serve(|_, mut stream| async move {
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n").await;
        read_request(&mut stream).await;
    })
    .await;
    for (allowed, most) in [(1024, 128), (3, 3)] {
        let mut options = HttpClientOptions::default();
        options.idle_connections = allowed;
        let client = HttpClient::new(direct(), url.clone(), &options);
        for _ in 0..150 {
            client.send(&post(&client, &url, "{}")).await.unwrap().body.finish();
        }
        // On a slow machine the first of them are given up already.
        assert!((1..=most).contains(&client.idle()), "{} of {most}", client.idle());
    }
}

#[tokio::test]
async fn request_is_one_write_with_host_and_content_length() {
    let seen = Seen::default();
    let url = serve({
        let seen = seen.clone();
        move |_, mut stream| {
            let seen = seen.clone();
            async move {
                let mut buffer = [0; 4096];
                // One read gives what one write sent, on this machine's own loopback.
                let count = stream.read(&mut buffer).await.unwrap();
                seen.push(String::from_utf8_lossy(&buffer[..count]));
                write(&mut stream, OK).await;
            }
        }
    })
    .await;
    let client = client(&url);
    let mut response = client.send(&post(&client, &url, "{\"a\":1}")).await.unwrap();
    assert_eq!(response.body.read_all(10).await.unwrap(), "ok");
    let expected =
        format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: 7\r\n\r\n{{\"a\":1}}", url.authority());
    assert_eq!(seen.all(), [expected]);
}

#[tokio::test]
async fn closed_idle_connection_is_replaced_transparently() {
    let (leave, left) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let url = serve({
        let (leave, left) = (leave.clone(), left.clone());
        move |number, mut stream| {
            let (leave, left) = (leave.clone(), left.clone());
            async move {
                read_request(&mut stream).await;
                let body = number.to_string();
                write(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{body}")).await;
                leave.notified().await;
                drop(stream);
                left.notify_one();
            }
        }
    })
    .await;
    let client = client(&url);
    for number in ["0", "1", "2"] {
        let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
        assert_eq!(response.body.read_all(10).await.unwrap(), number);
        assert_eq!(client.idle(), 1);
        leave.notify_one();
        timeout(LONG, left.notified()).await.unwrap();
    }
}

#[tokio::test]
async fn request_that_may_have_been_read_is_never_retried() {
    let seen = Seen::default();
    let url = serve({
        let seen = seen.clone();
        move |number, mut stream| {
            let seen = seen.clone();
            async move {
                seen.push(format!("{number}: {}", read_request(&mut stream).await.lines().next().unwrap()));
                write(&mut stream, OK).await;
                // The second request on the same connection is read, and then the server dies.
                seen.push(format!("{number}: {}", read_request(&mut stream).await.lines().next().unwrap()));
            }
        }
    })
    .await;
    let client = client(&url);
    client.send(&post(&client, &url, "{}")).await.unwrap().body.read_all(10).await.unwrap();
    let error = client.send(&post(&client, &url, "{}")).await.unwrap_err();
    assert_eq!(error.delivery(), RequestDelivery::MaybeSent);
    assert_eq!(error.to_string(), "the connection was closed before the response was complete");
    assert_eq!(seen.all(), ["0: POST /mcp HTTP/1.1", "0: POST /mcp HTTP/1.1"]);
}

#[tokio::test]
async fn refused_connection_is_reported_as_not_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let client = client(&url);
    let error = client.send(&post(&client, &url, "{}")).await.unwrap_err();
    assert_eq!(error.delivery(), RequestDelivery::NotSent);
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn malformed_responses_are_errors_within_limits() {
    let flood = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x-a: b\r\n".repeat(200));
    let long = format!("HTTP/1.1 200 OK\r\nx-a: {}\r\n\r\n", "b".repeat(1 << 20));
    let table: &[(&str, &str)] = &[
        ("SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP"),
        (&flood, "not HTTP"),
        (&long, "not HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello", "not HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello", "closed before"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "closed before"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n", "not HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", "longer than 100 bytes"),
        ("HTTP/1.1 20", "closed before"),
        ("", "closed before"),
    ];
    for (answer, expected) in table {
        let answer: Arc<str> = (*answer).into();
        let url = serve(move |_, mut stream| {
            let answer = answer.clone();
            async move {
                read_request(&mut stream).await;
                write(&mut stream, &answer).await;
            }
        })
        .await;
        let client = client(&url);
        let exchange = async {
            let mut response = client.send(&post(&client, &url, "{}")).await?;
            response.body.read_all(100).await
        };
        let error = timeout(LONG, exchange).await.unwrap().unwrap_err();
        assert_eq!(error.delivery(), RequestDelivery::MaybeSent);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!(client.idle(), 0);
    }
}

#[tokio::test]
async fn endless_body_uses_at_most_the_limit() {
    let url = serve(|_, mut stream| async move {
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while tokio::io::AsyncWriteExt::write_all(&mut stream, chunk.as_bytes()).await.is_ok() {}
    })
    .await;
    let client = client(&url);
    let mut response = client.send(&post(&client, &url, "{}")).await.unwrap();
    let error = response.body.read_all(1 << 20).await.unwrap_err();
    assert!(matches!(error, HttpError::TooLong { limit } if limit == 1 << 20), "{error}");
}

#[tokio::test]
async fn redirect_is_returned_and_not_followed() {
    let seen = Seen::default();
    let url = serve({
        let seen = seen.clone();
        move |_, mut stream| {
            let seen = seen.clone();
            async move {
                seen.push(read_request(&mut stream).await);
                write(&mut stream, "HTTP/1.1 307 Go\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")
                    .await;
                seen.push(read_request(&mut stream).await);
            }
        }
    })
    .await;
    let client = client(&url);
    let response = client.send(&post(&client, &url, "{}")).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), response.headers.get_text(&LOCATION).unwrap()),
        (307, "/elsewhere")
    );
    assert_eq!(seen.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_its_timeout() {
    let over = Arc::new(Notify::new());
    let url = serve({
        let over = over.clone();
        move |_, mut stream| {
            let over = over.clone();
            async move {
                read_request(&mut stream).await;
                write(&mut stream, OK).await;
                assert_eq!(read_request(&mut stream).await, "");
                over.notify_one();
            }
        }
    })
    .await;
    let client = client(&url);
    client.send(&post(&client, &url, "{}")).await.unwrap().body.read_all(10).await.unwrap();
    assert_eq!(client.idle(), 1);
    timeout(LONG, over.notified()).await.unwrap();
    assert_eq!(client.idle(), 0);
}
