//! What servers ask, and who answers: what was given in advance, or a person at the terminal.
//!
//! # Invariants
//!
//! - A form is accepted with its defaults only if the user requested that:
//!   `defaults_alone_are_accepted_only_when_somebody_says_so`.
//! - URLs are never opened: `pages_are_agreed_to_and_never_opened`.
//! - A preset answer that is missing or invalid is reported, and the call ends:
//!   `an_answer_that_is_missing_or_does_not_fit_is_named`.

mod field;
mod form;
mod interactive_terminal;
mod preset_answers;
mod sampling;
mod url_elicitation;

pub(crate) use self::form::{ElicitationReply, fill_form};
pub(crate) use self::interactive_terminal::InteractiveTerminal;
pub(crate) use self::preset_answers::{PresetAnswer, PresetAnswers};
pub(crate) use self::sampling::prompt_for_sample;
pub(crate) use self::url_elicitation::confirm_url;
