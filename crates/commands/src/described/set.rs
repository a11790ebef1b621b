use std::sync::Arc;

use trunkline_server::{Server, Tool};

use super::tool::DescribedCommand;
use crate::audit::HiddenToolInterceptor;
use crate::policy::Policy;
use crate::run::{OutputStore, OutputStoreProvider};

/// Described commands and the policy that they are under.
#[derive(Clone, Debug, Default)]
pub struct DescribedSet {
    commands: Vec<DescribedCommand>,
    policy: Policy,
}

impl DescribedSet {
    /// Puts commands under a policy.
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

    /// Adds the tools of what the policy shows to a server, and the log of who asks for the rest.
    pub fn add_to(&self, server: Server) -> Server {
        let names: Vec<Vec<String>> =
            self.commands.iter().map(|command| vec![command.name().to_owned()]).collect();
        self.policy.warn_unused_rules(&names);
        let (shown, hidden): (Vec<&DescribedCommand>, Vec<&DescribedCommand>) =
            self.commands.iter().partition(|command| self.policy.decide(&[command.name()]).is_allowed());
        let shelf: Arc<OutputStore> = Arc::default();
        let tool = |command: &DescribedCommand| command.clone().into_tool_with_store(Some(shelf.clone()));
        let tools: Vec<Tool> = shown.into_iter().map(tool).collect();
        let names =
            hidden.into_iter().map(|command| (command.name().to_owned(), vec![command.name().to_owned()]));
        let doorkeeper = HiddenToolInterceptor {
            policy: Arc::new(self.policy.clone()),
            hidden: Arc::new(names.collect()),
            ..HiddenToolInterceptor::default()
        };
        if self.commands.is_empty() {
            return server;
        }
        server.with(tools).advertise_tools().layer(doorkeeper).resources_from(OutputStoreProvider(shelf))
    }
}
