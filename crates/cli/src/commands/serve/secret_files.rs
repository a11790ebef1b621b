//! The secret files of an endpoint: they are read again when they change and on SIGHUP, without a restart.

use std::convert::Infallible;
use std::path::PathBuf;

use trunkline_server::http::{BearerTokens, HttpServerOptions, ServerTls};
use trunkline_server::{Host, StateKeys};

use super::auth::ReloadableAuth;
use super::options::HttpArgs;
use super::session_store::OpenedStore;
use crate::file_watcher::FileWatcher;
use crate::signals::HangupSignals;
use crate::terminal::escape_line;

/// What was read from one or two files, and is replaced when they change.
enum ReloadableSecret {
    Tokens(PathBuf, BearerTokens),
    Certificate { certificate: PathBuf, key: PathBuf, tls: ServerTls },
    StateKeys(Vec<PathBuf>, Host, Option<OpenedStore>),
    Auth(Box<ReloadableAuth>),
}

impl ReloadableSecret {
    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Tokens(path, _) => vec![path.clone()],
            Self::Certificate { certificate, key, .. } => vec![certificate.clone(), key.clone()],
            Self::StateKeys(paths, ..) => paths.clone(),
            Self::Auth(auth) => auth.paths(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Tokens(..) => "tokens",
            Self::Certificate { .. } => "TLS certificate",
            Self::StateKeys(..) => "state keys",
            Self::Auth(_) => "[auth]",
        }
    }

    /// Reads the files again; returns what has changed, if anything.
    ///
    /// # Errors
    /// The reason why they cannot be used; the previous content stays in use.
    fn reload(&self) -> Result<Option<String>, String> {
        match self {
            Self::Tokens(path, tokens) => {
                let changes = tokens.reload(path).map_err(|error| error.to_string())?;
                let has_changed = changes.added + changes.removed > 0;
                Ok(has_changed.then(|| format!("{} added, {} removed", changes.added, changes.removed)))
            }
            Self::Certificate { certificate, key, tls } => {
                let has_changed = tls.reload(certificate, key).map_err(|error| error.to_string())?;
                Ok(has_changed.then(|| "used for new connections".to_owned()))
            }
            Self::StateKeys(paths, host, store) => {
                let keys = StateKeys::from_files(paths).map_err(|error| error.to_string())?;
                if let Some(store) = store {
                    store.replace_keys(&keys);
                }
                Ok(host.replace_state_keys(&keys).then(|| format!("{} in use", paths.len())))
            }
            Self::Auth(auth) => auth.reload(),
        }
    }
}

/// The secret files that a server follows.
pub(super) struct SecretFiles {
    secrets: Vec<FollowedSecret>,
}

struct FollowedSecret {
    secret: ReloadableSecret,
    /// What was wrong with its files when they were last read: it is logged once.
    last_problem: Option<String>,
}

impl SecretFiles {
    /// Collects what was read at the start.
    pub(super) fn new(
        args: &HttpArgs,
        tokens: Option<(PathBuf, BearerTokens)>,
        auth: Option<ReloadableAuth>,
        options: &HttpServerOptions,
        host: &Host,
        store: Option<&OpenedStore>,
    ) -> Self {
        let mut secrets = Vec::new();
        secrets.extend(tokens.map(|(path, tokens)| ReloadableSecret::Tokens(path, tokens)));
        secrets.extend(auth.map(|auth| ReloadableSecret::Auth(Box::new(auth))));
        if let ([certificate, key], Some(tls)) = (args.tls.as_slice(), options.tls.clone()) {
            let (certificate, key) = (certificate.clone(), key.clone());
            secrets.push(ReloadableSecret::Certificate { certificate, key, tls });
        }
        if !args.state_key.is_empty() {
            let (paths, store) = (args.state_key.clone(), store.cloned());
            secrets.push(ReloadableSecret::StateKeys(paths, host.clone(), store));
        }
        let followed = |secret| FollowedSecret { secret, last_problem: None };
        Self { secrets: secrets.into_iter().map(followed).collect() }
    }

    /// Reads the files again whenever they change, and on SIGHUP. It never returns.
    pub(super) async fn follow(mut self, mut hangups: HangupSignals) -> Infallible {
        if self.secrets.is_empty() {
            return std::future::pending().await;
        }
        let paths = self.secrets.iter().flat_map(|followed| followed.secret.paths());
        let mut watch = FileWatcher::start(paths.collect());
        loop {
            let asked = tokio::select! {
                () = watch.changed() => false,
                () = hangups.next() => true,
            };
            self.secrets.iter_mut().for_each(|followed| followed.reload(asked));
        }
    }
}

impl FollowedSecret {
    fn reload(&mut self, asked: bool) {
        let name = self.secret.name();
        let outcome = self.secret.reload();
        let problem = outcome.as_ref().err().cloned();
        let is_new = self.last_problem != problem;
        self.last_problem = problem;
        match outcome {
            Ok(Some(change)) => tracing::info!("reloaded {name}: {change}"),
            Ok(None) if asked => tracing::info!("reloaded {name}: no change"),
            Err(problem) if asked || is_new => {
                tracing::error!("cannot reload {name}, keeping the previous ones: {}", escape_line(&problem));
            }
            Ok(None) | Err(_) => {}
        }
    }
}
