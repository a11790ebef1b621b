use std::ffi::OsString;
use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Parser};

use super::Program;
use super::flags::{ServeFlags, ServeRequest};
use super::serve;

/// Parses the command line like [`Parser::parse`], or serves the program's commands as tools if it has a serve
/// flag.
///
/// This is the one line that makes a server of a program: it adds `--serve[=PORT]`, `--serve-stdio` and a few more
/// flags. Without them it is [`Parser::parse`]; with them it serves until it is shut down, and then exits.
///
/// ```no_run
/// #[derive(clap::Parser)]
/// enum Cli {
///     /// Prints a greeting.
///     Hello { name: String },
/// }
///
/// let Cli::Hello { name } = trunkline_commands::parse();
/// println!("hello {name}");
/// ```
pub fn parse<C: Parser>() -> C {
    Program::new(C::command()).parse()
}

/// Parses the command line like [`clap::Command::get_matches`], or serves the commands like [`parse`].
pub fn matches(command: clap::Command) -> ArgMatches {
    Program::new(command).matches()
}

impl Program {
    /// Parses the command line, or serves like [`parse`], with the options of this program.
    pub fn parse<C: FromArgMatches>(self) -> C {
        let mut command = self.command.clone();
        let mut matches = self.matches();
        C::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    /// Parses the command line to matches, or serves like [`parse`], with the options of this program.
    pub fn matches(self) -> ArgMatches {
        let words: Vec<OsString> = std::env::args_os().collect();
        let flags = ServeFlags::new(&self.flag);
        if let Some(request) = flags.parse(&self, &words) {
            serve_and_exit(&self, request);
        }
        let words = flags.join_port(&self, &words);
        let mut command = flags.add_to(self.command.clone());
        let matches = command.try_get_matches_from_mut(words).unwrap_or_else(|error| error.exit());
        if flags.are_given(&matches) {
            let words = format!("`--{}` must be used without a command\n", self.flag);
            command.error(ErrorKind::ArgumentConflict, words).exit();
        }
        matches
    }
}

/// Serves, and exits with a code.
#[expect(clippy::exit, reason = "clap's own `parse` ends the process too, and there is nothing to return to")]
fn serve_and_exit(program: &Program, request: ServeRequest) -> ! {
    let code = match serve::serve(program, request) {
        Ok(()) => 0,
        Err(error) => {
            // The parent process may have closed standard error.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            1
        }
    };
    std::process::exit(code)
}
