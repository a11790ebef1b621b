use std::sync::Arc;

use trunkline_server::{Server, Tool};

use super::tool::Described;
use crate::audit::Doorkeeper;
use crate::policy::Policy;
use crate::run::{Shelf, ShelfProvider};

/// Described commands and the policy that they are under.
#[derive(Clone, Debug, Default)]
pub struct DescribedSet {
    commands: Vec<Described>,
    policy: Policy,
}

impl DescribedSet {
    /// Puts commands under a policy.
    pub fn new(commands: Vec<Described>, policy: Policy) -> Self {
        Self { commands, policy }
    }

    /// Returns the commands, hidden ones too.
    pub fn commands(&self) -> &[Described] {
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
        self.policy.warn_of_idle_rules(&names);
        let (shown, hidden): (Vec<&Described>, Vec<&Described>) =
            self.commands.iter().partition(|command| self.policy.decide(&[command.name()]).is_allowed());
        let shelf: Arc<Shelf> = Arc::default();
        let tool = |command: &Described| command.clone().tool_with(Some(shelf.clone()));
        let tools: Vec<Tool> = shown.into_iter().map(tool).collect();
        let names =
            hidden.into_iter().map(|command| (command.name().to_owned(), vec![command.name().to_owned()]));
        let doorkeeper = Doorkeeper {
            policy: Arc::new(self.policy.clone()),
            hidden: Arc::new(names.collect()),
            ..Doorkeeper::default()
        };
        if self.commands.is_empty() {
            return server;
        }
        server.with(tools).offers_tools().layer(doorkeeper).resources_from(ShelfProvider(shelf))
    }
}
