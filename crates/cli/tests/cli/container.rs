//! The image and its compose file, as far as they can be checked without a daemon.

use std::path::Path;

use crate::process::{RunningCommand, file, folder};

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Returns the arguments that the image starts the command with.
fn image_arguments() -> Vec<String> {
    let dockerfile = read("Dockerfile");
    let line = dockerfile.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn arguments_of_the_image_start_a_server() {
    let folder = folder("container");
    let tokens = file(&folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let arguments: Vec<String> = image_arguments()
        .into_iter()
        // The port file of the test needs a port of its own.
        .map(|word| word.replace("0.0.0.0:7411", "0.0.0.0:0").replace("/run/secrets/tokens", &tokens))
        .collect();
    let (first, rest) = arguments.split_first().unwrap();
    assert_eq!(first, "serve");
    let rest: Vec<&str> =
        rest.iter().map(String::as_str).filter(|word| *word != "--http" && *word != "0.0.0.0:0").collect();
    let (_running, address) = RunningCommand::serve("container_image", &rest);
    assert!(address.port() > 0);
}

#[test]
fn compose_file_starts_the_same_command_as_the_image() {
    let compose = read("compose.yaml");
    let command = compose.split("    command:\n").nth(1).unwrap();
    let words: Vec<String> =
        command.lines().map_while(|line| line.strip_prefix("      - ")).map(str::to_owned).collect();
    let image = image_arguments();
    assert_eq!(words.get(..image.len()), Some(&image[..]));
    assert!(compose.contains("127.0.0.1:7411:7411"), "only this machine reaches the port");
    let dockerfile = read("Dockerfile");
    let bin = Path::new(env!("CARGO_BIN_EXE_trunkline")).file_stem().unwrap().to_str().unwrap();
    assert!(dockerfile.contains(&format!("/src/target/release/{bin} ")), "{dockerfile}");
    assert!(dockerfile.contains(&format!("ENTRYPOINT [\"{bin}\"]")), "{dockerfile}");
    assert!(dockerfile.contains("\nUSER "), "not the superuser");
}
