//! The schema of `trunkline.toml` for editors, checked against what the crates read.

use std::path::PathBuf;

use serde_json::Value;

use crate::commands::serve;

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn schema() -> Value {
    trunkline_config::schema(trunkline_commands::schemas().into_iter().chain(serve::table_schemas()))
}

/// Regenerates the schema if `TRUNKLINE_SCHEMA=overwrite`.
#[test]
fn editor_schema_matches_the_stored_file() {
    let path = document("trunkline.schema.json");
    let now = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var("TRUNKLINE_SCHEMA").is_ok_and(|word| word == "overwrite") {
        std::fs::write(&path, &now).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "run this test with TRUNKLINE_SCHEMA=overwrite, and read what changed");
}

/// Returns the examples of a document in TOML, as JSON.
fn examples(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(document(name)).unwrap();
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    // A block of dependencies is about Cargo's file, and not about ours.
    let blocks = blocks.filter(|block| !block.starts_with("[dependencies]"));
    blocks
        .map(|block| toml_edit::de::from_str(block).unwrap_or_else(|error| panic!("{error}\n{block}")))
        .collect()
}

#[test]
fn every_example_of_the_documents_fits_the_schema_and_mistakes_do_not() {
    let check = jsonschema::validator_for(&schema()).unwrap();
    for name in ["authorization.md", "commands.md", "configuration.md", "../README.md"] {
        for example in examples(name) {
            let faults: Vec<String> = check.iter_errors(&example).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{name}: {faults:?}\n{example:#}");
        }
    }
    for mistake in [
        "[commands.a]\nargs = []",
        "[commands.a]\nargv = [1]",
        "[commands.a]\nargv = ['a']\nscript = 'b'",
        "[commands.a]\nargv = ['a']\ntimeout = 'soon'",
        "[commands.a]\nargv = ['a']\nconfirm = 1",
        "[commands.a]\nargv = ['a']\narguments.x = { kind = 'string' }",
        "[commands.a]\nargv = ['a']\narguments.x = { type = 'text' }",
        "[policy]\ncommands = ['permit a']",
        "[manifests]\nfile = []",
        "[serve]\nname = 'x'",
        "[audit]\npath = 'x'",
        "[auth]\ndpop = 'maybe'",
        "[auth]\nissuer = 'x'",
        "[[auth.issuers]]\naudience = ['x']",
        "[[auth.issuers]]\nissuer = 'x'\ntyp = 'JWT'",
        "[[auth.issuers]]\nissuer = 'x'\nintrospection = { client_id = 'x' }",
        "[audit]\narguments = 'x'",
        "[command.a]\nargv = ['a']",
        "[access]\naction = 'allow'",
        "[[access]]\ntools = 'x'",
        "[[access]]\naction = 'permit'",
        "[[access]]\naction = 'allow'\ntools = []",
    ] {
        let value: Value = toml_edit::de::from_str(mistake).unwrap();
        assert!(!check.is_valid(&value), "{mistake}");
    }
}
