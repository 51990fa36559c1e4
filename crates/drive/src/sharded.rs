//! Which shard of which host an operation goes to, on hosts that have shards (ScyllaDB).
//!
//! In: what the hosts offer, the tables' tablets as they were at the start, and the key of an
//! operation. Out: a host and a shard, and the worker's connection to it. A table in tablets is
//! routed by these, any other by the ring and the host's sharding. What an answer tells of a tablet
//! holds from then on. Each worker has all of this for itself. Cost: murmur3 of the key, and a
//! binary search over the tablets or a multiplication. Hosts that join are asked
//! for their shards before they are driven. Limits: tables of several keyspaces
//! are taken to lie on the ring as the first one's does.

use crate::connection::{Connection, State};
use crate::cql_link::CqlLink;
use crate::roster::Hosts;
use crate::router::Router;
use std::net::SocketAddr;
use units::clock;
use wire::murmur3;
use wire::shards::{Offer, Sharding};
use wire::tablets::{Replica, Tablet, TabletMap};

/// Connections in all, where each worker would have one to each shard.
const CONNECTIONS_MAX: usize = 4096;

/// What is known of the shards of a run's hosts.
#[derive(Debug, Clone, Default)]
pub struct Shards {
    /// By host, in the order of their addresses; None of a host without shards.
    pub offers: Vec<Option<Offer>>,
    /// By host: its id.
    pub host_ids: Vec<[u8; 16]>,
    /// By the plan's tables, of those that are known to lie in tablets.
    pub tablets: Vec<TabletMap>,
}

/// The operations that went to a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardLoad {
    /// The host.
    pub host: SocketAddr,
    /// Which of its shards.
    pub shard: u16,
    /// Requests of the window that were meant for it.
    pub requests: u64,
    /// Those of them that went out on a connection to another shard, because there was none to
    /// this one, or none that took them.
    pub astray: u64,
}

impl Shards {
    /// Connections of a worker to each host: one to each shard, while these are not too many.
    pub(crate) fn connections_per_host(&self, workers: usize) -> usize {
        let most = self.offers.iter().flatten().map(|offer| offer.sharding.shards()).max();
        let bound = CONNECTIONS_MAX / (workers * self.offers.len()).max(1);
        usize::from(most.unwrap_or(1)).min(bound).max(1)
    }

    /// What a worker's connection of index `own` to a host is to be; None on one without shards.
    pub(crate) fn want(&self, host: usize, own: usize) -> Option<Want> {
        let offer = (*self.offers.get(host)?)?;
        let shard = (own % usize::from(offer.sharding.shards())) as u16;
        Some(Want { offer, shard, plain: false, moved: false })
    }
}

/// The shard that a connection is wanted to, and how it is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) offer: Offer,
    pub(crate) shard: u16,
    /// By the port where the host chooses.
    plain: bool,
    /// Something in between changes our port, so that we cannot choose.
    moved: bool,
}

impl Want {
    /// The port where we choose, and our ports to choose with.
    pub(crate) fn by_port(&self) -> Option<(u16, impl Iterator<Item = u16> + use<>)> {
        let port = self.offer.port.filter(|_| !self.plain && !self.moved)?;
        let start = clock::now().0 / 1000;
        Some((port, self.offer.sharding.ports_of(self.shard, start)))
    }

    /// A connection was not had this way; whether there is another one.
    pub(crate) fn failed(&mut self) -> bool {
        let chose = self.by_port().is_some();
        self.plain = chose;
        chose
    }

    /// The host says that the connection came to `shard`: whether that is as good as it gets.
    pub(crate) fn came_to(&mut self, shard: u16) -> bool {
        let astray = self.by_port().is_some() && shard != self.shard;
        self.moved |= astray;
        !astray
    }
}

/// No connection.
const NONE: u16 = u16::MAX;

/// What a worker knows of a host.
#[derive(Debug)]
struct Host {
    address: SocketAddr,
    /// None of a host without shards: it counts as one.
    sharding: Option<Sharding>,
    /// By shard: a connection that is ready, or [`NONE`].
    connections: Vec<u16>,
    /// By shard: requests of the window, and those that went astray.
    counts: Vec<[u64; 2]>,
}

/// A worker's view of hosts with shards.
#[derive(Debug)]
pub(crate) struct ShardRouter {
    /// None on a single host.
    ring: Option<Router>,
    hosts: Vec<Host>,
    ids: Vec<[u8; 16]>,
    /// By table, as they were told.
    told: Vec<TabletMap>,
    /// The same by indices of hosts.
    tablets: Vec<TabletMap<(u16, u16)>>,
    turn: usize,
}

impl ShardRouter {
    pub(crate) fn new(shards: &Shards, hosts: &Hosts, worker: usize) -> Self {
        let mut router = Self {
            ring: None,
            hosts: Vec::new(),
            ids: Vec::new(),
            told: shards.tablets.clone(),
            tablets: Vec::new(),
            turn: worker,
        };
        router.follow(shards, hosts);
        router
    }

    /// From now on among these hosts; connections are to be told of anew.
    pub(crate) fn follow(&mut self, shards: &Shards, hosts: &Hosts) {
        for host in self.hosts.len()..hosts.addresses.len() {
            let offer = shards.offers.get(host).copied().flatten();
            let sharding = offer.map(|offer| offer.sharding);
            let count = sharding.map_or(1, |sharding| usize::from(sharding.shards()));
            let (connections, counts) = (vec![NONE; count], vec![[0; 2]; count]);
            let address = hosts.addresses[host];
            self.hosts.push(Host { address, sharding, connections, counts });
        }
        self.ids = match &hosts.ring {
            Some(ring) => ring.hosts.iter().map(|host| host.host_id).collect(),
            None => shards.host_ids.clone(),
        };
        self.ring = hosts.ring.clone().map(|ring| Router::new(ring, self.turn));
        let placed = |map: &TabletMap| map.with(|replica| self.place_of(replica));
        self.tablets = self.told.iter().map(placed).collect();
    }

    fn place_of(&self, (id, shard): &Replica) -> Option<(u16, u16)> {
        let host = self.ids.iter().position(|known| known == id)?;
        // A shard that the host has not is no place.
        let known = self.hosts.get(host)?.connections.len() > usize::from(*shard);
        known.then_some((host as u16, *shard))
    }

    /// An answer has told of a tablet of the plan's table of this index.
    pub(crate) fn learn(&mut self, table: usize, tablet: Tablet) {
        if self.told.len() <= table {
            self.told.resize_with(table + 1, TabletMap::default);
            self.tablets.resize_with(table + 1, TabletMap::default);
        }
        let placed = tablet.with(|replica| self.place_of(replica));
        self.tablets[table].learn(placed);
        self.told[table].learn(tablet);
    }

    /// The host and shard to ask for `key` of a table, of the hosts that are `up`; None when none
    /// that holds it is.
    #[inline]
    pub(crate) fn place(
        &mut self,
        table: usize,
        key: &[u8],
        up: impl Fn(u16) -> bool,
    ) -> Option<(u16, u16)> {
        let token = murmur3::token(key);
        if let Some(tablet) = self.tablets.get(table).and_then(|map| map.of(token)) {
            let replicas = tablet.replicas.iter().filter(|(host, _)| up(*host));
            let count = replicas.clone().count();
            if count > 0 {
                self.turn = self.turn.wrapping_add(1);
                return replicas.clone().nth(self.turn % count).copied();
            }
        }
        let host = match &mut self.ring {
            Some(ring) => ring.host_of(token, up)?,
            None => 0,
        };
        let sharding = self.hosts.get(usize::from(host))?.sharding;
        Some((host, sharding.map_or(0, |sharding| sharding.shard_of(token))))
    }

    /// The connection to a shard, if there is one; one of several databases' own.
    #[inline]
    pub(crate) fn connection(&self, (host, shard): (u16, u16)) -> Option<u16> {
        let connections = &self.hosts.get(usize::from(host))?.connections;
        connections.get(usize::from(shard)).copied().filter(|&index| index != NONE)
    }

    /// A request of the window was meant for this shard.
    #[inline]
    pub(crate) fn count(&mut self, (host, shard): (u16, u16), astray: bool) {
        let counts = self.hosts.get_mut(usize::from(host));
        if let Some(count) = counts.and_then(|host| host.counts.get_mut(usize::from(shard))) {
            count[0] += 1;
            count[1] += u64::from(astray);
        }
    }

    /// Connections to a host have come or gone: `own` are all of it, the first one has this index.
    pub(crate) fn connected(&mut self, host: usize, first: usize, own: &[Connection<CqlLink>]) {
        let Some(host) = self.hosts.get_mut(host) else { return };
        host.connections.fill(NONE);
        for (index, connection) in own.iter().enumerate() {
            let shard = match host.sharding {
                Some(_) => connection.link.shard,
                None => Some(0),
            };
            let place = shard.and_then(|shard| host.connections.get_mut(usize::from(shard)));
            if let (State::Ready, Some(place)) = (connection.state, place) {
                *place = (first + index) as u16;
            }
        }
    }

    /// What was counted, of hosts with shards.
    pub(crate) fn loads(&self) -> impl Iterator<Item = ShardLoad> + '_ {
        let sharded = self.hosts.iter().filter(|host| host.sharding.is_some());
        sharded.flat_map(|one| {
            let load = move |(shard, &[requests, astray]): (usize, &[u64; 2])| ShardLoad {
                host: one.address,
                shard: shard as u16,
                requests,
                astray,
            };
            one.counts.iter().enumerate().map(load)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(shards: u16) -> Offer {
        let sharding = Sharding::new(shards, 12).unwrap();
        Offer { sharding, shard: 0, port: Some(19042), port_tls: None, tablets: true }
    }

    fn hosts(count: u8) -> Hosts {
        let addresses = (0..count).map(|i| ([127, 0, 0, i + 1], 9042).into()).collect();
        Hosts { addresses, left: vec![false; usize::from(count)], ..Hosts::default() }
    }

    #[test]
    fn connections_cover_the_shards_while_they_are_not_too_many() {
        let shards =
            |count, hosts| Shards { offers: vec![Some(offer(count)); hosts], ..Shards::default() };
        assert_eq!(shards(8, 3).connections_per_host(4), 8);
        assert_eq!(shards(512, 1).connections_per_host(8), 512);
        assert_eq!(shards(512, 2).connections_per_host(8), 256);
        assert_eq!(shards(64, 100).connections_per_host(100), 1);
        let wanted = |own| shards(4, 1).want(0, own).map(|want| want.shard);
        assert_eq!([0, 3, 4, 9].map(wanted), [0, 3, 0, 1].map(Some));
        assert_eq!(shards(4, 1).want(1, 0), None);
    }

    #[test]
    fn what_cannot_choose_its_shard_takes_what_it_is_given() {
        let mut want =
            Shards { offers: vec![Some(offer(4))], ..Shards::default() }.want(0, 2).unwrap();
        let ports: Vec<u16> = want.by_port().unwrap().1.take(5).collect();
        assert!(ports.iter().all(|port| port % 4 == 2), "{ports:?}");
        assert!(want.came_to(2) && want.by_port().is_some());
        // Refused there: the other port is tried, and then this one again.
        assert!(want.failed() && want.by_port().is_none());
        assert!(want.came_to(1), "the host has chosen");
        assert!(!want.failed() && want.by_port().is_some());
        // Our port was changed on the way: it never works.
        assert!(!want.came_to(3) && want.by_port().is_none());
        assert!(!want.failed() && want.by_port().is_none());
    }

    #[test]
    fn tablets_go_before_the_sharding_and_are_learnt() {
        let (token, id) = (murmur3::token(b"key"), [9; 16]);
        let all = vec![(i64::MAX, vec![(id, 3)])];
        let shards = Shards {
            offers: vec![Some(offer(4))],
            host_ids: vec![id],
            tablets: vec![TabletMap::of_all(all)],
        };
        let mut router = ShardRouter::new(&shards, &hosts(1), 0);
        assert_eq!(router.place(0, b"key", |_| true), Some((0, 3)));
        let moved = |replicas| Tablet { first: token - 1, last: token, replicas };
        router.learn(0, moved(vec![(id, 1)]));
        assert_eq!(router.place(0, b"key", |_| true), Some((0, 1)));
        // Nonsense leads back to the sharding.
        let by_token = offer(4).sharding.shard_of(token);
        for replicas in [vec![(id, 4)], vec![([1; 16], 0)], vec![]] {
            router.learn(0, moved(replicas));
            assert_eq!(router.place(0, b"key", |_| true), Some((0, by_token)));
        }
        // Another table's lie elsewhere.
        router.learn(2, moved(vec![(id, 2)]));
        let places = [0, 1, 2, 3].map(|table| router.place(table, b"key", |_| true));
        assert_eq!(places, [by_token, by_token, 2, by_token].map(|shard| Some((0, shard))));
    }
}
