//! The document of the configuration, held to what is read.

use std::path::PathBuf;

use trunkline_config::{
    ConfigFile, ConfigVariables, MAX_ACCESS_PATTERN_BYTES, MAX_ACCESS_PATTERNS, MAX_ACCESS_RULES,
    MAX_CLIENT_BYTES, MAX_CONFIG_BYTES, MAX_SERVERS, schema,
};

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Returns the examples of a document in one language.
fn examples(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            let example: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(example.join("\n"));
        }
    }
    found
}

#[test]
fn documented_config_examples_parse_without_warnings() {
    let text = std::fs::read_to_string(document("configuration.md")).unwrap();
    let variables =
        ConfigVariables::fixed(["GITHUB_TOKEN", "TOKEN", "HOME", "API_KEY"].map(|name| (name, "/value")));
    for (language, path, least) in [("toml", "trunkline.toml", 5), ("json", "mcp.json", 1)] {
        let examples = examples(&text, language);
        assert!(examples.len() >= least, "there are {} examples in {language}", examples.len());
        for example in examples {
            let file = ConfigFile::parse(path, &example, variables.clone());
            let file = file.unwrap_or_else(|error| panic!("{error}\n{example}"));
            file.servers().unwrap_or_else(|error| panic!("{error}\n{example}"));
            file.access_rules().unwrap_or_else(|error| panic!("{error}\n{example}"));
            assert!(file.warnings().is_empty(), "{:?}\n{example}", file.warnings());
        }
    }
}

/// Returns the keys of a table in a section of the document.
fn documented_keys(section: &str) -> Vec<String> {
    let text = std::fs::read_to_string(document("configuration.md")).unwrap();
    let table = text.split("\n## ").find(|part| part.starts_with(section)).unwrap();
    let keys = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(key, _)| key));
    keys.filter(|key| key.chars().all(|c| c.is_ascii_lowercase() || "._".contains(c)))
        .map(str::to_owned)
        .collect()
}

/// Returns the keys of a type in the schema.
fn schema_keys(name: &str) -> Vec<String> {
    let schema = schema::<serde_json::Value>([]);
    let table = schema["$defs"][name]["properties"].as_object().unwrap_or_else(|| panic!("no {name}"));
    table.keys().cloned().collect()
}

#[test]
fn documented_access_keys_match_the_code() {
    let (mut written, mut known) = (documented_keys("Access rules"), schema_keys("AccessRule"));
    written.sort();
    known.sort();
    assert_eq!(written, known);
}

#[test]
fn documented_config_keys_match_the_code() {
    let written = documented_keys("`trunkline.toml`");
    let keys = schema_keys;
    let mut known: Vec<String> = keys("ServerTable");
    known.retain(|key| key != "tools" && key != "auth");
    known.extend(keys("ServerAuth").iter().map(|key| format!("auth.{key}")));
    known.extend(keys("ToolRules").iter().map(|key| format!("tools.{key}")));
    for key in &known {
        assert!(written.contains(key), "`{key}` is not in the document");
    }
    for key in &written {
        assert!(known.contains(key), "`{key}` of the document is not a key");
    }
}

#[test]
fn config_limits_are_documented() {
    let document = std::fs::read_to_string(document("limits.md")).unwrap();
    let rows = [
        format!("| `MAX_CONFIG_BYTES` | {} MiB |", MAX_CONFIG_BYTES >> 20),
        format!("| `MAX_CLIENT_BYTES` | {} MiB |", MAX_CLIENT_BYTES >> 20),
        format!("| `MAX_SERVERS` | {},{:03} |", MAX_SERVERS / 1000, MAX_SERVERS % 1000),
        format!("| `MAX_ACCESS_RULES` | {},{:03} |", MAX_ACCESS_RULES / 1000, MAX_ACCESS_RULES % 1000),
        format!("| `MAX_ACCESS_PATTERNS` | {MAX_ACCESS_PATTERNS} |"),
        format!(
            "| `MAX_ACCESS_PATTERN_BYTES` | {},{:03} |",
            MAX_ACCESS_PATTERN_BYTES / 1000,
            MAX_ACCESS_PATTERN_BYTES % 1000
        ),
    ];
    for row in rows {
        assert!(document.contains(&row), "docs/limits.md lacks {row}");
    }
}
