//! Which host an operation goes to: one that holds its key, on a ring of several hosts.
//!
//! In: the text of a key. Out: a host, as an index into the addresses of the run. Replicas of the
//! datacenter that the ring prefers take turns; the others are asked when none of those can be. The
//! turn is the worker's own, so that workers share nothing. Cost: murmur3 of the key (some 20 ns)
//! and a binary search over the token ranges.

use crate::roster::Hosts;
use crate::sharded::ShardRouter;
use std::sync::Arc;
use wire::murmur3;
use wire::routing::Ring;

/// How a worker finds out where an operation goes.
#[derive(Debug)]
pub(crate) enum Route {
    /// There is only one host, or none is known to hold a key.
    Any,
    Ring(Router),
    /// On hosts with shards.
    Shards(ShardRouter),
}

impl Route {
    /// Among these hosts; workers begin at turns of their own.
    pub(crate) fn to(hosts: &Hosts, worker: usize) -> Self {
        match (&hosts.shards, &hosts.ring) {
            (Some(shards), _) => Self::Shards(ShardRouter::new(shards, hosts, worker)),
            (None, Some(ring)) => Self::Ring(Router::new(ring.clone(), worker)),
            (None, None) => Self::Any,
        }
    }
}

/// A worker's view of the ring.
#[derive(Debug)]
pub(crate) struct Router {
    ring: Arc<Ring>,
    turn: usize,
}

impl Router {
    pub(crate) fn new(ring: Arc<Ring>, worker: usize) -> Self {
        Self { ring, turn: worker }
    }

    /// From now on by this ring.
    pub(crate) fn follow(&mut self, ring: Arc<Ring>) {
        self.ring = ring;
    }

    /// The host to ask for `key`, of those that are `up`; None when none that holds it is.
    #[inline]
    pub(crate) fn host(&mut self, key: &[u8], up: impl Fn(u16) -> bool) -> Option<u16> {
        self.host_of(murmur3::token(key), up)
    }

    /// As [`Self::host`], for a token.
    #[inline]
    pub(crate) fn host_of(&mut self, token: i64, up: impl Fn(u16) -> bool) -> Option<u16> {
        let replicas = self.ring.replicas(token);
        let datacenter = |host: u16| self.ring.hosts[usize::from(host)].datacenter.as_str();
        let near = datacenter(*replicas.first()?);
        let candidates = replicas.iter().copied().filter(|&host| up(host));
        let near_up = candidates.clone().filter(|&host| datacenter(host) == near);
        let count = near_up.clone().count();
        if count == 0 {
            return candidates.clone().next();
        }
        // Turns go round over those that are up: the load of one that is not falls on all others.
        self.turn = self.turn.wrapping_add(1);
        near_up.clone().nth(self.turn % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::routing::HostInfo;

    #[test]
    fn near_replicas_take_turns_and_far_ones_come_last() {
        let host = |i: u8, datacenter: &str| HostInfo {
            address: ([127, 0, 0, i], 9042).into(),
            datacenter: datacenter.to_owned(),
            rack: String::new(),
            host_id: [i; 16],
            up: true,
        };
        let hosts = vec![host(1, "near"), host(2, "near"), host(3, "far")];
        let ring = Ring::new(hosts, vec![(0, vec![0, 1, 2])]);
        let mut router = Router::new(Arc::new(ring), 0);
        let mut next = |down: &[u16]| router.host(b"key", |host| !down.contains(&host));
        let turns: Vec<_> = (0..4).map(|_| next(&[])).collect();
        assert_eq!(turns, [Some(1), Some(0), Some(1), Some(0)]);
        assert_eq!([next(&[0]), next(&[0])], [Some(1), Some(1)]);
        assert_eq!([next(&[0, 1]), next(&[0, 1, 2])], [Some(2), None]);
        let mut nowhere = Router::new(Arc::new(Ring::default()), 0);
        assert_eq!(nowhere.host(b"key", |_| true), None);
    }

    #[test]
    fn the_load_of_a_host_that_is_down_falls_on_all_others() {
        let host = |i: u8| HostInfo {
            address: ([127, 0, 0, i], 9042).into(),
            datacenter: String::new(),
            rack: String::new(),
            host_id: [i; 16],
            up: true,
        };
        let ring = Ring::new((0..3).map(host).collect(), vec![(0, vec![0, 1, 2])]);
        let mut router = Router::new(Arc::new(ring), 0);
        let mut counts = [0; 3];
        for _ in 0..1000 {
            counts[usize::from(router.host(b"key", |host| host != 0).unwrap())] += 1;
        }
        assert_eq!(counts, [0, 500, 500]);
    }
}
