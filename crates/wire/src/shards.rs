//! Shards of a ScyllaDB host: what it offers, token -> shard, source port -> shard.
//!
//! In: the options of a SUPPORTED answer. Out: an [`Offer`], None of a server that has no shards.
//! What is there and makes no sense is an error, so that nobody routes by it. Source: ScyllaDB's
//! `docs/dev/protocol-extensions.md`, "Intranode sharding". Limit: the one algorithm that is
//! defined, `biased-token-round-robin`.

use thiserror::Error;

/// Keys of the SUPPORTED answer.
pub mod keys {
    /// The shard that this connection came to.
    pub const SHARD: &str = "SCYLLA_SHARD";
    /// How many there are.
    pub const SHARDS: &str = "SCYLLA_NR_SHARDS";
    /// How a token becomes a shard.
    pub const ALGORITHM: &str = "SCYLLA_SHARDING_ALGORITHM";
    /// Upper bits of a token that do not count.
    pub const IGNORE_MSB: &str = "SCYLLA_SHARDING_IGNORE_MSB";
    /// How a key becomes a token.
    pub const PARTITIONER: &str = "SCYLLA_PARTITIONER";
    /// A port where the client's port chooses the shard.
    pub const PORT: &str = "SCYLLA_SHARD_AWARE_PORT";
    /// The same for clients that speak TLS.
    pub const PORT_TLS: &str = "SCYLLA_SHARD_AWARE_PORT_SSL";
    /// It tells of tablets to those who say this in STARTUP.
    pub const TABLETS: &str = "TABLETS_ROUTING_V1";
}

/// The algorithm that this module knows.
pub const ALGORITHM: &str = "biased-token-round-robin";

/// The last part of the name of the partitioner that tokens are made by.
const PARTITIONER: &str = "Murmur3Partitioner";

/// Local ports that a shard is chosen with: those that IANA leaves to programs.
const PORT_MIN: u16 = 49152;

/// Why what a server says of its shards is not used. The cure is in the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShardError {
    /// It says a part of what is needed.
    #[error(
        "its SUPPORTED answer has {present} and no {missing}; a ScyllaDB sends both: is there a \
         proxy in between?"
    )]
    Missing {
        /// What is there.
        present: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// A value that nobody can route by.
    #[error(
        "its SUPPORTED answer says {key} = '{value}', which should be {wanted}; is there a proxy \
         in between, or a version of ScyllaDB that is not known here?"
    )]
    Value {
        /// Which.
        key: &'static str,
        /// As it came, at most 60 characters of it.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
}

/// How tokens lie on a host's shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    shards: u16,
    ignore_msb: u8,
}

impl Sharding {
    /// None for no shards, or more than 63 ignored bits.
    #[must_use]
    pub fn new(shards: u16, ignore_msb: u8) -> Option<Self> {
        (shards > 0 && ignore_msb < 64).then_some(Self { shards, ignore_msb })
    }

    /// How many shards there are; never 0.
    #[must_use]
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// Upper bits of a token that do not count.
    #[must_use]
    pub fn ignore_msb(&self) -> u8 {
        self.ignore_msb
    }

    /// The shard that has `token`; below [`Self::shards`].
    #[inline]
    #[must_use]
    pub fn shard_of(&self, token: i64) -> u16 {
        let biased = (token as u64).wrapping_add(1 << 63) << self.ignore_msb;
        ((u128::from(biased) * u128::from(self.shards)) >> 64) as u16
    }

    /// The shard that a shard-aware port gives to a client of this port.
    #[must_use]
    pub fn shard_of_port(&self, port: u16) -> u16 {
        port % self.shards
    }

    /// Local ports that come to `shard`, beginning somewhere that `start` decides, each once. None
    /// for a shard that there is not.
    pub fn ports_of(&self, shard: u16, start: u64) -> impl Iterator<Item = u16> + use<> {
        let step = usize::from(self.shards);
        let shards = u32::from(self.shards);
        let offset = (u32::from(shard) + shards - u32::from(PORT_MIN) % shards) % shards;
        let first = PORT_MIN.checked_add(offset as u16).filter(|_| shard < self.shards);
        let count = first.map_or(0, |first| usize::from(u16::MAX - first) / step + 1);
        let turn = if count == 0 { 0 } else { (start % count as u64) as usize };
        let first = usize::from(first.unwrap_or_default());
        (0..count).map(move |i| (first + (turn + i) % count * step) as u16)
    }
}

/// What a host says of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// How tokens lie on them.
    pub sharding: Sharding,
    /// That of the connection that asked.
    pub shard: u16,
    /// The port where a client's port chooses the shard.
    pub port: Option<u16>,
    /// That port for clients that speak TLS.
    pub port_tls: Option<u16>,
    /// It tells where tablets are.
    pub tablets: bool,
}

/// A number of an option.
fn number<T: std::str::FromStr>(
    text: &str,
    key: &'static str,
    wanted: &'static str,
    fits: impl Fn(&T) -> bool,
) -> Result<T, ShardError> {
    text.parse().ok().filter(fits).ok_or_else(|| value(key, text, wanted))
}

fn value(key: &'static str, text: &str, wanted: &'static str) -> ShardError {
    ShardError::Value { key, value: text.chars().take(60).collect(), wanted }
}

impl Offer {
    /// What the options of a SUPPORTED answer say; None without shards.
    ///
    /// # Errors
    /// [`ShardError`] when they speak of shards and one cannot route by it.
    pub fn read(options: &[(&str, Vec<&str>)]) -> Result<Option<Self>, ShardError> {
        let option = |key: &str| {
            let found = options.iter().find(|(name, _)| *name == key);
            found.map(|(_, values)| values.first().copied().unwrap_or_default())
        };
        let needed = [keys::SHARD, keys::SHARDS, keys::IGNORE_MSB];
        let Some(present) = needed.into_iter().find(|key| option(key).is_some()) else {
            return Ok(None);
        };
        let need = |key| option(key).ok_or(ShardError::Missing { present, missing: key });
        let shards = need(keys::SHARDS)?;
        let shards = number(shards, keys::SHARDS, "a number from 1 to 65535", |n: &u16| *n > 0)?;
        let below = |n: &u16| *n < shards;
        let shard = number(need(keys::SHARD)?, keys::SHARD, "below SCYLLA_NR_SHARDS", below)?;
        let bits = need(keys::IGNORE_MSB)?;
        let ignore_msb = number(bits, keys::IGNORE_MSB, "a number from 0 to 63", |n: &u8| *n < 64)?;
        let sharding = Sharding { shards, ignore_msb };
        if let Some(name) = option(keys::ALGORITHM).filter(|name| *name != ALGORITHM) {
            return Err(value(keys::ALGORITHM, name, "biased-token-round-robin"));
        }
        let named = |name: &&str| name.rsplit('.').next() != Some(PARTITIONER);
        if let Some(name) = option(keys::PARTITIONER).filter(named) {
            return Err(value(keys::PARTITIONER, name, "the Murmur3Partitioner"));
        }
        let port = |key| {
            let port = |text| number(text, key, "a port from 1 to 65535", |n: &u16| *n > 0);
            option(key).map(port).transpose()
        };
        let (port, port_tls) = (port(keys::PORT)?, port(keys::PORT_TLS)?);
        let tablets = option(keys::TABLETS).is_some();
        Ok(Some(Self { sharding, shard, port, port_tls, tablets }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(&'a str, Vec<&'a str>)> {
        pairs.iter().map(|(key, value)| (*key, vec![*value])).collect()
    }

    const SOUND: [(&str, &str); 7] = [
        (keys::SHARD, "2"),
        (keys::SHARDS, "4"),
        (keys::IGNORE_MSB, "12"),
        (keys::ALGORITHM, ALGORITHM),
        (keys::PARTITIONER, "org.apache.cassandra.dht.Murmur3Partitioner"),
        (keys::PORT, "19042"),
        (keys::TABLETS, ""),
    ];

    #[test]
    fn what_a_scylla_says_is_read() {
        let offer = Offer::read(&options(&SOUND)).unwrap().unwrap();
        let sharding = Sharding::new(4, 12).unwrap();
        let (port, port_tls) = (Some(19042), None);
        assert_eq!(offer, Offer { sharding, shard: 2, port, port_tls, tablets: true });
        let both = [&SOUND[..], &[(keys::PORT_TLS, "19142")]].concat();
        assert_eq!(Offer::read(&options(&both)).unwrap().unwrap().port_tls, Some(19142));
        let bare = Offer::read(&options(&SOUND[..3])).unwrap().unwrap();
        assert_eq!((bare.port, bare.tablets), (None, false));
        assert_eq!(Offer::read(&options(&[("CQL_VERSION", "3.4.5")])), Ok(None));
    }

    #[test]
    fn nonsense_is_refused_with_its_name() {
        for (key, text) in [
            (keys::SHARDS, "0"),
            (keys::SHARDS, "65536"),
            (keys::SHARDS, "99999999999999999999"),
            (keys::SHARDS, "-4"),
            (keys::SHARDS, ""),
            (keys::SHARD, "4"),
            (keys::SHARD, "two"),
            (keys::IGNORE_MSB, "64"),
            (keys::ALGORITHM, "round-robin"),
            (keys::PARTITIONER, "org.apache.cassandra.dht.RandomPartitioner"),
            (keys::PORT, "0"),
            (keys::PORT, "70000"),
        ] {
            let mut told = options(&SOUND);
            let at = told.iter().position(|(name, _)| *name == key).unwrap();
            told[at].1 = vec![text];
            let error = Offer::read(&told).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(text), "{error}");
        }
        for key in [keys::SHARD, keys::SHARDS, keys::IGNORE_MSB] {
            let told: Vec<_> = SOUND.into_iter().filter(|(name, _)| *name != key).collect();
            let error = Offer::read(&options(&told)).unwrap_err().to_string();
            assert!(error.contains(&format!("no {key}")), "{error}");
        }
        let none = vec![(keys::SHARD, vec![]), (keys::SHARDS, vec![]), (keys::IGNORE_MSB, vec![])];
        assert!(Offer::read(&none).is_err());
    }

    #[test]
    fn tokens_lie_where_the_definition_says() {
        // By hand: ignoring no bit, the ring is cut into equal parts in order.
        let four = Sharding::new(4, 0).unwrap();
        let quarter = 1i64 << 62;
        for (token, shard) in
            [(i64::MIN, 0), (-quarter - 1, 0), (-quarter, 1), (-1, 1), (0, 2), (quarter, 3)]
        {
            assert_eq!(four.shard_of(token), shard, "{token}");
        }
        // With twelve bits ignored each 1/4096 of the ring is cut so.
        let four = Sharding::new(4, 12).unwrap();
        let part = 1i64 << 52;
        for (token, shard) in [(0, 0), (part / 4, 1), (part / 2, 2), (part - 1, 3), (part, 0)] {
            assert_eq!(four.shard_of(token), shard, "{token}");
        }
        assert_eq!((Sharding::new(0, 0), Sharding::new(1, 64)), (None, None));
    }

    proptest! {
        #[test]
        fn ports_come_to_their_shard(shards in 1u16.., shard: u16, start: u64) {
            let sharding = Sharding::new(shards, 12).unwrap();
            let ports: Vec<_> = sharding.ports_of(shard, start).collect();
            if shard >= shards {
                prop_assert!(ports.is_empty());
            } else {
                let fits = |&port: &u16| port >= PORT_MIN && sharding.shard_of_port(port) == shard;
                prop_assert!(ports.iter().all(fits));
                let all = (PORT_MIN..=u16::MAX).filter(|port| port % shards == shard).count();
                let apart: std::collections::BTreeSet<_> = ports.iter().collect();
                prop_assert_eq!((ports.len(), apart.len()), (all, all));
            }
        }

        /// Against the definition in arithmetic that does not wrap.
        #[test]
        fn shards_are_as_defined(shards in 1u16.., bits in 0u8..64, token: i64) {
            let biased = (i128::from(token) + (1i128 << 63)) as u128;
            let shifted = (biased << bits) % (1u128 << 64);
            let defined = shifted * u128::from(shards) / (1u128 << 64);
            let sharding = Sharding::new(shards, bits).unwrap();
            prop_assert_eq!(u128::from(sharding.shard_of(token)), defined);
            prop_assert!(sharding.shard_of(token) < shards);
        }
    }
}
