//! The checks that drive a server with the command `trunkline`.

mod driver;
mod more;
mod runs;

use trunkline_client::BoxFuture;

use self::driver::Driver;
use self::runs::Run;
use crate::answers::Answers;
use crate::leftovers;
use crate::options::Options;
use crate::report::{Checked, Report};

/// A check that is more than one run.
type Check = (&'static str, for<'a> fn(&'a Driver<'a>) -> BoxFuture<'a, Checked>);

/// What is run against a server.
struct Server {
    name: &'static str,
    prepare: fn(&Options, &Answers) -> Checked,
    runs: &'static [Run],
    checks: &'static [Check],
    /// What can be checked only where one client sees what another does.
    among_clients: &'static [Check],
}

/// Runs every check that the server has.
///
/// # Errors
/// The server is unknown.
pub(crate) async fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    let server = runs::SERVERS.iter().find(|server| server.name == options.server);
    let server = server.ok_or_else(|| format!("there are no runs for `{}`", options.server))?;
    let driver = Driver::new(options)?;
    report.check("prepare", async { (server.prepare)(options, &Answers::default()) }).await;
    for run in server.runs.iter().filter(|run| driver.is_fast() || !run.only_if_fast) {
        report.check(run.name, driver.expect(run)).await;
    }
    let among_clients = if driver.has_other_clients() { server.among_clients } else { &[] };
    for (name, check) in server.checks.iter().chain(among_clients) {
        report.check(name, check(&driver)).await;
    }
    report.check("nothing_is_left", leftovers::none_stays(&driver.mark)).await;
    Ok(())
}
