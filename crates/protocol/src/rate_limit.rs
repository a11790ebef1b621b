//! The refusal of a call beyond a rate limit.

use std::time::Duration;

use crate::json::{JsonWriter, RawJson};
use crate::refusal::Refusal;

/// The member of a refusal's data that names the time until a retry, in milliseconds.
const RETRY_AFTER_MS: &str = "retryAfterMs";

impl Refusal {
    /// Refuses a call beyond a rate limit, of the caller or of a server that it names, with the time to retry after.
    #[cold]
    pub fn rate_limited(wait: Duration, server: Option<&str>) -> Self {
        let wait_ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut writer = JsonWriter::with_capacity(96);
        writer.open_object();
        for (key, text) in [("reason", Some("rate_limited")), ("upstream", server)] {
            if let Some(text) = text {
                writer.plain_key(key);
                writer.string(text);
            }
        }
        writer.member("retryable", &RawJson::TRUE);
        writer.plain_key(RETRY_AFTER_MS);
        writer.unsigned(wait_ms);
        writer.close_object();
        let limited = server.map_or_else(|| "this caller".to_owned(), |server| format!("server `{server}`"));
        let seconds = wait_ms.div_ceil(1000);
        let message = format!("the rate limit of {limited} is used up; try again in {seconds} s");
        Self::RATE_LIMITED.with_message(message).with_data(writer.into_raw())
    }

    /// Returns when to retry, if [`Refusal::rate_limited`] made the error of a response.
    pub fn retry_after_in(response: &RawJson) -> Option<Duration> {
        let mut error = response.members().ok()?.take("error")?.members().ok()?;
        let wait = error.take("data")?.members().ok()?.take(RETRY_AFTER_MS)?.decode().ok()?;
        Some(Duration::from_millis(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit;
    use crate::revision::Revision;

    #[test]
    fn time_until_a_retry_is_in_the_error_of_every_revision() {
        for (wait, server, expected) in [
            (Duration::from_micros(1), None, 1),
            (Duration::from_millis(2_500), Some("a"), 2_500),
            (Duration::MAX, None, u64::MAX),
        ] {
            let refusal = Refusal::rate_limited(wait, server);
            for revision in [Revision::NEWEST_LEGACY, Revision::NEWEST] {
                let response = RawJson::parse(emit::error(None, &refusal, revision)).unwrap();
                let found = Refusal::retry_after_in(&response);
                assert_eq!(found, Some(Duration::from_millis(expected)), "{response}");
            }
        }
        let other = RawJson::parse(emit::error(None, &Refusal::TOO_MANY, Revision::NEWEST)).unwrap();
        assert_eq!(Refusal::retry_after_in(&other), None);
    }
}
