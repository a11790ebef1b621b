use std::time::Duration;

use trunkline_config::{
    ChangeEffect, ConnectionSharing, RemoteTransport, ServerConfig, ServerLocation, ServerName, StartMode,
    diff,
};

use super::support::read;

#[test]
fn every_key_of_a_server_is_read() {
    let servers = read("trunkline.toml").servers().unwrap();
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["github", "files"]);
    let [github, files] = servers.as_slice() else { panic!("there are two") };

    let ServerLocation::Endpoint(endpoint) = &github.location else { panic!("it has an address") };
    assert_eq!(endpoint.url.expose(), "https://api.githubcopilot.com/mcp/");
    assert_eq!(endpoint.headers["authorization"].expose(), "Bearer gh-canary");
    assert_eq!(endpoint.headers["authorization"].as_written(), "Bearer ${GITHUB_TOKEN}");
    assert_eq!(endpoint.transport, RemoteTransport::Auto);
    assert_eq!((github.timeout, github.required), (Some(Duration::from_secs(30)), true));
    assert!(github.tools.allows("get_issue") && !github.tools.allows("get_secret_key"));
    assert_eq!(github.tools.exposed_name("get_issue"), "issue");
    assert_eq!(github.tools.description_of("get_issue"), Some("Reads one issue of the shop."));

    let ServerLocation::Program(program) = &files.location else { panic!("it has a command") };
    assert_eq!(
        program.command_line(),
        "npx -y @modelcontextprotocol/server-filesystem ${HOME_DIR:-/srv}/shop"
    );
    assert_eq!(program.args[2].expose(), "/srv/shop");
    assert_eq!(program.env["LOG_LEVEL"].expose(), "debug");
    assert_eq!(program.folder().unwrap(), std::path::Path::new("/project/data"));
    assert_eq!(files.sharing, ConnectionSharing::Session);
    assert_eq!((files.start, files.idle), (StartMode::Eager, Some(Duration::from_secs(600))));
    assert!(files.enabled && !files.required && files.timeout.is_none());
}

#[test]
fn omitted_server_keys_have_defaults() {
    let text =
        "[servers.a]\ncommand = 'x'\n[servers.b]\nurl = 'ws://localhost:1/ws'\ntransport = 'websocket'";
    let file =
        trunkline_config::ConfigFile::parse("trunkline.toml", text, super::support::variables()).unwrap();
    let a = file.server("a").unwrap();
    assert_eq!(a, ServerConfig::new(ServerName::parse("a").unwrap(), a.location.clone()));
    let ServerLocation::Endpoint(b) = file.server("b").unwrap().location else { panic!("it has an address") };
    assert_eq!(b.transport, RemoteTransport::WebSocket);
}

#[test]
fn configurations_are_compared_by_the_names_of_servers() {
    let servers = |text: &str| {
        let file =
            trunkline_config::ConfigFile::parse("trunkline.toml", text, super::support::variables()).unwrap();
        file.servers().unwrap()
    };
    let before = servers(
        "[servers]\nsame.command = 's'\nenv = {command = 'e', env = {A = '1'}}\ntoggled.command = 't'\n\
         gone.command = 'g'\nrules.command = 'r'\nshared.command = 'h'\npinned.command = 'p'",
    );
    let after = servers(
        "[servers]\nnew.command = 'n'\nrules = {command = 'r', tools.deny = ['x']}\n\
         toggled = {command = 't', enabled = false}\nenv = {command = 'e', env = {A = '2'}}\nsame.command = 's'\n\
         shared = {command = 'h', share = 'all'}\npinned = {command = 'p', era = 'legacy'}",
    );
    let found = diff(&before, &after);
    let names = |servers: &[&ServerConfig]| servers.iter().map(|s| s.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&found.added), ["new"]);
    assert_eq!(names(&found.removed), ["gone"]);
    assert_eq!(names(&found.unchanged), ["same"]);
    let changed: Vec<(&str, ChangeEffect)> =
        found.changed.iter().map(|changed| (changed.after.name.as_str(), changed.effect)).collect();
    assert_eq!(
        changed,
        [
            ("rules", ChangeEffect::KeepConnection),
            ("toggled", ChangeEffect::KeepConnection),
            ("env", ChangeEffect::Reconnect),
            ("shared", ChangeEffect::Reconnect),
            ("pinned", ChangeEffect::Reconnect)
        ]
    );
    assert!(!found.is_empty() && diff(&before, &before).is_empty());
    let mut turned = before.clone();
    turned.reverse();
    assert!(diff(&before, &turned).is_empty(), "the order is no difference");
}

#[test]
fn changed_variable_changes_the_server() {
    let read = |value: &str| {
        let variables = trunkline_config::ConfigVariables::fixed([("TOKEN", value)]);
        let text = "[servers.a]\ncommand = 'x'\nenv.TOKEN = '${TOKEN}'";
        trunkline_config::ConfigFile::parse("trunkline.toml", text, variables).unwrap().servers().unwrap()
    };
    let (one, two) = (read("one"), read("two"));
    assert!(diff(&one, &read("one")).is_empty());
    assert_eq!(diff(&one, &two).changed.len(), 1);
}

/// A hub decides by this order which server a resource belongs to.
#[test]
fn servers_are_in_the_order_of_the_file() {
    let toml = "[servers.zeta]\ncommand = 'z'\n[servers.alpha]\nurl = 'http://localhost:1/'\n[servers.mid]\ncommand = 'm'";
    let dotted = "[servers]\nzeta.command = 'z'\nalpha.command = 'a'\nmid = { command = 'm' }";
    let json = r#"{ "mcpServers": { "zeta": { "command": "z" }, "alpha": { "url": "http://localhost:1/" }, "mid": { "command": "m" } } }"#;
    for (file, text) in [("trunkline.toml", toml), ("trunkline.toml", dotted), ("mcp.json", json)] {
        let file = trunkline_config::ConfigFile::parse(file, text, super::support::variables()).unwrap();
        let servers = file.servers().unwrap();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["zeta", "alpha", "mid"], "{text}");
    }
}
