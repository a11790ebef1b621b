use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use trunkline_hub::UserLogins;
use trunkline_server::http::resource_server::ResourceServer;
use trunkline_server::http::{AnonymousAuthenticator, Authenticator, BearerTokens, ProtectedResource};

use super::settings::AuthSettings;
use crate::commands::serve::options::HttpArgs;
use crate::exit::CliFailure;
use crate::values::{AuthSource, parse_public_url};

/// How the clients of an endpoint are authenticated.
pub(in crate::commands::serve) struct InboundAuth {
    pub(in crate::commands::serve) authenticator: Arc<dyn Authenticator>,
    /// The metadata of an endpoint with static tokens only.
    pub(in crate::commands::serve) protected_resource: Option<ProtectedResource>,
    /// The file of static tokens.
    pub(in crate::commands::serve) tokens: Option<(PathBuf, BearerTokens)>,
    /// The table, which is read again when its file changes.
    pub(in crate::commands::serve) table: Option<ReloadableAuth>,
}

/// A resource server that follows its table.
pub(in crate::commands::serve) struct ReloadableAuth {
    server: ResourceServer,
    settings: Mutex<AuthSettings>,
    resource: String,
    endpoint_path: String,
    tokens: Option<BearerTokens>,
    /// The connect pages, at which users sign in at the issuers.
    logins: Option<UserLogins>,
}

impl InboundAuth {
    /// Reads what the options and the table name.
    ///
    /// # Errors
    /// A file or a value cannot be used, or there is no public URL for access tokens.
    pub(in crate::commands::serve) fn new(
        args: &HttpArgs,
        settings: Option<AuthSettings>,
        logins: Option<&UserLogins>,
    ) -> Result<Self, CliFailure> {
        if settings.is_some() && args.insecure_no_auth {
            return Err(CliFailure::configuration("`--insecure-no-auth` contradicts the table [auth]")
                .hint("leave out one of both"));
        }
        let tokens = read_tokens(args, settings.as_ref())?;
        let static_tokens = tokens.as_ref().map(|(_, tokens)| tokens.clone());
        let url = public_url(args, settings.as_ref())?;
        let Some(settings) = settings.filter(AuthSettings::has_issuers) else {
            if url.is_some() && tokens.is_none() {
                return Err(CliFailure::configuration("`--public-url` needs authentication")
                    .hint("add `--auth bearer:FILE`, or a table [auth] to the config file"));
            }
            let authenticator: Arc<dyn Authenticator> = match static_tokens {
                Some(tokens) => Arc::new(tokens),
                None => Arc::new(AnonymousAuthenticator),
            };
            return Ok(Self { authenticator, protected_resource: url, tokens, table: None });
        };
        let url = url.ok_or_else(|| {
            CliFailure::configuration("access tokens of [auth] need the public URL of the MCP endpoint")
                .hint("set `public_url` under [auth], or `--public-url https://hub.example/mcp`")
        })?;
        let (resource, endpoint_path) = (url.resource().to_owned(), args.path.clone());
        let options = settings.options(&resource, &endpoint_path, static_tokens.clone());
        let server = options.map(ResourceServer::new).map_err(CliFailure::configuration)?;
        let server = server.map_err(|error| {
            CliFailure::configuration(format!(
                "[auth] in {} cannot be used: {error}",
                settings.file.display()
            ))
        })?;
        let authenticator = Arc::new(server.clone());
        let table = ReloadableAuth {
            server,
            settings: Mutex::new(settings),
            resource,
            endpoint_path,
            tokens: static_tokens,
            logins: logins.cloned(),
        };
        table.update_sign_ins();
        Ok(Self { authenticator, protected_resource: None, tokens, table: Some(table) })
    }
}

/// Reads the static tokens: those of `--auth`, or else those that the table names.
fn read_tokens(
    args: &HttpArgs,
    settings: Option<&AuthSettings>,
) -> Result<Option<(PathBuf, BearerTokens)>, CliFailure> {
    let of_table =
        settings.and_then(|settings| settings.table.tokens.as_deref().map(|path| settings.resolve(path)));
    let path = match &args.auth {
        Some(AuthSource::Bearer(path)) => Some(path.clone()),
        _ => of_table,
    };
    let Some(path) = path else { return Ok(None) };
    let tokens = BearerTokens::from_file(&path).map_err(|error| {
        CliFailure::configuration(error).hint("each line is NAME TOKEN, such as `ann 0f3a…`")
    })?;
    Ok(Some((path, tokens)))
}

fn public_url(
    args: &HttpArgs,
    settings: Option<&AuthSettings>,
) -> Result<Option<ProtectedResource>, CliFailure> {
    if args.public_url.is_some() {
        return Ok(args.public_url.clone());
    }
    let of_table = settings.and_then(|settings| settings.table.public_url.as_deref());
    of_table.map(|url| parse_public_url(url).map_err(CliFailure::configuration)).transpose()
}

impl ReloadableAuth {
    fn update_sign_ins(&self) {
        if let Some(logins) = &self.logins {
            logins.set_sign_ins(self.settings.lock().sign_ins(&self.resource));
        }
    }

    /// Returns the file of the table, and the one in which trust in it is recorded.
    pub(in crate::commands::serve) fn paths(&self) -> Vec<PathBuf> {
        let settings = self.settings.lock();
        std::iter::once(settings.file.clone()).chain(settings.trust_record()).collect()
    }

    /// Reads the table again; returns what has changed, if anything.
    ///
    /// # Errors
    /// The reason why it cannot be used; the previous one stays in use.
    pub(in crate::commands::serve) fn reload(&self) -> Result<Option<String>, String> {
        let mut settings = self.settings.lock();
        let new = settings.read_again().map_err(|failure| failure.to_string())?;
        if new == *settings {
            return Ok(None);
        }
        if (&new.table.tokens, &new.table.public_url) != (&settings.table.tokens, &settings.table.public_url)
        {
            return Err("changes to `tokens` and `public_url` under [auth] need a restart".to_owned());
        }
        let options = new.options(&self.resource, &self.endpoint_path, self.tokens.clone())?;
        self.server.replace(options).map_err(|error| error.to_string())?;
        let count = new.table.issuers.len();
        *settings = new;
        drop(settings);
        self.update_sign_ins();
        Ok(Some(format!("{count} {}", if count == 1 { "issuer" } else { "issuers" })))
    }
}
