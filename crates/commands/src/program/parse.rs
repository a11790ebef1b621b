use std::ffi::OsString;
use std::io::Write as _;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Parser};

use super::Program;
use super::flags::{ServeFlags, ServeRequest};
use super::serve;

/// Parses the command line as [`Parser::parse`] does, or serves the program's commands as tools if that is what it asks for.
///
/// This is the one line that makes a server of a program: it adds `--serve[=PORT]`, `--serve-stdio` and a few flags beside
/// them. Without them it is [`Parser::parse`]; with them it serves until it is told to end, and then ends the process.
///
/// ```no_run
/// #[derive(clap::Parser)]
/// enum Cli {
///     /// Says hello.
///     Hello { name: String },
/// }
///
/// let Cli::Hello { name } = trunkline_commands::parse();
/// println!("hello {name}");
/// ```
pub fn parse<C: Parser>() -> C {
    Program::new(C::command()).parse()
}

/// Reads the command line as [`clap::Command::get_matches`] does, or serves the commands as [`parse`] does.
pub fn matches(command: clap::Command) -> ArgMatches {
    Program::new(command).matches()
}

impl Program {
    /// Parses the command line, or serves as [`parse`] does, with what was set here.
    pub fn parse<C: FromArgMatches>(self) -> C {
        let mut command = self.command.clone();
        let mut matches = self.matches();
        C::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }

    /// Reads the command line, or serves as [`parse`] does, with what was set here.
    pub fn matches(self) -> ArgMatches {
        let words: Vec<OsString> = std::env::args_os().collect();
        let flags = ServeFlags::new(&self.flag);
        if let Some(serving) = flags.parse(&self, &words) {
            serve_and_exit(&self, serving);
        }
        let mut command = flags.add_to(self.command.clone());
        let matches = command.try_get_matches_from_mut(words).unwrap_or_else(|error| error.exit());
        if flags.are_given(&matches) {
            let words = format!("`--{}` must be used without a command\n", self.flag);
            command.error(ErrorKind::ArgumentConflict, words).exit();
        }
        matches
    }
}

/// Serves, and ends the process as the program itself would.
#[expect(clippy::exit, reason = "clap's own `parse` ends the process too, and there is nothing to return to")]
fn serve_and_exit(program: &Program, serving: ServeRequest) -> ! {
    let code = match serve::serve(program, serving) {
        Ok(()) => 0,
        Err(error) => {
            // Whoever started us may have closed standard error.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            1
        }
    };
    std::process::exit(code)
}
