//! The hosts of a run, and how a change of them gets to the workers.
//!
//! In: a [`Ring`] as the control plane has read it anew. Out: for workers, the hosts by an index
//! that stays a host's own as long as the roster lives, and who of them holds what. A worker reads
//! one number per turn, which is written when the ring has changed; only then it takes the lock.
//! In the other direction workers tell that they are in trouble: a flag, written when connections
//! break, requests find no replica, or statements are not known (any longer).
//! Limits: 65535 connections of a worker; hosts beyond that are not driven.

use crate::aerospike::Masters;
use crate::sharded::Shards;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::routing::{HostInfo, Ring};
use wire::shards::Offer;

/// The hosts of a run at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts {
    /// Where they are driven.
    pub(crate) addresses: Vec<SocketAddr>,
    /// By index: it is no part of the ring any more.
    pub(crate) left: Vec<bool>,
    /// Who holds what, by the same indices; None asks any.
    pub(crate) ring: Option<Arc<Ring>>,
    /// None when no host has shards.
    pub(crate) shards: Option<Arc<Shards>>,
    /// Of Aerospike's partitions; None where one host has them all.
    pub(crate) masters: Option<Arc<Masters>>,
}

/// What a new ring means for those who drive it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Hosts that were not driven before.
    pub joined: Vec<SocketAddr>,
    /// Hosts that are not driven any more.
    pub left: Vec<SocketAddr>,
    /// Other hosts than before hold some of the tokens.
    pub moved: bool,
}

impl Change {
    /// The ring is as it was.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.joined.is_empty() && self.left.is_empty() && !self.moved
    }
}

/// The hosts of a run, which may come and go.
#[derive(Debug)]
pub struct Roster {
    /// How often the hosts have changed.
    generation: AtomicU64,
    hosts: Mutex<Arc<Hosts>>,
    trouble: AtomicBool,
}

impl Roster {
    /// Of these addresses, one per host. `ring`, whose hosts are in the same order, says who holds
    /// what; None asks any.
    #[must_use]
    pub fn new(addresses: Vec<SocketAddr>, ring: Option<Arc<Ring>>) -> Self {
        let left = vec![false; addresses.len()];
        Self {
            generation: AtomicU64::new(0),
            hosts: Mutex::new(Arc::new(Hosts { addresses, left, ring, ..Hosts::default() })),
            trouble: AtomicBool::new(false),
        }
    }

    /// The same, of hosts with shards.
    #[must_use]
    pub fn sharded(self, shards: Shards) -> Self {
        {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            let known = Hosts { shards: Some(Arc::new(shards)), ..Hosts::clone(&hosts) };
            *hosts = Arc::new(known);
        }
        self
    }

    /// The hosts of `ring` that have to be asked for their shards before they are driven; none
    /// where those that are driven have no shards.
    #[must_use]
    pub fn unmet(&self, ring: &Ring) -> Vec<SocketAddr> {
        let (_, hosts) = self.current();
        if hosts.shards.is_none() {
            return Vec::new();
        }
        let new = ring.hosts.iter().map(|host| host.address);
        new.filter(|&address| hosts.index(address).is_none()).collect()
    }

    /// Of servers of Aerospike's protocol, whose indices `masters` has.
    #[must_use]
    pub fn partitioned(self, masters: Masters) -> Self {
        {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            *hosts = Arc::new(Hosts { masters: Some(Arc::new(masters)), ..Hosts::clone(&hosts) });
        }
        self
    }

    /// Makes these the servers and the masters of the workers, within a turn of theirs. A server
    /// keeps its index: new ones come behind those that are known, and none goes.
    pub fn update_masters(&self, addresses: &[SocketAddr], masters: Masters) -> Change {
        let mut current = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = addresses.get(current.addresses.len()..).unwrap_or_default().to_vec();
        let moved = current.masters.as_deref() != Some(&masters);
        let change = Change { joined, left: Vec::new(), moved };
        if !change.is_none() {
            let mut hosts = Hosts::clone(&current);
            hosts.addresses.extend(&change.joined);
            hosts.left.resize(hosts.addresses.len(), false);
            hosts.masters = Some(Arc::new(masters));
            *current = Arc::new(hosts);
            self.generation.fetch_add(1, Ordering::Release);
        }
        change
    }

    /// Makes `ring` that of the workers, within a turn of theirs. What it says of its hosts being
    /// up does not matter: workers find out themselves. `met` is what those that are
    /// [`Self::unmet`] have said; who is not among them is driven as if it had no shards.
    pub fn update(&self, ring: &Ring, met: &[(SocketAddr, Offer)]) -> Change {
        let mut current = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let (hosts, change) = current.changed(ring, met);
        if !change.is_none() {
            *current = Arc::new(hosts);
            self.generation.fetch_add(1, Ordering::Release);
        }
        change
    }

    /// The addresses of the hosts that are driven.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let (_, hosts) = self.current();
        let here = hosts.addresses.iter().zip(&hosts.left).filter(|(_, left)| !**left);
        here.map(|(address, _)| *address).collect()
    }

    /// Whether a worker was in trouble since this was asked last.
    #[must_use]
    pub fn take_trouble(&self) -> bool {
        self.trouble.swap(false, Ordering::Relaxed)
    }

    /// By a worker: connections broke, or requests do not find what they need. Off the way of an
    /// operation that goes well.
    #[cold]
    pub(crate) fn cry(&self) {
        // Read first, so that the line is not written again and again.
        if !self.trouble.load(Ordering::Relaxed) {
            self.trouble.store(true, Ordering::Relaxed);
        }
    }

    /// A number that changes with the hosts.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The hosts, and which generation they are.
    pub(crate) fn current(&self) -> (u64, Arc<Hosts>) {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        (self.generation(), hosts.clone())
    }
}

impl Hosts {
    /// These with the ring in place of theirs, each host at the index that it has had.
    fn changed(&self, ring: &Ring, met: &[(SocketAddr, Offer)]) -> (Self, Change) {
        let mut next = self.clone();
        let mut change = Change::default();
        next.left = vec![true; next.addresses.len()];
        for host in &ring.hosts {
            match next.index(host.address) {
                Some(known) => next.left[usize::from(known)] = false,
                None if next.addresses.len() < usize::from(u16::MAX) => {
                    next.addresses.push(host.address);
                    next.left.push(false);
                }
                None => {}
            }
        }
        if let Some(shards) = next.shards.as_mut().map(Arc::make_mut) {
            let new = &next.addresses[shards.offers.len().min(next.addresses.len())..];
            let said = |address| met.iter().find(|(host, _)| host == address);
            shards.offers.extend(new.iter().map(|address| said(address).map(|(_, offer)| *offer)));
        }
        for (i, &address) in next.addresses.iter().enumerate() {
            match (self.left.get(i).copied().unwrap_or(true), next.left[i]) {
                (true, false) => change.joined.push(address),
                (false, true) => change.left.push(address),
                _ => {}
            }
        }
        let ring = next.arranged(ring);
        change.moved = match &self.ring {
            Some(before) => before.ranges != ring.ranges,
            // There was one host, and it holds what is held.
            None => ring.hosts.len() > 1,
        };
        next.ring = Some(Arc::new(ring));
        (next, change)
    }

    fn index(&self, address: SocketAddr) -> Option<u16> {
        self.addresses.iter().position(|known| *known == address).map(|index| index as u16)
    }

    /// `ring` in the order of these hosts.
    fn arranged(&self, ring: &Ring) -> Ring {
        let told = |address| ring.hosts.iter().find(|host| host.address == address);
        let gone = |address| HostInfo {
            address,
            datacenter: String::new(),
            rack: String::new(),
            host_id: [0; 16],
            up: false,
        };
        let hosts = self.addresses.iter().map(|&address| match told(address) {
            Some(host) => HostInfo { up: true, ..host.clone() },
            None => gone(address),
        });
        // By the place in `ring`: the index here.
        let places: Vec<_> = ring.hosts.iter().map(|host| self.index(host.address)).collect();
        let here = |&host: &u16| places.get(usize::from(host)).copied().flatten();
        let ranges = ring.ranges.iter();
        let ranges = ranges.map(|(end, hosts)| (*end, hosts.iter().filter_map(here).collect()));
        Ring::new(hosts.collect(), ranges.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::shards::Sharding;

    fn host(i: u8) -> HostInfo {
        HostInfo {
            address: ([127, 0, 0, i], 9042).into(),
            datacenter: "dc1".to_owned(),
            rack: String::new(),
            host_id: [i; 16],
            up: true,
        }
    }

    fn address(i: u8) -> SocketAddr {
        host(i).address
    }

    /// Of these hosts, each with one range, in their order.
    fn ring(hosts: &[u8]) -> Ring {
        let ranges = (0..hosts.len()).map(|i| (i as i64 * 100, vec![i as u16]));
        Ring::new(hosts.iter().map(|&i| host(i)).collect(), ranges.collect())
    }

    #[test]
    fn hosts_keep_their_index_whoever_comes_and_goes() {
        let roster = Roster::new(vec![address(2), address(3)], Some(Arc::new(ring(&[2, 3]))));
        assert!(roster.update(&ring(&[2, 3]), &[]).is_none());
        assert_eq!(roster.generation(), 0, "nothing new");

        let change = roster.update(&ring(&[1, 2, 3]), &[]);
        assert_eq!((change.joined, change.left), (vec![address(1)], vec![]));
        let (generation, hosts) = roster.current();
        assert_eq!((generation, hosts.addresses.clone()), (1, [2, 3, 1].map(address).to_vec()));
        let held = |hosts: &Hosts| {
            let ring = hosts.ring.clone().unwrap();
            [0, 100, 200].map(|token| ring.replicas(token)[0])
        };
        assert_eq!(held(&hosts), [2, 0, 1]);

        let change = roster.update(&ring(&[1, 3]), &[]);
        assert_eq!((change.joined, change.left, change.moved), (vec![], vec![address(2)], true));
        let (_, hosts) = roster.current();
        assert_eq!((hosts.left.clone(), held(&hosts)), (vec![true, false, false], [2, 1, 2]));
        assert_eq!(roster.addresses(), [3, 1].map(address));

        let change = roster.update(&ring(&[1, 2, 3]), &[]);
        assert_eq!((change.joined, change.left), (vec![address(2)], vec![]), "it has come back");
        assert_eq!(roster.current().1.addresses.len(), 3);
    }

    #[test]
    fn a_host_that_is_alone_gets_a_ring_with_the_second_one() {
        let roster = Roster::new(vec![address(1)], None);
        assert!(roster.update(&ring(&[1]), &[]).is_none());
        let change = roster.update(&ring(&[1, 2]), &[]);
        assert_eq!((change.joined, change.moved), (vec![address(2)], true));
        assert!(roster.update(&Ring { ranges: vec![(0, vec![1])], ..ring(&[1, 2]) }, &[]).moved);
    }

    #[test]
    fn who_joins_hosts_with_shards_is_asked_for_its_own() {
        let sharding = Sharding::new(4, 12).unwrap();
        let offer = Offer { sharding, shard: 0, port: None, port_tls: None, tablets: true };
        let roster = Roster::new(vec![address(1)], None);
        assert_eq!(roster.unmet(&ring(&[1, 2])), []);
        let shards = Shards { offers: vec![Some(offer)], ..Shards::default() };
        let roster = roster.sharded(shards);
        assert_eq!(roster.unmet(&ring(&[1, 2, 3])), [2, 3].map(address));
        roster.update(&ring(&[1, 2, 3]), &[(address(3), offer)]);
        assert_eq!(roster.unmet(&ring(&[1, 2, 3])), []);
        let (_, hosts) = roster.current();
        let wanted = [0, 1, 2].map(|host| hosts.shards.as_ref().unwrap().want(host, 3).is_some());
        assert_eq!(wanted, [true, false, true]);
        roster.update(&ring(&[1, 2]), &[]);
        assert_eq!(roster.current().1.shards.as_ref().unwrap().offers.len(), 3);
    }

    #[test]
    fn trouble_is_told_once() {
        let roster = Roster::new(Vec::new(), None);
        assert!(!roster.take_trouble());
        roster.cry();
        roster.cry();
        assert!(roster.take_trouble());
        assert!(!roster.take_trouble());
    }
}
