use clap::Args;
use serde_json::{Map, Value};
use trunkline_client::CompletionRequest;

use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, call_failure, print_stdout, target_help,
    with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::one_line;
use crate::terminal::escape_line;

/// Complete an argument of a prompt or a resource template
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline complete [OPTIONS] TARGET PROMPT|TEMPLATE NAME=START\n       trunkline complete [OPTIONS] PROMPT|TEMPLATE NAME=START -- COMMAND",
    after_help = target_help("The first NAME=START is completed; further NAME=VALUE pairs are context.\n\nExamples:\n  trunkline complete https://example.com/mcp review language=py\n  trunkline complete notes 'note://{owner}/{id}' id=2 owner=ann")
)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Completes an argument.
///
/// # Errors
/// The server cannot be reached, or completes nothing.
pub(crate) fn run(args: &CompleteArgs) -> Result<(), CliFailure> {
    let mut words = args.target.parse_for(&args.connect)?;
    let reference = words.next_word("PROMPT|TEMPLATE")?;
    let completion = completion(&reference, &words.rest)?;
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| {
        complete(completion, session).await
    })
}

async fn complete(completion: CompletionRequest, session: &CommandSession) -> Result<(), CliFailure> {
    let result = session.client.complete(completion).await.map_err(call_failure)?;
    if session.args.json {
        return print_stdout(&format!("{}\n", one_line(result.raw())));
    }
    if result.values.is_empty() {
        session.screen.print("no completions\n");
    }
    if result.has_more == Some(true) {
        let total = result.total.map(|total| format!(" of {total}")).unwrap_or_default();
        session.screen.print(&format!("showing the first {}{total}\n", result.values.len()));
    }
    print_stdout(&result.values.iter().map(|value| format!("{}\n", escape_line(value))).collect::<String>())
}

/// Reads what to complete: a template has a scheme, and anything else is the name of a prompt.
fn completion(reference: &str, words: &[String]) -> Result<CompletionRequest, CliFailure> {
    let mut pairs = Vec::new();
    for word in words {
        let pair = word.split_once('=').ok_or_else(|| {
            CliFailure::new(ExitReason::Usage, format!("invalid argument `{word}`")).hint("use NAME=START")
        })?;
        pairs.push(pair);
    }
    let Some(((name, start), known)) = pairs.split_first() else {
        let failure = CliFailure::new(ExitReason::Usage, "missing argument to complete");
        return Err(failure.hint("use NAME=START; START may be empty"));
    };
    let completion = if reference.contains(':') {
        CompletionRequest::template(reference, *name, *start)
    } else {
        CompletionRequest::prompt(reference, *name, *start)
    };
    if known.is_empty() {
        return Ok(completion);
    }
    let known: Map<String, Value> =
        known.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    Ok(completion.context(Value::Object(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_needs_name_and_prefix() {
        let read = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            completion("review", &words).map(drop).map_err(|failure| failure.to_string())
        };
        assert!(read(&["language=py"]).is_ok());
        assert!(read(&["language=", "framework=flask"]).is_ok());
        assert!(read(&[]).unwrap_err().contains("NAME=START"));
        assert!(read(&["language"]).unwrap_err().contains("invalid argument `language`"));
    }
}
