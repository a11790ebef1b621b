use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use serde_json::json;
use trunkline_client::authorization::{EndedLogin, RevocationOutcome};
use trunkline_config::find::find_in_folder;
use trunkline_config::{ConfigFile, ConfigVariables, ServerConfig};
use trunkline_hub::server_url;

use super::manage::HubArgs;
use crate::config_failure::config_failure;
use crate::connect::{in_runtime, interrupted, print_stdout};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::login::{LoginTarget, authorizer, login_failure, open_store, paste_agent, user_authorizer};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{StderrScreen, escape_line};

/// Log out of a remote server
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline logout [OPTIONS] TARGET\n       trunkline logout [OPTIONS] --user PRINCIPAL [SERVER]",
    after_help = "Revokes the tokens at the authorization server, and removes them here. If the\nauthorization server cannot be reached they are removed all the same, with a\nwarning. With --user an operator ends the logins of a user of the hub, at one\nserver or at all; a hub that runs from the config file closes the user's\nconnections.\n\nExamples:\n  trunkline logout https://example.com/mcp\n  trunkline logout --user ann\n  trunkline logout --user ann tracker"
)]
pub(crate) struct LogoutArgs {
    /// Server to log out of
    #[arg(required_unless_present = "user")]
    target: Option<String>,
    /// End the logins of a user of the hub, by the
    /// principal in the audit log
    #[arg(verbatim_doc_comment, long, value_name = "PRINCIPAL")]
    user: Option<String>,
    #[command(flatten)]
    hub: HubArgs,
    /// Config file to look up names in; with --user
    /// that of the hub [default: the one in this
    /// folder]
    #[arg(verbatim_doc_comment, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
}

/// Logs out.
///
/// # Errors
/// The stored logins cannot be used, or there is none at the server.
pub(crate) fn run(args: &LogoutArgs) -> Result<(), CliFailure> {
    in_runtime(args.json, async |signals| log_out(args, signals).await)
}

async fn log_out(args: &LogoutArgs, signals: &mut Signals) -> Result<(), CliFailure> {
    if let Some(user) = &args.user {
        return tokio::select! {
            ended = end_user(args, user) => ended,
            _ = signals.next() => Err(interrupted()),
        };
    }
    let target = args.target.as_deref().unwrap_or_default();
    let target = LoginTarget::parse(target, args.config.as_deref())?;
    let screen = Arc::new(StderrScreen::new(false, false));
    let store = open_store(target.config_file.as_deref())?.store;
    let authorizer = authorizer(&target, paste_agent(&screen, None), store, |_| {})?;
    let ended = tokio::select! {
        ended = authorizer.log_out() => ended.map_err(|error| login_failure(&error))?,
        _ = signals.next() => return Err(interrupted()),
    };
    if ended.is_empty() {
        return Err(CliFailure::new(ExitReason::Failed, format!("there is no login at {}", target.typed))
            .hint("`trunkline logins` lists the stored logins"));
    }
    for login in &ended {
        print_warning(login);
    }
    if args.json {
        let logins: Vec<_> = ended.iter().map(as_json).collect();
        return print_stdout(&format!("{}\n", one_line(&json!({ "ended": logins }).into())));
    }
    print_stdout(&format!("logged out of {}\n", escape_line(&target.typed)))
}

/// Ends the logins of a user of a hub: in its store, and at the hub if it runs.
async fn end_user(args: &LogoutArgs, user: &str) -> Result<(), CliFailure> {
    if args.target.as_deref().is_some_and(|word| word.contains("://")) {
        // The hub knows its servers by name, and must end the same logins as the store.
        return Err(CliFailure::new(ExitReason::Usage, "with `--user`, the server is named as in the file"));
    }
    let config = args.config.clone().or_else(|| find_in_folder(Path::new("")));
    let store = open_store(config.as_deref())?.store;
    let server =
        args.target.as_deref().map(|word| LoginTarget::parse(word, config.as_deref())).transpose()?;
    let servers = config.as_deref().map(configured_servers).transpose()?.unwrap_or_default();
    let principal = format!("user:{user}");
    let keys = store.list(&principal).await.map_err(CliFailure::configuration)?;
    let mut urls: Vec<String> = keys.into_iter().map(|key| key.server_url).collect();
    urls.dedup();
    if let Some(server) = &server {
        let wanted = user_authorizer(&principal, &server.url, None, store.clone())?.server_url().to_owned();
        urls.retain(|url| *url == wanted);
    }
    let mut ended = Vec::new();
    for url in urls {
        let auth =
            servers.iter().find(|server| server_url(server).is_ok_and(|own| own.to_full_string() == url));
        let url = url.parse().map_err(CliFailure::configuration)?;
        let auth = auth.map(|server| &server.auth);
        let authorizer = user_authorizer(&principal, &url, auth, store.clone())?;
        ended.extend(authorizer.log_out().await.map_err(|error| login_failure(&error))?);
    }
    let hub = config.as_deref().map(|config| args.hub.find(config)).transpose()?.flatten();
    // The hub may keep its logins elsewhere, and has connections of the user.
    let more = hub.map(|hub| hub.revoke_user(user, args.target.as_deref())).transpose()?.unwrap_or_default();
    for login in &ended {
        print_warning(login);
    }
    let count = ended.len() + more;
    if count == 0 {
        return Err(CliFailure::new(ExitReason::Failed, format!("user `{user}` has no such login"))
            .hint("`trunkline logins --all-users` lists the stored logins"));
    }
    if args.json {
        let logins: Vec<_> = ended.iter().map(as_json).collect();
        let printed = json!({ "user": user, "removed": count, "ended": logins });
        return print_stdout(&format!("{}\n", one_line(&printed.into())));
    }
    let noun = if count == 1 { "login" } else { "logins" };
    print_stdout(&format!("ended {count} {noun} of user {}\n", escape_line(user)))
}

/// Reads the servers of a file, to revoke tokens as the clients that they name; invalid servers are left out.
fn configured_servers(path: &Path) -> Result<Vec<ServerConfig>, CliFailure> {
    let file = ConfigFile::open(path, ConfigVariables::from_environment());
    let file = file.map_err(|error| config_failure(error.problems()))?;
    Ok(file.valid_and_invalid_servers().0)
}

fn print_warning(login: &EndedLogin) {
    let issuer = escape_line(&login.key.issuer);
    match &login.revocation {
        RevocationOutcome::Revoked => {}
        RevocationOutcome::RefreshTokenOnly => print_stderr(&format!(
            "warning: {issuer} revokes no access tokens; the removed one stays valid until it expires\n"
        )),
        RevocationOutcome::Unsupported => print_stderr(&format!(
            "warning: {issuer} has no revocation; the removed tokens stay valid until they expire\n"
        )),
        RevocationOutcome::Failed { url, reason } => print_stderr(&format!(
            "warning: the tokens were removed but not revoked at {}: {}\n",
            escape_line(url),
            escape_line(reason)
        )),
    }
}

fn as_json(login: &EndedLogin) -> serde_json::Value {
    let (revoked, reason) = match &login.revocation {
        RevocationOutcome::Revoked => (true, None),
        RevocationOutcome::RefreshTokenOnly => {
            (true, Some("the authorization server revokes no access tokens".to_owned()))
        }
        RevocationOutcome::Unsupported => {
            (false, Some("the authorization server has no revocation".to_owned()))
        }
        RevocationOutcome::Failed { url, reason } => (false, Some(format!("{url}: {reason}"))),
    };
    json!({ "server": login.key.server_url, "issuer": login.key.issuer, "revoked": revoked, "reason": reason })
}
