//! `bare-hub ADDRESS UPSTREAM`: two exchanges of hyper's and nothing above them: each request is made again at another
//! server, and that server's response is the answer.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self as client, SendRequest};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

type Sender = SendRequest<Full<Bytes>>;
type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(address), Some(upstream)) = (words.next(), words.next()) else {
        return Err(io::Error::other("usage: bare-hub ADDRESS UPSTREAM"));
    };
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let upstream = upstream.clone();
        tokio::spawn(async move {
            // Each connection has one of its own to the server, so that none has to be looked up.
            let way = Way { sender: Mutex::new(Some(connect(&upstream).await?)), host: upstream.parse()? };
            let service = service_fn(|request| pass_on(request, &way));
            server::Builder::new().serve_connection(TokioIo::new(socket), service).await?;
            Ok::<(), Failed>(())
        });
    }
}

/// The way to the server.
struct Way {
    /// There is one request at a time, and it takes this with it.
    sender: Mutex<Option<Sender>>,
    host: HeaderValue,
}

impl Way {
    fn sender(&self) -> std::sync::MutexGuard<'_, Option<Sender>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(upstream: &str) -> Result<Sender, Failed> {
    let socket = TcpStream::connect(upstream).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = client::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn pass_on(request: Request<Incoming>, way: &Way) -> Result<Response<Full<Bytes>>, Failed> {
    let (mut asked, body) = request.into_parts();
    let body = Full::new(body.collect().await?.to_bytes());
    asked.headers.insert(HOST, way.host.clone());
    let mut sender = way.sender().take().ok_or("another request is under way")?;
    sender.ready().await?;
    let (answered, body) = sender.send_request(Request::from_parts(asked, body)).await?.into_parts();
    let body = Full::new(body.collect().await?.to_bytes());
    *way.sender() = Some(sender);
    Ok(Response::from_parts(answered, body))
}
