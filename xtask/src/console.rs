//! `cargo xtask console`: the web console in the browsers of the distribution, with real servers, and the types of its page.

use crate::args::Args;
use crate::fixture;
use crate::{TaskResult, browser, root, run, tools};

/// The scripts that drive the browsers, and what they use.
const SCRIPTS: &str = "interop/browser/console";

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    for browser in ["chromium", "firefox-esr"] {
        browser::install(browser)?;
    }
    let folder = tools::install_browser_tools()?;
    let check = ["--project", &format!("{SCRIPTS}/tsconfig.json")].map(str::to_owned);
    run::run(run::command(folder.join("node_modules/.bin/tsc")).args(check))?;
    let hub = fixture::build_of("trunkline-cli", "trunkline")?;
    let server = fixture::build("everything-server")?;
    for entry in std::fs::read_dir(root().join(SCRIPTS))?.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().ends_with(".mjs") {
            std::fs::copy(entry.path(), folder.join(name))?;
        }
    }
    let pictures = fixture::results_folder("console")?;
    let page = root().join("crates/console/page");
    // A client of the legacy era: the page answers the questions that it gets.
    let sdk = tools::install_node_packages()?;
    run::run(run::command("node").arg(folder.join("main.mjs")).args([&hub, &server, &pictures, &page, &sdk]))
}
