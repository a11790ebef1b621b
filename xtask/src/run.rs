//! Starts other programs: the only place here that may.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{TaskResult, root};

const POLL: Duration = Duration::from_millis(20);

/// Prepares a program to run in the root of the repository.
#[allow(
    clippy::disallowed_methods,
    reason = "the rule is about the toolkit, and these commands exist to run other programs"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Prepares the cargo that is running us.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a program to its end; what it prints is seen as it comes.
pub(crate) fn run(command: &mut Command) -> TaskResult {
    let status = command.status().map_err(|error| could_not_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", line(command)).into()) }
}

/// Runs a program to its end and returns what it printed on its standard output.
pub(crate) fn output(command: &mut Command) -> TaskResult<String> {
    command.stderr(Stdio::inherit());
    let output = command.output().map_err(|error| could_not_start(command, &error))?;
    if !output.status.success() {
        return Err(format!("`{}` failed: {}", line(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a program to its end or to the limit, with everything it prints going to a file.
pub(crate) fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> TaskResult<ExitStatus> {
    let file = File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut running = BackgroundProcess::start(command)?;
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = running.ended()? {
            return Ok(status);
        }
        sleep(POLL);
    }
    Err(format!("`{}` did not end within {} s; see {}", line(command), limit.as_secs(), log.display()).into())
}

/// A program in the background that is ended when this value goes.
#[derive(Debug)]
pub(crate) struct BackgroundProcess(Child);

impl BackgroundProcess {
    pub(crate) fn start(command: &mut Command) -> TaskResult<Self> {
        let child = command.spawn().map_err(|error| could_not_start(command, &error))?;
        Ok(Self(child))
    }

    /// Gives the number by which the system knows the program.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Takes the pipes to the program's standard input and from its standard output, where it was given such.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>) {
        (self.0.stdin.take(), self.0.stdout.take())
    }

    /// Returns how the program ended, if it has.
    pub(crate) fn ended(&mut self) -> TaskResult<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Sends the program SIGTERM, and waits for its end.
    pub(crate) fn terminate(&mut self, limit: Duration) -> TaskResult {
        run(command("kill").args(["-TERM", &self.id().to_string()]))?;
        let deadline = Instant::now() + limit;
        loop {
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("it was asked to end, and failed: {status}").into()),
                None if Instant::now() >= deadline => {
                    return Err(format!("it did not end within {} s of being asked", limit.as_secs()).into());
                }
                None => sleep(POLL),
            }
        }
    }

    /// Waits until `ready` returns true; fails if the program ends first or the limit passes.
    pub(crate) fn wait_until(&mut self, limit: Duration, ready: impl Fn() -> bool) -> TaskResult {
        let deadline = Instant::now() + limit;
        while !ready() {
            if let Some(status) = self.ended()? {
                return Err(format!("it ended before it was ready: {status}").into());
            }
            if Instant::now() >= deadline {
                return Err(format!("it was not ready within {} s", limit.as_secs()).into());
            }
            sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // Both fail only if the program has already ended, which is all that is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reports whether a process listens at an address.
pub(crate) fn is_listening(address: SocketAddr) -> bool {
    // Without a listener, the system may choose the destination as the source port, and the connection reaches itself.
    TcpStream::connect(address).is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != address))
}

/// Writes a command the way it would be typed.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn could_not_start(command: &Command, error: &std::io::Error) -> String {
    format!("could not start `{}`: {error}", line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_or_missing_program_is_named_in_the_error() {
        let failed = run(cargo().arg("no-such-command").stderr(Stdio::null())).unwrap_err();
        assert!(failed.to_string().contains("no-such-command"), "{failed}");
        let absent = run(&mut command("no-such-program")).unwrap_err();
        assert!(absent.to_string().contains("could not start `no-such-program`"), "{absent}");
    }

    #[test]
    fn wait_ends_when_the_program_exits() {
        let mut running = BackgroundProcess::start(cargo().arg("--version").stdout(Stdio::null())).unwrap();
        let error = running.wait_until(Duration::from_secs(60), || false).unwrap_err();
        assert!(error.to_string().contains("ended before it was ready"), "{error}");
    }
}
