use std::io;

use trunkline_protocol::RawJson;
use trunkline_protocol::model::{CreateMessageRequest, PromptMessage};

use super::interactive_terminal::InteractiveTerminal;
use crate::render::{one_line, pieces_of_messages};
use crate::terminal::{TextStyle, escape_text};

/// Prompts the user for the reply to a sampling request; nothing means that the user declined.
pub(crate) fn prompt_for_sample(
    question: &CreateMessageRequest,
    server: &str,
    columns: usize,
    terminal: &mut dyn InteractiveTerminal,
) -> io::Result<Option<String>> {
    terminal.print(&format!("{server} requests a model completion (sampling); you write it:\n"));
    if let Some(system) = question.params.text("systemPrompt") {
        terminal.print(&format!("system:\n{}\n", escape_text(&system)));
    }
    for message in question.params.get("messages").and_then(|raw| raw.elements().ok()).unwrap_or_default() {
        terminal.print(&show_message(&message, columns));
    }
    terminal.print("(end with a line containing only a dot; :decline to refuse)\n");
    let mut answer = String::new();
    while let Some(line) = terminal.read_line("> ")? {
        match line.trim_end() {
            "." => break,
            ":decline" | ":cancel" => return Ok(None),
            line => {
                answer.push_str(line);
                answer.push('\n');
            }
        }
    }
    let answer = answer.trim_end();
    Ok((!answer.is_empty()).then(|| answer.to_owned()))
}

/// Shows a message; one with several blocks, or of a shape that we do not know, as JSON.
fn show_message(message: &RawJson, columns: usize) -> String {
    match PromptMessage::read(message) {
        Ok(message) => {
            pieces_of_messages(&[message]).iter().map(|piece| piece.show(columns, TextStyle::PLAIN)).collect()
        }
        Err(_) => format!("{}\n", one_line(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::interactive_terminal::ScriptedTerminal;
    use super::*;

    fn play(lines: &[&str]) -> (Option<String>, String) {
        let question = CreateMessageRequest::new([PromptMessage::user("Capital of France?\x1b[2J")], 10)
            .system("Be brief.");
        let mut terminal = ScriptedTerminal::new(lines);
        (prompt_for_sample(&question, "demo", 80, &mut terminal).unwrap(), terminal.seen)
    }

    #[test]
    fn sampling_shows_the_conversation_and_reads_until_a_dot() {
        let (answer, seen) = play(&["Paris,", "I think.", "."]);
        assert_eq!(answer.as_deref(), Some("Paris,\nI think."));
        assert!(seen.contains("system:\nBe brief.\nuser:\nCapital of France?\\x1b[2J\n"), "{seen}");
    }

    #[test]
    fn sampling_prompt_without_an_answer_returns_none() {
        for lines in [&[":decline"][..], &["."], &[]] {
            assert_eq!(play(lines).0, None, "{lines:?}");
        }
    }
}
