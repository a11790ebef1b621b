//! `cargo xtask keychain`: the key of a token store is in a Secret Service, that of GNOME, in a session of its own.

use std::process::Stdio;

use crate::args::Args;
use crate::{TaskResult, fixture, run};

/// The programs of the session, which are packages of Debian too.
const PROGRAMS: &[(&str, &str)] =
    &[("dbus-run-session", "dbus-daemon"), ("gnome-keyring-daemon", "gnome-keyring")];

/// What runs in the session: it unlocks a new keyring and then runs the test.
const SESSION: &str =
    "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec \"$@\"";

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    install()?;
    let home = fixture::results_folder("keychain")?;
    // With the features of all crates, as in the other steps, so that little is built again.
    let test =
        ["test", "--locked", "--workspace", "--features", "trunkline-cli/keychain", "--test", "keychain"];
    // Built outside of the session, which is then short.
    run::run(run::cargo().args(test).arg("--no-run"))?;
    let cargo = run::cargo();
    let mut session = run::command("dbus-run-session");
    session.args(["--", "sh", "-c", SESSION, "sh"]).arg(cargo.get_program()).args(test);
    // The keyring of the user is not touched.
    for (variable, folder) in
        [("XDG_DATA_HOME", "data"), ("XDG_RUNTIME_DIR", "run"), ("XDG_CONFIG_HOME", "config")]
    {
        let folder = home.join(folder);
        std::fs::create_dir(&folder)?;
        session.env(variable, folder);
    }
    run::run(&mut session)
}

/// Installs the programs that are not there.
fn install() -> TaskResult {
    let is_missing = |program: &str| {
        let version =
            run::command(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        !version.is_ok_and(|status| status.success())
    };
    let packages: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| is_missing(program)).map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {}", packages.join(" "));
    run::run(run::command("apt-get").args(["update", "--quiet"]))?;
    let options = ["install", "--yes", "--quiet", "--no-install-recommends"];
    run::run(run::command("apt-get").args(options).args(packages))
}
