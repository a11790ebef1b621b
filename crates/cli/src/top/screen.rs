use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use super::details::{details, help};
use super::model::{TopCall, TopClient, TopModel};
use super::palette::Palette;
use super::server_table::{reason, server_table};
use super::view::{FocusedList, ScreenOverlay, TopView};
use crate::terminal::{escape_line, truncate_to_width};

/// The rows of the plot.
const PLOT_ROWS: u16 = 2;

/// The most rows that clients take.
const CLIENT_ROWS: usize = 3;

/// Draws the screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &TopModel, view: &TopView, palette: Palette, now: i64) {
    let model = view.shown(model);
    let clients = clients_by_use(model);
    let client_rows = u16::try_from(clients.len().clamp(1, CLIENT_ROWS)).unwrap_or(1) + 1;
    // The servers get what they need, as long as half of the rest is left to the calls.
    let free = frame.area().height.saturating_sub(3 + PLOT_ROWS + client_rows);
    let wanted = u16::try_from(model.servers.len().max(1)).unwrap_or(u16::MAX).saturating_add(1);
    let [top, plot, servers, why, client_area, calls, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(PLOT_ROWS),
        Constraint::Length(wanted.min(free / 2).max(2)),
        Constraint::Length(1),
        Constraint::Length(client_rows),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_top_line(frame, top, model, view, palette, now);
    draw_plot(frame, plot, model, palette, now);
    draw_servers(frame, (servers, why), model, view, palette, now);
    draw_clients(frame, client_area, &clients, palette, now);
    draw_calls(frame, calls, model, view, palette, now);
    draw_keys(frame, keys, view, palette);
    match view.overlay {
        ScreenOverlay::None => {}
        ScreenOverlay::Help => draw_overlay(frame, "keys", help(palette), palette),
        ScreenOverlay::Details => {
            let (title, lines) = details(view, model, palette, now);
            draw_overlay(frame, title, lines, palette);
        }
    }
}

/// Makes a text of a peer one that only shows itself, on one line.
pub(super) fn shown(text: &str) -> String {
    escape_line(text).into_owned()
}

/// Writes a duration in at most five columns.
pub(super) fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros}us"),
        1_000..10_000 => format!("{}.{}ms", micros / 1_000, micros / 100 % 10),
        10_000..1_000_000 => format!("{}ms", micros / 1_000),
        1_000_000..100_000_000 => format!("{}.{}s", micros / 1_000_000, micros / 100_000 % 10),
        _ => match micros / 60_000_000 {
            minutes @ 0..600 => format!("{minutes}m"),
            minutes => format!("{}h", minutes / 60),
        },
    }
}

/// Writes how long ago something was.
fn age(now: i64, at: i64) -> String {
    match u64::try_from((now - at).max(0) / 1_000_000).unwrap_or(0) {
        seconds @ 0..100 => format!("{seconds}s"),
        seconds @ 100..6_000 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

fn draw_top_line(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &TopModel,
    view: &TopView,
    palette: Palette,
    now: i64,
) {
    let (calls, errors) = model.total.totals(now);
    let mut spans = vec![
        Span::styled("trunkline top", palette.title()),
        Span::raw(format!("  {:.1} calls/s  {calls} in 5 min  ", model.total.rate(now))),
        match errors {
            0 => Span::raw("0 errors"),
            1 => Span::styled("1 error", palette.bad()),
            errors => Span::styled(format!("{errors} errors"), palette.bad()),
        },
        Span::raw(format!("  {} running", model.running())),
    ];
    if view.is_paused() {
        spans.push(Span::styled("  PAUSED", palette.warning()));
    }
    if model.dropped > 0 {
        spans.push(Span::styled(format!("  {} events lost", model.dropped), palette.warning()));
    }
    let endpoint = model.url.as_deref().unwrap_or(&model.config);
    spans.push(Span::styled(format!("  {}", shown(endpoint)), palette.dim()));
    frame.render_widget(Line::from(spans), area);
}

fn draw_plot(frame: &mut Frame<'_>, area: Rect, model: &TopModel, palette: Palette, now: i64) {
    let [label, plot] = Layout::horizontal([Constraint::Length(8), Constraint::Min(1)]).areas(area);
    let lines = vec![Line::from("calls"), Line::from("5 min")];
    frame.render_widget(Paragraph::new(lines).style(palette.dim()), label);
    let series = model.total.series(now, usize::from(plot.width));
    frame.render_widget(Sparkline::default().data(&series).style(palette.plot()), plot);
}

fn draw_servers(
    frame: &mut Frame<'_>,
    (area, why): (Rect, Rect),
    model: &TopModel,
    view: &TopView,
    palette: Palette,
    now: i64,
) {
    let servers = view.servers(model, now);
    let place = view.server_place(&servers);
    let mut state = TableState::default().with_selected(place);
    let table = server_table(&servers, area.width, palette, now);
    frame.render_stateful_widget(table, area, &mut state);
    // Of the selected server, or else of the first that failed.
    let failed = || servers.iter().find(|server| server.state.reason.is_some());
    let named = place.and_then(|place| servers.get(place)).or_else(failed);
    let line = match named.and_then(|server| Some((server, reason(server)?))) {
        Some((server, reason)) => {
            let text = format!("{}: {reason}", shown(&server.state.name));
            Line::styled(truncate_to_width(&text, usize::from(why.width)), palette.warning())
        }
        None if servers.is_empty() => Line::styled("no servers are configured", palette.dim()),
        None => Line::default(),
    };
    frame.render_widget(line, why);
}

/// Returns the clients, the ones that were last seen first.
fn clients_by_use(model: &TopModel) -> Vec<&TopClient> {
    let mut clients: Vec<&TopClient> = model.clients.values().collect();
    clients.sort_by_key(|client| std::cmp::Reverse(client.last_seen));
    clients
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, clients: &[&TopClient], palette: Palette, now: i64) {
    let title = format!("CLIENT ({})", clients.len());
    let head = Row::new([title.as_str(), "REVISION", "VIA", "CALLS", "SEEN"]).style(palette.head());
    let rows = clients.iter().take(CLIENT_ROWS).map(|client| {
        let text = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), shown);
        Row::new([
            shown(&client.name),
            text(&client.revision),
            text(&client.transport),
            client.calls.to_string(),
            format!("{} ago", age(now, client.last_seen)),
        ])
    });
    let widths = [
        Constraint::Min(12),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(8),
    ];
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

fn draw_calls(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &TopModel,
    view: &TopView,
    palette: Palette,
    now: i64,
) {
    let calls = view.calls(model);
    let is_wide = area.width >= 78;
    let columns = |cells: Vec<(bool, Cell<'static>)>| {
        Row::new(cells.into_iter().filter(|(only_wide, _)| is_wide || !only_wide).map(|(_, cell)| cell))
    };
    let head = columns(vec![
        (false, Cell::from("AGE")),
        (false, Cell::from("SERVER")),
        (true, Cell::from("CLIENT")),
        (false, Cell::from("CALL")),
        (false, Cell::from(Line::from("TOOK").right_aligned())),
        (false, Cell::from("OUTCOME")),
    ]);
    let row = |call: &&TopCall| {
        let took = call.end.as_ref().map_or_else(|| age(now, call.started_at), |end| took(end.micros));
        let status = call.status();
        columns(vec![
            (false, Cell::from(age(now, call.started_at))),
            (false, Cell::from(shown(&call.start.server))),
            (true, Cell::from(shown(call.client()))),
            (false, Cell::from(shown(call.title()))),
            (false, Cell::from(Line::from(took).right_aligned())),
            (false, Cell::from(Span::styled(status, palette.status(status)))),
        ])
    };
    let widths = [
        (false, Constraint::Length(4)),
        (false, Constraint::Length(12)),
        (true, Constraint::Length(14)),
        (false, Constraint::Min(10)),
        (false, Constraint::Length(6)),
        (false, Constraint::Length(14)),
    ];
    let widths = widths.into_iter().filter(|(only_wide, _)| is_wide || !only_wide).map(|(_, width)| width);
    let mut state = TableState::default().with_selected(view.call_place(&calls));
    // Rows that cannot be seen are not made: the selected one is, with the screen before and after it.
    let rows = calls.iter().take(state.selected().unwrap_or(0) + usize::from(area.height) + 1).map(row);
    let table =
        Table::new(rows, widths).header(head.style(palette.head())).row_highlight_style(palette.selected());
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &TopView, palette: Palette) {
    let line = if view.is_typing {
        let problem = view.filter.problem.as_deref().map(|problem| format!("   ({})", shown(problem)));
        Line::from(format!("filter: {}_{}", shown(&view.filter_text), problem.unwrap_or_default()))
    } else {
        let list = match view.focus {
            FocusedList::Servers => "servers",
            FocusedList::Calls => "calls",
        };
        let order = if view.is_reversed { " reversed" } else { "" };
        let filter = match view.filter_text.as_str() {
            "" => String::new(),
            text => format!("  filter: {}", shown(text)),
        };
        let text = format!(
            "{list}  ?:help  q:quit  s:sort({}{order})  /:filter  p:pause{filter}",
            view.sort.label()
        );
        Line::styled(truncate_to_width(&text, usize::from(area.width)), palette.dim())
    };
    frame.render_widget(line, area);
}

fn draw_overlay(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>, palette: Palette) {
    let area = frame.area();
    let width = area.width.saturating_sub(4).min(100);
    let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let rows =
        lines.iter().map(|line| line.width().div_ceil(usize::from(width.saturating_sub(4).max(1))).max(1));
    let rows = u16::try_from(rows.sum::<usize>()).unwrap_or(u16::MAX).max(count);
    let height = rows.saturating_add(2).min(area.height.saturating_sub(2));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let block = Block::bordered()
        .title(format!(" {title} "))
        .title_bottom(" Esc closes ")
        .title_style(palette.title());
    let inner = Paragraph::new(lines).wrap(Wrap { trim: false }).block(block);
    frame.render_widget(Clear, place);
    frame.render_widget(inner, place);
}
