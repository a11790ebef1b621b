use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessExit {
    /// It returned this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The exit status is lost: other code of this process ignores `SIGCHLD`, or waits for every child itself.
    Unknown,
}

impl ProcessExit {
    /// Reports whether the process returned 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl From<std::process::ExitStatus> for ProcessExit {
    fn from(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt as _;
            if let Some(signal) = status.signal() {
                return Self::Signal(signal);
            }
        }
        status.code().map_or(Self::Unknown, Self::Code)
    }
}

impl fmt::Display for ProcessExit {
    /// Writes a predicate, such as `exited with code 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "was ended by {name}"),
                None => write!(f, "was ended by signal {number}"),
            },
            Self::Unknown => f.write_str("ended, with an unknown status"),
        }
    }
}

#[cfg(unix)]
fn signal_name(number: i32) -> Option<&'static str> {
    use rustix::process::Signal;

    const NAMES: [(Signal, &str); 13] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
    ];
    let found = NAMES.into_iter().find(|(signal, _)| signal.as_raw() == number);
    found.map(|(_, name)| name)
}

#[cfg(not(unix))]
fn signal_name(_: i32) -> Option<&'static str> {
    None
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitCause {
    /// The process exited by itself.
    Voluntary,
    /// The process exceeded its timeout, and was terminated.
    TimedOut,
    /// The server closed its standard output, so that it could not respond any more, and was terminated.
    ClosedOutput,
    /// The server closed its standard input, so that it could not receive requests any more, and was terminated.
    ClosedInput,
    /// The caller requested the exit.
    Requested,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_exit_displays_as_a_predicate() {
        let table = [
            (ProcessExit::Code(0), "exited with code 0"),
            (ProcessExit::Code(-3), "exited with code -3"),
            #[cfg(unix)]
            (ProcessExit::Signal(9), "was ended by SIGKILL"),
            (ProcessExit::Signal(64), "was ended by signal 64"),
            (ProcessExit::Unknown, "ended, with an unknown status"),
        ];
        for (exit, expected) in table {
            assert_eq!(exit.to_string(), expected);
            assert_eq!(exit.success(), exit == ProcessExit::Code(0));
        }
    }
}
