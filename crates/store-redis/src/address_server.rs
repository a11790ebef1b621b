//! How connections to an address are made.

use std::path::Path;

use redis::cluster::ClusterClientBuilder;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisError,
    TlsCertificates, TlsMode,
};
use tokio::sync::Mutex;

use crate::address::Topology;
use crate::connection::RedisServer;
use crate::{AddressError, RedisAddress};

/// No password or certificate file is larger.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl RedisAddress {
    /// Reads the files of the address and prepares connections.
    pub(crate) fn server(&self) -> Result<RedisServer, AddressError> {
        let password = match &self.password_file {
            Some(path) => Some(read_file(path)?.lines().next().unwrap_or_default().trim().to_owned()),
            None => self.password.clone(),
        };
        let ca = self.ca_file.as_deref().map(read_file).transpose()?;
        let certificates =
            ca.map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem.into_bytes()) });
        let server = match &self.topology {
            Topology::Single { database } => self.single(*database, password, certificates),
            Topology::Sentinel { name, database } => self.sentinel(name, *database, password, certificates),
            Topology::Cluster => self.cluster(password, certificates),
        };
        server.map_err(|error| AddressError::Rejected(error.to_string()))
    }

    fn addresses(&self) -> impl Iterator<Item = ConnectionAddr> {
        self.hosts.iter().map(|(host, port)| match self.is_encrypted {
            true => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
            false => ConnectionAddr::Tcp(host.clone(), *port),
        })
    }

    fn connection_infos(&self, settings: &RedisConnectionInfo) -> Result<Vec<ConnectionInfo>, RedisError> {
        let infos = self
            .addresses()
            .map(|address| Ok(address.into_connection_info()?.set_redis_settings(settings.clone())));
        infos.collect()
    }

    fn settings(&self, database: i64, password: Option<String>) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        settings
    }

    fn single(
        &self,
        database: i64,
        password: Option<String>,
        certificates: Option<TlsCertificates>,
    ) -> Result<RedisServer, RedisError> {
        let infos = self.connection_infos(&self.settings(database, password))?;
        let info = infos.into_iter().next().ok_or((redis::ErrorKind::InvalidClientConfig, "no host"))?;
        let client = match certificates {
            Some(certificates) => Client::build_with_tls(info, certificates)?,
            None => Client::open(info)?,
        };
        Ok(RedisServer::Single(Box::new(client)))
    }

    fn sentinel(
        &self,
        name: &str,
        database: i64,
        password: Option<String>,
        certificates: Option<TlsCertificates>,
    ) -> Result<RedisServer, RedisError> {
        let mut builder = SentinelClientBuilder::new(self.addresses(), name, SentinelServerType::Master)?
            .set_client_to_redis_db(database);
        if let Some(user) = &self.user {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = password {
            builder = builder.set_client_to_redis_password(password);
        }
        if self.is_encrypted {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = certificates {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        Ok(RedisServer::Sentinel(Box::new(Mutex::new(builder.build()?))))
    }

    fn cluster(
        &self,
        password: Option<String>,
        certificates: Option<TlsCertificates>,
    ) -> Result<RedisServer, RedisError> {
        let infos = self.connection_infos(&self.settings(0, password))?;
        let mut builder = ClusterClientBuilder::new(infos);
        if let Some(certificates) = certificates {
            builder = builder.certs(certificates);
        }
        Ok(RedisServer::Cluster(Box::new(builder.build()?)))
    }
}

fn read_file(path: &Path) -> Result<String, AddressError> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    match read {
        Ok(0) => Err(AddressError::File { path: path.to_owned(), cause: "it is empty".to_owned() }),
        Ok(_) => Ok(text),
        Err(error) => Err(AddressError::File { path: path.to_owned(), cause: error.to_string() }),
    }
}
