use std::ffi::OsString;
use std::path::PathBuf;

use trunkline_client::protocol::{Era, Revision};
use trunkline_client::transport::{Command, Target};

/// What is to be driven, and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The name of the server, which decides what is checked.
    pub(crate) server: String,
    pub(crate) mode: Mode,
    pub(crate) at: At,
    /// The command `trunkline`, if it is what is held against the server.
    pub(crate) binary: Option<PathBuf>,
    /// A folder for the files of a check; the server may have its path as an argument.
    pub(crate) scratch: PathBuf,
}

/// The revision to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Whatever is found.
    Auto,
    /// This one alone.
    Pinned(Revision),
}

/// Where the server is.
#[derive(Clone, Debug)]
pub(crate) enum At {
    Url(String),
    Command(Vec<OsString>),
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub(crate) fn read(mut words: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let (mut server, mut mode, mut url, mut binary, mut scratch) = (None, None, None, None, None);
        let mut command = Vec::new();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{} has no value", word.display()));
            match word.to_str() {
                Some("--server") => server = Some(text(value()?)?),
                Some("--mode") => mode = Some(Mode::read(&text(value()?)?)?),
                Some("--url") => url = Some(text(value()?)?),
                Some("--binary") => binary = Some(value()?.into()),
                Some("--scratch") => scratch = Some(value()?.into()),
                Some("--") => command = words.by_ref().collect(),
                _ => return Err(format!("nothing is expected at `{}`", word.display())),
            }
        }
        let at = match (url, command.is_empty()) {
            (Some(url), true) => At::Url(url),
            (None, false) => At::Command(command),
            _ => return Err("give either --url URL or -- COMMAND".to_owned()),
        };
        Ok(Self {
            server: server.ok_or("--server is missing")?,
            mode: mode.ok_or("--mode is missing")?,
            scratch: scratch.ok_or("--scratch is missing")?,
            at,
            binary,
        })
    }

    pub(crate) fn target(&self) -> Target {
        match &self.at {
            At::Url(url) => url.into(),
            At::Command(words) => {
                let mut words = words.iter().cloned();
                Command::new(words.next().unwrap_or_default()).args(words).into()
            }
        }
    }
}

impl Mode {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "legacy" => Ok(Self::Pinned(Revision::NEWEST_LEGACY)),
            "modern" => Ok(Self::Pinned(Revision::NEWEST)),
            _ => Err(format!("there is no mode `{text}`")),
        }
    }

    /// Returns the revision that has to be found with a server of some eras.
    pub(crate) fn expects(self, eras: &[Era]) -> Revision {
        match self {
            Self::Pinned(revision) => revision,
            Self::Auto if eras.contains(&Era::Modern) => Revision::NEWEST,
            Self::Auto => Revision::NEWEST_LEGACY,
        }
    }

    pub(crate) fn pin(self) -> Option<Revision> {
        match self {
            Self::Auto => None,
            Self::Pinned(revision) => Some(revision),
        }
    }
}

fn text(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("`{}` is not text", word.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn server_is_either_an_address_or_a_command() {
        let begin = "--server own --mode auto --scratch /s";
        for (rest, good) in [
            ("--url http://h/mcp", true),
            ("-- node server.mjs --http", true),
            ("", false),
            ("--url http://h/mcp -- node", false),
            ("--urls x", false),
            ("--url", false),
        ] {
            assert_eq!(read(&format!("{begin} {rest}")).is_ok(), good, "{rest}");
        }
        assert!(read("--mode auto --scratch /s -- x").is_err());
        assert!(read("--server own --mode old --scratch /s -- x").is_err());
    }

    #[test]
    fn mode_determines_the_expected_revision() {
        let both = [Era::Legacy, Era::Modern];
        for (mode, eras, expected) in [
            ("auto", &both[..], Revision::NEWEST),
            ("auto", &[Era::Legacy], Revision::NEWEST_LEGACY),
            ("legacy", &both, Revision::NEWEST_LEGACY),
            ("modern", &both, Revision::NEWEST),
        ] {
            assert_eq!(Mode::read(mode).unwrap().expects(eras), expected, "{mode}");
        }
    }
}
