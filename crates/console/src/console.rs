use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{HOST, LOCATION, ORIGIN};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use trunkline_hub::events::HubEvents;
use trunkline_server::http::{HttpService, IncomingRequest, McpResponseBody};
use trunkline_server::session::Principal;
use trunkline_server::{Shutdown, WeakHost};

use crate::api::ApiRequest;
use crate::assets::PageAsset;
use crate::controls::HubControls;
use crate::event_lines::OpenStreams;
use crate::limits::{MAX_REQUESTS, MAX_STREAMS, MAX_USER_STREAMS};
use crate::links::OneTimeLinks;
use crate::origin::{ConsoleScheme, foreign_request};
use crate::report::ServerReports;
use crate::responses::{refusal, response};
use crate::sessions::{ConsoleRole, ConsoleSessions};

/// What a console shows.
#[derive(Clone)]
pub enum ConsoleSource {
    /// What happens at a hub.
    Live(HubEvents),
    /// A record file.
    Record {
        /// Its name, for display.
        name: String,
        /// Its lines.
        content: Bytes,
    },
}

impl fmt::Debug for ConsoleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live(_) => f.write_str("Live"),
            Self::Record { name, .. } => f.debug_tuple("Record").field(name).finish(),
        }
    }
}

/// What a console needs.
#[derive(Debug)]
pub struct ConsoleOptions {
    /// What it shows.
    pub source: ConsoleSource,
    /// The servers of the overview.
    pub reports: Arc<dyn ServerReports>,
    /// How it makes requests for operators; `None` if it makes none.
    pub caller: Option<ConsoleCaller>,
    /// What it can do to the hub; nothing to a record file.
    pub controls: Option<Arc<dyn HubControls>>,
    /// Ends the streams of events when the program drains.
    pub shutdown: Shutdown,
    /// The version of the program.
    pub version: &'static str,
}

/// How a console makes the requests of operators: to the hub that it belongs to, within the process.
#[derive(Clone, Debug)]
pub struct ConsoleCaller {
    /// What serves the hub.
    pub host: WeakHost,
    /// The principal of the requests, which access rules and limits go by.
    pub principal: Principal,
}

/// The console. Clones are the same.
///
/// It has no listener of its own: a service passes the requests to it for which [`Console::serves_path`] is true.
#[derive(Clone, Debug)]
pub struct Console {
    pub(crate) inner: Arc<ConsoleInner>,
}

#[derive(Debug)]
pub(crate) struct ConsoleInner {
    pub(crate) options: ConsoleOptions,
    pub(crate) links: OneTimeLinks,
    pub(crate) sessions: ConsoleSessions,
    pub(crate) streams: OpenStreams,
    pub(crate) user_streams: OpenStreams,
    /// The MCP requests of the pages.
    pub(crate) requests: OpenStreams,
    /// Where the console is served, without a path.
    pub(crate) origin: OnceLock<String>,
    /// The URL of the MCP endpoint.
    pub(crate) endpoint: OnceLock<String>,
}

impl Console {
    /// The path below which everything of the console is.
    pub const PATH: &str = "/console/";

    /// Makes a console.
    pub fn new(options: ConsoleOptions) -> Self {
        Self {
            inner: Arc::new(ConsoleInner {
                options,
                links: OneTimeLinks::default(),
                sessions: ConsoleSessions::default(),
                streams: OpenStreams::new(MAX_STREAMS),
                user_streams: OpenStreams::new(MAX_USER_STREAMS),
                requests: OpenStreams::new(MAX_REQUESTS),
                origin: OnceLock::new(),
                endpoint: OnceLock::new(),
            }),
        }
    }

    /// Reports whether a path is one of the console.
    pub fn serves_path(path: &str) -> bool {
        path.strip_prefix("/console").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Sets where the console is served, such as `http://127.0.0.1:7411`. The first address stays.
    pub fn set_origin(&self, origin: &str) {
        let _ = self.inner.origin.set(origin.to_owned());
    }

    /// Sets the URL of the MCP endpoint, for the commands that the page copies.
    pub fn set_endpoint(&self, url: &str) {
        let _ = self.inner.endpoint.set(url.to_owned());
    }

    /// Makes a link that opens the console once; `None` before [`Console::set_origin`].
    pub fn make_link(&self, role: ConsoleRole) -> Option<String> {
        let origin = self.inner.origin.get()?;
        let token = self.inner.links.add(role)?;
        // Behind `#`, which is in no request and so in no log.
        Some(format!("{origin}{}#token={token}", Self::PATH))
    }

    /// Answers a request. `guard` is the endpoint: its list checks `Host`, and its credentials sign users in.
    pub async fn respond(&self, guard: &HttpService, request: IncomingRequest) -> Response<McpResponseBody> {
        let (head, body) = request.into_head_and_body();
        let parts = head.parts().clone();
        if let Some(refused) = self.refuse_foreign(guard, &parts) {
            return refused;
        }
        let path = parts.uri.path();
        let Some(rest) = path.strip_prefix(Self::PATH) else {
            return match Self::serves_path(path) {
                true => redirect_to_page(),
                false => refusal(StatusCode::NOT_FOUND, "there is no such page"),
            };
        };
        if let Some(route) = rest.strip_prefix("api/") {
            let route = route.to_owned();
            return ApiRequest { console: self, guard, parts: &parts }.respond(&route, body).await;
        }
        match (&parts.method, PageAsset::find(rest)) {
            (_, None) => refusal(StatusCode::NOT_FOUND, "there is no such page"),
            (&Method::GET | &Method::HEAD, Some(asset)) => {
                response(StatusCode::OK, asset.content_type, McpResponseBody::whole(asset.content()))
            }
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is possible here"),
        }
    }

    /// Refuses what no page of the console's own origin sends.
    fn refuse_foreign(&self, guard: &HttpService, parts: &Parts) -> Option<Response<McpResponseBody>> {
        if let Some(reason) = foreign_request(parts, self.scheme()) {
            return Some(refusal(StatusCode::FORBIDDEN, reason));
        }
        // The endpoint's list of origins is for MCP: it allows every port of the loopback. That of the console was checked.
        let mut parts = parts.clone();
        parts.headers.remove(ORIGIN);
        guard.refuse_disallowed_origin(&parts)
    }

    pub(crate) fn scheme(&self) -> ConsoleScheme {
        match self.inner.origin.get() {
            Some(origin) if origin.starts_with("https:") => ConsoleScheme::Https,
            _ => ConsoleScheme::Http,
        }
    }
}

/// Returns the name of the cookie: each port of a host has its own, since browsers send all of them to all ports.
pub(crate) fn cookie_name(parts: &Parts) -> String {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host
        .rsplit_once(':')
        .map(|(_, port)| port)
        .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("trunkline_console_{}", port.unwrap_or("0"))
}

fn redirect_to_page() -> Response<McpResponseBody> {
    let mut response = response(StatusCode::PERMANENT_REDIRECT, "text/plain", McpResponseBody::empty());
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(Console::PATH));
    response
}
