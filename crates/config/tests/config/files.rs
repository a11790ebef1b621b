use std::path::Path;

use trunkline_config::find::{self, ClientApp, HostPlatform, UserDirectories};
use trunkline_config::{ConfigFile, MAX_CONFIG_BYTES};

use super::support::{Folder, SAMPLES, sample, set_mode, variables};

#[test]
fn group_writable_config_is_rejected_with_a_chmod_hint() {
    let folder = Folder::new("modes");
    let path = folder.write("trunkline.toml", "");
    // A group of others, which only the superuser can give a file to; for other users their own group may be shared.
    let group_is_foreign = std::os::unix::fs::chown(&path, None, Some(54_321)).is_ok();
    for (mode, refused) in [
        (0o600, false),
        (0o644, false),
        (0o444, false),
        (0o664, group_is_foreign),
        (0o646, true),
        (0o666, true),
    ] {
        set_mode(&path, mode);
        let read = ConfigFile::open(&path, variables());
        assert_eq!(read.is_err(), refused, "{mode:o}");
        if let Err(error) = read {
            let problem = error.problems().next().unwrap();
            assert_eq!(problem.hint_text(), Some(&*format!("run `chmod go-w {}`", path.display())));
            assert!(problem.message().starts_with("is writable by other users"), "{problem}");
        }
    }
}

#[test]
fn non_files_and_oversized_or_binary_configs_are_rejected_without_blocking() {
    let folder = Folder::new("shapes");
    let most = usize::try_from(MAX_CONFIG_BYTES).unwrap();
    folder.write("long.toml", &"#".repeat(most + 1));
    folder.write("longest.toml", &"#".repeat(most));
    std::fs::write(folder.0.join("bytes.toml"), b"a = \"\xff\"").unwrap();
    set_mode(&folder.0.join("bytes.toml"), 0o644);
    std::fs::create_dir(folder.0.join("folder.toml")).unwrap();
    let pipe = folder.0.join("pipe.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let table = [
        ("longest.toml", "fine"),
        ("long.toml", "is larger than the limit of 1048576 bytes"),
        ("bytes.toml", "is not valid UTF-8 (byte 5)"),
        ("folder.toml", "is not a file"),
        ("pipe.toml", "is not a file"),
        ("none.toml", "cannot be read: No such file or directory (os error 2)"),
    ];
    for (name, expected) in table {
        let read = ConfigFile::open(folder.0.join(name), variables());
        let told = read
            .map_or_else(|error| error.problems().next().unwrap().message().to_owned(), |_| "fine".into());
        assert_eq!(told, expected, "{name}");
    }
}

#[test]
fn first_config_file_of_a_folder_applies() {
    let folder = Folder::new("folder");
    assert!(ConfigFile::find(&folder.0, variables()).unwrap().is_none());
    let json = r#"{"mcpServers": {}}"#;
    // From the last to the first, so that each that is added is the one that applies from then on.
    for name in [".cursor/mcp.json", ".vscode/mcp.json", ".mcp.json", "mcp.json", "trunkline.toml"] {
        folder.write(name, if name.ends_with("toml") { "" } else { json });
        let found = ConfigFile::find(&folder.0, variables()).unwrap().unwrap();
        assert_eq!(found.path(), folder.0.join(name));
    }
    // An invalid file is an error, and the next one is not tried.
    folder.write("trunkline.toml", "nonsense");
    assert!(ConfigFile::find(&folder.0, variables()).is_err());
    std::fs::remove_file(folder.0.join("trunkline.toml")).unwrap();
    std::os::unix::fs::symlink("/nowhere/trunkline.toml", folder.0.join("trunkline.toml")).unwrap();
    assert!(ConfigFile::find(&folder.0, variables()).is_err());
}

#[test]
fn servers_of_every_client_are_found_in_a_home() {
    let folder = Folder::new("home");
    let project = folder.0.join("shop");
    let places = UserDirectories::for_home(HostPlatform::MacOs, &folder.0);
    let claude = sample("claude.json").replace("/home/ann/shop", project.to_str().unwrap());
    folder.write(".claude.json", &claude);
    folder.write(
        "Library/Application Support/Claude/claude_desktop_config.json",
        &sample("claude_desktop_config.json"),
    );
    folder.write(".cursor/mcp.json", &sample("cursor.mcp.json"));
    folder.write("Library/Application Support/Code/User/mcp.json", &sample("vscode.mcp.json"));
    folder.write("Library/Application Support/Code/User/settings.json", &sample("vscode_settings.json"));
    folder.write(".codeium/windsurf/mcp_config.json", "{ broken");
    folder.write("shop/.mcp.json", &sample("claude_code.mcp.json"));
    folder.write("shop/.vscode/mcp.json", "{}");

    let found = find::imports(&places, Some(&project));
    let lines: Vec<String> = found
        .iter()
        .map(|import| match &import.file {
            Ok(file) => format!("{} ({}): {}", import.client, import.scope, file.server_names().join(" ")),
            Err(_) => format!("{}: cannot be used", import.client),
        })
        .collect();
    assert_eq!(
        lines,
        [
            "Claude Code (local): postgres",
            "Claude Code (project): github filesystem asana",
            "Claude Code (user): memory",
            "Claude Desktop (user): filesystem brave-search",
            "Cursor (user): figma stripe old",
            "VS Code (user): Perplexity playwright context7",
            "VS Code (user): time",
            "Windsurf: cannot be used",
        ]
    );
    assert!(found.iter().all(|import| ClientApp::parse(import.client.as_str()) == Some(import.client)));
}

#[test]
fn every_sample_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut listed: Vec<&str> = SAMPLES.to_vec();
    listed.sort_unstable();
    assert_eq!(names, listed);
    for name in SAMPLES {
        assert!(!super::support::read(name).server_names().is_empty(), "{name}");
    }
}
