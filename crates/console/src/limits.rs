//! What the console holds at most. `docs/limits.md` lists each.

use std::time::Duration;

/// The links that were made and not yet opened; beyond it the oldest is dropped.
pub const MAX_LINKS: usize = 16;

/// How long a link can be opened.
pub const LINK_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The sessions; beyond it the one that was used least recently ends.
pub const MAX_SESSIONS: usize = 32;

/// The sessions of one user; beyond it the one that was used least recently ends.
pub const MAX_SESSIONS_OF_USER: usize = 4;

/// How long a session lasts without a request.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// The event streams of all sessions of operators; a further one is refused.
pub const MAX_STREAMS: usize = 32;

/// The event streams of all users, which leave those of operators alone; a further one is refused.
pub const MAX_USER_STREAMS: usize = 16;

/// The body of a request to the API.
pub const MAX_BODY_BYTES: usize = 16 * 1024;

/// The body of a request to the API that has the parameters of an MCP request, or an answer.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// The MCP requests that all pages make at a time; a further one is refused.
pub const MAX_REQUESTS: usize = 32;

/// The questions of clients that a page is shown, the oldest first.
pub const MAX_QUESTIONS: usize = 100;

/// The sessions of clients, and the logins, that a page lists.
pub const MAX_LISTED_SESSIONS: usize = 1_000;

/// The items of one kind of a server that a page lists.
pub const MAX_LISTED_ITEMS: usize = 2_000;

/// The characters of a description that a page shows.
pub const MAX_DESCRIPTION_CHARS: usize = 2_000;

/// The tools with the longest definitions that a page lists of each server.
pub const MAX_LARGEST_TOOLS: usize = 50;

/// How long a body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The events that are written to a page at once, in bytes; one event may be larger.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// How often a silent stream gets a blank line, by which the page recognizes a dead connection.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
