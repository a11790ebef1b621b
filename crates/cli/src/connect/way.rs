use trunkline_client::config::{over_http, pinned};
use trunkline_client::transport::Target;
use trunkline_client::{Builder, OverHttp};
use trunkline_config::ServerConfig;
use trunkline_protocol::{Era, Revision};

use super::options::ReachArgs;
use super::resolve::Resolved;
use crate::exit::Failure;

/// The way to a server: where it is, what is shown to it, and what is spoken with it.
pub(crate) struct Way {
    pub(crate) target: Target,
    headers: Vec<(String, String)>,
    era: Option<Era>,
    revision: Option<Revision>,
    over_http: OverHttp,
    configured: Option<ServerConfig>,
}

impl Way {
    /// Puts together what the command line and the configuration say.
    ///
    /// # Errors
    /// A secret is not where it should be.
    pub(crate) fn new(args: &ReachArgs, resolved: &Resolved) -> Result<Self, Failure> {
        let headers = headers(args, resolved)?;
        let over_http =
            resolved.configured.as_ref().map(|server| over_http(&server.reach)).unwrap_or_default();
        let target = resolved.target.clone();
        let configured = resolved.configured.clone();
        Ok(Self { target, headers, era: args.era, revision: args.revision, over_http, configured })
    }

    /// Prepares a connection.
    pub(crate) fn prepare(&self, mut builder: Builder) -> Builder {
        builder = builder.over_http(self.over_http);
        // What the command line says counts over what the configuration says.
        if let Some(server) = &self.configured {
            builder = pinned(builder, server);
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

/// Reports whether something is shown to the server that says who we are.
pub(crate) fn shows_credentials(args: &ReachArgs, resolved: &Resolved) -> bool {
    let typed = args.header.iter().map(|header| header.name.as_str());
    let configured = resolved.headers.iter().map(|(name, _)| name.as_str());
    args.bearer.is_some() || typed.chain(configured).any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Puts the headers together: one of the command line replaces the configuration's of the same name.
fn headers(args: &ReachArgs, resolved: &Resolved) -> Result<Vec<(String, String)>, Failure> {
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

fn secret_failure(option: &str, problem: &str) -> Failure {
    Failure::configuration(format!("`{option}`: {problem}"))
        .hint("env:NAME is a variable and @FILE the first line of a file")
}
