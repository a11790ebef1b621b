//! Input requests of servers: answered in advance, or by the user at the terminal.
//!
//! # Invariants
//!
//! - A form is accepted with its defaults only if the user requested that:
//!   `form_defaults_are_accepted_only_with_answer_accept`.
//! - URLs are never opened: `url_elicitation_is_accepted_by_preset_answer_and_never_opened`.
//! - A preset answer that is missing or invalid is reported, and the call ends:
//!   `missing_and_invalid_preset_answers_are_reported_with_the_field`.

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
