use std::io::Read as _;
use std::sync::Arc;

use trunkline_auth::authorizer::AuthorizationOptions;
use trunkline_auth::flow::DpopPolicy;
use trunkline_auth::jose::SigningKey;
use trunkline_auth::registration::{ClientCredential, ClientDocument, PreregisteredClient};
use trunkline_auth::scopes::ScopeSet;
use trunkline_client::Error;
use trunkline_config::{ConfigText, DpopUse, ServerAuth};

use super::server_authorizer::secret_of;

/// The longest private key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Applies the `auth` of a server in a configuration: its issuer, scopes, DPoP and client. A private key is read from its
/// file.
///
/// # Errors
/// [`Error::Invalid`]: the file or the URL of the client document cannot be used.
pub fn apply_server_auth(options: &mut AuthorizationOptions, auth: &ServerAuth) -> Result<(), Error> {
    options.issuer = auth.issuer.as_ref().map(|issuer| issuer.expose().to_owned());
    options.scopes = ScopeSet::parse(&auth.scopes.join(" "));
    options.dpop = match auth.dpop {
        DpopUse::Auto => DpopPolicy::IfAnnounced,
        DpopUse::Off => DpopPolicy::Off,
        DpopUse::Required => DpopPolicy::Required,
    };
    if let Some(file) = &auth.private_key {
        options.client_key = Some(Arc::new(read_key(auth, file)?));
    }
    let keyed = match auth.private_key {
        Some(_) => ClientCredential::PrivateKey,
        None => ClientCredential::Public,
    };
    if let Some(client_id) = &auth.client_id {
        let secret = auth.client_secret.as_ref().map(|secret| ClientCredential::Secret(secret_of(secret)));
        options.preregistered.push(PreregisteredClient {
            issuer: options.issuer.clone(),
            client_id: client_id.expose().to_owned(),
            credential: secret.unwrap_or_else(|| keyed.clone()),
        });
    }
    if let Some(url) = &auth.client_document {
        let document = ClientDocument::new(url.expose(), keyed);
        let invalid = |error| Error::Invalid(format!("`auth.client_document`: {error}"));
        options.client_document = Some(document.map_err(invalid)?);
    }
    Ok(())
}

fn read_key(auth: &ServerAuth, file: &ConfigText) -> Result<SigningKey, Error> {
    let path = auth.path_of(file);
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(&path).and_then(|opened| opened.take(MAX_KEY_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| Error::Invalid(format!("{} cannot be read: {error}", path.display())))?;
    SigningKey::from_pem(&bytes, None).map_err(|error| Error::Invalid(format!("{}: {error}", path.display())))
}
