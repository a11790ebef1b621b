//! Input requests of servers: answered in advance, or by the user at the terminal.

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
