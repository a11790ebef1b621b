//! What a child gets of ours, and what it does not.

use std::collections::BTreeSet;

use rustix::io::FdFlags;
use trunkline_transport::Command;
use trunkline_transport::process::{RunLimits, run};

use crate::support::{alone, sh, soon};

async fn output(command: &Command) -> String {
    let finished = soon("the end", run(command, &RunLimits::default())).await.unwrap();
    assert!(finished.exit.success(), "{finished:?}");
    finished.stdout.text().into_owned()
}

#[tokio::test]
async fn child_has_a_minimal_environment_plus_set_variables() {
    let command =
        Command::new("env").env("LISTED", "a value").env("TERM", "vt100").inherit("CARGO_MANIFEST_DIR");
    let text = output(&command).await;
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in &names {
        let listed = ["LISTED", "TERM", "CARGO_MANIFEST_DIR"].contains(name);
        let base =
            ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"].contains(name);
        let network =
            ["CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"]
                .contains(name)
                || name.to_ascii_lowercase().ends_with("_proxy");
        assert!(listed || base || network || name.starts_with("LC_"), "{name} got into the environment");
    }
    // Cargo sets dozens of variables for this test; had they been passed on, one of the others would be there.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    assert!(text.contains("LISTED=a value\n") && text.contains("TERM=vt100\n"), "{text}");
    assert!(names.contains("PATH") && names.contains("CARGO_MANIFEST_DIR"), "{text}");
    assert!(output(&Command::new("env")).await.contains("TERM=dumb\n"));
}

#[tokio::test]
async fn child_has_only_its_three_standard_descriptors() {
    // One that is not closed by itself when another program is started, as we could have got it from who started us.
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&reader, FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&writer, FdFlags::empty()).unwrap();
    // The descriptors of the shell are listed from another process, since listing opens one more.
    let text = output(&sh("ls /proc/$$/fd; exit 0")).await;
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[tokio::test]
async fn child_leads_its_own_group_with_its_folder_and_name() {
    let text = output(
        &sh("cut -d' ' -f5 /proc/$$/stat; echo $$; pwd; tr '\\0' ' ' </proc/$$/cmdline").current_dir("/usr"),
    )
    .await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], lines[1], "its group has its own number");
    assert_eq!(lines[2], "/usr");
    assert!(lines[3].starts_with("sh -c "), "{text}");
}

#[tokio::test]
async fn program_with_separator_is_relative_to_its_folder() {
    assert_eq!(output(&Command::new("./echo").arg("here").current_dir("/bin")).await, "here\n");
}

#[test]
fn spawn_neither_forks_this_process_nor_starts_a_thread() {
    alone("resource_usage::cheap");
}
