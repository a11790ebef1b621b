use std::path::{Path, PathBuf};

use trunkline_client::authorization::ScopeSet;
use trunkline_client::transport::{Target, Url};
use trunkline_config::ServerAuth;

use crate::connect::{ResolvedTarget, TargetOptionArgs, resolve};
use crate::exit::{CliFailure, ExitReason};

/// A remote server that a user can log in to.
#[derive(Clone, Debug)]
pub(crate) struct LoginTarget {
    pub(crate) url: Url,
    /// What the user types to name it.
    pub(crate) typed: String,
    /// The file that configures it, if it was found by name.
    pub(crate) config_file: Option<PathBuf>,
    /// How the configuration gets tokens for it.
    pub(crate) auth: Option<ServerAuth>,
    config: Option<PathBuf>,
}

impl LoginTarget {
    /// Returns the remote server of a resolved target; `None` for a program.
    pub(crate) fn new(resolved: &ResolvedTarget, config: Option<&Path>) -> Option<Self> {
        let Target::Url(url) = &resolved.target else { return None };
        let typed = match &resolved.configured {
            Some(server) => server.name.to_string(),
            None => url.to_string(),
        };
        let auth = resolved.configured.as_ref().map(|server| server.auth.clone());
        let (config_file, config) = (resolved.config_file.clone(), config.map(Path::to_owned));
        Some(Self { url: url.clone(), typed, config_file, auth, config })
    }

    /// Resolves a word of the command line.
    ///
    /// # Errors
    /// It names no server, or a program.
    pub(crate) fn parse(word: &str, config: Option<&Path>) -> Result<Self, CliFailure> {
        let target = word.parse::<Target>().map_err(|error| not_remote(&format!("`{word}`: {error}")))?;
        if matches!(target, Target::Command(_)) {
            return Err(not_remote(&format!("`{word}` is a program, which needs no login")));
        }
        let options = TargetOptionArgs { config: config.map(Path::to_owned), ..TargetOptionArgs::default() };
        let resolved = resolve(&options, target)?;
        Self::new(&resolved, config)
            .ok_or_else(|| not_remote(&format!("`{word}` is a program, which needs no login")))
    }

    /// Returns the command that logs in to this server.
    pub(crate) fn command(&self) -> String {
        let config = self.config.as_ref().map(|file| format!(" --config {}", file.display()));
        format!("trunkline login {}{}", self.typed, config.unwrap_or_default())
    }
}

impl LoginTarget {
    /// Returns the command that logs in with scopes that a token lacks.
    pub(super) fn command_for_scopes(&self, scopes: &ScopeSet) -> String {
        let scopes = scopes.iter().filter(|scope| is_plain_scope(scope));
        let scopes = scopes.map(|scope| format!(" --scope {scope}"));
        format!("{}{}", self.command(), scopes.collect::<String>())
    }
}

/// Reports whether a shell takes a scope for nothing but a word. A server may write anything, and users paste what is
/// suggested.
pub(crate) fn is_plain_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.chars().all(|c| c.is_ascii_alphanumeric() || "-._:/".contains(c))
}

fn not_remote(what: &str) -> CliFailure {
    CliFailure::new(ExitReason::Usage, what).hint("TARGET is a URL, or a configured name of a remote server")
}
