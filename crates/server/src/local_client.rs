use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use trunkline_session::{Principal, SessionId};
use trunkline_transport::{Channel as _, MemoryChannel, memory};

use crate::channel::ChannelServer;
use crate::env::Env;
use crate::host::Host;
use crate::server_core::ServerCore;

/// The messages of one exchange that wait for their reader.
const QUEUED_MESSAGES: usize = 64;

/// A host that this handle does not keep.
#[derive(Clone, Debug)]
pub struct WeakHost(Weak<ServerCore>);

impl WeakHost {
    /// Returns the host, as long as something serves it.
    pub fn upgrade(&self) -> Option<Host> {
        self.0.upgrade().map(Host::from_core)
    }
}

impl Host {
    /// Returns a handle that does not keep the host, for a part of what it serves.
    pub fn downgrade(&self) -> WeakHost {
        WeakHost(Arc::downgrade(self.core()))
    }

    /// Begins an exchange with a client within this process, and returns the client's end of it, to which `message` was
    /// sent already. To drop it cancels what it began.
    ///
    /// All exchanges with one `client` count as its connection: the hub that this may be serves them as one client,
    /// although each ends by itself. The exchange is subject to the same limits, interceptors and rules as any other.
    pub fn exchange(&self, principal: Principal, client: SessionId, message: &str) -> MemoryChannel {
        let (ours, mut theirs) = memory(QUEUED_MESSAGES);
        theirs.send(message);
        // There is room for the first message, so that this passes it on.
        let _ = theirs.poll_flush(&mut Context::from_waker(Waker::noop()));
        let server = ChannelServer::new(self.core().clone(), principal, ours)
            .with_client_id(client)
            // The variables of this process are not those of the client.
            .with_env(Env::default());
        tokio::spawn(async move {
            // It ends when the client drops its end, which is no error.
            let _ = server.await;
        });
        theirs
    }
}
