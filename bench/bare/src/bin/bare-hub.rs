//! `bare-hub ADDRESS UPSTREAM`: two exchanges of hyper's and nothing above them: each request is made again at another
//! server, and that server's response is the answer.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// What a request says in its head that the server has to know, and a response that the client has to.
const CARRIED: [HeaderName; 6] = [
    CONTENT_TYPE,
    ACCEPT,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
];

type Sender = SendRequest<Full<Bytes>>;
type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(address), Some(upstream)) = (words.next(), words.next()) else {
        return Err(io::Error::other("usage: bare-hub ADDRESS UPSTREAM"));
    };
    let host = HeaderValue::from_str(&upstream).map_err(io::Error::other)?;
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (upstream, host) = (upstream.clone(), host.clone());
        tokio::spawn(async move {
            // Each connection has one of its own to the server, so that nobody has to look for one.
            let sender = Arc::new(Mutex::new(connect(&upstream).await?));
            let service = service_fn(|request| pass_on(request, sender.clone(), host.clone()));
            server::Builder::new().serve_connection(TokioIo::new(socket), service).await?;
            Ok::<(), Failed>(())
        });
    }
}

async fn connect(upstream: &str) -> Result<Sender, Failed> {
    let socket = TcpStream::connect(upstream).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = client::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn pass_on(
    request: Request<Incoming>,
    sender: Arc<Mutex<Sender>>,
    host: HeaderValue,
) -> Result<Response<Full<Bytes>>, Failed> {
    let (asked, body) = request.into_parts();
    let mut again = Request::new(Full::new(body.collect().await?.to_bytes()));
    *again.method_mut() = asked.method;
    *again.uri_mut() = asked.uri;
    again.headers_mut().insert(HOST, host);
    carry(&asked.headers, again.headers_mut());
    let mut sender = sender.lock().await;
    sender.ready().await?;
    let (answered, body) = sender.send_request(again).await?.into_parts();
    let mut response = Response::new(Full::new(body.collect().await?.to_bytes()));
    *response.status_mut() = answered.status;
    carry(&answered.headers, response.headers_mut());
    Ok(response)
}

fn carry(from: &HeaderMap, to: &mut HeaderMap) {
    for name in CARRIED {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}
