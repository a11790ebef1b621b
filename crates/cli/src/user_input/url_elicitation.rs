use trunkline_protocol::model::{ElicitAction, UrlElicitRequest};

use super::form::{ElicitationReply, confirm};
use super::interactive_terminal::InteractiveTerminal;
use super::preset_answers::PresetAnswers;
use crate::exit::{CliFailure, ExitReason};
use crate::terminal::{escape_line, escape_text};

/// Prompts the user to visit a URL, which is never opened automatically.
///
/// # Errors
/// There is no terminal, and no answer was given in advance.
pub(crate) fn confirm_url(
    question: &UrlElicitRequest,
    server: &str,
    given: &PresetAnswers,
    terminal: Option<&mut dyn InteractiveTerminal>,
) -> Result<ElicitationReply, CliFailure> {
    let url = escape_line(&question.url);
    match (given.action(), terminal) {
        (Some(ElicitAction::Accept), _) => Ok(ElicitationReply::Accept(None)),
        (Some(ElicitAction::Decline), _) => Ok(ElicitationReply::Decline),
        (Some(ElicitAction::Cancel), _) => Ok(ElicitationReply::Cancel),
        (None, Some(terminal)) => {
            terminal
                .print(&format!("{server} asks you to visit a URL: {}\n", escape_text(&question.message)));
            terminal.print(&format!("  {url}\n{}", url_warning(&question.url)));
            let agreed = confirm("It is not opened automatically. Will you open it yourself?", terminal);
            agreed.map_err(|error| {
                CliFailure::new(ExitReason::Failed, format!("cannot read the terminal: {error}"))
            })
        }
        (None, None) => {
            let message = escape_line(&question.message);
            Err(CliFailure::new(ExitReason::Usage, format!("{server} asks you to visit {url}: {message}"))
                .hint("accept with `--answer accept`, decline with `--answer decline`"))
        }
    }
}

/// Points out what a user may overlook in a URL.
fn url_warning(url: &str) -> String {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return "  warning: not a web URL\n".to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let mut words = format!("  host: {}\n", escape_line(host));
    if host != authority {
        words.push_str("  warning: the text before the @ is not the host\n");
    }
    if !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--")) {
        words.push_str("  warning: the host name has characters that look like others\n");
    }
    if url.starts_with("http://") {
        words.push_str("  warning: not encrypted (http)\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::JsonObject;

    use super::super::interactive_terminal::ScriptedTerminal;
    use super::*;

    fn question(url: &str) -> UrlElicitRequest {
        UrlElicitRequest { message: "Log in".to_owned(), url: url.to_owned(), rest: JsonObject::new() }
    }

    #[test]
    fn url_elicitation_shows_the_host_and_prompts_for_consent() {
        for (line, expected) in [
            ("y", ElicitationReply::Accept(None)),
            ("n", ElicitationReply::Decline),
            ("c", ElicitationReply::Cancel),
        ] {
            let mut terminal = ScriptedTerminal::new(&["huh", line]);
            let reply = confirm_url(
                &question("https://example.com/x"),
                "demo",
                &PresetAnswers::default(),
                Some(&mut terminal),
            );
            assert_eq!(reply.unwrap(), expected);
            assert!(
                terminal.seen.contains("  https://example.com/x\n  host: example.com\nIt is not opened"),
                "{}",
                terminal.seen
            );
        }
    }

    #[test]
    fn misleading_urls_get_a_warning() {
        for (url, part) in [
            ("https://bank.com@evil.example/", "host: evil.example\n  warning: the text before the @"),
            ("https://аpple.com", "characters that look like others"),
            ("https://xn--pple-43d.com/", "characters that look like others"),
            ("http://example.com", "not encrypted"),
            ("javascript:alert(1)", "not a web URL"),
        ] {
            assert!(url_warning(url).contains(part), "{url}: {}", url_warning(url));
        }
        assert_eq!(url_warning("https://example.com/a@b"), "  host: example.com\n");
    }

    #[test]
    fn url_elicitation_without_a_terminal_needs_a_preset_answer() {
        let given = |text: &str| PresetAnswers::new(&[text.parse().unwrap()]);
        let failure = confirm_url(&question("https://example.com"), "demo", &PresetAnswers::default(), None)
            .unwrap_err();
        assert!(failure.to_string().contains("--answer accept"), "{failure}");
        assert_eq!(
            confirm_url(&question("https://x"), "demo", &given("accept"), None).unwrap(),
            ElicitationReply::Accept(None)
        );
        assert_eq!(
            confirm_url(&question("https://x"), "demo", &given("decline"), None).unwrap(),
            ElicitationReply::Decline
        );
    }
}
