use trunkline_client::config::{http_transport, with_pinned_revision};
use trunkline_client::transport::Target;
use trunkline_client::{ClientBuilder, HttpTransportKind};
use trunkline_config::ServerConfig;
use trunkline_protocol::{Era, Revision};

use super::options::TargetOptionArgs;
use super::resolve::ResolvedTarget;
use crate::exit::CliFailure;

/// Settings of a connection: target, credentials and protocol version.
pub(crate) struct ConnectSettings {
    pub(crate) target: Target,
    headers: Vec<(String, String)>,
    era: Option<Era>,
    revision: Option<Revision>,
    http_transport: HttpTransportKind,
    configured: Option<ServerConfig>,
}

impl ConnectSettings {
    /// Reports whether requests have an `Authorization` header of the command line or the configuration.
    pub(crate) fn has_authorization(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }

    /// Combines the command line and the configuration.
    ///
    /// # Errors
    /// A secret is not where it should be.
    pub(crate) fn new(args: &TargetOptionArgs, resolved: &ResolvedTarget) -> Result<Self, CliFailure> {
        let headers = headers(args, resolved)?;
        let http_transport =
            resolved.configured.as_ref().map(|server| http_transport(&server.location)).unwrap_or_default();
        let target = resolved.target.clone();
        let configured = resolved.configured.clone();
        Ok(Self { target, headers, era: args.era, revision: args.revision, http_transport, configured })
    }

    /// Prepares a connection.
    pub(crate) fn prepare(&self, mut builder: ClientBuilder) -> ClientBuilder {
        builder = builder.http_transport(self.http_transport);
        // The command line takes precedence over the configuration.
        if let Some(server) = &self.configured {
            builder = with_pinned_revision(builder, server);
        }
        if let Some(era) = self.era {
            builder = builder.era(era);
        }
        if let Some(revision) = self.revision {
            builder = builder.pin(revision);
        }
        self.headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value))
    }
}

/// Reports whether credentials are sent to the server.
pub(crate) fn has_credentials(args: &TargetOptionArgs, resolved: &ResolvedTarget) -> bool {
    let typed = args.header.iter().map(|header| header.name.as_str());
    let configured = resolved.headers.iter().map(|(name, _)| name.as_str());
    args.bearer.is_some() || typed.chain(configured).any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Puts the headers together: one of the command line replaces the configuration's of the same name.
fn headers(args: &TargetOptionArgs, resolved: &ResolvedTarget) -> Result<Vec<(String, String)>, CliFailure> {
    let mut typed = Vec::new();
    for header in &args.header {
        let value = header.value.fetch().map_err(|problem| secret_failure("--header", &problem))?;
        typed.push((header.name.clone(), value));
    }
    if let Some(source) = &args.bearer {
        let token = source.fetch().map_err(|problem| secret_failure("--bearer", &problem))?;
        typed.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    let is_typed = |name: &str| typed.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let kept = resolved.headers.iter().filter(|(name, _)| !is_typed(name));
    let mut headers: Vec<_> = kept.cloned().collect();
    headers.append(&mut typed);
    Ok(headers)
}

fn secret_failure(option: &str, problem: &str) -> CliFailure {
    CliFailure::configuration(format!("`{option}`: {problem}"))
        .hint("use env:NAME for an environment variable, @FILE for the first line of a file")
}
