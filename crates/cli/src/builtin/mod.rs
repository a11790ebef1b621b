//! The built-in servers: small, real, and there to try a client against.

mod echo;
mod time;

use clap::ValueEnum;
use trunkline_server::Server;

/// A built-in server, by the name that `--builtin` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuiltinServer {
    Echo,
    Time,
}

impl BuiltinServer {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Echo, Self::Time];

    fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Time => "time",
        }
    }

    fn add_to(self, server: Server) -> Server {
        match self {
            Self::Echo => server.with(echo::parts),
            Self::Time => server.with(time::parts),
        }
    }
}

/// Puts built-in servers together into one; a name that is given twice counts once.
pub(crate) fn server(chosen: &[BuiltinServer]) -> Server {
    let server = Server::new("trunkline").version(env!("CARGO_PKG_VERSION"));
    distinct(chosen).into_iter().fold(server, |server, builtin| builtin.add_to(server))
}

/// Lists the names of built-in servers for display.
pub(crate) fn names(chosen: &[BuiltinServer]) -> String {
    distinct(chosen).into_iter().map(BuiltinServer::name).collect::<Vec<_>>().join(", ")
}

fn distinct(chosen: &[BuiltinServer]) -> Vec<BuiltinServer> {
    let all = BuiltinServer::value_variants().iter().copied();
    all.filter(|builtin| chosen.contains(builtin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_server_builds_alone_and_with_the_others() {
        for builtin in BuiltinServer::value_variants() {
            server(&[*builtin]).handle().unwrap();
            assert_eq!(builtin.to_possible_value().unwrap().get_name(), builtin.name());
        }
        server(BuiltinServer::value_variants()).handle().unwrap();
        server(&[BuiltinServer::Echo, BuiltinServer::Echo]).handle().unwrap();
    }
}
