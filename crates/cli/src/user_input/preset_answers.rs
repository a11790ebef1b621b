use std::str::FromStr;

use trunkline_protocol::RawJson;
use trunkline_protocol::model::ElicitAction;

/// One answer that was given in advance, by `--answer`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PresetAnswer {
    /// The action for every request.
    Action(ElicitAction),
    /// What to fill into a field, as text or as JSON.
    Field { name: String, value: PresetValue },
}

/// A value that was given in advance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PresetValue {
    /// Text, converted to the field's type.
    Text(String),
    /// Literal JSON.
    Json(RawJson),
}

impl FromStr for PresetAnswer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(action) = ElicitAction::parse(text) {
            return Ok(Self::Action(action));
        }
        let Some((name, value)) = text.split_once('=') else {
            return Err("expected NAME=VALUE, NAME:=JSON, accept, decline or cancel".to_owned());
        };
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => {
                let json = RawJson::parse(value.to_owned())
                    .map_err(|error| format!("`{value}` is not valid JSON: {error}"))?;
                (name, PresetValue::Json(json))
            }
            None => (name, PresetValue::Text(value.to_owned())),
        };
        if name.is_empty() {
            return Err("missing field name".to_owned());
        }
        Ok(Self::Field { name: name.to_owned(), value })
    }
}

/// All answers that were given in advance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PresetAnswers {
    action: Option<ElicitAction>,
    fields: Vec<(String, PresetValue)>,
}

impl PresetAnswers {
    /// Collects answers; a later answer overrides an earlier one.
    pub(crate) fn new(answers: &[PresetAnswer]) -> Self {
        let mut given = Self::default();
        for answer in answers {
            match answer {
                PresetAnswer::Action(action) => given.action = Some(*action),
                PresetAnswer::Field { name, value } => {
                    given.fields.retain(|(known, _)| known != name);
                    given.fields.push((name.clone(), value.clone()));
                }
            }
        }
        given
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.action.is_none() && self.fields.is_empty()
    }

    pub(crate) fn action(&self) -> Option<ElicitAction> {
        self.action
    }

    /// Returns the names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&PresetValue> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_replies_are_fields_or_actions() {
        for (text, good) in [
            ("name=Ann", true),
            ("name=", true),
            ("n:=[1]", true),
            ("decline", true),
            ("cancel", true),
            ("accept", true),
            ("n:=[1", false),
            ("=x", false),
            ("name", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<PresetAnswer>().is_ok(), good, "{text}");
        }
    }

    #[test]
    fn later_of_two_answers_wins() {
        let answers: Vec<PresetAnswer> =
            ["a=1", "a=2", "accept", "decline"].map(|text| text.parse().unwrap()).into();
        let given = PresetAnswers::new(&answers);
        assert_eq!(given.field("a"), Some(&PresetValue::Text("2".to_owned())));
        assert_eq!(given.action(), Some(ElicitAction::Decline));
        assert!(PresetAnswers::default().is_empty() && !given.is_empty());
    }
}
