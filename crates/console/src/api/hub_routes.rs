//! The routes for servers, figures, costs and sessions of the hub.

use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use trunkline_hub::{FigurePoint, ServerFigures};
use trunkline_server::http::{McpResponseBody, RequestBody};

use super::{ApiRequest, read_json};
use crate::controls::{ControlError, HubControls, ServerAction};
use crate::limits::MAX_LISTED_SESSIONS;
use crate::responses::{json_response, refusal};

/// The minutes of the plot of a server in a table.
const PLOT_MINUTES: u32 = 60;

/// What is to be done to a server.
#[derive(Deserialize)]
struct ActionRequest {
    server: String,
    action: ServerAction,
}

/// A session that is to be ended.
#[derive(Deserialize)]
struct SessionRequest {
    session: String,
}

impl ApiRequest<'_> {
    /// Returns the calls of the last hour: of all servers each point, and of each server what they add up to.
    pub(super) fn figures(&self) -> Response<McpResponseBody> {
        let after = match self.query("after").map(|after| after.parse()) {
            None => None,
            Some(Ok(after)) => Some(after),
            Some(Err(_)) => return refusal(StatusCode::BAD_REQUEST, "`after` is not a number"),
        };
        let Some(report) = self.console.inner.options.reports.call_figures(None) else {
            return refusal(StatusCode::NOT_FOUND, "this console shows a record file");
        };
        let servers = report.servers.iter().map(|(name, figures)| {
            let minutes = minutes(figures, report.slot, report.slot_seconds);
            let recent = figures.recent;
            json!({ "name": name.to_string(), "calls": figures.calls, "errors": figures.errors, "recent": recent, "minutes": minutes })
        });
        let points = report.all.points.iter().filter(|point| after.is_none_or(|after| point.slot > after));
        json_response(&json!({
            "slot": report.slot,
            "slot_seconds": report.slot_seconds,
            "recent": report.all.recent,
            "calls": report.all.calls,
            "errors": report.all.errors,
            "points": points.map(compact).collect::<Vec<_>>(),
            "servers": servers.collect::<Vec<_>>(),
        }))
    }

    /// Returns what is known of one server, with its calls of the last hour.
    pub(super) fn server(&self) -> Response<McpResponseBody> {
        let reports = &self.console.inner.options.reports;
        let Some(details) = self.query("name").and_then(|name| reports.server(&name)) else {
            return refusal(StatusCode::NOT_FOUND, "there is no such server");
        };
        let figures = reports.call_figures(None).map(|report| {
            let own = report.servers.iter().find(|(name, _)| *name == *details.server.name);
            let own = own.map(|(_, figures)| figures.clone()).unwrap_or_default();
            json!({
                "slot": report.slot,
                "slot_seconds": report.slot_seconds,
                "recent": own.recent,
                "points": own.points.iter().map(compact).collect::<Vec<_>>(),
            })
        });
        json_response(&json!({ "server": details, "figures": figures }))
    }

    /// Returns what the tools of each server cost a model.
    pub(super) fn costs(&self) -> Response<McpResponseBody> {
        json_response(&json!({ "servers": self.console.inner.options.reports.costs() }))
    }

    pub(super) async fn change_server(&self, body: RequestBody) -> Response<McpResponseBody> {
        let Some(ActionRequest { server, action }) = read_json(body).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body names no server and action");
        };
        match self.controls() {
            Some(controls) => done(controls.change_server(&server, action).await),
            None => no_hub(),
        }
    }

    pub(super) async fn list_sessions(&self) -> Response<McpResponseBody> {
        let Some(controls) = self.controls() else { return no_hub() };
        match controls.sessions(MAX_LISTED_SESSIONS).await {
            Ok(sessions) => json_response(&sessions),
            Err(error) => failure(&error),
        }
    }

    pub(super) async fn end_client_session(&self, body: RequestBody) -> Response<McpResponseBody> {
        let Some(SessionRequest { session }) = read_json(body).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body names no session");
        };
        match self.controls() {
            Some(controls) => done(controls.end_session(&session).await),
            None => no_hub(),
        }
    }

    fn controls(&self) -> Option<&dyn HubControls> {
        self.console.inner.options.controls.as_deref()
    }
}

fn no_hub() -> Response<McpResponseBody> {
    refusal(StatusCode::NOT_FOUND, "this console shows a record file")
}

fn done(outcome: Result<(), ControlError>) -> Response<McpResponseBody> {
    match outcome {
        Ok(()) => json_response(&json!({})),
        Err(error) => failure(&error),
    }
}

fn failure(error: &ControlError) -> Response<McpResponseBody> {
    let status = match error {
        ControlError::NotFound(_) => StatusCode::NOT_FOUND,
        ControlError::Failed(_) => StatusCode::CONFLICT,
    };
    refusal(status, &error.to_string())
}

/// Writes a point as numbers: slot, calls, errors, cancelled, three percentiles in microseconds, bytes of results.
fn compact(point: &FigurePoint) -> [u64; 8] {
    [
        point.slot.into(),
        point.calls,
        point.errors,
        point.cancelled,
        point.p50_micros,
        point.p95_micros,
        point.p99_micros,
        point.result_bytes,
    ]
}

/// Returns the calls of each of the last minutes, the oldest first; nothing if there were none.
fn minutes(figures: &ServerFigures, now: u32, slot_seconds: u32) -> Vec<u64> {
    let per_minute = (60 / slot_seconds.max(1)).max(1);
    let mut minutes = vec![0; usize::try_from(PLOT_MINUTES).unwrap_or_default()];
    for point in &figures.points {
        let age = now.saturating_sub(point.slot.saturating_add(1)) / per_minute;
        let at = PLOT_MINUTES.checked_sub(age.saturating_add(1)).and_then(|at| usize::try_from(at).ok());
        if let Some(minute) = at.and_then(|at| minutes.get_mut(at)) {
            *minute += point.calls;
        }
    }
    if minutes.iter().all(|calls| *calls == 0) { Vec::new() } else { minutes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_added_up_by_their_age_in_minutes() {
        let point = |slot, calls| FigurePoint { slot, calls, ..FigurePoint::default() };
        let figures = |points| ServerFigures { points, ..ServerFigures::default() };
        let shown =
            minutes(&figures(vec![point(40, 1), point(394, 2), point(395, 3), point(399, 4)]), 400, 10);
        assert_eq!(shown.len(), 60);
        assert_eq!((shown[0], shown[58], shown[59]), (1, 0, 9), "{shown:?}");
        let older = minutes(&figures(vec![point(393, 5), point(0, 7)]), 400, 10);
        assert_eq!((older[58], older.iter().sum::<u64>()), (5, 5), "{older:?}");
        assert!(minutes(&figures(Vec::new()), 400, 10).is_empty());
    }
}
