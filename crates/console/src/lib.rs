//! The web console of a hub: a page of hand-written modules, embedded in the program, and its HTTP API over the event stream.
//!
//! [`Console`] answers the requests below [`Console::PATH`]. The page is static and has no secret; without a
//! session it shows nothing. A session begins with a one-time link, or with an access token of the hub, and has two secrets: a
//! cookie that scripts cannot read, and a header token that the page keeps in memory. Cookies are sent to every port of a host,
//! so that a program on another port of this machine can learn the cookie; it never learns the header token, which is in the
//! response to the exchange alone.
//!
//! # Invariants
//!
//! - A request needs the cookie and the header token of one session: `api_needs_the_cookie_and_the_header_token_of_one_session`.
//! - A request of another origin, another local port included, is refused: `requests_of_other_origins_are_refused`.
//! - A link opens once, and expires: `link_opens_once_and_expires`.
//! - Only an operator calls tools, sees the questions to clients and answers them: `read_only_session_makes_no_requests`.
//! - A read-only session changes nothing: `read_only_session_is_refused_what_changes_something`.
//! - A user sees only the events of its own calls: `user_sees_only_events_of_its_own_principal`.
//! - A session ends with the access token that began it: `session_of_a_revoked_token_ends_with_its_stream`.

mod api;
mod assets;
mod console;
mod controls;
mod event_lines;
pub mod limits;
mod line_body;
mod links;
mod origin;
mod page_request;
mod questions;
mod report;
mod responses;
mod sessions;
mod tokens;

pub use self::console::{Console, ConsoleCaller, ConsoleOptions, ConsoleSource};
pub use self::controls::{
    ClientLogin, ClientSession, ClientSessions, ControlError, HubControls, ServerAction,
};
pub use self::report::{ConsoleItem, ConsoleServer, ConsoleServerCost, ConsoleServerDetails, ServerReports};
pub use self::sessions::ConsoleRole;
