//! Who holds a key: token -> replicas, on a ring of token ranges.
//!
//! In: the hosts of a cluster and, per range of tokens, its replicas in the order in which they are
//! to be asked. Out: the replicas of a token, by binary search, without allocation. Source:
//! Cassandra's `TokenMetadata` and replication strategies; the ranges themselves are made by
//! whoever reads the cluster. Limits: vnodes or single tokens of the Murmur3 partitioner; not
//! tablets.

use std::net::SocketAddr;

/// A host of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInfo {
    /// Where it takes CQL.
    pub address: SocketAddr,
    /// Its datacenter; empty when it does not say.
    pub datacenter: String,
    /// Its rack; empty when it does not say.
    pub rack: String,
    /// Its id, as a UUID's bytes.
    pub host_id: [u8; 16],
    /// Could be connected to when the ring was read.
    pub up: bool,
}

/// The hosts of a cluster and, for one keyspace, which of them hold which tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ring {
    /// In a stable order: by datacenter, then address.
    pub hosts: Vec<HostInfo>,
    /// Ascending: the last token of a range (inclusive), and its replicas as indices into `hosts`,
    /// those of the preferred datacenter first. A range begins behind the one before it; the first
    /// one also holds the tokens behind the last.
    pub ranges: Vec<(i64, Vec<u16>)>,
}

impl Ring {
    /// Puts `ranges` in order and joins neighbours with the same replicas. Replicas that are not
    /// among `hosts` are left out; of ranges that end alike, the first stays.
    #[must_use]
    pub fn new(hosts: Vec<HostInfo>, mut ranges: Vec<(i64, Vec<u16>)>) -> Self {
        ranges.sort_by_key(|(end, _)| *end);
        ranges.dedup_by_key(|(end, _)| *end);
        for (_, replicas) in &mut ranges {
            replicas.retain(|&host| usize::from(host) < hosts.len());
        }
        // The later one of two equal neighbours has the end of both.
        let mut joined: Vec<(i64, Vec<u16>)> = Vec::with_capacity(ranges.len());
        for (end, replicas) in ranges {
            match joined.last_mut() {
                Some(last) if last.1 == replicas => last.0 = end,
                _ => joined.push((end, replicas)),
            }
        }
        Self { hosts, ranges: joined }
    }

    /// The same ring with only the hosts that `keep` wants; ranges lose the replicas on others.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&HostInfo) -> bool) -> Self {
        let mut moved = vec![None; self.hosts.len()];
        let mut hosts = Vec::new();
        for (host, moved) in self.hosts.iter().zip(&mut moved).filter(|(host, _)| keep(host)) {
            *moved = Some(hosts.len() as u16);
            hosts.push(host.clone());
        }
        let kept = |host: &u16| *moved.get(usize::from(*host))?;
        let range =
            |(end, replicas): &(i64, Vec<u16>)| (*end, replicas.iter().filter_map(kept).collect());
        Self::new(hosts, self.ranges.iter().map(range).collect())
    }

    /// The hosts that hold `token`, as indices into [`Self::hosts`], the first to be asked first.
    /// Empty when no range is known.
    #[inline]
    #[must_use]
    pub fn replicas(&self, token: i64) -> &[u16] {
        let at = self.ranges.partition_point(|(end, _)| *end < token);
        let range = self.ranges.get(at).or_else(|| self.ranges.first());
        range.map_or(&[], |(_, replicas)| replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::murmur3;
    use proptest::prelude::*;

    fn hosts(count: usize) -> Vec<HostInfo> {
        let host = |i: usize| HostInfo {
            address: SocketAddr::from(([127, 0, 0, i as u8 + 1], 9042)),
            datacenter: "dc1".to_owned(),
            rack: "r1".to_owned(),
            host_id: [i as u8; 16],
            up: true,
        };
        (0..count).map(host).collect()
    }

    #[test]
    fn ends_are_inclusive_and_the_ring_wraps() {
        let ring = Ring::new(hosts(3), vec![(100, vec![1]), (-100, vec![0]), (200, vec![2])]);
        for (token, replica) in [
            (i64::MIN, 0),
            (-100, 0),
            (-99, 1),
            (100, 1),
            (101, 2),
            (200, 2),
            (201, 0),
            (i64::MAX, 0),
        ] {
            assert_eq!(ring.replicas(token), [replica], "{token}");
        }
        assert_eq!(Ring::default().replicas(7), [0u16; 0]);
    }

    #[test]
    fn the_key_of_a_real_cluster_finds_its_range() {
        // Token of "test": -6017608668500074083.
        let ring = Ring::new(hosts(2), vec![(-6_017_608_668_500_074_083, vec![1]), (0, vec![0])]);
        assert_eq!(ring.replicas(murmur3::token(b"test")), [1]);
        assert_eq!(ring.replicas(murmur3::token(b"test") + 1), [0]);
    }

    #[test]
    fn replicas_beyond_the_hosts_are_left_out() {
        let ring = Ring::new(hosts(1), vec![(0, vec![0, 7]), (9, vec![9])]);
        assert_eq!((ring.replicas(0), ring.replicas(5)), (&[0u16][..], &[][..]));
    }

    #[test]
    fn a_ring_of_fewer_hosts_names_the_same_ones() {
        let ring = Ring::new(hosts(3), vec![(0, vec![2, 0]), (9, vec![1]), (20, vec![0, 1, 2])]);
        let rest = ring.only(|host| host.host_id[0] != 1);
        assert_eq!(rest.hosts, [hosts(3)[0].clone(), hosts(3)[2].clone()]);
        let replicas = [0, 9, 20].map(|token| rest.replicas(token).to_vec());
        assert_eq!(replicas, [vec![1, 0], vec![], vec![0, 1]]);
    }

    proptest! {
        /// Against a walk over the ring: the owner of a token is the first end at or behind it,
        /// else the first of all; joining ranges changes nothing.
        #[test]
        fn as_a_walk_over_the_ring(
            given in prop::collection::vec(
                (-20i64..20, prop::collection::vec(0u16..4, 0..3)), 0..12,
            ),
            token in -25i64..25,
        ) {
            let ring = Ring::new(hosts(4), given.clone());
            let mut ends: Vec<i64> = given.iter().map(|(end, _)| *end).collect();
            ends.sort_unstable();
            let owner = ends.iter().find(|end| **end >= token).or(ends.first());
            let expected = owner.and_then(|owner| given.iter().find(|(end, _)| end == owner));
            let expected = expected.map_or(&[][..], |(_, replicas)| replicas);
            prop_assert_eq!(ring.replicas(token), expected);
            prop_assert!(ring.ranges.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1));
        }

        #[test]
        fn every_token_of_a_ring_has_replicas(
            ends in prop::collection::vec(any::<i64>(), 1..50),
            token: i64,
        ) {
            let range = |(i, end): (usize, &i64)| (*end, vec![i as u16 % 3]);
            let ring = Ring::new(hosts(3), ends.iter().enumerate().map(range).collect());
            prop_assert_eq!(ring.replicas(token).len(), 1);
        }
    }
}
