use std::num::NonZeroU64;

use trunkline_protocol::Revision;

/// Receives a copy of each message on a wire.
///
/// Both edges have one: a server observes the wire of its clients, a client the wire of its server. `P` is the peer.
pub trait WireObserver<P>: Send + Sync {
    /// Reports whether messages are wanted. It is called for every message, so that it has to be cheap; without it,
    /// messages are not even copied.
    fn is_attached(&self) -> bool;

    /// Reports whether calls get a number, by which the observer knows them. They do while messages are wanted, and an
    /// observer that needs no messages can have them numbered alone. It has to be as cheap.
    fn numbers_calls(&self) -> bool {
        self.is_attached()
    }

    /// Called for each message while messages are wanted.
    fn message(&self, peer: &P, message: WireMessage);

    /// Called when a peer connects.
    fn connected(&self, _: &P) {}

    /// Called when a peer has disconnected.
    fn disconnected(&self, _: &P) {}
}

/// A copy of a message on a wire.
#[derive(Clone, Debug)]
pub struct WireMessage {
    /// Whether it was received or sent.
    pub direction: WireDirection,
    /// The call that it belongs to, if it belongs to one.
    pub call: Option<NonZeroU64>,
    /// The revision that it was written in.
    pub revision: Option<Revision>,
    /// The JSON-RPC message. A received one is written again from its parts, so that its members may have another
    /// order.
    pub text: String,
}

/// The direction of a message, from the point of view of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireDirection {
    /// The peer sent it.
    Received,
    /// This process sent it.
    Sent,
}
