use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use trunkline_session::{SecretExposure, secret_file_exposure};

/// A certificate chain and its private key, which can be replaced while the server runs. Clones share them.
#[derive(Clone)]
pub struct ServerTls {
    current: Arc<ArcSwap<TlsIdentity>>,
}

/// A certificate chain and its key, ready for handshakes.
struct TlsIdentity {
    config: Arc<ServerConfig>,
    /// The hash of both files, to detect a change.
    digest: [u8; 32],
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
    /// Other users can get at the secret in the file.
    #[error("key file {} {exposure}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// How they can.
        exposure: SecretExposure,
    },
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
        let identity = TlsIdentity::from_pem_files(certificate, key)?;
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(identity)) })
    }

    /// Reads the files again, for the handshakes from now on; open connections continue. Returns whether the files have
    /// changed.
    ///
    /// # Errors
    /// As [`ServerTls::from_pem_files`]; the previous certificate stays in use then.
    pub fn reload(&self, certificate: &Path, key: &Path) -> Result<bool, ServerTlsError> {
        let identity = TlsIdentity::from_pem_files(certificate, key)?;
        let has_changed = self.current.load().digest != identity.digest;
        if has_changed {
            self.current.store(Arc::new(identity));
        }
        Ok(has_changed)
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.load().config.clone().into()
    }
}

impl TlsIdentity {
    fn from_pem_files(certificate: &Path, key: &Path) -> Result<Self, ServerTlsError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |cause| ServerTlsError::Unreadable { path, cause }
        };
        if let Some(exposure) = secret_file_exposure(key).map_err(unreadable(key))? {
            return Err(ServerTlsError::Exposed { path: key.to_owned(), exposure });
        }
        let chain_pem = std::fs::read(certificate).map_err(unreadable(certificate))?;
        let key_pem = std::fs::read(key).map_err(unreadable(key))?;
        let digest =
            Sha256::new_with_prefix(Sha256::digest(&chain_pem)).chain_update(&key_pem).finalize().into();
        let not_pem = |path: &Path, what| ServerTlsError::NotPem { path: path.to_owned(), what };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain_pem)
            .collect::<Result<_, pem::Error>>()
            .map_err(|_| not_pem(certificate, "certificate"))?;
        if chain.is_empty() {
            return Err(not_pem(certificate, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| not_pem(key, "private key"))?;
        Ok(Self { config: server_config(chain, key)?, digest })
    }
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, ServerTlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(ServerTlsError::Unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}
