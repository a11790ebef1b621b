use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Value, json};
use trunkline_client::authorization::{TokenSet, TokenStoreError};

use crate::connect::{in_runtime, print_stdout};
use crate::exit::{CliFailure, print_stderr};
use crate::login::{LOGIN_PRINCIPAL, LoginStore, describe_expiry, open_store, scope_text};
use crate::render::one_line;
use crate::terminal::{OutputLayout, escape_line, table_keeping_first_column};

/// List the logins at remote servers
#[derive(Debug, Args)]
#[command(after_help = "Never prints a token. Contacts no server.")]
pub(crate) struct LoginsArgs {
    /// Print JSON on one line
    #[arg(long)]
    json: bool,
}

/// Lists logins.
///
/// # Errors
/// The stored logins cannot be read.
pub(crate) fn run(args: &LoginsArgs) -> Result<(), CliFailure> {
    in_runtime(args.json, async |_| list(args).await)
}

async fn list(args: &LoginsArgs) -> Result<(), CliFailure> {
    let opened = open_store()?;
    let logins = load(&opened).await.map_err(CliFailure::configuration)?;
    if args.json {
        let logins: Vec<_> = logins.iter().map(|(server, tokens)| as_json(server, tokens)).collect();
        let all = json!({ "file": opened.path, "protection": opened.protection, "logins": logins });
        return print_stdout(&format!("{}\n", one_line(&all.into())));
    }
    if logins.is_empty() {
        print_stderr("no logins; `trunkline login TARGET` adds one\n");
        return Ok(());
    }
    let now = SystemTime::now();
    let row = |(server, tokens): &(String, TokenSet)| {
        let cells = [
            server.clone(),
            tokens.user.clone().unwrap_or_else(|| "-".to_owned()),
            tokens.context.issuer.clone(),
            scope_text(&tokens.granted),
            describe_expiry(tokens, now),
            opened.protection.clone(),
        ];
        cells.map(|cell| escape_line(&cell).into_owned()).to_vec()
    };
    let head = ["SERVER", "USER", "ISSUER", "SCOPES", "EXPIRES", "STORED"].map(str::to_owned);
    let rows: Vec<_> = logins.iter().map(row).collect();
    print_stdout(&table_keeping_first_column(&head, &rows, OutputLayout::stdout().columns))
}

async fn load(opened: &LoginStore) -> Result<Vec<(String, TokenSet)>, TokenStoreError> {
    let mut logins = Vec::new();
    for key in opened.store.list(LOGIN_PRINCIPAL).await? {
        if let Some(stored) = opened.store.load(&key).await? {
            logins.push((key.server_url, stored.tokens));
        }
    }
    Ok(logins)
}

/// Describes a login for programs, without its tokens.
pub(super) fn as_json(server: &str, tokens: &TokenSet) -> Value {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "server": server,
        "user": tokens.user,
        "issuer": tokens.context.issuer,
        "clientId": tokens.context.client_id,
        "scopes": tokens.granted.iter().collect::<Vec<_>>(),
        "tokenType": tokens.kind.scheme(),
        "expiresAt": tokens.expires_at.map(seconds),
        "isRenewed": tokens.refresh_token.is_some(),
    })
}
