use std::sync::Arc;

use trunkline_server::{Server, Tool};

use super::tool::DescribedCommand;
use crate::audit::HiddenToolInterceptor;
use crate::policy::Policy;
use crate::run::{OutputStore, OutputStoreProvider};

/// Described commands and their policy.
#[derive(Clone, Debug, Default)]
pub struct DescribedSet {
    commands: Vec<DescribedCommand>,
    policy: Policy,
}

impl DescribedSet {
    /// Creates a set of commands under a policy.
    pub fn new(commands: Vec<DescribedCommand>, policy: Policy) -> Self {
        Self { commands, policy }
    }

    /// Returns the commands, hidden ones too.
    pub fn commands(&self) -> &[DescribedCommand] {
        &self.commands
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Adds the tools that the policy allows to a server, and an audit log for calls of the others.
    pub fn add_to(&self, server: Server) -> Server {
        let names: Vec<Vec<String>> =
            self.commands.iter().map(|command| vec![command.name().to_owned()]).collect();
        self.policy.warn_unused_rules(&names);
        let (shown, hidden): (Vec<&DescribedCommand>, Vec<&DescribedCommand>) =
            self.commands.iter().partition(|command| self.policy.decide(&[command.name()]).is_allowed());
        let output_store: Arc<OutputStore> = Arc::default();
        let tool =
            |command: &DescribedCommand| command.clone().into_tool_with_store(Some(output_store.clone()));
        let tools: Vec<Tool> = shown.into_iter().map(tool).collect();
        let names =
            hidden.into_iter().map(|command| (command.name().to_owned(), vec![command.name().to_owned()]));
        let interceptor = HiddenToolInterceptor {
            policy: Arc::new(self.policy.clone()),
            hidden: Arc::new(names.collect()),
            ..HiddenToolInterceptor::default()
        };
        if self.commands.is_empty() {
            return server;
        }
        server
            .with(tools)
            .advertise_tools()
            .layer(interceptor)
            .resources_from(OutputStoreProvider(output_store))
    }
}
