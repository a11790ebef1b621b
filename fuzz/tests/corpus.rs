//! Replays the corpora, so that what a fuzzer once found stays found on any toolchain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use trunkline_fuzz::TARGETS;

fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let listing = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = listing.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_target_survives_its_corpus() {
    for (name, body) in TARGETS {
        let files = entries(&format!("corpus/{name}"));
        assert!(files.len() >= 10, "the corpus of `{name}` has only {} files", files.len());
        for file in files {
            println!("{}", file.display());
            body(&fs::read(&file).expect("a readable file"));
        }
    }
}

#[test]
fn every_target_survives_being_cut_short() {
    for (name, body) in TARGETS {
        for file in entries(&format!("corpus/{name}")) {
            let bytes = fs::read(&file).expect("a readable file");
            for length in 0..bytes.len().min(512) {
                body(&bytes[..length]);
            }
        }
    }
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        entries(folder).iter().filter_map(stem).collect()
    };
    let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems("fuzz_targets"), listed);
    assert_eq!(stems("corpus"), listed);
}
