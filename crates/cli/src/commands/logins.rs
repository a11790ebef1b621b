use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use trunkline_client::authorization::{SHARED_PRINCIPAL, TokenKey, TokenSet, TokenStoreError};
use trunkline_config::find::find_in_folder;

use crate::connect::{in_runtime, print_stdout};
use crate::exit::{CliFailure, print_stderr};
use crate::login::{LOGIN_PRINCIPAL, LoginStore, describe_expiry, open_store, scope_text};
use crate::render::one_line;
use crate::terminal::{OutputLayout, escape_line, table_keeping_first_column};

/// List the logins at remote servers
#[derive(Debug, Args)]
#[command(after_help = "Never prints a token. Contacts no server.")]
pub(crate) struct LoginsArgs {
    /// List the logins of all users of a hub
    #[arg(long)]
    all_users: bool,
    /// Config file with the [vault] of the logins; with
    /// --all-users [default: the one in this folder]
    #[arg(verbatim_doc_comment, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
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
    let found = || find_in_folder(Path::new("")).filter(|_| args.all_users);
    let opened = open_store(args.config.clone().or_else(found).as_deref())?;
    let logins = load(&opened, args.all_users).await.map_err(CliFailure::configuration)?;
    if args.json {
        let logins: Vec<_> = logins.iter().map(|login| login.to_json(args.all_users)).collect();
        let all = json!({ "file": opened.path, "protection": opened.protection, "logins": logins });
        return print_stdout(&format!("{}\n", one_line(&all.into())));
    }
    if logins.is_empty() {
        print_stderr("no logins; `trunkline login TARGET` adds one\n");
        return Ok(());
    }
    let now = SystemTime::now();
    let row = |StoredLogin { key, tokens }: &StoredLogin| {
        let cells = [
            key.server_url.clone(),
            tokens.user.clone().unwrap_or_else(|| "-".to_owned()),
            tokens.context.issuer.clone(),
            scope_text(&tokens.granted),
            describe_expiry(tokens, now),
            opened.protection.clone(),
        ];
        let mut cells = cells.map(|cell| escape_line(&cell).into_owned()).to_vec();
        if args.all_users {
            cells.insert(1, escape_line(owner_name(&key.principal)).into_owned());
        }
        cells
    };
    let mut head = ["SERVER", "USER", "ISSUER", "SCOPES", "EXPIRES", "STORED"].map(str::to_owned).to_vec();
    if args.all_users {
        head.insert(1, "PRINCIPAL".to_owned());
    }
    let rows: Vec<_> = logins.iter().map(row).collect();
    print_stdout(&table_keeping_first_column(&head, &rows, OutputLayout::stdout().columns))
}

struct StoredLogin {
    key: TokenKey,
    tokens: TokenSet,
}

impl StoredLogin {
    fn to_json(&self, has_owner: bool) -> Value {
        let mut login = as_json(&self.key.server_url, &self.tokens);
        if let Some(members) = login.as_object_mut().filter(|_| has_owner) {
            members.insert("principal".to_owned(), owner_name(&self.key.principal).into());
        }
        login
    }
}

/// Returns the principal that a login belongs to, as `trunkline logout --user` takes it.
fn owner_name(stored: &str) -> &str {
    match stored {
        LOGIN_PRINCIPAL => "(this user)",
        SHARED_PRINCIPAL => "(all users)",
        other => other.strip_prefix("user:").unwrap_or(other),
    }
}

async fn load(opened: &LoginStore, of_all_users: bool) -> Result<Vec<StoredLogin>, TokenStoreError> {
    let keys = match of_all_users {
        true => opened.store.list_all().await?,
        false => opened.store.list(LOGIN_PRINCIPAL).await?,
    };
    let mut logins = Vec::new();
    for key in keys {
        if let Some(stored) = opened.store.load(&key).await? {
            logins.push(StoredLogin { key, tokens: stored.tokens });
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
