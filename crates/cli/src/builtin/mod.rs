//! The built-in servers: small, real, and there to try a client against.

mod echo;
mod time;

use clap::ValueEnum;
use trunkline_server::Server;

/// A built-in server, by the name that `--builtin` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Builtin {
    Echo,
    Time,
}

impl Builtin {
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
pub(crate) fn server(chosen: &[Builtin]) -> Server {
    let server = Server::new("trunkline").version(env!("CARGO_PKG_VERSION"));
    distinct(chosen).into_iter().fold(server, |server, builtin| builtin.add_to(server))
}

/// Lists the names of built-in servers for a person to read.
pub(crate) fn names(chosen: &[Builtin]) -> String {
    distinct(chosen).into_iter().map(Builtin::name).collect::<Vec<_>>().join(", ")
}

fn distinct(chosen: &[Builtin]) -> Vec<Builtin> {
    let all = Builtin::value_variants().iter().copied();
    all.filter(|builtin| chosen.contains(builtin)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_server_builds_alone_and_with_the_others() {
        for builtin in Builtin::value_variants() {
            server(&[*builtin]).handle().unwrap();
            assert_eq!(builtin.to_possible_value().unwrap().get_name(), builtin.name());
        }
        server(Builtin::value_variants()).handle().unwrap();
        server(&[Builtin::Echo, Builtin::Echo]).handle().unwrap();
    }
}
