use super::escape::first_line;
use super::width::{display_width, truncate_to_width};

/// The columns behind a bar: two for the `^C` that a terminal shows, which would move the bar up by a line where it does
/// not fit, and one since some terminals begin a new line when the last column is filled.
pub(crate) const FREE_COLUMNS: usize = 3;

/// How wide the bar itself is.
const BAR_COLUMNS: usize = 20;

/// The progress of a call, as its server reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallProgress {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

impl CallProgress {
    /// Draws a bar with the progress text, on one line of at most `columns` columns.
    pub(crate) fn render_bar(&self, columns: usize) -> String {
        let line = match self.fraction() {
            Some(share) => {
                // The share is between 0 and 1, so that the count is between 0 and the width.
                let filled = (share * BAR_COLUMNS as f64) as usize;
                let (full, empty) = ("#".repeat(filled), "-".repeat(BAR_COLUMNS - filled));
                format!("[{full}{empty}] {:3.0}% {}", share * 100.0, self.to_text())
            }
            None => self.to_text(),
        };
        truncate_to_width(line.trim_end(), columns.saturating_sub(FREE_COLUMNS))
    }

    /// Formats the progress as text, for logs.
    pub(crate) fn to_text(&self) -> String {
        let total = self.total.map(|total| format!("/{}", format_number(total))).unwrap_or_default();
        let message = self.message.as_deref().map(first_line).filter(|line| !line.is_empty());
        let message = message.map(|message| format!(" {message}")).unwrap_or_default();
        format!("{}{total}{message}", format_number(self.progress))
    }

    fn fraction(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.progress / total).clamp(0.0, 1.0)).filter(|share| share.is_finite())
    }
}

/// Writes a number with no more digits than it needs.
fn format_number(number: f64) -> String {
    let text = format!("{number:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if display_width(short) > 20 { format!("{number:e}") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(progress: f64, total: Option<f64>, message: Option<&str>) -> CallProgress {
        CallProgress { progress, total, message: message.map(str::to_owned) }
    }

    #[test]
    fn progress_bar_shows_share_count_and_message() {
        for (stage, bar) in [
            (stage(50.0, Some(100.0), Some("half\nway")), "[##########----------]  50% 50/100 half"),
            (stage(0.0, Some(3.0), None), "[--------------------]   0% 0/3"),
            (stage(3.0, Some(3.0), None), "[####################] 100% 3/3"),
            (stage(9.0, Some(3.0), None), "[####################] 100% 9/3"),
            (stage(-1.0, Some(3.0), None), "[--------------------]   0% -1/3"),
            (stage(1.5, None, Some("\x1b[2Jx")), "1.5 \\x1b[2Jx"),
            (stage(7.0, Some(0.0), None), "7/0"),
            (stage(1e300, Some(2e300), None), "[##########----------]  50% 1e300/2e300"),
        ] {
            assert_eq!(stage.render_bar(80), bar, "{stage:?}");
        }
        let long = stage(1.0, Some(2.0), Some(&"word ".repeat(50)));
        assert_eq!(display_width(&long.render_bar(60)), 57);
    }
}
