//! Installs the tools that test us, at exact versions, under `.tools/`.

use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::{TaskResult, root, run};

/// The versions under test; the lock files in `interop/` pin everything that these need in turn.
const PINS: &[(&str, &str, &str)] = &[
    ("node", "24.21.0", NODE_LOCK),
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12", NODE_LOCK),
    ("@modelcontextprotocol/sdk", "1.32.2", NODE_LOCK),
    ("sdk-of-2025-03-26", "1.12.3", NODE_LOCK),
    ("@modelcontextprotocol/client", "2.4.0", NODE_LOCK),
    ("@modelcontextprotocol/server", "2.4.0", NODE_LOCK),
    ("@modelcontextprotocol/node", "2.1.2", NODE_LOCK),
    ("@modelcontextprotocol/server-everything", "2026.8.31", NODE_LOCK),
    ("@modelcontextprotocol/server-filesystem", "2026.8.31", NODE_LOCK),
    ("@modelcontextprotocol/server-memory", "2026.8.31", NODE_LOCK),
    ("@ai-sdk/mcp", "2.0.93", NODE_LOCK),
    ("mcp-remote", "0.15.1", NODE_LOCK),
    ("oidc-provider", "9.13.3", NODE_LOCK),
    ("@mcpjam/sdk", "1.14.0", NODE_LOCK),
    ("axe-core", "4.14.0", BROWSER_LOCK),
    ("puppeteer-core", "25.16.0", BROWSER_LOCK),
    ("typescript", "7.0.2", BROWSER_LOCK),
    ("mcp", "1.2.0", PYTHON_1_2_LOCK),
    ("mcp", "1.7.1", PYTHON_2024_LOCK),
    ("mcp", "1.30.0", PYTHON_V1_LOCK),
    ("fastmcp", "2.14.7", PYTHON_V1_LOCK),
    ("langchain-mcp-adapters", "0.3.2", PYTHON_V1_LOCK),
    ("openai-agents", "0.24.0", PYTHON_V1_LOCK),
    ("mcp", "2.3.0", PYTHON_V2_LOCK),
    ("mcp", "2.3.0", PYTHON_AGENT_LOCK),
    ("pydantic-ai-slim", "2.66.0", PYTHON_AGENT_LOCK),
    ("fastmcp", "4.1.2", PYTHON_AGENT_LOCK),
    ("mcp", "2.3.0", PYTHON_SERVERS_LOCK),
    ("mcp-server-fetch", "2026.10.24", PYTHON_SERVERS_LOCK),
    ("mcp-server-git", "2026.10.19", PYTHON_SERVERS_LOCK),
    ("mcp-server-time", "2026.10.19", PYTHON_SERVERS_LOCK),
    ("rotel", "0.0.1a15", PYTHON_TELEMETRY_LOCK),
];

const NODE_MANIFEST: &str = "interop/node/package.json";
const NODE_LOCK: &str = "interop/node/package-lock.json";
/// What tests the web console: it drives the browsers, looks for barriers, and checks the types of the page.
const BROWSER_MANIFEST: &str = "interop/browser/console/package.json";
const BROWSER_LOCK: &str = "interop/browser/console/package-lock.json";
/// A release of the SDK that does not answer requests which it does not know.
const PYTHON_1_2_LOCK: &str = "interop/python/requirements-mcp-1.2.txt";
/// The last release of the SDK that knows no later revision than this.
const PYTHON_2024_LOCK: &str = "interop/python/requirements-2024-11-05.txt";
/// The first generation of the SDK, and what others have built on it.
const PYTHON_V1_LOCK: &str = "interop/python/requirements-v1.txt";
const PYTHON_V2_LOCK: &str = "interop/python/requirements-v2.txt";
/// An agent framework and the client that it stands on, which choose the SDK that they need.
const PYTHON_AGENT_LOCK: &str = "interop/python/requirements-pydantic-ai.txt";
/// Servers that others published; they have a folder of their own, as they choose the SDK that they need.
const PYTHON_SERVERS_LOCK: &str = "interop/python/requirements-servers.txt";

/// A collector of OpenTelemetry.
const PYTHON_TELEMETRY_LOCK: &str = "interop/python/requirements-telemetry.txt";

/// The file that marks a complete folder; it holds the lock file that the folder was made from.
const STAMP_FILE: &str = "installed-from";

/// Where the installed tools are.
#[derive(Debug)]
pub(crate) struct InstalledTools {
    pub(crate) node: PathBuf,
    /// The script of the official suite.
    pub(crate) conformance: PathBuf,
    /// A script finds npm's packages only if it lies in this folder.
    pub(crate) node_folder: PathBuf,
    pub(crate) python_2024: PathBuf,
    pub(crate) python_v1: PathBuf,
    pub(crate) python_v2: PathBuf,
    pub(crate) python_agent: PathBuf,
}

/// Installs everything that any command needs.
pub(crate) fn install_all() -> TaskResult {
    install()?;
    install_servers()?;
    install_mcp_1_2()?;
    install_collector()?;
    Ok(())
}

/// Installs whatever is missing or was installed from another lock file.
pub(crate) fn install() -> TaskResult<InstalledTools> {
    let folder = root().join(".tools");
    let node_folder = folder.join("node");
    let python = |name: &str, lock| (folder.join(name), lock);
    let [python_2024, python_v1, python_v2, python_agent] = [
        python("python-2024-11-05", PYTHON_2024_LOCK),
        python("python-v1", PYTHON_V1_LOCK),
        python("python-v2", PYTHON_V2_LOCK),
        python("python-agent", PYTHON_AGENT_LOCK),
    ];
    // The long ones come first, so that two at a time end at about the same time.
    install_each(&[&(node_folder.clone(), NODE_LOCK), &python_v1, &python_agent, &python_v2, &python_2024])?;
    Ok(InstalledTools {
        node: node_folder.join("node_modules/node/bin/node"),
        conformance: node_folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
        python_2024: interpreter(&python_2024.0),
        python_v1: interpreter(&python_v1.0),
        python_v2: interpreter(&python_v2.0),
        python_agent: interpreter(&python_agent.0),
        node_folder,
    })
}

/// Fills several folders from their lock files, two at a time, as each keeps one core busy.
fn install_each(folders: &[&(PathBuf, &str)]) -> TaskResult {
    let queue = Mutex::new(folders.iter());
    let failures = Mutex::new(Vec::new());
    let next = || queue.lock().next();
    let work = || {
        while let Some((folder, lock)) = next() {
            let outcome = match *lock {
                NODE_LOCK => install_once(folder, lock, install_node),
                lock => install_python(folder, lock).map(drop),
            };
            if let Err(error) = outcome {
                failures.lock().push(error.to_string());
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let failures = failures.into_inner();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// Installs the servers that PyPI has, and gives the folder of their commands.
pub(crate) fn install_servers() -> TaskResult<PathBuf> {
    let python = install_python(&root().join(".tools/python-servers"), PYTHON_SERVERS_LOCK)?;
    Ok(python.parent().map(Path::to_path_buf).unwrap_or_default())
}

/// Installs the release 1.2 of the SDK, on which a server of ours stands, and gives its interpreter.
pub(crate) fn install_mcp_1_2() -> TaskResult<PathBuf> {
    install_python(&root().join(".tools/python-mcp-1.2"), PYTHON_1_2_LOCK)
}

/// Installs a collector of OpenTelemetry, and returns its program.
pub(crate) fn install_collector() -> TaskResult<PathBuf> {
    let python = install_python(&root().join(".tools/python-telemetry"), PYTHON_TELEMETRY_LOCK)?;
    let show =
        "import importlib.util; print(importlib.util.find_spec('rotel').submodule_search_locations[0])";
    let package = run::output(run::command(&python).args(["-c", show]))?;
    Ok(Path::new(package.trim()).join("rotel-agent"))
}

fn install_python(folder: &Path, lock: &str) -> TaskResult<PathBuf> {
    install_once(folder, lock, |folder| {
        let python = interpreter(folder);
        run::run(run::command("python3").args(["-m", "venv"]).arg(folder))?;
        run::run(
            run::command(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(lock),
        )?;
        for (package, wanted, _) in pins().filter(|(_, _, file)| *file == lock) {
            let show = format!("import importlib.metadata; print(importlib.metadata.version('{package}'))");
            let version = run::output(run::command(&python).args(["-c", &show]))?;
            expect(package, wanted, version.trim())?;
        }
        Ok(())
    })?;
    Ok(interpreter(folder))
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// Installs what npm has, and gives the folder with it.
pub(crate) fn install_node_packages() -> TaskResult<PathBuf> {
    let folder = root().join(".tools/node");
    install_once(&folder, NODE_LOCK, install_node)?;
    Ok(folder)
}

fn install_node(folder: &Path) -> TaskResult {
    fs::copy(root().join(NODE_MANIFEST), folder.join("package.json"))?;
    fs::copy(root().join(NODE_LOCK), folder.join("package-lock.json"))?;
    // The machine's own Node runs this, and may be older than the packages want; ours is among them.
    run::run(
        run::command("npm").args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder),
    )?;
    let version = run::output(run::command(folder.join("node_modules/node/bin/node")).arg("--version"))?;
    expect("node", pinned("node", NODE_LOCK)?, version.trim().trim_start_matches('v'))
}

/// Installs what tests the web console, and gives the folder of its scripts: they find the packages only there.
pub(crate) fn install_browser_tools() -> TaskResult<PathBuf> {
    let folder = root().join(".tools/browser");
    install_once(&folder, BROWSER_LOCK, |folder| {
        fs::copy(root().join(BROWSER_MANIFEST), folder.join("package.json"))?;
        fs::copy(root().join(BROWSER_LOCK), folder.join("package-lock.json"))?;
        let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        run::run(run::command("npm").args(options).current_dir(folder))
    })?;
    Ok(folder)
}

/// Fills `folder` unless its stamp has the same lock file.
fn install_once(folder: &Path, lock: &str, fill: impl FnOnce(&Path) -> TaskResult) -> TaskResult {
    let wanted =
        fs::read_to_string(root().join(lock)).map_err(|error| format!("cannot read {lock}: {error}"))?;
    let stamp = folder.join(STAMP_FILE);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("installing {lock} into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    fill(folder).map_err(|error| format!("the tools of {lock} could not be installed: {error}"))?;
    fs::write(stamp, wanted)?;
    Ok(())
}

/// Gives the versions of the official packages, each by the name under which it is pinned and its lock file's.
pub(crate) fn pins() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PINS.iter().copied()
}

fn pinned(package: &str, lock: &str) -> TaskResult<&'static str> {
    let pin = PINS.iter().find(|(name, _, file)| *name == package && *file == lock);
    pin.map(|(_, version, _)| *version).ok_or_else(|| format!("{package} has no pin").into())
}

fn expect(package: &str, wanted: &str, found: &str) -> TaskResult {
    if wanted == found { Ok(()) } else { Err(format!("{package} should be {wanted} and is {found}").into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(path: &str) -> String {
        fs::read_to_string(root().join(path)).unwrap()
    }

    /// Returns the manifest of a lock file of npm.
    fn manifest_of(lock: &str) -> Option<&'static str> {
        match lock {
            NODE_LOCK => Some(NODE_MANIFEST),
            BROWSER_LOCK => Some(BROWSER_MANIFEST),
            _ => None,
        }
    }

    #[test]
    fn lock_files_agree_with_the_pins() {
        for (package, version, file) in PINS {
            if let Some(manifest) = manifest_of(file) {
                let [manifest, lock]: [Value; 2] =
                    [manifest, file].map(|path| serde_json::from_str(&read(path)).unwrap());
                // A package beside another version of itself has another name here: `npm:NAME@VERSION`.
                let wanted = manifest["dependencies"][package].as_str().unwrap();
                let named = wanted.rsplit('@').next().filter(|_| wanted.starts_with("npm:"));
                assert_eq!(named.unwrap_or(wanted), *version, "{package} in {file}");
                let locked = &lock["packages"][format!("node_modules/{package}")]["version"];
                assert_eq!(locked, *version, "{package} in {file}");
            } else {
                let line = format!("{package}=={version}");
                assert!(read(file).lines().any(|found| found == line), "{line} is not in {file}");
            }
        }
    }

    #[test]
    fn lock_files_pin_every_version_and_name_no_registry() {
        for file in [NODE_LOCK, BROWSER_LOCK] {
            let lock: Value = serde_json::from_str(&read(file)).unwrap();
            for (name, package) in lock["packages"].as_object().unwrap() {
                assert!(package.get("resolved").is_none(), "{name} says where it was downloaded from");
                assert!(name.is_empty() || package["integrity"].is_string(), "{name} has no checksum");
            }
        }
        let files: std::collections::BTreeSet<_> = PINS.iter().map(|(_, _, file)| *file).collect();
        for file in files.into_iter().filter(|file| manifest_of(file).is_none()) {
            for line in read(file).lines() {
                let exact = line.split_once("==").is_some_and(|(_, version)| !version.contains(['*', '/']));
                assert!(exact, "`{line}` in {file} is not an exact version");
            }
        }
    }
}
