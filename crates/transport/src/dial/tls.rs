use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, InvalidMessage, RootCertStore};

use super::error::DialError;

/// The client side of TLS; root certificates are loaded on first use.
///
/// The roots are those of the system's trust store, so that a company's own authority works as in its browsers, and a
/// removed one is not trusted any more.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTls {
    extra_roots: Option<PathBuf>,
    config: Arc<OnceCell<Arc<ClientConfig>>>,
}

impl ClientTls {
    pub(super) fn new(extra_roots: Option<PathBuf>) -> Self {
        Self { extra_roots, config: Arc::default() }
    }

    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<TlsStream<TcpStream>, DialError> {
        let failed = |source| DialError::Tls { host: host.to_owned(), source };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| failed(io::Error::other("the host is not a name that a certificate can have")))?;
        let config = self.config().await?;
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|error| failed(if is_plain_text(&error) { plain_text_error() } else { error }))
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, DialError> {
        let load = || async {
            let extra = self.extra_roots.clone();
            // This may read some hundred files.
            let loaded = tokio::task::spawn_blocking(move || load_roots(extra.as_deref()));
            let roots = loaded.await.map_err(|_| DialError::Roots("loading them failed".to_owned()))??;
            let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok(Arc::new(config))
        };
        self.config.get_or_try_init(load).await.cloned()
    }
}

/// Reports whether the peer sent something other than TLS, as an HTTP server does that cannot read the handshake.
fn is_plain_text(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    matches!(error, Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)))
}

fn plain_text_error() -> io::Error {
    io::Error::other("the server does not use TLS on this port; try `http://` (or `ws://`)")
}

fn load_roots(extra: Option<&Path>) -> Result<RootCertStore, DialError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    if let Some(file) = extra {
        let unusable = |why: &dyn std::fmt::Display| DialError::Roots(format!("`{}`: {why}", file.display()));
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unusable(&error))?;
        let before = roots.len();
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unusable(&error))?;
            roots.add(certificate).map_err(|error| unusable(&error))?;
        }
        if roots.len() == before {
            return Err(unusable(&"there is no certificate in it"));
        }
    }
    if roots.is_empty() {
        let why = native.errors.first().map_or_else(
            || "this machine has none; install them, or name a file in SSL_CERT_FILE".to_owned(),
            ToString::to_string,
        );
        return Err(DialError::Roots(why));
    }
    Ok(roots)
}
