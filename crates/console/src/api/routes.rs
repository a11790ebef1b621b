use http::{Method, StatusCode};
use trunkline_hub::events::EventViewer;

use crate::sessions::{ConsoleRole, ConsoleSession};

/// A route of the API that needs a session. `POST session`, which begins one, is not among them.
#[derive(Debug)]
pub(super) struct ApiRoute {
    method: Method,
    path: &'static str,
    pub(super) access: RouteAccess,
    pub(super) action: ApiAction,
}

/// Which sessions may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// Every session; a user sees only its own calls.
    Session,
    /// Sessions that see everything: of operators and read-only ones, not those of users.
    SeesAll,
    /// Sessions that may change something: of operators alone.
    Operator,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiAction {
    Report,
    Events,
    Record,
    MakeLink,
    EndSession,
    MakeRequest,
    Questions,
    Answer,
    Figures,
    Server,
    ChangeServer,
    Costs,
    ClientSessions,
    EndClientSession,
}

/// Why a request is refused, for the page.
pub(super) type RouteRefusal = (StatusCode, &'static str);

const fn route(method: Method, path: &'static str, access: RouteAccess, action: ApiAction) -> ApiRoute {
    ApiRoute { method, path, access, action }
}

const ROUTES: &[ApiRoute] = &[
    route(Method::GET, "hub", RouteAccess::Session, ApiAction::Report),
    route(Method::GET, "events", RouteAccess::Session, ApiAction::Events),
    route(Method::GET, "record", RouteAccess::Session, ApiAction::Record),
    route(Method::POST, "links", RouteAccess::Operator, ApiAction::MakeLink),
    route(Method::DELETE, "session", RouteAccess::Session, ApiAction::EndSession),
    route(Method::POST, "requests", RouteAccess::Operator, ApiAction::MakeRequest),
    route(Method::GET, "questions", RouteAccess::Operator, ApiAction::Questions),
    route(Method::POST, "answers", RouteAccess::Operator, ApiAction::Answer),
    route(Method::GET, "figures", RouteAccess::SeesAll, ApiAction::Figures),
    route(Method::GET, "server", RouteAccess::SeesAll, ApiAction::Server),
    route(Method::POST, "server", RouteAccess::Operator, ApiAction::ChangeServer),
    route(Method::GET, "costs", RouteAccess::SeesAll, ApiAction::Costs),
    route(Method::GET, "sessions", RouteAccess::SeesAll, ApiAction::ClientSessions),
    route(Method::DELETE, "sessions", RouteAccess::Operator, ApiAction::EndClientSession),
];

impl ApiRoute {
    /// Finds the route of a request.
    ///
    /// # Errors
    /// The refusal, if there is none.
    pub(super) fn find(method: &Method, path: &str) -> Result<&'static Self, RouteRefusal> {
        let mut known = ROUTES.iter().filter(|route| route.path == path).peekable();
        if known.peek().is_none() {
            return Err((StatusCode::NOT_FOUND, "there is no such route"));
        }
        known
            .find(|route| route.method == *method)
            .ok_or((StatusCode::METHOD_NOT_ALLOWED, "this is not possible here"))
    }
}

impl RouteAccess {
    /// Refuses a session that may not use the route.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn check(self, session: &ConsoleSession) -> Result<(), RouteRefusal> {
        let refused = |reason| Err((StatusCode::FORBIDDEN, reason));
        let sees_all = matches!(session.viewer, EventViewer::Operator);
        match self {
            Self::Operator if session.role != ConsoleRole::Operator => refused("this session is read-only"),
            Self::SeesAll | Self::Operator if !sees_all => refused("this session sees its own calls only"),
            Self::Session | Self::SeesAll | Self::Operator => Ok(()),
        }
    }
}
