use std::convert::Infallible;
use std::task::Poll;

use trunkline_config::ServerConfig;
use trunkline_server::{Host, HostOptions};

use super::ServeArgs;
use super::gateway::{Gateway, begin};
use super::plan::Source;
use crate::audit::{Arguments, Audit};
use crate::builtin::{self, Builtin};
use crate::exit::{Exit, Failure};

/// What is served: built-in servers as they are, or what a file says.
#[derive(Debug)]
pub(super) enum Offer {
    /// Without a file: no hub is in the way.
    Builtin(Vec<Builtin>),
    /// The hub of a file, and the servers that it begins with.
    Hub(Gateway, Vec<ServerConfig>),
}

impl Offer {
    /// Reads the file, if there is one. It has to be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn of(args: &ServeArgs) -> Result<Self, Failure> {
        let source = if args.no_config { None } else { Source::of(args.config.as_deref()) };
        match source {
            Some(source) => {
                let plan = source.read()?;
                for note in plan.file.notes() {
                    tracing::info!("{note}");
                }
                let gateway = Gateway::new(args, plan)?;
                let servers = gateway.prepare(&gateway.plan())?;
                Ok(Self::Hub(gateway, servers))
            }
            None if args.builtin.is_empty() => Ok(Self::Builtin(Builtin::ALL.to_vec())),
            None => Ok(Self::Builtin(args.builtin.clone())),
        }
    }

    /// Opens the file to which a line for each call is appended, if somebody wants that.
    ///
    /// # Errors
    /// It cannot be opened, or there is none that arguments could be written into.
    pub(super) fn audit(&self, args: &ServeArgs) -> Result<Option<Audit>, Failure> {
        let said = self.gateway().map(|gateway| gateway.plan().audit.clone()).unwrap_or_default();
        let Some(file) = args.audit.clone().or(said.file) else {
            return match args.audit_arguments {
                true => Err(Failure::configuration("there is no audit log to write arguments into")
                    .hint("name one with `--audit FILE`, or in the table [audit] of the file")),
                false => Ok(None),
            };
        };
        let written = args.audit_arguments || said.arguments;
        let arguments = if written { Arguments::Written } else { Arguments::Counted };
        let audit = Audit::open(&file, arguments).map_err(|error| {
            Failure::configuration(format!("audit log {} cannot be opened: {error}", file.display()))
                .hint("give a file in a folder that exists and that you may write to")
        })?;
        Ok(Some(match self.gateway() {
            Some(gateway) => {
                // What the hub keeps must not keep the hub.
                gateway.set_audit(audit.clone());
                audit.with_index(gateway.clone())
            }
            None => audit,
        }))
    }

    /// Makes it ready to be served.
    ///
    /// # Errors
    /// There is no key for state.
    pub(super) fn host(&self, options: HostOptions) -> Result<Host, Failure> {
        match self {
            Self::Builtin(builtin) => builtin::server(builtin).host(options),
            Self::Hub(gateway, _) => Host::new(gateway.hub().clone(), options).map_err(Into::into),
        }
        .map_err(|error| Failure::new(Exit::Failed, error))
    }

    pub(super) fn gateway(&self) -> Option<&Gateway> {
        match self {
            Self::Builtin(_) => None,
            Self::Hub(gateway, _) => Some(gateway),
        }
    }

    /// Begins to make a hub what its file says. When this returns its servers are known, and may be asked for; what it
    /// returns connects to them, follows the file, and never ends.
    pub(super) async fn begin(&self) -> Option<impl Future<Output = Infallible> + use<>> {
        let Self::Hub(gateway, servers) = self else { return None };
        gateway.tell_all();
        let (gateway, servers) = (gateway.clone(), servers.clone());
        let mut keeping = Box::pin(async move { gateway.keep(servers).await });
        // The servers are made known before the first of them is waited for.
        match begin(&mut keeping).await {
            Poll::Ready(never) => match never {},
            Poll::Pending => Some(keeping),
        }
    }

    /// Ends every program that was started. Who is in a hurry does not wait for them: without us they are ended.
    pub(super) async fn end(&self, in_a_hurry: bool) {
        let Some(gateway) = self.gateway() else { return };
        gateway.leave();
        if !in_a_hurry {
            gateway.shutdown().await;
        }
    }

    /// Lists what is served for a person to read.
    pub(super) fn names(&self) -> String {
        match self {
            Self::Builtin(builtin) => builtin::names(builtin),
            Self::Hub(gateway, _) => gateway.summary(),
        }
    }
}
