use trunkline_protocol::model::{Action, FormQuestion};
use trunkline_protocol::{Members, Raw};

use super::dialogue::Dialogue;
use super::field::{Field, Filled};
use super::given::Given;
use crate::exit::{Exit, Failure};
use crate::schema::Shape;
use crate::terminal::{visible, visible_line};

/// What came of a question to the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// The form as it was filled in; nothing for a page.
    Accept(Option<Raw>),
    Decline,
    Cancel,
}

const HELP: &str = "(Enter takes what is in brackets; :skip, :decline and :cancel do what they say)\n";

/// Has a form filled in: by what was given in advance, then by the person, if there is one.
///
/// Without a person a form is never accepted by its defaults alone, unless `--answer accept` says so.
///
/// # Errors
/// There is nobody to ask, and what was given does not answer the form.
pub(crate) fn fill(
    form: &FormQuestion,
    asker: &str,
    given: &Given,
    person: Option<&mut dyn Dialogue>,
) -> Result<Reply, Failure> {
    match given.action() {
        Some(Action::Decline) => return Ok(Reply::Decline),
        Some(Action::Cancel) => return Ok(Reply::Cancel),
        Some(Action::Accept) | None => {}
    }
    let shape = Shape::read(&form.schema);
    let schemas = form.schema.members().ok().and_then(|members| members.get("properties")?.members().ok());
    let schemas = schemas.unwrap_or_default();
    let fields: Vec<_> =
        shape.properties.iter().map(|property| Field::new(property, schemas.get(&property.name))).collect();
    let mut filled = Members::new();
    let mut open = Vec::new();
    for field in &fields {
        match given.field(field.name()) {
            Some(value) => {
                let value = field.take(value).map_err(|problem| {
                    Failure::new(Exit::Usage, format!("`--answer {}=…` {problem}", field.name()))
                        .hint(format!("the server asks: {}", visible_line(&form.message)))
                })?;
                filled.set(field.name(), value);
            }
            None => open.push(field),
        }
    }
    let reply = match person {
        Some(person) if given.action().is_none() && (!open.is_empty() || fields.is_empty()) => {
            ask_person(form, asker, &open, &mut filled, person)?
        }
        None if given.action().is_none() && filled.is_empty() => return Err(nobody(form, asker, &fields)),
        _ => fill_unasked(form, asker, &open, &mut filled)?,
    };
    // The fields stand in the order of the form, whoever filled them in.
    let ordered =
        || fields.iter().filter_map(|field| Some((field.name().into(), filled.get(field.name())?.clone())));
    Ok(reply.unwrap_or_else(|| Reply::Accept(Some(ordered().collect::<Members>().to_raw()))))
}

/// Asks for the fields that are open; returns what else the person decided.
fn ask_person(
    form: &FormQuestion,
    asker: &str,
    open: &[&Field<'_>],
    filled: &mut Members,
    person: &mut dyn Dialogue,
) -> Result<Option<Reply>, Failure> {
    let gone = |error| Failure::new(Exit::Failed, format!("the terminal cannot be read: {error}"));
    person.say(&format!("{asker} asks: {}\n", visible(&form.message)));
    if open.is_empty() {
        return confirm("Accept?", person)
            .map(|reply| (reply != Reply::Accept(None)).then_some(reply))
            .map_err(gone);
    }
    person.say(HELP);
    for field in open {
        match field.ask(person).map_err(gone)? {
            Filled::Value(value) => filled.set(field.name(), value),
            Filled::Skipped => {}
            Filled::Declined => return Ok(Some(Reply::Decline)),
            Filled::Cancelled => return Ok(Some(Reply::Cancel)),
        }
    }
    Ok(None)
}

/// Fills in defaults, and refuses where something that is needed has none.
fn fill_unasked(
    form: &FormQuestion,
    asker: &str,
    open: &[&Field<'_>],
    filled: &mut Members,
) -> Result<Option<Reply>, Failure> {
    for field in open {
        match field.unfilled() {
            Some(Filled::Value(value)) => filled.set(field.name(), value),
            Some(_) => {}
            None => {
                let what = format!("{asker} asks for `{}`: {}", field.name(), visible_line(&form.message));
                let hint = format!("`--answer {}=VALUE` answers it", field.name());
                return Err(Failure::new(Exit::Usage, what).hint(hint));
            }
        }
    }
    Ok(None)
}

fn nobody(form: &FormQuestion, asker: &str, fields: &[Field<'_>]) -> Failure {
    let what = format!("{asker} asks, and there is nobody to answer: {}", visible_line(&form.message));
    let answers: Vec<_> = fields.iter().map(|field| format!("`--answer {}=VALUE`", field.name())).collect();
    let answers = if answers.is_empty() { "`--answer accept`".to_owned() } else { answers.join(" and ") };
    Failure::new(Exit::Usage, what).hint(format!("{answers} answers it, `--answer decline` says no"))
}

/// Asks for a yes, a no, or neither.
pub(super) fn confirm(question: &str, person: &mut dyn Dialogue) -> std::io::Result<Reply> {
    loop {
        let line = person.ask(&format!("{question} (y: yes, n: no, c: cancel) "))?;
        match line.as_deref().map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            Some("y" | "yes") => return Ok(Reply::Accept(None)),
            Some("n" | "no" | ":decline") => return Ok(Reply::Decline),
            None | Some("c" | "cancel" | ":cancel") => return Ok(Reply::Cancel),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialogue::Scripted;
    use super::*;

    const BOOKING: &str = r#"{
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Your name", "minLength": 2 },
            "guests": { "type": "integer", "minimum": 1, "maximum": 8, "default": 2 },
            "seat": { "type": "string", "oneOf": [{ "const": "w", "title": "Window" }, { "const": "a", "title": "Aisle" }] },
            "extras": { "type": "array", "items": { "enum": ["cake", "wine", "music"] }, "maxItems": 2 },
            "vip": { "type": "boolean", "default": false },
            "email": { "type": "string", "format": "email" }
        },
        "required": ["name", "seat"]
    }"#;

    fn form(schema: &str) -> FormQuestion {
        let schema = Raw::parse(schema.to_owned()).unwrap();
        FormQuestion { message: "A table?".to_owned(), schema, rest: Members::new() }
    }

    fn given(answers: &[&str]) -> Given {
        Given::new(&answers.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    fn with_person(schema: &str, answers: &[&str], lines: &[&str]) -> (Reply, String) {
        let mut person = Scripted::new(lines);
        let reply = fill(&form(schema), "demo", &given(answers), Some(&mut person)).unwrap();
        (reply, person.seen)
    }

    fn unattended(schema: &str, answers: &[&str]) -> Result<Reply, String> {
        fill(&form(schema), "demo", &given(answers), None).map_err(|failure| failure.to_string())
    }

    fn accepted(json: &str) -> Reply {
        Reply::Accept(Some(Raw::parse(json.to_owned()).unwrap()))
    }

    #[test]
    fn a_form_is_asked_field_by_field_with_defaults_and_menus() {
        let lines = ["Ann", "", "2", "1, music", "yes", "ann@example.com"];
        let (reply, seen) = with_person(BOOKING, &[], &lines);
        let expected = r#"{"name":"Ann","guests":2,"seat":"a","extras":["cake","music"],"vip":true,"email":"ann@example.com"}"#;
        assert_eq!(reply, accepted(expected));
        assert_eq!(
            seen,
            "demo asks: A table?\n\
             (Enter takes what is in brackets; :skip, :decline and :cancel do what they say)\n\
             Your name\nname: Ann\n\
             guests (int) [2]: \n\
             \x20 1) w  Window\n  2) a  Aisle\nseat (1-2): 2\n\
             \x20 1) cake\n  2) wine\n  3) music\nextras (some of them, with commas) [leave out]: 1, music\n\
             vip (yes or no) [false]: yes\n\
             email (email) [leave out]: ann@example.com\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_asked_again() {
        let lines =
            ["", "A", "Ann", "9", "x", ":skip", "3", "w", "1,2,3", "cake", "maybe", "", "nowhere", ""];
        let (reply, seen) = with_person(BOOKING, &[], &lines);
        assert_eq!(reply, accepted(r#"{"name":"Ann","seat":"w","extras":["cake"],"vip":false}"#));
        for part in [
            "that is needed",
            "that does not fit: \"A\" is shorter than 2 characters",
            "that does not fit: 9 is greater than the maximum of 8",
            "that must be a whole number",
            "that must be one of w, a",
            "more than 2 items",
            "that must be true or false",
            "is not a \"email\"",
        ] {
            assert!(seen.contains(part), "no `{part}` in\n{seen}");
        }
    }

    #[test]
    fn a_person_may_say_no_or_break_off_at_any_field() {
        for (lines, expected) in [
            (&[":decline"][..], Reply::Decline),
            (&[":cancel"], Reply::Cancel),
            (&["Ann", "4", ":decline"], Reply::Decline),
            (&["Ann"], Reply::Cancel),
            (&[], Reply::Cancel),
        ] {
            assert_eq!(with_person(BOOKING, &[], lines).0, expected, "{lines:?}");
        }
    }

    #[test]
    fn what_was_given_in_advance_is_not_asked() {
        let (reply, seen) =
            with_person(BOOKING, &["name=Ann", "seat=aisle", "extras=cake,wine"], &["", "", ":skip"]);
        assert_eq!(
            reply,
            accepted(r#"{"name":"Ann","guests":2,"seat":"a","extras":["cake","wine"],"vip":false}"#)
        );
        assert!(!seen.contains("name:") && !seen.contains("Window"), "{seen}");
        let (declined, seen) = with_person(BOOKING, &["decline"], &[]);
        assert_eq!((declined, seen.as_str()), (Reply::Decline, ""));
    }

    #[test]
    fn without_a_person_answers_have_to_be_given() {
        for (answers, expected) in [
            (&[][..], Err("demo asks, and there is nobody to answer: A table?; `--answer name=VALUE` and")),
            (&["name=Ann"], Err("demo asks for `seat`: A table?; `--answer seat=VALUE` answers it")),
            (&["accept"], Err("demo asks for `name`")),
            (&["seat=x", "name=Ann"], Err("`--answer seat=…` must be one of w, a")),
            (&["seat=w", "name=A"], Err("`--answer name=…` does not fit")),
            (&["other=1"], Err("nobody to answer")),
            (&["decline"], Ok(Reply::Decline)),
            (&["cancel"], Ok(Reply::Cancel)),
            (&["name=Ann", "seat=w"], Ok(accepted(r#"{"name":"Ann","guests":2,"seat":"w","vip":false}"#))),
            (
                &["name=Ann", "seat=w", "guests=3", r#"extras:=["wine"]"#],
                Ok(accepted(r#"{"name":"Ann","guests":3,"seat":"w","extras":["wine"],"vip":false}"#)),
            ),
        ] {
            match (unattended(BOOKING, answers), expected) {
                (Ok(reply), Ok(expected)) => assert_eq!(reply, expected, "{answers:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{answers:?}: {error}"),
                (found, _) => panic!("{answers:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn defaults_alone_are_accepted_only_when_somebody_says_so() {
        let schema = r#"{"type":"object","properties":{"confirm":{"type":"boolean","default":true}}}"#;
        assert!(unattended(schema, &[]).unwrap_err().contains("`--answer confirm=VALUE`"));
        assert!(unattended(schema, &["other=x"]).is_err());
        assert_eq!(unattended(schema, &["accept"]), Ok(accepted(r#"{"confirm":true}"#)));
    }

    #[test]
    fn a_form_without_fields_is_a_yes_or_a_no() {
        let schema = r#"{"type":"object","properties":{}}"#;
        assert_eq!(with_person(schema, &[], &["what?", "y"]).0, accepted("{}"));
        assert_eq!(with_person(schema, &[], &["n"]).0, Reply::Decline);
        assert_eq!(with_person(schema, &[], &[]).0, Reply::Cancel);
        assert_eq!(unattended(schema, &["accept"]), Ok(accepted("{}")));
    }

    #[test]
    fn a_hostile_form_only_shows() {
        let schema = r#"{"type":"object","properties":{"a\u001b[2J":{"title":"\u001b]0;x\u0007","enum":["\u202e"],"description":"\r"}}}"#;
        let mut question = form(schema);
        question.message = "\x1b[31mred".to_owned();
        let mut person = Scripted::new(&["1"]);
        fill(&question, "demo", &Given::default(), Some(&mut person)).unwrap();
        let shows = |c: char| c == '\n' || !crate::terminal::steers(c);
        assert!(person.seen.chars().all(shows), "{:?}", person.seen);
    }
}
