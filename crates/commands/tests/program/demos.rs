use std::path::Path;

use crate::support::{command, depot};

/// Runs a script of `demos/`, which needs curl and jq, and fails with a message if one is missing.
fn demo(name: &str) {
    let demos = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("demos");
    for tool in ["curl", "jq"] {
        let there = command(tool).arg("--version").output();
        assert!(
            there.is_ok(),
            "the demos need {tool}: install it, for example with `apt-get install {tool}`"
        );
    }
    let output = command("timeout").arg("60").arg(demos.join(name)).arg(depot()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}:\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn verified_demo_script_succeeds() {
    demo("verified.sh");
}

#[test]
fn ci_demo_script_succeeds() {
    demo("ci.sh");
}

#[test]
fn full_demo_script_succeeds() {
    demo("full.sh");
}
