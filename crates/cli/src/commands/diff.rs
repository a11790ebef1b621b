use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::connect::print_stdout;
use crate::exit::{CliFailure, ExitReason};
use crate::replay::{IgnoredPaths, Recording, compare_recordings};

/// Compare two recordings call by call
#[derive(Debug, Args)]
#[command(after_help = "Requests with the same method and parameters are compared in their order. Exits\n\
with 1 if an answer differs or is only in one file. See `docs/record.md`.\n\n\
Example:\n  trunkline diff before.jsonl after.jsonl --ignore structuredContent.time")]
pub(crate) struct DiffArgs {
    /// First record file
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    before: PathBuf,
    /// Second record file
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    after: PathBuf,
    /// Compare what one server received and answered, instead
    /// of what clients saw of the hub
    #[arg(verbatim_doc_comment, long, value_name = "NAME")]
    server: Option<String>,
    /// Leave out a member of results, such as content.*.text;
    /// repeatable
    #[arg(verbatim_doc_comment, long, value_name = "PATH")]
    ignore: Vec<String>,
    /// Print the result as JSON on one line
    #[arg(long)]
    json: bool,
}

/// Compares two record files.
///
/// # Errors
/// A file is no record file, or the recordings differ.
pub(crate) fn run(args: &DiffArgs) -> Result<(), CliFailure> {
    compare(args).map_err(|failure| failure.with_json(args.json))
}

fn compare(args: &DiffArgs) -> Result<(), CliFailure> {
    let [before, after] = [Recording::read(&args.before)?, Recording::read(&args.after)?].map(|recording| {
        let wire = recording.wire(args.server.as_deref())?;
        Ok::<_, CliFailure>(recording.exchanges(&wire))
    });
    let report = compare_recordings(&before?, &after?, &IgnoredPaths::new(&args.ignore));
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let text = match args.json {
        true => format!("{}\n", report.to_json()),
        false => report.describe([&names[0], &names[1]]),
    };
    print_stdout(&text)?;
    match report.has_differences() {
        true => Err(CliFailure::new(ExitReason::Failed, "the recordings differ")),
        false => Ok(()),
    }
}
