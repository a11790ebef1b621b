use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::call_filter::CallFilter;
use super::model::{TopCall, TopModel, TopServer};

/// The longest filter that can be typed.
const MAX_FILTER_CHARS: usize = 200;

/// What the user chose: the list that has the keys, what is selected, the order, the filter, and what lies on top.
#[derive(Debug, Default)]
pub(crate) struct TopView {
    pub(super) focus: FocusedList,
    pub(super) overlay: ScreenOverlay,
    pub(super) sort: ServerOrder,
    pub(super) is_reversed: bool,
    pub(super) filter: CallFilter,
    pub(super) filter_text: String,
    pub(super) is_typing: bool,
    /// The name of the selected server.
    server: Option<String>,
    /// The name of the selected call.
    call: Option<String>,
    /// What is shown while paused.
    paused: Option<Box<TopModel>>,
}

/// The list that the arrow keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FocusedList {
    #[default]
    Servers,
    Calls,
}

/// What lies over the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScreenOverlay {
    #[default]
    None,
    Help,
    Details,
}

/// The order of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ServerOrder {
    /// As in the configuration.
    #[default]
    Configured,
    Name,
    State,
    Rate,
    Latency,
    Errors,
}

/// What a key led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOutcome {
    Continue,
    Quit,
}

impl ServerOrder {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Configured => "config",
            Self::Name => "name",
            Self::State => "state",
            Self::Rate => "calls/s",
            Self::Latency => "p95",
            Self::Errors => "errors",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Configured => Self::Name,
            Self::Name => Self::State,
            Self::State => Self::Rate,
            Self::Rate => Self::Latency,
            Self::Latency => Self::Errors,
            Self::Errors => Self::Configured,
        }
    }
}

impl TopView {
    /// Returns what is shown: the current state, or that of the pause.
    pub(super) fn shown<'a>(&'a self, model: &'a TopModel) -> &'a TopModel {
        self.paused.as_deref().unwrap_or(model)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Returns the servers in the chosen order.
    pub(super) fn servers<'a>(&self, model: &'a TopModel, now: i64) -> Vec<&'a TopServer> {
        let mut servers: Vec<&TopServer> = model.servers.iter().collect();
        match self.sort {
            ServerOrder::Configured => {}
            ServerOrder::Name => servers.sort_by_key(|server| server.state.name.to_lowercase()),
            ServerOrder::State => servers.sort_by(|a, b| a.state.state.cmp(&b.state.state)),
            ServerOrder::Rate => servers.sort_by(|a, b| b.calls.rate(now).total_cmp(&a.calls.rate(now))),
            ServerOrder::Latency => servers.sort_by_key(|server| {
                std::cmp::Reverse(server.calls.percentiles(now).map(|percentiles| percentiles.p95))
            }),
            ServerOrder::Errors => {
                servers.sort_by_key(|server| std::cmp::Reverse(server.calls.totals(now).1));
            }
        }
        if self.is_reversed {
            servers.reverse();
        }
        servers
    }

    /// Returns the calls that the filter leaves, the newest first.
    pub(super) fn calls<'a>(&self, model: &'a TopModel) -> Vec<&'a TopCall> {
        model.calls.iter().rev().filter(|call| self.filter.matches(call)).collect()
    }

    /// Returns the place of the selected server.
    pub(super) fn server_place(&self, servers: &[&TopServer]) -> Option<usize> {
        let selected = self.server.as_ref()?;
        servers.iter().position(|server| server.state.name == *selected)
    }

    /// Returns the place of the selected call.
    pub(super) fn call_place(&self, calls: &[&TopCall]) -> Option<usize> {
        let selected = self.call.as_ref()?;
        calls.iter().position(|call| call.start.call == *selected)
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent, model: &TopModel, now: i64) -> KeyOutcome {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return KeyOutcome::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return KeyOutcome::Continue;
        }
        match key.code {
            KeyCode::Char('q') => return KeyOutcome::Quit,
            KeyCode::Esc if self.overlay == ScreenOverlay::None => self.set_filter(String::new()),
            KeyCode::Esc => self.overlay = ScreenOverlay::None,
            KeyCode::Char('?') => self.toggle(ScreenOverlay::Help),
            KeyCode::Enter => self.toggle(ScreenOverlay::Details),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('p' | ' ') => {
                self.paused = if self.is_paused() { None } else { Some(Box::new(model.clone())) };
            }
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.focus = FocusedList::Calls;
            }
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = match self.focus {
                    FocusedList::Servers => FocusedList::Calls,
                    FocusedList::Calls => FocusedList::Servers,
                }
            }
            KeyCode::Down | KeyCode::Char('j') => self.step(model, now, 1),
            KeyCode::Up | KeyCode::Char('k') => self.step(model, now, -1),
            KeyCode::PageDown => self.step(model, now, 10),
            KeyCode::PageUp => self.step(model, now, -10),
            KeyCode::Home => self.step(model, now, isize::MIN),
            KeyCode::End => self.step(model, now, isize::MAX),
            _ => {}
        }
        KeyOutcome::Continue
    }

    fn toggle(&mut self, overlay: ScreenOverlay) {
        self.overlay = if self.overlay == overlay { ScreenOverlay::None } else { overlay };
    }

    fn type_filter(&mut self, key: KeyCode) {
        let mut text = self.filter_text.clone();
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                text.clear();
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) if text.chars().count() < MAX_FILTER_CHARS => text.push(c),
            _ => {}
        }
        self.set_filter(text);
    }

    fn set_filter(&mut self, text: String) {
        self.filter = CallFilter::parse(&text);
        self.filter_text = text;
    }

    /// Moves the selection; the first step selects the first row.
    fn step(&mut self, model: &TopModel, now: i64, by: isize) {
        let model = self.shown(model);
        let moved = |place: Option<usize>, count: usize| match place {
            _ if count == 0 => None,
            None if by == isize::MAX => Some(count - 1),
            None => Some(0),
            Some(place) => Some(place.saturating_add_signed(by).min(count - 1)),
        };
        match self.focus {
            FocusedList::Servers => {
                let servers = self.servers(model, now);
                let place = moved(self.server_place(&servers), servers.len());
                self.server = place.and_then(|place| Some(servers.get(place)?.state.name.clone()));
            }
            FocusedList::Calls => {
                let calls = self.calls(model);
                let place = moved(self.call_place(&calls), calls.len());
                self.call = place.and_then(|place| Some(calls.get(place)?.start.call.clone()));
            }
        }
    }
}
