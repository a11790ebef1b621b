use std::ffi::OsString;

use clap::Args;
use trunkline_client::transport::{Command, Target, TargetError};

use super::options::ConnectArgs;
use super::running_hub::running_hub;
use crate::admin::AdminClient;
use crate::exit::{CliFailure, ExitReason};

/// The words after the name of a command, see its usage.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TargetArgs {
    #[arg(hide = true, value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    #[arg(hide = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl TargetArgs {
    /// Splits the target from the rest.
    ///
    /// # Errors
    /// The target is missing or invalid.
    pub(crate) fn parse(&self) -> Result<CommandWords, CliFailure> {
        CommandWords::new(&self.words, &self.command)
    }

    /// Splits the target from the rest; with `--hub` it is the running hub.
    ///
    /// # Errors
    /// The target is missing or invalid, or no hub is running.
    pub(crate) fn parse_for(&self, args: &ConnectArgs) -> Result<CommandWords, CliFailure> {
        if !args.hub && self.words.is_empty() && self.command.is_empty() {
            return Err(CliFailure::new(ExitReason::Usage, "missing argument: TARGET")
                .hint(format!("{TARGET_FORMS}; `--hub` uses the hub running here")));
        }
        if !args.hub {
            return self.parse();
        }
        if !self.command.is_empty() {
            let message = "`--hub` and a command after `--` are two targets";
            return Err(CliFailure::new(ExitReason::Usage, message).hint("remove one of them"));
        }
        let (target, hub) = running_hub(args)?;
        Ok(CommandWords { target, rest: self.words.clone(), hub: Some(hub) })
    }

    /// Splits the target from the rest, of a command that needs no further words: without any, the target is the running
    /// hub.
    ///
    /// # Errors
    /// As [`TargetArgs::parse_for`].
    pub(crate) fn parse_or_hub(&self, args: &ConnectArgs) -> Result<CommandWords, CliFailure> {
        let is_empty = self.words.is_empty() && self.command.is_empty();
        self.parse_for(&ConnectArgs { hub: args.hub || is_empty, ..args.clone() })
    }
}

/// What was typed after the name of a command: a target, and what belongs to the command itself.
#[derive(Debug)]
pub(crate) struct CommandWords {
    pub(crate) target: Target,
    pub(crate) rest: Vec<String>,
    /// The hub that is the target, if it runs from a file of this machine.
    pub(crate) hub: Option<AdminClient>,
}

impl CommandWords {
    /// The target is the command after `--`, or else the first word.
    fn new(words: &[String], command: &[OsString]) -> Result<Self, CliFailure> {
        if let [program, arguments @ ..] = command {
            let target = Command::new(program).args(arguments.iter().cloned()).into();
            return Ok(Self { target, rest: words.to_vec(), hub: None });
        }
        let [target, rest @ ..] = words else {
            return Err(CliFailure::new(ExitReason::Usage, "missing argument: TARGET").hint(TARGET_FORMS));
        };
        if let Some(url) = with_scheme(target) {
            return Err(CliFailure::new(ExitReason::Usage, format!("`{target}` has no scheme"))
                .hint(format!("did you mean `{url}`?")));
        }
        let target = target.parse::<Target>().map_err(|error| target_failure(target, &error))?;
        Ok(Self { target, rest: rest.to_vec(), hub: None })
    }

    /// Takes the next word of the command itself.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn next_word(&mut self, what: &str) -> Result<String, CliFailure> {
        if self.rest.is_empty() {
            let hint = match self.hub {
                None => format!("it follows TARGET: {TARGET_FORMS}; `--hub` uses the hub running here"),
                Some(_) => "it follows `--hub`".to_owned(),
            };
            return Err(CliFailure::new(ExitReason::Usage, format!("missing argument: {what}")).hint(hint));
        }
        Ok(self.rest.remove(0))
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// A word has no meaning.
    pub(crate) fn expect_end(&self) -> Result<(), CliFailure> {
        match self.rest.first() {
            None => Ok(()),
            Some(word) => Err(CliFailure::new(ExitReason::Usage, format!("unexpected argument `{word}`"))),
        }
    }
}

/// Returns the URL that was probably meant by an address without its scheme.
pub(crate) fn with_scheme(word: &str) -> Option<String> {
    is_host_and_port(word).then(|| format!("http://{}", with_path(word)))
}

/// Reports whether a word is an address without its scheme, such as `localhost:7411` or `127.0.0.1:80/mcp`.
fn is_host_and_port(word: &str) -> bool {
    let Some((host, rest)) = word.rsplit_once(':') else { return false };
    let port = rest.split('/').next().unwrap_or_default();
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-[]:".contains(c);
    !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Adds the usual path to an address without one.
pub(crate) fn with_path(address: &str) -> String {
    if address.contains('/') { address.to_owned() } else { format!("{address}/mcp") }
}

/// Writes a target as it is typed behind the name of a command.
pub(super) fn target_words(target: &Target) -> String {
    match target {
        Target::Command(command) => format!("-- {command}"),
        other => other.to_string(),
    }
}

/// Returns the failure for an invalid target.
pub(super) fn target_failure(target: &str, error: &TargetError) -> CliFailure {
    CliFailure::new(ExitReason::Usage, format!("`{target}`: {error}")).hint(TARGET_FORMS)
}

/// What a target can be, for hints.
pub(crate) const TARGET_FORMS: &str =
    "a URL, a configured name, a command line in quotes, or a command after --";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str], command: &[&str]) -> Result<(String, Vec<String>), String> {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        let command: Vec<_> = command.iter().map(OsString::from).collect();
        let read = CommandWords::new(&words, &command).map_err(|failure| failure.to_string())?;
        Ok((read.target.to_string(), read.rest))
    }

    #[test]
    fn target_is_the_first_word_or_the_command_after_dashes() {
        for (given, command, target, rest) in [
            (&["http://h/mcp", "add", "a=1"][..], &[][..], "http://h/mcp", &["add", "a=1"][..]),
            (&["add", "a=1"], &["npx", "-y", "it's"], r"npx -y 'it'\''s'", &["add", "a=1"]),
            (&["npx -y server", "add"], &[], "npx -y server", &["add"]),
            (&["github"], &[], "github", &[]),
        ] {
            let expected: Vec<_> = rest.iter().map(ToString::to_string).collect();
            assert_eq!(words(given, command), Ok((target.to_owned(), expected)), "{given:?}");
        }
    }

    #[test]
    fn address_without_scheme_is_reported_with_one() {
        for (given, suggested) in [
            ("localhost:7411", "http://localhost:7411/mcp"),
            ("127.0.0.1:80/sse", "http://127.0.0.1:80/sse"),
            ("[::1]:7411", "http://[::1]:7411/mcp"),
        ] {
            let error = words(&[given], &[]).unwrap_err();
            assert!(error.contains(&format!("did you mean `{suggested}`?")), "{error}");
        }
        for given in ["C:/server", "npx -y a:1", "a:b", "server:0", ":80"] {
            assert!(!words(&[given], &[]).is_err_and(|error| error.contains("scheme")), "{given}");
        }
    }

    #[test]
    fn invalid_targets_are_reported_with_the_accepted_forms() {
        for (given, part) in
            [(&[][..], "missing argument: TARGET"), (&["ftp://h"], "ftp://h"), (&["a 'b"], "not closed")]
        {
            let error = words(given, &[]).unwrap_err();
            assert!(error.contains(part) && error.contains("a configured name"), "{error}");
        }
    }
}
