//! Whether a figure keeps what was promised.

use std::fmt;

/// The outcome of holding a figure against its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing was promised.
    NoTarget,
    /// Something was promised of a server that was not there.
    NotMeasured,
    Met,
    Missed,
}

impl Verdict {
    /// Judges a figure of which less is better.
    pub(crate) fn at_most(figure: f64, target: f64) -> Self {
        if figure <= target { Self::Met } else { Self::Missed }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTarget => "",
            Self::NotMeasured => "not measured",
            Self::Met => "met",
            Self::Missed => "MISSED",
        })
    }
}
