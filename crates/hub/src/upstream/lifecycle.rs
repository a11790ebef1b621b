//! The connection state machine of one upstream.
//!
//! [`UpstreamLifecycle::next`] is the only place where the state changes: a pure function of the state and an event.
//! It reads no clock; events carry the times that they need.
//!
//! ```text
//!            attempt started              connected
//!   Idle ───────────────────▶ Connecting ───────────▶ Ready
//!     ▲                        │      │                 │
//!     │ idle timeout, close    │      └── 401 ──▶ NeedsAuth ── authorized, reconnect ──▶ BackingOff (due now)
//!     └────────────────────────┼── failed, lost ──▶ BackingOff ── attempt started ──▶ Connecting
//!   any ── disconnect ──▶ Disconnected ── reconnect ──▶ Idle        any ── remove ──▶ Removed (final)
//! ```

use std::time::Duration;

use tokio::time::Instant;

use super::status::{FailureKind, UpstreamConnectionState, UpstreamFailure, UpstreamUnavailable};

/// The state machine of the connections of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UpstreamLifecycle {
    /// It is not connected, and nothing prevents a connection.
    Idle(IdleCause),
    /// The first connection is being opened.
    Connecting {
        /// The failure of an earlier attempt, or of one that ran beside this one.
        hold: Option<ConnectHold>,
    },
    /// At least one connection can be used.
    Ready {
        /// Why no further connection is opened now.
        hold: Option<ConnectHold>,
    },
    /// The last attempt failed or the connection was lost; the next attempt waits for the backoff.
    BackingOff(RetryDelay),
    /// The server rejected the credentials. It is not retried until they may have changed.
    NeedsAuth(UpstreamFailure),
    /// It was disconnected manually.
    Disconnected,
    /// It is not configured any more.
    Removed,
}

/// Why an idle upstream has no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleCause {
    /// It was not needed yet, or its connection was closed for another reason than the idle timeout.
    NotNeeded,
    /// Its last connection was closed by the idle timeout, so that it is not reopened without need.
    IdleTimeout,
}

/// A failure, and when the next attempt is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RetryDelay {
    pub(super) failure: UpstreamFailure,
    pub(super) until: Instant,
}

/// Why no connection is opened now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectHold {
    Retry(RetryDelay),
    NeedsAuth(UpstreamFailure),
}

/// What remains of an upstream's connections after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolRest {
    /// At least one connection can be used.
    Usable,
    /// None can be used, and at least one is being opened.
    Opening,
    Empty,
}

/// An event that may change the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LifecycleEvent {
    /// An attempt to connect was started.
    AttemptStarted,
    /// An attempt succeeded.
    Connected,
    /// An attempt failed.
    AttemptFailed(RetryDelay, PoolRest),
    /// A connection was lost.
    ConnectionLost(RetryDelay, PoolRest),
    /// A connection is being closed in order.
    ConnectionClosing(IdleCause, PoolRest),
    /// All connections are being closed, to be opened again.
    Restart,
    /// A manual connect: now, without waiting for the backoff.
    Reconnect(Instant),
    /// The credentials may have changed: a token was obtained, or the configuration has changed.
    Authorized(Instant),
    /// A manual disconnect.
    Disconnect,
    /// The server is not configured any more.
    Remove,
}

impl UpstreamLifecycle {
    /// Returns the state after an event. Events that a state does not expect leave it as it is.
    pub(super) fn next(self, event: LifecycleEvent) -> Self {
        use LifecycleEvent as Event;
        match (self, event) {
            (Self::Removed, _) | (_, Event::Remove) => Self::Removed,
            (Self::Disconnected, Event::Restart | Event::Reconnect(_)) => Self::Idle(IdleCause::NotNeeded),
            // What reaches a disconnected server is the outcome of an attempt or connection that was ended then.
            (_, Event::Disconnect) | (Self::Disconnected, _) => Self::Disconnected,
            (_, Event::Connected) => Self::Ready { hold: None },
            (Self::Idle(_), Event::AttemptStarted) => Self::Connecting { hold: None },
            (Self::BackingOff(delay), Event::AttemptStarted) => {
                Self::Connecting { hold: Some(ConnectHold::Retry(delay)) }
            }
            // No attempt is started without new credentials, and further attempts make no difference.
            (
                state @ (Self::NeedsAuth(_) | Self::Connecting { .. } | Self::Ready { .. }),
                Event::AttemptStarted,
            ) => state,
            (_, Event::AttemptFailed(delay, rest)) => {
                Self::from_pool(rest, Some(ConnectHold::from(delay)), IdleCause::NotNeeded)
            }
            (state, Event::ConnectionLost(delay, rest)) => {
                // A failed authorization outlasts the end of a connection that was opened before it.
                let needs_auth = state.into_hold().filter(ConnectHold::is_auth);
                let hold = needs_auth.unwrap_or(ConnectHold::Retry(delay));
                Self::from_pool(rest, Some(hold), IdleCause::NotNeeded)
            }
            (state @ Self::Idle(IdleCause::IdleTimeout), Event::ConnectionClosing(..) | Event::Restart) => {
                state
            }
            (state, Event::ConnectionClosing(cause, rest)) => Self::from_pool(rest, state.into_hold(), cause),
            (state, Event::Restart) => {
                Self::from_pool(PoolRest::Empty, state.into_hold(), IdleCause::NotNeeded)
            }
            (state, Event::Reconnect(now)) => state.map_hold(|hold| hold.due_at(now)),
            (state, Event::Authorized(now)) => {
                state.map_hold(|hold| if hold.is_auth() { hold.due_at(now) } else { hold })
            }
        }
    }

    /// Returns the state that follows from the remaining connections.
    fn from_pool(rest: PoolRest, hold: Option<ConnectHold>, cause: IdleCause) -> Self {
        match (rest, hold) {
            (PoolRest::Usable, hold) => Self::Ready { hold },
            (PoolRest::Opening, hold) => Self::Connecting { hold },
            (PoolRest::Empty, Some(ConnectHold::Retry(delay))) => Self::BackingOff(delay),
            (PoolRest::Empty, Some(ConnectHold::NeedsAuth(failure))) => Self::NeedsAuth(failure),
            (PoolRest::Empty, None) => Self::Idle(cause),
        }
    }

    fn into_hold(self) -> Option<ConnectHold> {
        match self {
            Self::Connecting { hold } | Self::Ready { hold } => hold,
            Self::BackingOff(delay) => Some(ConnectHold::Retry(delay)),
            Self::NeedsAuth(failure) => Some(ConnectHold::NeedsAuth(failure)),
            Self::Idle(_) | Self::Disconnected | Self::Removed => None,
        }
    }

    /// Changes why no connection is opened, and nothing else.
    fn map_hold(self, change: impl FnOnce(ConnectHold) -> ConnectHold) -> Self {
        match self {
            Self::Ready { hold } => Self::Ready { hold: hold.map(change) },
            Self::Connecting { hold } => Self::Connecting { hold: hold.map(change) },
            state @ (Self::Idle(_) | Self::Disconnected | Self::Removed) => state,
            state => Self::from_pool(PoolRest::Empty, state.into_hold().map(change), IdleCause::NotNeeded),
        }
    }

    /// Returns the last failure, if the upstream was not connected since.
    pub(super) fn failure(&self) -> Option<&UpstreamFailure> {
        match self {
            Self::BackingOff(delay) => Some(&delay.failure),
            Self::NeedsAuth(failure) => Some(failure),
            Self::Connecting { hold } | Self::Ready { hold } => hold.as_ref().map(ConnectHold::failure),
            Self::Idle(_) | Self::Disconnected | Self::Removed => None,
        }
    }

    /// Returns why no connection may be opened at a time.
    pub(super) fn connect_block(&self, now: Instant) -> Option<ConnectBlock> {
        let retry = |delay: &RetryDelay| {
            let wait = delay.until.saturating_duration_since(now);
            (!wait.is_zero()).then(|| ConnectBlock::RetryIn(wait, delay.failure.clone()))
        };
        match self {
            Self::BackingOff(delay) => retry(delay),
            Self::NeedsAuth(failure) => Some(ConnectBlock::NeedsAuth(failure.clone())),
            Self::Connecting { hold } | Self::Ready { hold } => match hold.as_ref()? {
                ConnectHold::Retry(delay) => retry(delay),
                ConnectHold::NeedsAuth(failure) => Some(ConnectBlock::NeedsAuth(failure.clone())),
            },
            Self::Idle(_) | Self::Disconnected | Self::Removed => None,
        }
    }

    /// Reports whether the server may be connected to, as far as the operator and the configuration decide it.
    pub(super) fn is_active(&self) -> bool {
        !matches!(self, Self::Disconnected | Self::Removed)
    }

    /// Returns the state that operators see of an enabled server.
    pub(super) fn connection_state(&self) -> UpstreamConnectionState {
        match self {
            Self::Idle(_) => UpstreamConnectionState::Pending,
            Self::Connecting { .. } => UpstreamConnectionState::Connecting,
            Self::Ready { .. } => UpstreamConnectionState::Ready,
            Self::BackingOff(_) => UpstreamConnectionState::Failed,
            Self::NeedsAuth(_) => UpstreamConnectionState::NeedsAuth,
            Self::Disconnected | Self::Removed => UpstreamConnectionState::Disconnected,
        }
    }
}

impl ConnectHold {
    fn failure(&self) -> &UpstreamFailure {
        match self {
            Self::Retry(delay) => &delay.failure,
            Self::NeedsAuth(failure) => failure,
        }
    }

    fn is_auth(&self) -> bool {
        matches!(self, Self::NeedsAuth(_))
    }

    /// Makes the next attempt due; the failure stays visible until it succeeds.
    fn due_at(self, now: Instant) -> Self {
        let failure = match self {
            Self::Retry(delay) => delay.failure,
            Self::NeedsAuth(failure) => failure,
        };
        Self::Retry(RetryDelay { failure, until: now })
    }
}

impl From<RetryDelay> for ConnectHold {
    fn from(delay: RetryDelay) -> Self {
        match delay.failure.kind {
            FailureKind::NeedsAuth => Self::NeedsAuth(delay.failure),
            FailureKind::Unreachable | FailureKind::Lost => Self::Retry(delay),
        }
    }
}

/// Why no connection may be opened now, with the time that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectBlock {
    RetryIn(Duration, UpstreamFailure),
    NeedsAuth(UpstreamFailure),
}

impl From<ConnectBlock> for UpstreamUnavailable {
    fn from(block: ConnectBlock) -> Self {
        match block {
            ConnectBlock::RetryIn(wait, failure) => Self::Failed(failure, wait),
            ConnectBlock::NeedsAuth(failure) => Self::NeedsAuth(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a state or what is written of one below. `r5` is a failure to retry at second 5, `a` one of
    /// authorization.
    fn hold(word: &str, zero: Instant) -> Option<ConnectHold> {
        match word.split_at_checked(1) {
            None => None,
            Some(("a", _)) => Some(ConnectHold::NeedsAuth(failure(FailureKind::NeedsAuth))),
            Some((kind, seconds)) => {
                let kind = if kind == "q" { FailureKind::NeedsAuth } else { FailureKind::Unreachable };
                let until = zero + Duration::from_secs(seconds.parse().unwrap());
                Some(ConnectHold::Retry(RetryDelay { failure: failure(kind), until }))
            }
        }
    }

    fn failure(kind: FailureKind) -> UpstreamFailure {
        UpstreamFailure { kind, reason: format!("{kind:?}"), for_callers: None }
    }

    fn state(text: &str, zero: Instant) -> UpstreamLifecycle {
        let (name, word) = text.split_once(' ').unwrap_or((text, ""));
        match (name, hold(word, zero)) {
            ("idle", _) => UpstreamLifecycle::Idle(IdleCause::NotNeeded),
            ("rested", _) => UpstreamLifecycle::Idle(IdleCause::IdleTimeout),
            ("connecting", hold) => UpstreamLifecycle::Connecting { hold },
            ("ready", hold) => UpstreamLifecycle::Ready { hold },
            ("backoff", Some(ConnectHold::Retry(delay))) => UpstreamLifecycle::BackingOff(delay),
            ("auth", _) => UpstreamLifecycle::NeedsAuth(failure(FailureKind::NeedsAuth)),
            ("disconnected", _) => UpstreamLifecycle::Disconnected,
            ("removed", _) => UpstreamLifecycle::Removed,
            _ => panic!("{text}"),
        }
    }

    fn event(text: &str, zero: Instant) -> LifecycleEvent {
        let (name, rest) = text.split_once('/').unwrap_or((text, ""));
        let rest = match rest {
            "usable" => PoolRest::Usable,
            "opening" => PoolRest::Opening,
            _ => PoolRest::Empty,
        };
        let delay = |kind| RetryDelay { failure: failure(kind), until: zero + Duration::from_secs(9) };
        match name {
            "started" => LifecycleEvent::AttemptStarted,
            "connected" => LifecycleEvent::Connected,
            "failed" => LifecycleEvent::AttemptFailed(delay(FailureKind::Unreachable), rest),
            "denied" => LifecycleEvent::AttemptFailed(delay(FailureKind::NeedsAuth), rest),
            "lost" => LifecycleEvent::ConnectionLost(delay(FailureKind::Unreachable), rest),
            "closing" => LifecycleEvent::ConnectionClosing(IdleCause::NotNeeded, rest),
            "resting" => LifecycleEvent::ConnectionClosing(IdleCause::IdleTimeout, rest),
            "restart" => LifecycleEvent::Restart,
            "reconnect" => LifecycleEvent::Reconnect(zero + Duration::from_secs(1)),
            "authorized" => LifecycleEvent::Authorized(zero + Duration::from_secs(1)),
            "disconnect" => LifecycleEvent::Disconnect,
            "remove" => LifecycleEvent::Remove,
            _ => panic!("{text}"),
        }
    }

    const EVENTS: [&str; 19] = [
        "started",
        "connected",
        "failed/usable",
        "failed/opening",
        "failed",
        "denied/usable",
        "denied/opening",
        "denied",
        "lost/usable",
        "lost/opening",
        "lost",
        "closing/usable",
        "closing/opening",
        "closing",
        "resting",
        "restart",
        "reconnect",
        "authorized",
        "disconnect",
    ];

    /// For each state what follows each of `EVENTS`; `.` if it stays. `r5` is in the state before, `r9` in the event
    /// and `r1` due now; `q1` is the same after a failed authorization.
    #[rustfmt::skip]
    const TABLE: [(&str, [&str; 19]); 11] = [
        ("idle", ["connecting", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a", "auth",
            "ready r9", "connecting r9", "backoff r9", "ready", "connecting", ".", "rested", ".", ".", ".",
            "disconnected"]),
        ("rested", ["connecting", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a",
            "auth", "ready r9", "connecting r9", "backoff r9", ".", ".", ".", ".", ".", ".", ".", "disconnected"]),
        ("connecting", [".", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a", "auth",
            "ready r9", "connecting r9", "backoff r9", "ready", ".", "idle", "rested", "idle", ".", ".",
            "disconnected"]),
        ("connecting r5", [".", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a", "auth",
            "ready r9", "connecting r9", "backoff r9", "ready r5", ".", "backoff r5", "backoff r5", "backoff r5",
            "connecting r1", ".", "disconnected"]),
        ("connecting a", [".", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", ".", "auth", "ready a",
            ".", "auth", "ready a", ".", "auth", "auth", "auth", "connecting q1", "connecting q1", "disconnected"]),
        ("ready", [".", ".", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a", "auth", "ready r9",
            "connecting r9", "backoff r9", ".", "connecting", "idle", "rested", "idle", ".", ".", "disconnected"]),
        ("ready a", [".", "ready", "ready r9", "connecting r9", "backoff r9", ".", "connecting a", "auth", ".",
            "connecting a", "auth", ".", "connecting a", "auth", "auth", "auth", "ready q1", "ready q1",
            "disconnected"]),
        ("backoff r5", ["connecting r5", "ready", "ready r9", "connecting r9", "backoff r9", "ready a",
            "connecting a", "auth", "ready r9", "connecting r9", "backoff r9", "ready r5", "connecting r5", ".", ".",
            ".", "backoff r1", ".", "disconnected"]),
        ("auth", [".", "ready", "ready r9", "connecting r9", "backoff r9", "ready a", "connecting a", ".", "ready a",
            "connecting a", ".", "ready a", "connecting a", ".", ".", ".", "backoff q1", "backoff q1",
            "disconnected"]),
        ("disconnected", [".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", "idle", "idle",
            ".", "."]),
        ("removed", ["."; 19]),
    ];

    #[test]
    fn every_event_in_every_state_leads_to_the_listed_state() {
        let zero = Instant::now();
        for (before, row) in TABLE {
            for (name, expected) in EVENTS.iter().zip(row) {
                let expected = if expected == "." { before } else { expected };
                let after = state(before, zero).next(event(name, zero));
                assert_eq!(after, state(expected, zero), "{before}: {name}");
            }
            assert_eq!(
                state(before, zero).next(LifecycleEvent::Remove),
                UpstreamLifecycle::Removed,
                "{before}"
            );
        }
    }

    #[test]
    fn connect_block_lasts_for_the_backoff_or_until_new_credentials() {
        let zero = Instant::now();
        let at = |seconds| zero + Duration::from_secs(seconds);
        let retry =
            |wait| Some(ConnectBlock::RetryIn(Duration::from_secs(wait), failure(FailureKind::Unreachable)));
        let auth = || Some(ConnectBlock::NeedsAuth(failure(FailureKind::NeedsAuth)));
        for (text, now, expected) in [
            ("idle", 0, None),
            ("connecting", 0, None),
            ("ready", 0, None),
            ("backoff r5", 0, retry(5)),
            ("backoff r5", 5, None),
            ("connecting r5", 3, retry(2)),
            ("ready r5", 3, retry(2)),
            ("ready r5", 6, None),
            ("auth", 1_000_000, auth()),
            ("ready a", 1_000_000, auth()),
            ("backoff q1", 1, None),
            ("disconnected", 0, None),
        ] {
            assert_eq!(state(text, zero).connect_block(at(now)), expected, "{text} at {now}");
        }
    }
}
