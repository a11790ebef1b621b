use trunkline_protocol::model::{Action, UrlQuestion};

use super::dialogue::Dialogue;
use super::form::{Reply, confirm};
use super::given::Given;
use crate::exit::{Exit, Failure};
use crate::terminal::{visible, visible_line};

/// Asks the person to visit a page, which is never opened for them.
///
/// # Errors
/// There is nobody to ask, and nothing was given in advance.
pub(crate) fn visit(
    question: &UrlQuestion,
    asker: &str,
    given: &Given,
    person: Option<&mut dyn Dialogue>,
) -> Result<Reply, Failure> {
    let url = visible_line(&question.url);
    match (given.action(), person) {
        (Some(Action::Accept), _) => Ok(Reply::Accept(None)),
        (Some(Action::Decline), _) => Ok(Reply::Decline),
        (Some(Action::Cancel), _) => Ok(Reply::Cancel),
        (None, Some(person)) => {
            person.say(&format!("{asker} asks you to visit a page: {}\n", visible(&question.message)));
            person.say(&format!("  {url}\n{}", warning(&question.url)));
            let agreed = confirm("It is not opened for you. Will you visit it yourself?", person);
            agreed
                .map_err(|error| Failure::new(Exit::Failed, format!("the terminal cannot be read: {error}")))
        }
        (None, None) => {
            let message = visible_line(&question.message);
            Err(Failure::new(Exit::Usage, format!("{asker} asks you to visit {url}: {message}"))
                .hint("`--answer accept` agrees, `--answer decline` says no"))
        }
    }
}

/// Says what a person may not see in an address.
fn warning(url: &str) -> String {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return "  this is not the address of a web page\n".to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let mut words = format!("  it is on {}\n", visible_line(host));
    if host != authority {
        words.push_str("  what stands before the @ is not where it is\n");
    }
    if !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--")) {
        words.push_str("  its name has letters that may look like others\n");
    }
    if url.starts_with("http://") {
        words.push_str("  others on the way can read what you write there\n");
    }
    words
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::Members;

    use super::super::dialogue::Scripted;
    use super::*;

    fn question(url: &str) -> UrlQuestion {
        UrlQuestion { message: "Log in".to_owned(), url: url.to_owned(), rest: Members::new() }
    }

    #[test]
    fn a_page_is_shown_with_its_host_and_agreed_to_by_hand() {
        for (line, expected) in [("y", Reply::Accept(None)), ("n", Reply::Decline), ("c", Reply::Cancel)] {
            let mut person = Scripted::new(&["huh", line]);
            let reply =
                visit(&question("https://example.com/x"), "demo", &Given::default(), Some(&mut person));
            assert_eq!(reply.unwrap(), expected);
            assert!(
                person.seen.contains("  https://example.com/x\n  it is on example.com\nIt is not opened"),
                "{}",
                person.seen
            );
        }
    }

    #[test]
    fn what_misleads_in_an_address_is_said() {
        for (url, part) in [
            ("https://bank.com@evil.example/", "it is on evil.example\n  what stands before the @"),
            ("https://аpple.com", "letters that may look like others"),
            ("https://xn--pple-43d.com/", "letters that may look like others"),
            ("http://example.com", "others on the way"),
            ("javascript:alert(1)", "not the address of a web page"),
        ] {
            assert!(warning(url).contains(part), "{url}: {}", warning(url));
        }
        assert_eq!(warning("https://example.com/a@b"), "  it is on example.com\n");
    }

    #[test]
    fn without_a_person_agreement_has_to_be_given() {
        let given = |text: &str| Given::new(&[text.parse().unwrap()]);
        let failure = visit(&question("https://example.com"), "demo", &Given::default(), None).unwrap_err();
        assert!(failure.to_string().contains("--answer accept"), "{failure}");
        assert_eq!(
            visit(&question("https://x"), "demo", &given("accept"), None).unwrap(),
            Reply::Accept(None)
        );
        assert_eq!(visit(&question("https://x"), "demo", &given("decline"), None).unwrap(), Reply::Decline);
    }
}
