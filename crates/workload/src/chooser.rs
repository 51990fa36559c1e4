//! Key choosers: a stream of random words and the newest acknowledged key -> a key number.
//!
//! Source: YCSB's UniformLong-, ScrambledZipfian-, SkewedLatest-, HotspotInteger-, Exponential- and
//! SequentialGenerator and CoreWorkload.nextKeynum, 64 bits wide throughout. A zipfian key that is
//! not acknowledged yet is drawn again, from a stream of its own, so that the draws of the ops
//! behind it do not depend on how fast inserts are acknowledged. The exponential is drawn from its
//! truncated inverse, which has the same distribution as drawing again while negative.

use crate::cassandra_stress::{self, DrawState};
use crate::keys::{Distribution, KeySpace, fnv_hash};
use crate::random::Stream;
use crate::zipfian::Zipfian;

/// Draws of one key at most; front ends see to it that fewer suffice.
const DRAWS_MAX: usize = 10_000;

/// A distribution with its state.
#[derive(Debug, Clone)]
pub(crate) enum KeyChooser {
    /// `count` keys from `start` on, alike.
    Uniform { start: u64, count: u64 },
    /// Ranks hashed over `count` keys.
    Zipfian { ranks: Zipfian, start: u64, count: u64 },
    /// Newest first.
    Latest { ranks: Zipfian },
    /// The first `hot` keys with probability `share`, else one of the `cold` behind them.
    Hotspot { share: f64, start: u64, hot: u64, cold: u64 },
    /// Newest first, with rate `gamma` per key; `mass` = P(distance <= newest), kept per newest.
    Exponential { gamma: f64, newest: u64, mass: f64 },
    /// Every `stride`-th key from `next` on, modulo `count`.
    Sequential { start: u64, count: u64, next: u64, stride: u64 },
    /// Every `stride`-th key from `next` to `end`.
    Once { next: u64, end: u64, stride: u64 },
    /// By a distribution of cassandra-stress.
    Drawn { distribution: cassandra_stress::Distribution, state: DrawState },
    /// So far behind the newest key.
    Behind { start: u64, lookback: cassandra_stress::Distribution, state: DrawState },
}

impl KeyChooser {
    /// `seed` is of draws that do not come from the worker's stream.
    pub(crate) fn new(keys: &KeySpace, seed: u64, worker: usize, workers: usize) -> Self {
        let (start, count) = (keys.start, keys.loaded);
        match &keys.distribution {
            Distribution::Uniform => Self::Uniform { start, count },
            Distribution::Zipfian => Self::Zipfian {
                ranks: Zipfian::scrambled(),
                start,
                // One more than there are keys, as in YCSB: its upper bound is inclusive.
                count: count + keys.expected_new + 1,
            },
            Distribution::Latest => {
                Self::Latest { ranks: Zipfian::new(keys.records.saturating_sub(1)) }
            }
            &Distribution::Hotspot { hot_keys, operation_fraction } => Self::Hotspot {
                share: operation_fraction,
                start,
                hot: hot_keys,
                cold: count.saturating_sub(hot_keys),
            },
            &Distribution::Exponential { percentile, fraction } => {
                let gamma = -(-percentile / 100.0).ln_1p() / (keys.records as f64 * fraction);
                let newest = keys.records.saturating_sub(1);
                Self::Exponential { gamma, newest, mass: mass_up_to(gamma, newest) }
            }
            Distribution::Sequential => Self::Sequential {
                start,
                count: count.max(1),
                next: worker as u64 % count.max(1),
                stride: workers as u64 % count.max(1),
            },
            Distribution::Once => Self::Once {
                next: start + worker as u64,
                end: start + count,
                stride: workers as u64,
            },
            Distribution::Drawn(distribution) => Self::Drawn {
                distribution: distribution.clone(),
                state: DrawState::for_worker(seed, worker),
            },
            Distribution::Behind { lookback, .. } => Self::Behind {
                start,
                lookback: lookback.clone(),
                state: DrawState::for_worker(seed, worker),
            },
        }
    }

    /// The next key, at most `acknowledged` where inserts matter; None when each had its turn.
    #[inline]
    pub(crate) fn draw(
        &mut self,
        stream: &mut Stream,
        again: &mut Stream,
        acknowledged: u64,
    ) -> Option<u64> {
        Some(match self {
            Self::Uniform { start, count } => *start + stream.below(*count),
            Self::Zipfian { ranks, start, count } => {
                let hashed = |u| *start + fnv_hash(ranks.rank(u)) % *count;
                let mut key = hashed(stream.unit());
                let mut draws = 1;
                while key > acknowledged {
                    if draws == DRAWS_MAX {
                        return Some(*start + again.below(acknowledged - *start + 1));
                    }
                    key = hashed(again.unit());
                    draws += 1;
                }
                key
            }
            Self::Latest { ranks } => {
                ranks.grow(acknowledged);
                acknowledged - ranks.rank(stream.unit())
            }
            Self::Hotspot { share, start, hot, cold } => {
                if stream.unit() < *share {
                    *start + stream.below(*hot)
                } else {
                    *start + *hot + stream.below(*cold)
                }
            }
            Self::Exponential { gamma, newest, mass } => {
                if acknowledged != *newest {
                    *newest = acknowledged;
                    *mass = mass_up_to(*gamma, acknowledged);
                }
                let distance = -(-stream.unit() * *mass).ln_1p() / *gamma;
                acknowledged - (distance as u64).min(acknowledged)
            }
            Self::Sequential { start, count, next, stride } => {
                let key = *start + *next;
                *next = (*next + *stride) % *count;
                key
            }
            Self::Once { next, end, stride } => {
                let key = *next;
                if key >= *end {
                    return None;
                }
                *next = key.saturating_add(*stride);
                key
            }
            Self::Drawn { distribution, state } => distribution.sample(state).cast_unsigned(),
            Self::Behind { start, lookback, state } => {
                let written = (acknowledged + 1).saturating_sub(*start);
                let behind = lookback.sample(state).max(0).cast_unsigned();
                // What lies before the first falls back into what is there.
                *start + written.checked_sub(behind).unwrap_or(behind % written.max(1))
            }
        })
    }
}

/// P(distance < newest + 1) of an exponential distance: the part that hits an existing key.
fn mass_up_to(gamma: f64, newest: u64) -> f64 {
    -(-gamma * (newest as f64 + 1.0)).exp_m1()
}
