//! The ring of a keyspace: what the driver knows about hosts, tokens and replication, as
//! [`wire::routing::Ring`].

use crate::connect::{Admin, chain};
use crate::statements::INTERRUPTED;
use scylla::frame::response::result::TableSpec;
use std::collections::HashMap;
use std::net::SocketAddr;
use thiserror::Error;
use wire::routing::{HostInfo, Ring};

/// Why there is no ring to route by. Each text names the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum RingError {
    /// The cluster did not tell.
    #[error("the cluster of {address} did not tell its ring: {reason}; is it up?")]
    Unread { address: SocketAddr, reason: String },
    /// There is no such keyspace.
    #[error("the cluster of {address} has no keyspace {keyspace}: create it first")]
    Keyspace { address: SocketAddr, keyspace: String },
    /// More hosts than an index can name.
    #[error("the cluster of {address} has {hosts} hosts; at most 65535 can be routed to")]
    Hosts { address: SocketAddr, hosts: usize },
}

impl Admin {
    /// Reads the hosts of the cluster anew and, for this keyspace's replication, the replicas of
    /// each range of tokens: those of the preferred datacenter first, else in the ring's order.
    /// With fixed hosts only they are in it. Keyspaces of a strategy that the driver does not know
    /// are taken to have one replica, the owner of the token.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn ring(&self, keyspace: &str) -> Result<Ring, RingError> {
        let address = self.contact();
        let refreshed = self.runtime.block_on_unless(&self.stop, self.session().refresh_metadata());
        match refreshed {
            Some(Ok(())) => {}
            Some(Err(e)) => return Err(RingError::Unread { address, reason: chain(&e) }),
            None => return Err(RingError::Unread { address, reason: INTERRUPTED.to_owned() }),
        }
        let state = self.session().get_cluster_state();
        let Some(found) = state.get_keyspace(keyspace) else {
            return Err(RingError::Keyspace { address, keyspace: keyspace.to_owned() });
        };
        let mut hosts: Vec<_> = state
            .get_nodes_info()
            .iter()
            .filter_map(|told| {
                let host_id = *told.host_id.as_bytes();
                let address = SocketAddr::new(told.address.ip(), told.address.port());
                Some(HostInfo {
                    address: self.reached_at(host_id, address)?,
                    datacenter: told.datacenter.clone().unwrap_or_default(),
                    rack: told.rack.clone().unwrap_or_default(),
                    host_id,
                    up: told.is_connected(),
                })
            })
            .collect();
        hosts.sort_by(|a, b| (&a.datacenter, a.address).cmp(&(&b.datacenter, b.address)));
        if hosts.len() > usize::from(u16::MAX) {
            return Err(RingError::Hosts { address, hosts: hosts.len() });
        }
        let index: HashMap<[u8; 16], u16> =
            hosts.iter().zip(0..).map(|(host, i)| (host.host_id, i)).collect();
        let locator = state.replica_locator();
        // A table that the driver has no tablets of, so that it looks at the ring.
        let no_table = TableSpec::borrowed("", "");
        let ranges = locator.ring().iter().map(|(token, _)| {
            let set = locator.replicas_for_token(*token, &found.strategy, None, &no_table);
            let ordered = set.into_replicas_ordered().into_iter();
            let replicas =
                ordered.filter_map(|(replica, _)| index.get(replica.host_id.as_bytes()).copied());
            (token.value(), self.preferred_first(replicas.collect(), &hosts))
        });
        let ranges = ranges.collect();
        Ok(Ring::new(hosts, ranges))
    }

    /// Where a host is reached that the cluster tells at `address`; None for one that is not among
    /// fixed hosts.
    fn reached_at(&self, host_id: [u8; 16], address: SocketAddr) -> Option<SocketAddr> {
        match &self.fixed {
            Some(fixed) => fixed.get(&host_id).copied(),
            None => Some(self.bridge.as_ref().map_or(address, |bridge| bridge.host_at(address))),
        }
    }

    fn preferred_first(&self, mut replicas: Vec<u16>, hosts: &[HostInfo]) -> Vec<u16> {
        let apart = |host: &u16| hosts[usize::from(*host)].datacenter != self.datacenter();
        replicas.sort_by_key(apart);
        replicas
    }
}
