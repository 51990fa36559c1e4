//! The servers that one process is: they share the records, and each is the master of its part of
//! the partitions.
//!
//! Which server has a partition follows from the time alone: once in so long an eighth of all
//! partitions go to the next server; while the last server is away its partitions are the others'.
//! Nothing is copied, so a move takes no time. A server does not pass a request on: one for a
//! partition that it has not is counted and refused.

use super::info::text_of;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, clock};
use wire::aerospike::info::{Peer, Peers, Replicas};
use wire::aerospike::{Digest, PARTITIONS, partition};

/// Parts of which one moves at a time.
const PARTS: u64 = 8;
/// Bits of the state that say whether the last server was, is, or has been away.
const PHASE_BITS: u32 = 2;

/// How many servers there are, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instances {
    /// How many, at ports one behind the other.
    pub count: u8,
    /// An eighth of the partitions goes to the next server once in so long.
    pub move_every: Option<Nanos>,
    /// When the last server is away, from the start on.
    pub away: Option<Range<Nanos>>,
}

impl Default for Instances {
    fn default() -> Self {
        Self { count: 1, move_every: None, away: None }
    }
}

/// All servers.
#[derive(Debug)]
pub(super) struct Members {
    addresses: Vec<SocketAddr>,
    instances: Instances,
    started: Nanos,
    /// Moves so far, and behind [`PHASE_BITS`] whether one is away: 0 not yet, 1 now, 2 no more.
    state: AtomicU64,
}

impl Members {
    pub(super) fn new(addresses: Vec<SocketAddr>, instances: Instances) -> Self {
        Self { addresses, instances, started: clock::now(), state: AtomicU64::new(0) }
    }

    /// Looks at the time.
    pub(super) fn tick(&self) {
        let Instances { move_every, away, .. } = &self.instances;
        if move_every.is_none() && away.is_none() {
            return;
        }
        let since = clock::now().since(self.started);
        let step = move_every.map_or(0, |every| since.0 / every.0.max(1));
        let phase = away.as_ref().map_or(0, |away| match since {
            since if since < away.start => 0,
            since if since < away.end => 1,
            _ => 2,
        });
        self.state.fetch_max(step << PHASE_BITS | phase, Ordering::Relaxed);
    }

    fn state(&self) -> (u64, u64) {
        let state = self.state.load(Ordering::Relaxed);
        (state >> PHASE_BITS, state & ((1 << PHASE_BITS) - 1))
    }

    /// The server that listens on a port.
    pub(super) fn at(&self, port: u16) -> usize {
        self.addresses.iter().position(|address| address.port() == port).unwrap_or(0)
    }

    pub(super) fn address(&self, member: usize) -> Option<SocketAddr> {
        self.addresses.get(member).copied()
    }

    /// Servers that are there.
    pub(super) fn count(&self) -> usize {
        self.addresses.len() - usize::from(self.state().1 == 1)
    }

    /// Whether a server is not there now.
    pub(super) fn is_away(&self, member: usize) -> bool {
        member >= self.count()
    }

    fn master(&self, partition: usize) -> usize {
        let (step, _) = self.state();
        let moved = (step + PARTS - 1 - partition as u64 % PARTS) / PARTS;
        let all = self.addresses.len();
        let master = (partition + moved as usize) % all;
        match self.is_away(master) {
            true => partition % (all - 1).max(1),
            false => master,
        }
    }

    /// Whether a server has a record's partition.
    #[inline]
    pub(super) fn holds(&self, member: usize, digest: &Digest) -> bool {
        self.addresses.len() == 1 || self.master(partition(digest)) == member
    }

    /// Changes with who has what.
    pub(super) fn partition_generation(&self) -> u64 {
        let (step, phase) = self.state();
        1 + step + phase
    }

    /// Changes with who is there.
    pub(super) fn peers_generation(&self) -> u64 {
        1 + self.state().1
    }

    /// The partitions of a server.
    pub(super) fn replicas(&self, namespace: &str, member: usize) -> Replicas {
        let mut replicas = Replicas::whole(namespace);
        for map in &mut replicas.copies {
            for partition in 0..PARTITIONS {
                if self.master(partition) != member {
                    map[partition / 8] &= !(0x80 >> (partition % 8));
                }
            }
        }
        replicas
    }

    /// What a server says of the others.
    pub(super) fn peers(&self, member: usize) -> String {
        let there = (0..self.count()).filter(|&other| other != member);
        let peer = |other| Peer {
            name: self.name(other),
            addresses: self.address(other).iter().map(ToString::to_string).collect(),
        };
        let peers = there.map(peer).collect();
        let default_port = Some(3000);
        Peers { generation: self.peers_generation(), default_port, peers }.encode()
    }

    /// 15 hexadecimal digits as servers have it, of port and address.
    pub(super) fn name(&self, member: usize) -> String {
        self.address(member).map(text_of).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(away: Option<Range<Nanos>>) -> Members {
        let addresses = (0..3).map(|i| ([127, 0, 0, 1], 3000 + i).into()).collect();
        let move_every = Some(Nanos::from_secs(1));
        Members::new(addresses, Instances { count: 3, move_every, away })
    }

    /// Partitions by server, each of which has one master.
    fn held(members: &Members) -> [usize; 3] {
        let maps = [0, 1, 2].map(|member| members.replicas("test", member));
        let owners = |partition| maps.iter().filter(|map| map.has(0, partition)).count();
        assert!((0..PARTITIONS).all(|partition| owners(partition) == 1));
        [0, 1, 2].map(|member| (0..PARTITIONS).filter(|&p| maps[member].has(0, p)).count())
    }

    #[test]
    fn each_partition_has_one_master_whoever_is_there() {
        let members = members(Some(Nanos::ZERO..Nanos::from_secs(1000)));
        assert_eq!(held(&members), [1366, 1365, 1365]);
        let before: Vec<_> = (0..PARTITIONS).map(|p| members.master(p)).collect();
        members.state.store(1 << PHASE_BITS, Ordering::Relaxed);
        let moved = (0..PARTITIONS).filter(|&p| members.master(p) != before[p]).count();
        assert_eq!(moved, PARTITIONS / PARTS as usize);
        members.state.store(1 << PHASE_BITS | 1, Ordering::Relaxed);
        assert!(members.is_away(2) && held(&members)[2] == 0);
        assert_eq!((members.partition_generation(), members.peers_generation()), (3, 2));
        assert!(!members.peers(0).contains("3002") && members.peers(0).contains("3001"));
    }
}
