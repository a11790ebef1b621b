//! Logins of users at the servers of a hub: where their tokens are, and where the pages are served.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::net::TcpListener;
use trunkline_client::authorization::{MemoryTokenStore, TokenStore};
use trunkline_hub::{AnonymousClients, LoginAudience, UserLogins};
use trunkline_server::Host;
use trunkline_server::http::{HttpServerOptions, IncomingRequest, McpResponseBody, serve};

use crate::audit::{AuditSlot, AuditedTokenStore};
use crate::exit::CliFailure;
use crate::login::{VaultSettings, open_store, open_vault};
use crate::terminal::escape_line;

/// How long a page that is being shown may delay the end of the process.
const PAGE_GRACE: Duration = Duration::from_millis(100);

/// Makes the logins of a hub. Its clients are anonymous and of one user, or each principal is a user. Changes of tokens are
/// written to the audit log, once there is one.
///
/// # Errors
/// The configuration names a vault that cannot be used.
pub(crate) fn user_logins(
    anonymous: AnonymousClients,
    vault: Option<&VaultSettings>,
    audit: Option<&AuditSlot>,
) -> Result<UserLogins, CliFailure> {
    let audience = match anonymous {
        AnonymousClients::SingleUser => LoginAudience::LocalUser,
        AnonymousClients::Isolated => LoginAudience::EachPrincipal,
    };
    let store = match vault {
        Some(vault) => {
            let opened = open_vault(vault)?;
            tracing::info!(protection = opened.protection, "logins are stored in {}", opened.path.display());
            opened.store
        }
        None => open_or_begin_store(),
    };
    let audited = |audit: &AuditSlot| -> Arc<dyn TokenStore> {
        Arc::new(AuditedTokenStore::new(store.clone(), audit.clone()))
    };
    Ok(UserLogins::new(audience, audit.map_or_else(|| store.clone(), audited)))
}

/// Opens the stored logins, or begins without any: most hubs have no server that demands one.
fn open_or_begin_store() -> Arc<dyn TokenStore> {
    match open_store(None) {
        Ok(opened) => opened.store,
        Err(failure) => {
            let reason = failure.to_string();
            tracing::warn!("logins are lost at the end, they cannot be stored: {}", escape_line(&reason));
            Arc::new(MemoryTokenStore::default())
        }
    }
}

/// Serves the pages of a hub on stdio at a free port of this machine, as soon as a user has to log in.
pub(super) fn serve_pages_on_demand(logins: &UserLogins, host: &Host) {
    // What the logins keep must not keep them.
    let (host, pages) = (host.clone(), logins.downgrade());
    logins.set_page_opener(move || {
        let (host, pages) = (host.clone(), pages.clone());
        Box::pin(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.ok()?;
            let address = listener.local_addr().ok()?;
            let endpoint = host.http_service(HttpServerOptions::for_address(address.ip()));
            let guard = endpoint.clone();
            let service = move |request: IncomingRequest| {
                let (guard, pages) = (guard.clone(), pages.clone());
                async move {
                    match pages.upgrade().filter(|_| UserLogins::serves_path(request.uri().path())) {
                        Some(logins) => logins.respond(&guard, request).await,
                        None => not_found(),
                    }
                }
            };
            tokio::spawn(async move {
                if let Err(error) = serve(listener, &endpoint, service, PAGE_GRACE).await {
                    tracing::warn!(%error, "the pages of logins are not served any more");
                }
            });
            Some(format!("http://{address}"))
        })
    });
}

fn not_found() -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
