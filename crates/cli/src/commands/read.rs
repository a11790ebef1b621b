use std::borrow::Cow;
use std::sync::Arc;

use clap::Args;
use trunkline_protocol::template::UriTemplate;

use crate::connect::{
    AnswerArgs, CommandSession, ConnectArgs, TargetArgs, call_failure, print_stdout, target_help,
    with_session,
};
use crate::exit::{CliFailure, ExitReason};
use crate::render::{SaveSelection, SaveTarget, one_line, pieces_of_contents};
use crate::schema::did_you_mean;

use super::call::{show_pieces, show_progress};

/// Read a resource
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline read [OPTIONS] TARGET URI [NAME=VALUE]...\n       trunkline read [OPTIONS] URI [NAME=VALUE]... -- COMMAND [ARG]...",
    after_help = target_help("Examples:\n  trunkline read http://127.0.0.1:7411/mcp time://now\n  trunkline read notes 'note://{id}' id=7\n  trunkline read notes note://7/photo --out photo.jpg")
)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Save the content unchanged to a file, to a folder
    /// (ends in /), or with - to stdout
    #[arg(verbatim_doc_comment, long, value_name = "PLACE", value_parser = SaveTarget::parse)]
    out: Option<SaveTarget>,
    #[command(flatten)]
    ask: AnswerArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Reads a resource.
///
/// # Errors
/// The server cannot be reached, or does not have the resource.
pub(crate) fn run(args: &ReadArgs) -> Result<(), CliFailure> {
    let mut words = args.target.parse_for(&args.connect)?;
    let uri = words.next_word("URI")?;
    let uri = expand(&uri, &words.rest)?;
    with_session(&args.connect, &args.ask, words.target, async |session| read(args, &uri, session).await)
}

async fn read(args: &ReadArgs, uri: &str, session: &CommandSession) -> Result<(), CliFailure> {
    let screen = Arc::clone(&session.screen);
    let result = session.client.read(uri).progress(move |progress| show_progress(&screen, progress)).await;
    session.screen.clear_bar();
    let result = result.map_err(call_failure)?;
    if session.args.json {
        return print_stdout(&format!("{}\n", one_line(result.raw())));
    }
    show_pieces(pieces_of_contents(&result.contents), args.out.as_ref(), SaveSelection::All, uri, session)
}

/// Fills a template in; a URI without braces is one without variables.
fn expand(uri: &str, words: &[String]) -> Result<String, CliFailure> {
    let usage = |what: String| CliFailure::new(ExitReason::Usage, what);
    if !uri.contains('{') && words.is_empty() {
        return Ok(uri.to_owned());
    }
    let template = UriTemplate::parse(uri).map_err(|error| usage(error.to_string()))?;
    let names = template.variables();
    let mut values = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            usage(format!("invalid variable `{word}`")).hint("use NAME=VALUE for a variable of the template")
        })?;
        if !names.contains(&name) {
            let hint = did_you_mean(name, names.iter().copied());
            let failure = usage(format!("the template has no variable `{name}`"));
            return Err(
                failure.hint(hint.unwrap_or_else(|| format!("its variables are {}", names.join(", "))))
            );
        }
        values.push((name, value));
    }
    let value_of =
        |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| Cow::Borrowed(*value));
    Ok(template.expand(value_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(uri: &str, words: &[&str]) -> Result<String, String> {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        expand(uri, &words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn templates_are_filled_in_with_typed_values() {
        for (uri, words, expected) in [
            ("demo://a", &[][..], "demo://a"),
            ("demo://{id}/x", &["id=a b"], "demo://a%20b/x"),
            ("demo://{id}{?q}", &["id=7"], "demo://7"),
        ] {
            assert_eq!(expanded(uri, words).as_deref(), Ok(expected), "{uri}");
        }
        for (uri, words, part) in [
            ("demo://{idd}", &["id=7"][..], "did you mean `idd`?"),
            ("demo://{id}", &["x"], "invalid variable `x`"),
            ("demo://{id", &[], "never closed"),
        ] {
            let error = expanded(uri, words).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
