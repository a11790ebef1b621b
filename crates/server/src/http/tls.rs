use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::secret_file;

/// A certificate chain and its private key.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerTlsError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The key's file can be read by others than its owner.
    #[error("key file {0} can be read by others; make it private with `chmod 600`")]
    Exposed(PathBuf),
    /// A file does not hold what it should in PEM form.
    #[error("{path} holds no {what} in PEM form")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The certificate and the key cannot be used together.
    #[error("the certificate and the key cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
}

impl ServerTls {
    /// Reads a chain of certificates and a private key from PEM files.
    ///
    /// # Errors
    /// A file is unreadable, holds something else, or the key can be read by other users; or the two do not match.
    pub fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, ServerTlsError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |cause| ServerTlsError::Unreadable { path, cause }
        };
        if secret_file::is_exposed(key).map_err(unreadable(key))? {
            return Err(ServerTlsError::Exposed(key.to_owned()));
        }
        let chain_pem = std::fs::read(certificate).map_err(unreadable(certificate))?;
        let key_pem = std::fs::read(key).map_err(unreadable(key))?;
        let not_pem = |path: &Path, what| ServerTlsError::NotPem { path: path.to_owned(), what };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain_pem)
            .collect::<Result<_, pem::Error>>()
            .map_err(|_| not_pem(certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(not_pem(certificate, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| not_pem(key, "private key"))?;
        Self::new(chain, key)
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, ServerTlsError> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let mut config = builder
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(ServerTlsError::Unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.config.clone().into()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}
