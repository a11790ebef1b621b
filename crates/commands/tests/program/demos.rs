use std::path::Path;

use crate::support::{command, depot};

/// Runs a script of `demos/`, which needs curl and jq and says so loudly where they are missing.
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
fn the_demo_by_hand_gets_what_it_wants() {
    demo("verified.sh");
}

#[test]
fn the_demo_for_continuous_integration_passes() {
    demo("ci.sh");
}

#[test]
fn the_demo_with_a_store_behind_it_works_to_its_end() {
    demo("full.sh");
}
