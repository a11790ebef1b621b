use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use clap::{Args, ValueHint};
use serde_json::json;
use tokio::sync::oneshot;
use trunkline_client::authorization::{
    AuthorizationOptions, Authorizer, ClientCredential, ClientStorage, ScopeSet, StoredTokens,
};
use trunkline_client::transport::Secret;

use crate::admin::{AdminClient, AdminError, AdminFailureKind};
use crate::connect::{in_runtime, interrupted, print_stdout};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::login::{
    LoginTarget, authorizer, browser_agent, describe_expiry, login_failure, open_store, paste_agent,
    scope_text,
};
use crate::render::one_line;
use crate::signals::Signals;
use crate::terminal::{StderrScreen, escape_line};
use crate::values::{SecretSource, parse_bearer};

/// Log in to a remote server
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline login [OPTIONS] TARGET",
    after_help = "TARGET is a URL, or a configured name of a remote server. If a hub of yours runs\nfrom the same config file, you log in at its page. Every client command then\nuses the login. Tokens are stored in a file that only you can read; set\nTRUNKLINE_LOGIN_KEY to a key file to seal it.\n\nExamples:\n  trunkline login https://example.com/mcp\n  trunkline login shop --no-browser\n  trunkline login shop --client-id my-app --client-secret env:SECRET"
)]
pub(crate) struct LoginArgs {
    /// Server to log in to
    target: String,
    /// Print the URL of the login page, and read the
    /// redirect URL that you paste
    #[arg(verbatim_doc_comment, long)]
    no_browser: bool,
    /// Scope to request in addition; repeatable
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Client that you registered with the issuer
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Its secret, from env:NAME or @FILE
    #[arg(long, value_name = "SOURCE", value_parser = parse_bearer, requires = "client_id")]
    client_secret: Option<SecretSource>,
    /// Only accept this authorization server
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    issuer: Option<String>,
    /// Port of http://127.0.0.1:PORT/callback, if the
    /// client is registered with one
    #[arg(verbatim_doc_comment, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Config file to look up names in
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
}

/// Logs in.
///
/// # Errors
/// A step of the login failed.
pub(crate) fn run(args: &LoginArgs) -> Result<(), CliFailure> {
    in_runtime(args.json, async |signals| log_in(args, signals).await)
}

async fn log_in(args: &LoginArgs, signals: &mut Signals) -> Result<(), CliFailure> {
    let target = LoginTarget::parse(&args.target, args.config.as_deref())?;
    let authorizer = prepare(args, &target)?;
    let hub = running_hub(&target)?;
    let is_done = match hub.as_ref().filter(|_| !args.has_own_flow()) {
        Some(hub) => log_in_through(hub, &target, signals).await?,
        None => false,
    };
    if !is_done {
        tokio::select! {
            done = authorizer.log_in() => {
                done.map_err(|error| login_failure(&error).with_subject(&target.typed))?;
            }
            _ = signals.next() => return Err(interrupted()),
        }
        if let Some(Err(error)) = hub.map(|hub| hub.reload_tokens(&target.typed)) {
            print_stderr(&format!("warning: the running hub: {}\n", escape_line(&error.to_string())));
        }
    }
    let stored = authorizer.stored().await.map_err(|error| login_failure(&error))?;
    let stored = stored.ok_or_else(|| CliFailure::new(ExitReason::Failed, "the login was not stored"))?;
    print_login(args, &authorizer, &target, &stored)
}

impl LoginArgs {
    /// Reports whether options were given that only this command knows how to use.
    fn has_own_flow(&self) -> bool {
        self.no_browser
            || !self.scope.is_empty()
            || self.client_id.is_some()
            || self.issuer.is_some()
            || self.port.is_some()
    }
}

/// Finds the hub that runs from the file which configures a server.
fn running_hub(target: &LoginTarget) -> Result<Option<AdminClient>, CliFailure> {
    Ok(target.config_file.as_deref().map(AdminClient::find).transpose()?.flatten())
}

/// Logs in at the page of a running hub; reports whether the hub has one for the user of this machine.
async fn log_in_through(
    hub: &AdminClient,
    target: &LoginTarget,
    signals: &mut Signals,
) -> Result<bool, CliFailure> {
    let link = match hub.login_link(&target.typed) {
        Ok(link) => link,
        // It is of an earlier version.
        Err(AdminError::Refused(failure)) if failure.kind == AdminFailureKind::Request => return Ok(false),
        Err(error) => {
            return Err(CliFailure::from(error).hint("to use the server without the hub, log in to its URL"));
        }
    };
    print_stderr(&format!(
        "Log in in the browser; if it does not open, visit:\n  {}\nWaiting for the login. Ctrl-C cancels it.\n",
        escape_line(&link)
    ));
    if let Err(error) = trunkline_process::open_page(&link) {
        tracing::debug!(%error, "the browser cannot be opened");
    }
    let (hub, (sender, finished)) = (hub.clone(), oneshot::channel());
    // The socket is read without a runtime, and a cancelled login must not wait for it.
    std::thread::spawn(move || sender.send(hub.await_login(&link)));
    tokio::select! {
        finished = finished => match finished {
            Ok(finished) => finished.map_err(|error| CliFailure::from(error).with_subject(&target.typed))?,
            Err(_) => return Err(CliFailure::new(ExitReason::Failed, "the login was not waited for")),
        },
        _ = signals.next() => return Err(interrupted()),
    }
    Ok(true)
}

fn prepare(args: &LoginArgs, target: &LoginTarget) -> Result<Authorizer, CliFailure> {
    let screen = Arc::new(StderrScreen::new(false, false));
    let opened = open_store(target.config_file.as_deref())?;
    let credential = client_credential(args)?;
    let configure = |options: &mut AuthorizationOptions| {
        options.issuer = args.issuer.clone().or(options.issuer.take());
        options.scopes = options.scopes.union(&ScopeSet::parse(&args.scope.join(" ")));
        if let Some(client_id) = &args.client_id {
            // Nothing else has its secret, and later commands need it.
            options.client_storage = ClientStorage::WithSecret;
            options.preregistered.clear();
            *options = options.clone().with_client(client_id, credential);
        }
    };
    match args.no_browser {
        true => authorizer(target, paste_agent(&screen, args.port), opened.store, configure),
        false => authorizer(target, browser_agent(&screen, args.port), opened.store, configure),
    }
}

/// Fetches the secret of the client that the command line names.
fn client_credential(args: &LoginArgs) -> Result<ClientCredential, CliFailure> {
    let Some(source) = &args.client_secret else { return Ok(ClientCredential::Public) };
    let fetched = source.fetch().map_err(|problem| {
        CliFailure::configuration(format!("`--client-secret`: {problem}"))
            .hint("use env:NAME for an environment variable, @FILE for the first line of a file")
    })?;
    Ok(ClientCredential::Secret(Secret::new(fetched)))
}

fn print_login(
    args: &LoginArgs,
    authorizer: &Authorizer,
    target: &LoginTarget,
    stored: &StoredTokens,
) -> Result<(), CliFailure> {
    let tokens = &stored.tokens;
    if args.json {
        let login = super::logins::as_json(authorizer.server_url(), tokens);
        return print_stdout(&format!("{}\n", one_line(&json!(login).into())));
    }
    let user = tokens.user.as_deref().map(|user| format!(" as {}", escape_line(user))).unwrap_or_default();
    print_stdout(&format!(
        "logged in to {}{user}\n  issuer   {}\n  scopes   {}\n  expires  {}\n",
        escape_line(&target.typed),
        escape_line(&tokens.context.issuer),
        escape_line(&scope_text(&tokens.granted)),
        describe_expiry(tokens, SystemTime::now())
    ))
}
