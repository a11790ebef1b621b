//! Services that a program adds to an endpoint, over the same connections: whatever they do with a body, the next
//! request gets its own response.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::net::TcpListener;
use trunkline_server::http::{HttpServerOptions, IncomingRequest, RequestBody, serve};
use trunkline_server::{Host, HostOptions, Server};

use crate::raw_http::{self, Connection};
use crate::service::DEADLINE;

/// Serves what a program adds beside an endpoint, and opens a connection to it.
pub(crate) async fn beside<A, F, B>(answer: A) -> Connection
where
    A: Fn(Request<RequestBody>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Error: std::error::Error + Send + Sync, Data: Send> + Send + 'static,
{
    let handle = Server::new("beside").handle().unwrap();
    let endpoint =
        Host::new(handle, HostOptions::default()).unwrap().http_service(HttpServerOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = move |request: IncomingRequest| answer(request.into_request());
    tokio::spawn(async move { serve(listener, &endpoint, service, Duration::ZERO).await });
    Connection::open(address).await
}

fn upload(bytes: &[u8]) -> Vec<u8> {
    raw_http::post(&[], bytes)
}

#[tokio::test]
async fn request_body_can_be_read_in_another_task() {
    let mut connection = beside(|request: Request<RequestBody>| async move {
        let read = tokio::spawn(request.into_body().collect());
        let length = read.await.unwrap().map(|body| body.to_bytes().len());
        Response::new(Full::new(Bytes::from(format!("{length:?}"))))
    })
    .await;
    let large = vec![b'x'; 1_000_000];
    for (body, expected) in [(&b"{}"[..], "Ok(2)"), (&large, "Ok(1000000)"), (b"", "Ok(0)")] {
        let request = upload(body);
        let (first, rest) = request.split_at(request.len() / 2);
        connection.send(first).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        connection.send(rest).await;
        assert_eq!(connection.reply().await.body, expected.as_bytes());
    }
}

#[tokio::test]
async fn request_body_held_past_its_response_reads_no_later_bytes() {
    let (kept, mut bodies) = tokio::sync::mpsc::channel(1);
    let mut connection = beside(move |request: Request<RequestBody>| {
        kept.try_send(request.into_body()).unwrap();
        async { Response::new(Full::new(Bytes::from_static(b"answered"))) }
    })
    .await;
    let request = upload(&[b'x'; 100_000]);
    connection.send(&request[..request.len() - 1]).await;
    assert_eq!(connection.reply().await.header("connection"), Some("close"));
    let body = bodies.recv().await.unwrap();
    connection.send(b"x").await;
    assert!(body.collect().await.is_err(), "it was answered before it was read");
    connection.ended().await;
}

#[tokio::test]
async fn request_body_in_another_task_ends_with_the_response() {
    let (kept, mut readers) = tokio::sync::mpsc::channel(1);
    let mut connection = beside(move |request: Request<RequestBody>| {
        kept.try_send(tokio::spawn(request.into_body().collect())).unwrap();
        async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Response::new(Full::new(Bytes::from_static(b"answered")))
        }
    })
    .await;
    let request = upload(&[b'x'; 100_000]);
    connection.send(&request[..request.len() - 1]).await;
    assert_eq!(connection.reply().await.status, 200);
    let reader = readers.recv().await.unwrap();
    assert!(tokio::time::timeout(DEADLINE, reader).await.expect("it waits for nothing").unwrap().is_err());
}

#[tokio::test]
async fn request_body_in_another_task_does_not_outlive_shutdown() {
    let host = Host::new(Server::new("beside").handle().unwrap(), HostOptions::default()).unwrap();
    let endpoint = host.http_service(HttpServerOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |request: IncomingRequest| async {
        let _ = tokio::spawn(request.into_request().into_body().collect()).await;
        Response::new(Full::new(Bytes::new()))
    };
    let serving = tokio::spawn(async move { serve(listener, &endpoint, answer, Duration::ZERO).await });
    let mut connection = Connection::open(address).await;
    connection.send(&raw_http::post(&[("Content-Length", "10")], b"x")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    host.shutdown().drain();
    serving.await.unwrap().unwrap();
    connection.ended().await;
}

#[tokio::test]
async fn streamed_responses_are_complete_for_slow_readers() {
    let sizes = (0..200).map(|n: usize| [0, 1, 8191, 8192, 8193, 70_000, 3, 20_000][(n * 7 + n / 8) % 8]);
    let pieces: Vec<Vec<u8>> = sizes
        .enumerate()
        .map(|(n, size)| (0..size).map(|at| u8::try_from((n * 31 + at) % 251).unwrap()).collect())
        .collect();
    let expected = pieces.concat();
    let connection = beside(move |_| {
        let frames =
            pieces.clone().into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        async { Response::new(StreamBody::new(futures_util::stream::iter(frames))) }
    })
    .await;
    let mut connection = Connection::open_deaf(connection.stream.peer_addr().unwrap()).await;
    for _ in 0..2 {
        connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(connection.reply().await.body == expected);
    }
}

#[tokio::test]
async fn informational_status_is_not_sent_as_a_final_response() {
    let mut connection = beside(|request: Request<RequestBody>| async move {
        let status = if request.uri().path() == "/early" { 103 } else { 200 };
        Response::builder()
            .status(status)
            .header("content-length", "77")
            .body(Full::new(Bytes::new()))
            .unwrap()
    })
    .await;
    connection.send(b"HEAD /length HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(
        connection.stream_head().await.contains("content-length: 77\r\n"),
        "of the body that there is not"
    );
    connection.send(b"GET /early HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(connection.reply_or_end().await.is_none(), "neither is answered by the answer to the other");
}

/// Numbers that look random, and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_get_their_own_responses_for_any_fragmentation() {
    let connection = beside(|request: Request<RequestBody>| async move {
        let path = request.uri().path().to_owned();
        let body = request.into_body();
        if path.ends_with('1') {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let read = match path.ends_with('2') {
            true => tokio::spawn(body.collect()).await.unwrap(),
            false => body.collect().await,
        };
        let length = read.unwrap().to_bytes().len();
        Response::new(Full::new(Bytes::from(format!("{path} {length}"))))
    })
    .await;
    let address = connection.stream.peer_addr().unwrap();
    for seed in 0..8 {
        let mut numbers = Numbers(seed);
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for n in 0..40 {
            let length = [0, 1, 100, 7000, 9000, 40_000, 150_000][numbers.below(7)];
            let (path, body) = (format!("/{seed}/{n}/{}", numbers.below(4)), "b".repeat(length));
            let framed = match (numbers.below(2), length) {
                (0, _) => format!("content-length: {length}\r\n\r\n{body}"),
                (_, 0) => "transfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
                _ => format!("transfer-encoding: chunked\r\n\r\n{length:x};a=b\r\n{body}\r\n0\r\n\r\n"),
            };
            sent.extend_from_slice(format!("POST {path} HTTP/1.1\r\nHost: h\r\n{framed}").as_bytes());
            expected.push(format!("{path} {length}"));
        }
        let mut connection = Connection::open(address).await;
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let (first, more) = rest.split_at((1 + numbers.below(60_000)).min(rest.len()));
            connection.send(first).await;
            rest = more;
        }
        for expected in expected {
            assert_eq!(String::from_utf8_lossy(&connection.reply().await.body), expected);
        }
    }
}

#[tokio::test]
async fn failed_response_stream_is_not_terminated_as_complete() {
    let mut connection = beside(|request: Request<RequestBody>| async move {
        let fails = request.uri().path() == "/fails";
        let pieces = [Ok("one"), Ok(""), Ok("two"), Err(std::io::Error::other("no more"))];
        let pieces = pieces.into_iter().filter(move |piece| fails || piece.is_ok());
        let frames = pieces.map(|piece| piece.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))));
        Response::new(StreamBody::new(futures_util::stream::iter(frames)))
    })
    .await;
    connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(connection.reply().await.body, b"onetwo");
    connection.send(b"GET /fails HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(!connection.all().await.ends_with("0\r\n\r\n"), "nobody takes the half for the whole");
    let mut connection = Connection::open(connection.stream.peer_addr().unwrap()).await;
    connection.send(b"GET / HTTP/1.0\r\n\r\n").await;
    let all = connection.all().await;
    assert!(all.contains("connection: close") && all.ends_with("\r\n\r\nonetwo"), "{all}");
}
