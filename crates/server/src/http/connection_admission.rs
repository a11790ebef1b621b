//! Decides whether a connection is accepted: within the total limit, the limit per address, or on a reserved place.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reserved_connections::{ReservedConnections, ReservedPermit};
use crate::admission::{KeyPermit, KeyQuota};
use crate::limits::ServerLimits;
use crate::metrics::process::{self, ConnectionRefusal};
use crate::party::address_key;

/// The admission of the connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionAdmission {
    total: Arc<Semaphore>,
    /// The connections of each address.
    addresses: KeyQuota<IpAddr>,
    /// All local clients share one address, so its limit is higher; the rest stays for other addresses.
    on_loopback: usize,
    reserved: Option<ReservedConnections>,
}

/// The permits of a connection, held until its socket is closed.
#[derive(Debug)]
pub(super) enum ConnectionPermit {
    Ordinary { _total: OwnedSemaphorePermit, _address: KeyPermit<IpAddr> },
    Reserved(ReservedPermit),
}

impl ConnectionAdmission {
    /// Makes the admission of a listener; `has_probes` if it answers health checks on reserved connections.
    pub(super) fn new(limits: &ServerLimits, has_probes: bool) -> Self {
        Self {
            total: Arc::new(Semaphore::new(limits.connections)),
            addresses: KeyQuota::new(limits.connections_per_address),
            on_loopback: limits.connections - limits.connections / 8,
            reserved: has_probes.then(|| ReservedConnections::new(limits.reserved_connections)),
        }
    }

    /// Waits until a further connection can be accepted. With reserved connections that is always so.
    pub(super) async fn ready(&self) {
        if self.reserved.is_none() {
            // Only the task that accepts connections takes permits, so this one is still free afterwards.
            drop(self.total.acquire().await);
        }
    }

    /// Admits a connection of an address; `None` if it has to be closed.
    pub(super) fn admit(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let key = address_key(address);
        let counted = match address.to_canonical().is_loopback() {
            true => self.addresses.acquire_up_to(key, self.on_loopback),
            false => self.addresses.acquire(key),
        };
        let ordinary = counted.and_then(|address| {
            let total = self.total.clone().try_acquire_owned().ok()?;
            Some(ConnectionPermit::Ordinary { _total: total, _address: address })
        });
        if ordinary.is_some() {
            return ordinary;
        }
        let Some(reserved) = &self.reserved else {
            process::count_refused_connection(ConnectionRefusal::Address);
            return None;
        };
        Some(ConnectionPermit::Reserved(reserved.enter(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_per_address_and_released() {
        let limits = ServerLimits { connections_per_address: 2, ..ServerLimits::default() };
        let admission = ConnectionAdmission::new(&limits, false);
        let enter = |address: &str| admission.admit(address.parse().unwrap());
        let held = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("192.0.2.1").is_none(), "a third of one address");
        assert!(enter("192.0.2.2").is_some(), "another address");
        let network = [enter("2001:db8::1"), enter("2001:db8::ffff:2")];
        assert!(network.iter().all(Option::is_some));
        assert!(enter("2001:db8::3").is_none(), "a third of one network");
        assert!(enter("2001:db8:0:1::3").is_some(), "another network");
        drop((held, network));
        assert!(admission.addresses.is_unused());
    }

    #[test]
    fn loopback_never_takes_the_places_of_other_addresses() {
        let limits = ServerLimits { connections: 16, connections_per_address: 2, ..ServerLimits::default() };
        let admission = ConnectionAdmission::new(&limits, false);
        let enter = |address: &str| admission.admit(address.parse().unwrap());
        let local: Vec<_> = (0..16).filter_map(|_| enter("::ffff:127.0.0.1")).collect();
        assert_eq!(local.len(), 14, "seven eighths");
        assert!(enter("127.0.0.1").is_none());
        let others = ["192.0.2.1", "192.0.2.2"].map(enter);
        assert!(others.iter().all(Option::is_some));
        drop(local);
        assert!(enter("127.0.0.1").is_some());
    }

    #[test]
    fn connections_beyond_a_limit_are_reserved_for_probes() {
        let limits = ServerLimits {
            connections: 2,
            connections_per_address: 1,
            reserved_connections: 1,
            ..ServerLimits::default()
        };
        let admission = ConnectionAdmission::new(&limits, true);
        let is_ordinary =
            |permit: &Option<ConnectionPermit>| matches!(permit, Some(ConnectionPermit::Ordinary { .. }));
        let held = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
            .map(|address| admission.admit(address.parse().unwrap()));
        assert!(held.iter().all(Option::is_some));
        assert_eq!(held.each_ref().map(is_ordinary), [true, false, true, false]);
    }
}
