use super::model::TopCall;

/// A filter for calls, as in the console: `server:git client:cursor status:error >500ms "two words" -name:x`. Every part
/// must match.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFilter {
    parts: Vec<FilterPart>,
    /// A part that means nothing.
    pub(super) problem: Option<String>,
}

#[derive(Clone, Debug)]
struct FilterPart {
    is_negated: bool,
    test: FilterTest,
}

#[derive(Clone, Debug)]
enum FilterTest {
    Server(String),
    Client(String),
    Method(String),
    Name(String),
    Tool(String),
    Status(String),
    Id(String),
    LongerThan(u64),
    ShorterThan(u64),
    Text(String),
}

impl CallFilter {
    /// Reads a filter. What means nothing is reported and has no effect.
    pub(super) fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        for (word, is_quoted) in words(text) {
            let negated = word.strip_prefix('-').filter(|rest| !is_quoted && !rest.is_empty());
            let word = negated.unwrap_or(&word);
            match FilterTest::parse(word, is_quoted) {
                Ok(Some(test)) => filter.parts.push(FilterPart { is_negated: negated.is_some(), test }),
                Ok(None) => {}
                Err(problem) => filter.problem = Some(problem),
            }
        }
        filter
    }

    pub(super) fn matches(&self, call: &TopCall) -> bool {
        self.parts.iter().all(|part| part.test.matches(call) != part.is_negated)
    }
}

impl FilterTest {
    fn parse(word: &str, is_quoted: bool) -> Result<Option<Self>, String> {
        if is_quoted {
            return Ok(Some(Self::Text(word.to_lowercase())));
        }
        for (sign, make) in [('>', Self::LongerThan as fn(u64) -> Self), ('<', Self::ShorterThan)] {
            if let Some(bound) = word.strip_prefix(sign) {
                let micros = duration(bound).ok_or_else(|| format!("{word}: write >500ms or <2s"))?;
                return Ok(Some(make(micros)));
            }
        }
        if let Some((field, wanted)) = word.split_once(':')
            && let Some(make) = Self::of_field(&field.to_lowercase())
        {
            // While it is typed, `server:` has no value yet.
            return Ok((!wanted.is_empty()).then(|| make(wanted.to_lowercase())));
        }
        Ok(Some(Self::Text(word.to_lowercase())))
    }

    /// Returns the test of a field.
    fn of_field(name: &str) -> Option<fn(String) -> Self> {
        Some(match name {
            "server" => Self::Server,
            "client" => Self::Client,
            "method" => Self::Method,
            "name" => Self::Name,
            "tool" => Self::Tool,
            "status" => Self::Status,
            "id" => Self::Id,
            _ => return None,
        })
    }

    fn matches(&self, call: &TopCall) -> bool {
        let has = |text: &str, wanted: &str| text.to_lowercase().contains(wanted);
        let has_name = |wanted: &str| {
            [&call.start.name, &call.start.item].into_iter().flatten().any(|name| has(name, wanted))
        };
        let micros = call.end.as_ref().map(|end| end.micros);
        match self {
            Self::Server(wanted) => has(&call.start.server, wanted),
            Self::Client(wanted) => has(call.client(), wanted),
            Self::Method(wanted) => has(&call.start.method, wanted),
            Self::Name(wanted) => has_name(wanted),
            Self::Tool(wanted) => call.start.method == "tools/call" && has_name(wanted),
            Self::Status(wanted) if wanted == "error" => call.is_error(),
            Self::Status(wanted) => call.status().contains(wanted.as_str()),
            Self::Id(wanted) => has(&call.start.call, wanted),
            Self::LongerThan(bound) => micros.is_some_and(|micros| micros > *bound),
            Self::ShorterThan(bound) => micros.is_some_and(|micros| micros < *bound),
            Self::Text(wanted) => {
                let error = call.end.as_ref().and_then(|end| end.error.as_deref()).unwrap_or_default();
                has_name(wanted)
                    || [&*call.start.server, &*call.start.method, call.client(), error]
                        .iter()
                        .any(|text| has(text, wanted))
            }
        }
    }
}

/// Splits at spaces outside of quotes. A word is quoted if it begins with a quote; those within it are left out.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted, mut in_quotes) = (String::new(), false, false);
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted |= word.is_empty() && !in_quotes;
                in_quotes = !in_quotes;
            }
            c if c.is_whitespace() && !in_quotes => {
                words.push((std::mem::take(&mut word), std::mem::take(&mut is_quoted)));
            }
            c => word.push(c),
        }
    }
    words.push((word, is_quoted));
    words.retain(|(word, _)| !word.is_empty());
    words
}

/// Reads a duration, in milliseconds without a unit.
fn duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "us" | "µs" => 1.0,
        "" | "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => return None,
    };
    let micros = number.parse::<f64>().ok()? * factor;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let micros = micros as u64;
    Some(micros)
}

#[cfg(test)]
mod tests {
    use trunkline_hub::events::{CallEndEvent, CallOutcome, CallStartEvent};

    use super::*;

    fn call(outcome: Option<CallOutcome>) -> TopCall {
        TopCall {
            start: CallStartEvent {
                call: "c7".to_owned(),
                client: Some("0a1b".to_owned()),
                client_name: Some("Cursor".to_owned()),
                method: "tools/call".to_owned(),
                name: Some("git__log".to_owned()),
                server: "git".to_owned(),
                item: Some("log".to_owned()),
            },
            started_at: 0,
            time: String::new(),
            end: outcome.map(|outcome| CallEndEvent {
                call: "c7".to_owned(),
                outcome,
                micros: 700_000,
                server_micros: None,
                bytes_in: 0,
                bytes_out: 0,
                error: Some("no such branch".to_owned()),
                code: None,
            }),
            waits_for: None,
        }
    }

    #[test]
    fn filter_matches_calls_as_the_console_does() {
        let (failed, running) = (call(Some(CallOutcome::ToolError)), call(None));
        for (text, of_failed, of_running) in [
            ("", true, true),
            ("server:git", true, true),
            ("SERVER:GI client:curs", true, true),
            ("server:web", false, false),
            ("-server:web", true, true),
            ("client:", true, true),
            ("status:error", true, false),
            ("-status:error", false, true),
            ("status:running", false, true),
            (">500ms", true, false),
            (">500", true, false),
            ("<2s", true, false),
            ("<0.5s", false, false),
            ("tool:log name:git__", true, true),
            ("method:prompts", false, false),
            ("id:c7", true, true),
            ("\"such branch\"", true, false),
            ("server:\"git\"", true, true),
            ("log", true, true),
            ("-log", false, false),
            ("unknown:x", false, false),
        ] {
            let filter = CallFilter::parse(text);
            let found = (filter.matches(&failed), filter.matches(&running));
            assert_eq!(found, (of_failed, of_running), "{text}");
            assert_eq!(filter.problem, None, "{text}");
        }
        let filter = CallFilter::parse(">long server:git");
        assert!(filter.problem.is_some() && filter.matches(&running));
    }
}
