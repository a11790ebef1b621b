use ratatui::layout::Constraint;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::model::TopServer;
use super::palette::Palette;
use super::screen::{shown, took};

/// A column of the servers, in the order of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerColumn {
    Name,
    State,
    Revision,
    Transport,
    Tools,
    Rate,
    Median,
    Slow,
    Slowest,
    Errors,
    Starts,
    Reason,
}

impl ServerColumn {
    /// Returns the columns that a width has room for.
    fn of_width(width: u16) -> Vec<Self> {
        use ServerColumn::{
            Errors, Median, Name, Rate, Reason, Revision, Slow, Slowest, Starts, State, Tools, Transport,
        };
        match width {
            ..78 => vec![Name, State, Rate, Median, Slowest, Errors, Starts],
            78..120 => vec![Name, State, Revision, Transport, Rate, Median, Slow, Slowest, Errors, Starts],
            _ => vec![
                Name, State, Revision, Transport, Tools, Rate, Median, Slow, Slowest, Errors, Starts, Reason,
            ],
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Name => "SERVER",
            Self::State => "STATE",
            Self::Revision => "REVISION",
            Self::Transport => "VIA",
            Self::Tools => "TOOLS",
            Self::Rate => "CALLS/S",
            Self::Median => "P50",
            Self::Slow => "P95",
            Self::Slowest => "P99",
            Self::Errors => "ERR",
            Self::Starts => "STARTS",
            Self::Reason => "WHY",
        }
    }

    fn width(self) -> Constraint {
        match self {
            Self::Name => Constraint::Min(8),
            Self::State => Constraint::Length(12),
            Self::Revision => Constraint::Length(10),
            Self::Rate => Constraint::Length(7),
            Self::Transport | Self::Tools | Self::Median | Self::Slow | Self::Slowest => {
                Constraint::Length(5)
            }
            Self::Errors => Constraint::Length(4),
            Self::Starts => Constraint::Length(6),
            Self::Reason => Constraint::Fill(2),
        }
    }

    fn is_number(self) -> bool {
        matches!(
            self,
            Self::Tools
                | Self::Rate
                | Self::Median
                | Self::Slow
                | Self::Slowest
                | Self::Errors
                | Self::Starts
        )
    }

    fn cell(self, server: &TopServer, palette: Palette, now: i64) -> Cell<'static> {
        let state = &server.state;
        let percentiles = server.calls.percentiles(now);
        let duration = |micros: Option<u64>| Span::raw(micros.map_or_else(|| "-".to_owned(), took));
        let span = match self {
            Self::Name => Span::raw(shown(&state.name)),
            Self::State => Span::styled(shown(&state.state), palette.state(&state.state)),
            Self::Revision => Span::raw(state.revision.as_deref().map_or_else(|| "-".to_owned(), shown)),
            Self::Transport => Span::raw(short_transport(state.transport.as_deref())),
            Self::Tools => Span::raw(state.tools.to_string()),
            Self::Rate => Span::raw(format!("{:.1}", server.calls.rate(now))),
            Self::Median => duration(percentiles.map(|found| found.p50)),
            Self::Slow => duration(percentiles.map(|found| found.p95)),
            Self::Slowest => duration(percentiles.map(|found| found.p99)),
            Self::Errors => match server.calls.totals(now).1 {
                0 => Span::styled("0", palette.dim()),
                errors => Span::styled(errors.to_string(), palette.bad()),
            },
            Self::Starts => Span::raw(state.starts.to_string()),
            Self::Reason => Span::raw(reason(server).unwrap_or_default()),
        };
        let line = Line::from(span);
        Cell::from(if self.is_number() { line.right_aligned() } else { line })
    }
}

/// Returns the table of the servers.
pub(super) fn server_table(servers: &[&TopServer], width: u16, palette: Palette, now: i64) -> Table<'static> {
    let columns = ServerColumn::of_width(width);
    let head = columns.iter().map(|column| {
        let line = Line::from(column.title());
        if column.is_number() { line.right_aligned() } else { line }
    });
    let head = Row::new(head).style(palette.head());
    let rows: Vec<Row<'_>> = servers
        .iter()
        .map(|server| Row::new(columns.iter().map(|column| column.cell(server, palette, now))))
        .collect();
    Table::new(rows, columns.iter().map(|column| column.width()))
        .header(head)
        .row_highlight_style(palette.selected())
}

/// Returns why a server is not connected, or was not the last time.
pub(super) fn reason(server: &TopServer) -> Option<String> {
    let retry = server.state.retry_in_ms.map(|ms| format!(", retry in {}", took(ms.saturating_mul(1000))));
    let line = |text: &str| shown(text.lines().next().unwrap_or_default());
    match (&server.state.reason, &server.last_failure) {
        (Some(reason), _) => Some(format!("{}{}", line(reason), retry.unwrap_or_default())),
        (None, Some(last)) => Some(format!("was: {}", line(last))),
        (None, None) => None,
    }
}

fn short_transport(transport: Option<&str>) -> String {
    match transport {
        Some("streamable-http") => "http".to_owned(),
        Some("websocket") => "ws".to_owned(),
        Some(other) => shown(other),
        None => "-".to_owned(),
    }
}
