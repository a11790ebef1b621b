use trunkline_protocol::model::{ElicitAction, FormElicitRequest};
use trunkline_protocol::{JsonObject, RawJson};

use super::field::{FieldInput, FormFieldPrompt};
use super::interactive_terminal::InteractiveTerminal;
use super::preset_answers::PresetAnswers;
use crate::exit::{CliFailure, ExitReason};
use crate::schema::{ValueShape, did_you_mean};
use crate::terminal::{escape_line, escape_text};

/// What came of a question to the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ElicitationReply {
    /// The form as it was filled in; nothing for a page.
    Accept(Option<RawJson>),
    Decline,
    Cancel,
}

const FORM_HELP: &str = "(Enter = default in brackets; or type :skip, :decline, :cancel)\n";

/// Fills in a form: with the answers given in advance, then by prompting the user, if there is a terminal.
///
/// Without a terminal a form is never accepted with its defaults alone, unless `--answer accept` is given.
///
/// # Errors
/// There is no terminal, and the answers given in advance do not complete the form.
pub(crate) fn fill_form(
    form: &FormElicitRequest,
    server: &str,
    given: &PresetAnswers,
    terminal: Option<&mut dyn InteractiveTerminal>,
) -> Result<ElicitationReply, CliFailure> {
    match given.action() {
        Some(ElicitAction::Decline) => return Ok(ElicitationReply::Decline),
        Some(ElicitAction::Cancel) => return Ok(ElicitationReply::Cancel),
        Some(ElicitAction::Accept) | None => {}
    }
    let shape = ValueShape::from_schema(&form.schema);
    let schemas = form.schema.members().ok().and_then(|members| members.get("properties")?.members().ok());
    let schemas = schemas.unwrap_or_default();
    let fields: Vec<_> = shape
        .properties
        .iter()
        .map(|property| FormFieldPrompt::new(property, schemas.get(&property.name)))
        .collect();
    let mut filled = JsonObject::new();
    let mut open = Vec::new();
    for field in &fields {
        match given.field(field.name()) {
            Some(value) => {
                let value = field.parse_preset(value).map_err(|problem| {
                    CliFailure::new(ExitReason::Usage, format!("`--answer {}=…` {problem}", field.name()))
                        .hint(format!("the server requests: {}", escape_line(&form.message)))
                })?;
                filled.set(field.name(), value);
            }
            None => open.push(field),
        }
    }
    let reply = match terminal {
        Some(terminal) if given.action().is_none() && (!open.is_empty() || fields.is_empty()) => {
            prompt_for_fields(form, server, &open, &mut filled, terminal)?
        }
        None if given.action().is_none() && filled.is_empty() => {
            return Err(no_terminal_failure(form, server, &fields, given));
        }
        _ => fill_defaults(form, server, &open, &mut filled)
            .map_err(|failure| failure.with_hint_prefix(&unknown_answers(given, &fields)))?,
    };
    // The fields are sent in the order of the form.
    let ordered =
        || fields.iter().filter_map(|field| Some((field.name().into(), filled.get(field.name())?.clone())));
    Ok(reply.unwrap_or_else(|| ElicitationReply::Accept(Some(ordered().collect::<JsonObject>().to_raw()))))
}

/// Prompts for the open fields; returns another reply if the user declines or cancels.
fn prompt_for_fields(
    form: &FormElicitRequest,
    server: &str,
    open: &[&FormFieldPrompt<'_>],
    filled: &mut JsonObject,
    terminal: &mut dyn InteractiveTerminal,
) -> Result<Option<ElicitationReply>, CliFailure> {
    let gone = |error| CliFailure::new(ExitReason::Failed, format!("cannot read the terminal: {error}"));
    terminal.print(&format!("{server} asks: {}\n", escape_text(&form.message)));
    if open.is_empty() {
        return confirm("Accept?", terminal)
            .map(|reply| (reply != ElicitationReply::Accept(None)).then_some(reply))
            .map_err(gone);
    }
    terminal.print(FORM_HELP);
    for field in open {
        match field.prompt_user(terminal).map_err(gone)? {
            FieldInput::Value(value) => filled.set(field.name(), value),
            FieldInput::Skipped => {}
            FieldInput::Declined => return Ok(Some(ElicitationReply::Decline)),
            FieldInput::Cancelled => return Ok(Some(ElicitationReply::Cancel)),
        }
    }
    Ok(None)
}

/// Fills in defaults, and refuses where something that is needed has none.
fn fill_defaults(
    form: &FormElicitRequest,
    server: &str,
    open: &[&FormFieldPrompt<'_>],
    filled: &mut JsonObject,
) -> Result<Option<ElicitationReply>, CliFailure> {
    for field in open {
        match field.default_input() {
            Some(FieldInput::Value(value)) => filled.set(field.name(), value),
            Some(_) => {}
            None => {
                let what = format!("{server} asks for `{}`: {}", field.name(), escape_line(&form.message));
                let hint = format!("answer in advance with `--answer {}=VALUE`", field.name());
                return Err(CliFailure::new(ExitReason::Usage, what).hint(hint));
            }
        }
    }
    Ok(None)
}

/// Names the answers given in advance that are for no field of the form; a later form may have them.
fn unknown_answers(given: &PresetAnswers, fields: &[FormFieldPrompt<'_>]) -> String {
    let is_unknown = |name: &&str| fields.iter().all(|field| field.name() != *name);
    let messages = given.names().filter(is_unknown).map(|name| {
        let near = did_you_mean(name, fields.iter().map(FormFieldPrompt::name));
        let near = near.map(|near| format!(", {near}")).unwrap_or_default();
        format!("the form has no field `{}`{near}; ", escape_line(name))
    });
    messages.collect()
}

fn no_terminal_failure(
    form: &FormElicitRequest,
    server: &str,
    fields: &[FormFieldPrompt<'_>],
    given: &PresetAnswers,
) -> CliFailure {
    let what = format!("{server} requests input, and there is no terminal: {}", escape_line(&form.message));
    let answers: Vec<_> = fields.iter().map(|field| format!("`--answer {}=VALUE`", field.name())).collect();
    let answers = if answers.is_empty() { "`--answer accept`".to_owned() } else { answers.join(" and ") };
    CliFailure::new(ExitReason::Usage, what)
        .hint(format!("answer in advance with {answers}, or decline with `--answer decline`"))
        .with_hint_prefix(&unknown_answers(given, fields))
}

/// Prompts for yes, no or cancel.
pub(super) fn confirm(
    question: &str,
    terminal: &mut dyn InteractiveTerminal,
) -> std::io::Result<ElicitationReply> {
    loop {
        let line = terminal.read_line(&format!("{question} (y: yes, n: no, c: cancel) "))?;
        match line.as_deref().map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            Some("y" | "yes") => return Ok(ElicitationReply::Accept(None)),
            Some("n" | "no" | ":decline") => return Ok(ElicitationReply::Decline),
            None | Some("c" | "cancel" | ":cancel") => return Ok(ElicitationReply::Cancel),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::interactive_terminal::ScriptedTerminal;
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

    fn form(schema: &str) -> FormElicitRequest {
        let schema = RawJson::parse(schema.to_owned()).unwrap();
        FormElicitRequest { message: "A table?".to_owned(), schema, rest: JsonObject::new() }
    }

    fn given(answers: &[&str]) -> PresetAnswers {
        PresetAnswers::new(&answers.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    fn with_person(schema: &str, answers: &[&str], lines: &[&str]) -> (ElicitationReply, String) {
        let mut terminal = ScriptedTerminal::new(lines);
        let reply = fill_form(&form(schema), "demo", &given(answers), Some(&mut terminal)).unwrap();
        (reply, terminal.seen)
    }

    fn unattended(schema: &str, answers: &[&str]) -> Result<ElicitationReply, String> {
        fill_form(&form(schema), "demo", &given(answers), None).map_err(|failure| failure.to_string())
    }

    fn accepted(json: &str) -> ElicitationReply {
        ElicitationReply::Accept(Some(RawJson::parse(json.to_owned()).unwrap()))
    }

    #[test]
    fn form_prompts_show_defaults_and_menus() {
        let lines = ["Ann", "", "2", "1, music", "yes", "ann@example.com"];
        let (reply, seen) = with_person(BOOKING, &[], &lines);
        let expected = r#"{"name":"Ann","guests":2,"seat":"a","extras":["cake","music"],"vip":true,"email":"ann@example.com"}"#;
        assert_eq!(reply, accepted(expected));
        assert_eq!(
            seen,
            "demo asks: A table?\n\
             (Enter = default in brackets; or type :skip, :decline, :cancel)\n\
             Your name\nname: Ann\n\
             guests (int) [2]: \n\
             \x20 1) w  Window\n  2) a  Aisle\nseat (1-2): 2\n\
             \x20 1) cake\n  2) wine\n  3) music\nextras (one or more, separated by commas) [skip]: 1, music\n\
             vip (yes or no) [false]: yes\n\
             email (email) [skip]: ann@example.com\n"
        );
    }

    #[test]
    fn yes_no_and_choices_are_taken_in_short_and_in_any_case() {
        let schema = r#"{"type":"object","properties":{
            "vip":{"type":"boolean"},"seat":{"type":"string","enum":["Aisle","Window"]}},"required":["vip","seat"]}"#;
        let (reply, _) = with_person(schema, &[], &["y", "aisle"]);
        assert_eq!(reply, accepted(r#"{"vip":true,"seat":"Aisle"}"#));
        let (reply, seen) = with_person(schema, &[], &["maybe", "n", "WINDOW"]);
        assert_eq!(reply, accepted(r#"{"vip":false,"seat":"Window"}"#));
        assert!(seen.contains("  please answer yes or no\n"), "{seen}");
    }

    #[test]
    fn preset_answers_for_no_field_are_named_with_the_field_that_was_meant() {
        for answers in [&["nam=Ann"][..], &["nam=Ann", "seat=w"]] {
            let problem = unattended(BOOKING, answers).unwrap_err();
            assert!(problem.contains("the form has no field `nam`, did you mean `name`?; "), "{problem}");
        }
        // A later form may have the field, so that it is not a mistake by itself.
        assert!(unattended(BOOKING, &["name=Ann", "seat=w", "day=monday"]).is_ok());
    }

    #[test]
    fn invalid_form_input_is_prompted_again() {
        let lines =
            ["", "A", "Ann", "9", "x", ":skip", "3", "w", "1,2,3", "cake", "maybe", "", "nowhere", ""];
        let (reply, seen) = with_person(BOOKING, &[], &lines);
        assert_eq!(reply, accepted(r#"{"name":"Ann","seat":"w","extras":["cake"],"vip":false}"#));
        for part in [
            "`name` is required",
            "`name` is invalid: \"A\" is shorter than 2 characters",
            "`guests` is invalid: 9 is greater than the maximum of 8",
            "`guests` must be a whole number",
            "`seat` must be one of w, a",
            "more than 2 items",
            "please answer yes or no",
            "is not a \"email\"",
        ] {
            assert!(seen.contains(part), "no `{part}` in\n{seen}");
        }
    }

    #[test]
    fn form_can_be_declined_or_cancelled_at_any_field() {
        for (lines, expected) in [
            (&[":decline"][..], ElicitationReply::Decline),
            (&[":cancel"], ElicitationReply::Cancel),
            (&["Ann", "4", ":decline"], ElicitationReply::Decline),
            (&["Ann"], ElicitationReply::Cancel),
            (&[], ElicitationReply::Cancel),
        ] {
            assert_eq!(with_person(BOOKING, &[], lines).0, expected, "{lines:?}");
        }
    }

    #[test]
    fn preset_answers_are_not_prompted_for() {
        let (reply, seen) =
            with_person(BOOKING, &["name=Ann", "seat=aisle", "extras=cake,wine"], &["", "", ":skip"]);
        assert_eq!(
            reply,
            accepted(r#"{"name":"Ann","guests":2,"seat":"a","extras":["cake","wine"],"vip":false}"#)
        );
        assert!(!seen.contains("name:") && !seen.contains("Window"), "{seen}");
        let (declined, seen) = with_person(BOOKING, &["decline"], &[]);
        assert_eq!((declined, seen.as_str()), (ElicitationReply::Decline, ""));
    }

    #[test]
    fn forms_without_a_terminal_need_preset_answers() {
        for (answers, expected) in [
            (
                &[][..],
                Err(
                    "demo requests input, and there is no terminal: A table?; answer in advance with `--answer name=VALUE` and",
                ),
            ),
            (
                &["name=Ann"],
                Err("demo asks for `seat`: A table?; answer in advance with `--answer seat=VALUE`"),
            ),
            (&["accept"], Err("demo asks for `name`")),
            (&["seat=x", "name=Ann"], Err("`--answer seat=…` must be one of w, a")),
            (&["seat=w", "name=A"], Err("`--answer name=…` is invalid")),
            (&["other=1"], Err("there is no terminal")),
            (&["decline"], Ok(ElicitationReply::Decline)),
            (&["cancel"], Ok(ElicitationReply::Cancel)),
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
    fn form_defaults_are_accepted_only_with_answer_accept() {
        let schema = r#"{"type":"object","properties":{"confirm":{"type":"boolean","default":true}}}"#;
        assert!(unattended(schema, &[]).unwrap_err().contains("`--answer confirm=VALUE`"));
        assert!(unattended(schema, &["other=x"]).is_err());
        assert_eq!(unattended(schema, &["accept"]), Ok(accepted(r#"{"confirm":true}"#)));
    }

    #[test]
    fn form_without_fields_is_a_confirmation() {
        let schema = r#"{"type":"object","properties":{}}"#;
        assert_eq!(with_person(schema, &[], &["what?", "y"]).0, accepted("{}"));
        assert_eq!(with_person(schema, &[], &["n"]).0, ElicitationReply::Decline);
        assert_eq!(with_person(schema, &[], &[]).0, ElicitationReply::Cancel);
        assert_eq!(unattended(schema, &["accept"]), Ok(accepted("{}")));
    }

    #[test]
    fn hostile_form_text_is_escaped() {
        let schema = r#"{"type":"object","properties":{"a\u001b[2J":{"title":"\u001b]0;x\u0007","enum":["\u202e"],"description":"\r"}}}"#;
        let mut question = form(schema);
        question.message = "\x1b[31mred".to_owned();
        let mut terminal = ScriptedTerminal::new(&["1"]);
        fill_form(&question, "demo", &PresetAnswers::default(), Some(&mut terminal)).unwrap();
        let shows = |c: char| c == '\n' || !crate::terminal::is_unsafe_char(c);
        assert!(terminal.seen.chars().all(shows), "{:?}", terminal.seen);
    }
}
