//! Warnings that are logged on the thread of one test.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Collects the warnings of this thread until it is dropped.
#[must_use]
pub(crate) struct Warnings(());

/// Returns what was collected so far.
pub(crate) fn collected_warnings() -> Vec<String> {
    LINES.with_borrow(|lines| lines.clone().unwrap_or_default())
}

impl Drop for Warnings {
    fn drop(&mut self) {
        LINES.set(None);
    }
}

/// Begins to collect. The subscriber is that of the whole process, since which events are enabled is cached for all threads.
pub(crate) fn collect_warnings() -> Warnings {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(WarningCollector).unwrap());
    LINES.set(Some(Vec::new()));
    Warnings(())
}

struct WarningCollector;

impl Subscriber for WarningCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        LINES.with_borrow_mut(|lines| {
            let Some(lines) = lines else { return };
            let mut line = EventLine(String::new());
            event.record(&mut line);
            lines.push(line.0);
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct EventLine(String);

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
