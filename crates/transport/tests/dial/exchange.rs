//! Servers that do not answer one request after the other, as they should.

use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use trunkline_transport::http::HttpRequest;

use crate::scripted::{LONG, client, post, read_request, serve, write};

#[tokio::test]
async fn response_before_the_end_of_the_request_is_received() {
    let url = serve(|number, mut stream| async move {
        if number == 0 {
            let mut beginning = [0; 100];
            stream.read_exact(&mut beginning).await.unwrap();
            write(&mut stream, "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await;
            // What is left is never read, so that it is never written either.
            std::future::pending::<()>().await;
        }
        read_request(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = client(&url);
    let large = HttpRequest { body: vec![b'x'; 64 << 20], ..post(&client, &url, "") };
    let mut response = timeout(LONG, client.send(&large)).await.unwrap().unwrap();
    assert_eq!(response.status, 413);
    assert_eq!(response.body.read_all(10).await.unwrap(), "no");
    assert_eq!(client.idle(), 0, "the rest of the request would be taken for the next one");
    let mut response = timeout(LONG, client.send(&post(&client, &url, "{}"))).await.unwrap().unwrap();
    assert_eq!(response.body.read_all(10).await.unwrap(), "ok");
}

#[tokio::test]
async fn large_body_arrives_whole_after_its_head() {
    let url = serve(|_, mut stream| async move {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).await.unwrap();
            head.push(byte[0]);
        }
        assert!(String::from_utf8(head).unwrap().contains("\r\ncontent-length: 1048576\r\n"));
        let mut body = vec![0; 1 << 20];
        stream.read_exact(&mut body).await.unwrap();
        let is_whole = body.iter().enumerate().all(|(at, byte)| *byte == at.to_le_bytes()[0]);
        write(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{is_whole}")).await;
    })
    .await;
    let client = client(&url);
    let body: Vec<u8> = (0..1_usize << 20).map(|at| at.to_le_bytes()[0]).collect();
    let request = HttpRequest { body, ..post(&client, &url, "") };
    let mut response = timeout(LONG, client.send(&request)).await.unwrap().unwrap();
    assert_eq!(response.body.read_all(10).await.unwrap(), "true");
}

#[tokio::test]
async fn informational_responses_are_skipped_up_to_a_limit() {
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    for (times, is_answered) in [(1, true), (100, false)] {
        let before = early.repeat(times);
        let url = serve(move |_, mut stream| {
            let before = before.clone();
            async move {
                read_request(&mut stream).await;
                write(&mut stream, &format!("{before}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")).await;
            }
        })
        .await;
        let client = client(&url);
        let answered = timeout(LONG, client.send(&post(&client, &url, "{}"))).await.unwrap();
        assert_eq!(answered.is_ok(), is_answered, "{times}");
        match answered {
            Ok(mut response) => assert_eq!(response.body.read_all(10).await.unwrap(), "ok"),
            Err(error) => assert!(error.to_string().contains("not HTTP"), "{error}"),
        }
    }
}

#[tokio::test]
async fn unsolicited_response_is_never_matched_to_a_request() {
    let url = serve(|number, mut stream| async move {
        while !read_request(&mut stream).await.is_empty() {
            let own = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            write(&mut stream, &format!("{own}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")).await;
        }
    })
    .await;
    let client = client(&url);
    for number in ["0", "1", "2"] {
        let mut response = timeout(LONG, client.send(&post(&client, &url, "{}"))).await.unwrap().unwrap();
        assert_eq!(response.body.read_all(10).await.unwrap(), number);
    }
}
