use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueHint};
use serde_json::json;
use trunkline_client::authorization::{EndedLogin, RevocationOutcome};

use crate::connect::{in_runtime, interrupted, print_stdout};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::login::{LoginTarget, authorizer, login_failure, open_store, paste_agent};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{StderrScreen, escape_line};

/// Log out of a remote server
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline logout [OPTIONS] TARGET",
    after_help = "Revokes the tokens at the authorization server, and removes them here. If the\nauthorization server cannot be reached they are removed all the same, with a\nwarning.\n\nExample:\n  trunkline logout https://example.com/mcp"
)]
pub(crate) struct LogoutArgs {
    /// Server to log out of
    target: String,
    /// Config file to look up names in
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
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
    let target = LoginTarget::parse(&args.target, args.config.as_deref())?;
    let screen = Arc::new(StderrScreen::new(false, false));
    let authorizer = authorizer(&target, paste_agent(&screen, None), open_store()?.store, |_| {});
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

fn print_warning(login: &EndedLogin) {
    let issuer = escape_line(&login.key.issuer);
    match &login.revocation {
        RevocationOutcome::Revoked => {}
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
        RevocationOutcome::Unsupported => {
            (false, Some("the authorization server has no revocation".to_owned()))
        }
        RevocationOutcome::Failed { url, reason } => (false, Some(format!("{url}: {reason}"))),
    };
    json!({ "server": login.key.server_url, "issuer": login.key.issuer, "revoked": revoked, "reason": reason })
}
