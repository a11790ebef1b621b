use std::ffi::OsString;
use std::fmt;

use clap::Arg;

/// The spelling of an option or a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OptionSpelling {
    Long(String),
    Short(char),
}

impl OptionSpelling {
    /// Returns the spelling of an argument; `None` for a positional.
    pub(super) fn from_arg(arg: &Arg) -> Option<Self> {
        let long = arg.get_long().map(|long| Self::Long(long.to_owned()));
        long.or_else(|| arg.get_short().map(Self::Short))
    }

    /// Joins a value to the option in one word, so that it cannot be parsed as another option.
    pub(super) fn with_value(&self, value: &str) -> OsString {
        format!("{self}={value}").into()
    }
}

impl fmt::Display for OptionSpelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long(long) => write!(f, "--{long}"),
            Self::Short(short) => write!(f, "-{short}"),
        }
    }
}
