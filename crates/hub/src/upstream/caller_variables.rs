use std::sync::Arc;

use trunkline_config::{ConfigText, ServerConfig, ServerLocation};
use trunkline_server::{Env, Secret};

/// The variables of a caller that a server gets, as its configuration names them. Callers with equal values may share
/// connections. Debug output has no values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallerVariables(Option<Arc<[(String, Secret)]>>);

impl CallerVariables {
    /// Returns those that a server gets of a caller's.
    pub(super) fn for_server(config: &ServerConfig, env: &Env) -> Self {
        if config.caller_env.is_empty() || env.is_empty() {
            return Self::default();
        }
        let names = config.caller_env.iter();
        let values: Arc<[_]> = names.filter_map(|name| Some((name.clone(), env.get(name)?))).collect();
        Self((!values.is_empty()).then_some(values))
    }

    /// Reports whether the server gets none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds them to the configuration of a connection: to the environment of a program, or as headers of requests.
    /// A value of the caller replaces one of the file.
    pub(super) fn add_to(&self, mut config: ServerConfig) -> ServerConfig {
        for (name, value) in self.0.as_deref().unwrap_or_default() {
            let value = ConfigText::new(value.expose());
            match &mut config.location {
                ServerLocation::Program(program) => program.env.insert(name.clone(), value),
                ServerLocation::Endpoint(endpoint) => {
                    endpoint.headers.insert(format!("x-env-{}", name.to_ascii_lowercase()), value)
                }
            };
        }
        config
    }
}
