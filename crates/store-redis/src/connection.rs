//! Connections: to one server, to the primary that Sentinel names, or to a cluster.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::SentinelClient;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisFuture, RedisResult, Value};
use tokio::sync::Mutex;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A server, or a set of them, that connections are opened to.
pub(crate) enum RedisServer {
    Single(Box<Client>),
    /// The sentinels name the current primary for each connection.
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster(Box<ClusterClient>),
}

impl RedisServer {
    pub(crate) async fn connect(&self) -> RedisResult<OpenConnection> {
        // The link bounds the whole operation.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(None);
        match self {
            Self::Single(client) => {
                let connected = client.get_multiplexed_async_connection_with_config(&config).await;
                connected.map(OpenConnection::Single)
            }
            Self::Sentinel(client) => {
                let connected = client.lock().await.get_async_connection_with_config(&config).await;
                connected.map(OpenConnection::Single)
            }
            Self::Cluster(client) => {
                let config = ClusterConfig::new().set_connection_timeout(CONNECT_TIMEOUT);
                let connected = client.get_async_connection_with_config(config).await;
                connected.map(|connection| OpenConnection::Cluster(Box::new(connection)))
            }
        }
    }
}

/// An open connection, which its clones share.
#[derive(Clone)]
pub(crate) enum OpenConnection {
    Single(MultiplexedConnection),
    Cluster(Box<ClusterConnection>),
}

impl ConnectionLike for OpenConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(connection) => connection.req_packed_commands(pipeline, offset, count),
            Self::Cluster(connection) => connection.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(connection) => connection.get_db(),
            Self::Cluster(connection) => connection.get_db(),
        }
    }
}
