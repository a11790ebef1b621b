use clap::Args;
use serde_json::{Map, Value};
use trunkline_client::Completion;

use crate::connect::{AskArgs, ConnectArgs, Session, TargetArgs, failed, help, print, run as attend};
use crate::exit::{Exit, Failure};
use crate::render::one_line;
use crate::terminal::visible_line;

/// Complete an argument of a prompt or of a template
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline complete [OPTIONS] TARGET PROMPT|TEMPLATE NAME=START\n       trunkline complete [OPTIONS] PROMPT|TEMPLATE NAME=START -- COMMAND",
    after_help = help("The first NAME=START is what is completed; further ones are known already.\n\nExamples:\n  trunkline complete https://example.com/mcp review language=py\n  trunkline complete notes 'note://{owner}/{id}' id=2 owner=ann")
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
pub(crate) fn run(args: &CompleteArgs) -> Result<(), Failure> {
    let mut words = args.target.words()?;
    let reference = words.take("prompt or template")?;
    let completion = completion(&reference, &words.rest)?;
    attend(&args.connect, &AskArgs::default(), words.target, async |session| {
        complete(completion, session).await
    })
}

async fn complete(completion: Completion, session: &Session) -> Result<(), Failure> {
    let result = session.client.complete(completion).await.map_err(failed)?;
    if session.args.json {
        return print(&format!("{}\n", one_line(result.raw())));
    }
    if result.values.is_empty() {
        session.screen.say("the server knows nothing that begins like this\n");
    }
    if result.has_more == Some(true) {
        let total = result.total.map(|total| format!(" of {total}")).unwrap_or_default();
        session.screen.say(&format!("only the first {}{total}\n", result.values.len()));
    }
    print(&result.values.iter().map(|value| format!("{}\n", visible_line(value))).collect::<String>())
}

/// Reads what to complete: a template has a scheme, and anything else is the name of a prompt.
fn completion(reference: &str, words: &[String]) -> Result<Completion, Failure> {
    let mut pairs = Vec::new();
    for word in words {
        let pair = word.split_once('=').ok_or_else(|| {
            Failure::new(Exit::Usage, format!("`{word}` is not an argument")).hint("write NAME=START")
        })?;
        pairs.push(pair);
    }
    let Some(((name, start), known)) = pairs.split_first() else {
        let failure = Failure::new(Exit::Usage, "there is no argument to complete");
        return Err(failure.hint("write NAME=START; the start may be empty"));
    };
    let completion = if reference.contains(':') {
        Completion::template(reference, *name, *start)
    } else {
        Completion::prompt(reference, *name, *start)
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
    fn what_to_complete_has_a_name_and_a_start() {
        let read = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            completion("review", &words).map(drop).map_err(|failure| failure.to_string())
        };
        assert!(read(&["language=py"]).is_ok());
        assert!(read(&["language=", "framework=flask"]).is_ok());
        assert!(read(&[]).unwrap_err().contains("NAME=START"));
        assert!(read(&["language"]).unwrap_err().contains("`language` is not an argument"));
    }
}
