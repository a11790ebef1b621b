use std::convert::Infallible;
use std::time::{Duration, Instant};

use crate::terminal::{StderrScreen, escape_line};

/// A connection that takes no longer is not worth a notice.
const FIRST_NOTICE: Duration = Duration::from_secs(1);

/// How often the notice on a terminal is brought up to date.
const REFRESH: Duration = Duration::from_secs(1);

/// After this long the notice is printed where there is no terminal.
const LINE_AFTER: Duration = Duration::from_secs(2);

/// Shows that a connection is being made, to what and for how long. It never returns.
pub(super) async fn show_connecting(screen: &StderrScreen, label: &str, timeout: Duration) -> Infallible {
    let (started, label) = (Instant::now(), escape_line(label).into_owned());
    tokio::time::sleep(FIRST_NOTICE).await;
    let mut has_line = false;
    loop {
        let waited = started.elapsed();
        screen.show_status(&status(&label, waited));
        if !has_line && waited >= LINE_AFTER && !screen.shows_status() {
            has_line = true;
            screen.print(&format!(
                "waiting for {label} to answer; each attempt times out after {}s (`--timeout` changes it)\n",
                timeout.as_secs()
            ));
        }
        tokio::time::sleep(REFRESH).await;
    }
}

fn status(label: &str, waited: Duration) -> String {
    format!("connecting for {}s: {label}", waited.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_notice_has_time_and_target() {
        assert_eq!(
            status("npx -y server", Duration::from_millis(12_900)),
            "connecting for 12s: npx -y server"
        );
    }
}
