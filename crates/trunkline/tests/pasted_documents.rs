//! The programs of the documents build when they are pasted into a new project with the dependencies that the document lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up").to_owned()
}

/// Returns the code blocks of a document in one language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    document.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Writes a project with the dependencies and the programs of a document.
fn write_project(folder: &Path, document: &str) {
    let text = fs::read_to_string(root().join(document)).expect("a document");
    let manifests = blocks(&text, "toml");
    let listed = manifests.iter().find(|block| block.starts_with("[dependencies]"));
    assert!(listed.is_some(), "{document} lists no dependencies");
    let listed = listed.expect("a list of dependencies");
    assert!(listed.contains("\"../trunkline/crates/"), "{document}: {listed}");
    let dependencies = listed.replace("../trunkline/crates/", &format!("{}/crates/", root().display()));
    let programs: Vec<&str> =
        blocks(&text, "rust").into_iter().filter(|block| block.contains("fn main()")).collect();
    assert!(!programs.is_empty(), "{document} has no program");

    let sources = folder.join("src/bin");
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(&sources).expect("a folder");
    let package = "[package]\nname = \"pasted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    // The profile of our workspace, so that what is built there is used here.
    let profile = "\n[profile.dev]\ndebug = \"line-tables-only\"\n";
    fs::write(folder.join("Cargo.toml"), format!("{package}{dependencies}{profile}")).expect("a manifest");
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("the versions that are here");
    for (number, program) in programs.iter().enumerate() {
        fs::write(sources.join(format!("program{number}.rs")), program).expect("a program");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "cargo, as a reader runs it")]
fn programs_of_documents_build_in_a_new_project_with_the_listed_dependencies() {
    for document in
        ["README.md", "docs/server.md", "docs/client.md", "docs/commands.md", "docs/hub-library.md"]
    {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pasted").join(document.replace('/', "-"));
        write_project(&folder, document);
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        let built = Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet", "--bins"])
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .output()
            .expect("cargo runs");
        let messages = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "the programs of {document} do not build:\n{messages}");
        assert!(
            !messages.contains("warning:"),
            "the programs of {document} build with warnings:\n{messages}"
        );
    }
}
