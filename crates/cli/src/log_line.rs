//! A bound for the length of log lines, as the last one: what peers send is shortened where it is read.

use std::fmt;

use serde_json::Value;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// The most bytes of a line, and of one text of a longer JSON line. A backtrace fits.
const MAX_LINE_BYTES: usize = 32 * 1024;

/// The most bytes of one text of a JSON line that is too long.
const MAX_FIELD_BYTES: usize = 4 * 1024;

/// The suffix of what was cut.
const CUT_MARK: &str = "… (cut)";

/// How a line that is too long is shortened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineSyntax {
    /// At its end.
    Text,
    /// Within its texts, so that it stays JSON.
    Json,
}

/// Formats lines, and shortens those that are too long.
pub(crate) struct BoundedLines<F> {
    pub(crate) inner: F,
    pub(crate) syntax: LineSyntax,
}

impl<S, N, F> FormatEvent<S, N> for BoundedLines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::with_capacity(256);
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        if line.len() > MAX_LINE_BYTES {
            line = shorten_line(&line, self.syntax);
        }
        writer.write_str(&line)
    }
}

fn shorten_line(line: &str, syntax: LineSyntax) -> String {
    let json = match syntax {
        LineSyntax::Text => None,
        LineSyntax::Json => serde_json::from_str::<Value>(line).ok(),
    };
    match json {
        Some(mut fields) => {
            shorten_texts(&mut fields);
            format!("{fields}\n")
        }
        None => format!("{}\n", cut(line, MAX_LINE_BYTES)),
    }
}

/// Shortens the texts of a line. Lines have fields and no deep values.
fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_FIELD_BYTES => *text = cut(text, MAX_FIELD_BYTES),
        Value::Array(elements) => elements.iter_mut().for_each(shorten_texts),
        Value::Object(fields) => fields.values_mut().for_each(shorten_texts),
        _ => {}
    }
}

fn cut(text: &str, most: usize) -> String {
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}{CUT_MARK}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::tests::LogSink;

    /// Logs a line with a long field, and returns what was written.
    fn logged(syntax: LineSyntax) -> String {
        let sink = LogSink::default();
        let writer = sink.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || writer.clone());
        let long = "é".repeat(1 << 20);
        let log = || {
            tracing::warn!(server = "a", reason = long, "cannot connect");
            tracing::warn!(server = "b", "short");
        };
        match syntax {
            LineSyntax::Text => tracing::subscriber::with_default(
                builder.map_event_format(|inner| BoundedLines { inner, syntax }).finish(),
                log,
            ),
            LineSyntax::Json => tracing::subscriber::with_default(
                builder
                    .json()
                    .flatten_event(true)
                    .map_event_format(|inner| BoundedLines { inner, syntax })
                    .finish(),
                log,
            ),
        }
        String::from_utf8(sink.0.lock().clone()).unwrap()
    }

    #[test]
    fn long_log_lines_are_cut_and_stay_one_line_of_their_format() {
        let text = logged(LineSyntax::Text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= MAX_LINE_BYTES + CUT_MARK.len(), "{}", lines[0].len());
        assert!(lines[0].ends_with(CUT_MARK) && lines[0].contains("cannot connect"));
        assert!(lines[1].ends_with("short server=\"b\""), "{}", lines[1]);

        let json = logged(LineSyntax::Json);
        let lines: Vec<&str> = json.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= 2 * MAX_FIELD_BYTES, "{}", lines[0].len());
        let line: Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!((&line["server"], &line["message"]), (&"a".into(), &"cannot connect".into()));
        assert!(line["reason"].as_str().unwrap().ends_with(CUT_MARK));
        let line: Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(line["message"], "short");
    }
}
