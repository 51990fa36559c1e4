//! Which seeds are visited: `-pop` and a worker's number -> that worker's stream of seeds.
//!
//! The original's threads share one counter or one generator. Here each worker has a part of the
//! sequence, or a generator of its own: together they visit a sequence's seeds once per round, in
//! another order. Where the number of visits is known, parts are blocks of what the original would
//! visit, else every `workers`th seed, so that workers of like speed leave a closed front.
//!
//! Source: cassandra-stress, `generate/SeedManager.java`, `settings/SettingsPopulation.java`.
//! `read-lookback` there counts writes right only for sequences that start at 1; here always, and
//! a distance is divided by the number of workers.

use super::distribution::{Distribution, DrawState};
use thiserror::Error;

/// `-pop`: where seeds come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Population {
    /// `seq=`: one after the other.
    Sequence(Sequence),
    /// `dist=`: drawn.
    Drawn(Distribution),
}

/// Seeds one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    first: i64,
    /// Seeds in one round, at least 1.
    count: u64,
    wrap: bool,
    /// How far behind the writes reads are.
    lookback: Option<Distribution>,
}

/// Why a sequence of seeds could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SequenceError {
    /// Not of the form A..B.
    #[error("'{0}' is not a sequence of seeds; write FIRST..LAST, for example 1..10M")]
    Form(String),
    /// Upside down.
    #[error("the sequence of seeds goes down from {first} to {last}; write the lesser one first")]
    Down {
        /// First seed.
        first: i64,
        /// Last seed.
        last: i64,
    },
    /// Reads would look back beyond the first seed.
    #[error(
        "reads look back up to {lookback} seeds and the sequence has {count}; \
         write a shorter read-lookback"
    )]
    Lookback {
        /// Greatest distance.
        lookback: i64,
        /// Seeds of the sequence.
        count: u64,
    },
}

impl Sequence {
    /// Reads `FIRST..LAST`, whole numbers of at least 0 that may end in k, m or b. With `wrap` the
    /// sequence starts again when it is through.
    ///
    /// # Errors
    /// When it is not a range, or `lookback` reaches beyond it.
    pub fn parse(
        spec: &str,
        wrap: bool,
        lookback: Option<Distribution>,
    ) -> Result<Self, SequenceError> {
        let bounds = spec.find("..").map(|dots| (&spec[..dots], spec[dots..].trim_matches('.')));
        let seed = |text: &str| {
            let digits = text.starts_with(|c: char| c.is_ascii_digit());
            super::distribution::count(text).filter(|_| digits)
        };
        let (first, last) = bounds
            .and_then(|(first, last)| Some((seed(first)?, seed(last)?)))
            .ok_or_else(|| SequenceError::Form(spec.to_owned()))?;
        if first > last {
            return Err(SequenceError::Down { first, last });
        }
        let count = (last - first).unsigned_abs() + 1;
        match lookback.as_ref().map(Distribution::max) {
            Some(distance) if distance > first.saturating_add_unsigned(count) => {
                Err(SequenceError::Lookback { lookback: distance, count })
            }
            _ => Ok(Self { first, count, wrap, lookback }),
        }
    }

    /// Seeds of one round.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it starts again when it is through.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.wrap
    }
}

impl Population {
    /// The seeds of worker `worker` of `workers` (at least 1). `visits` is the number of seeds that
    /// all workers take together, where it is known; worker w then takes those from
    /// `visits * w / workers` on.
    #[must_use]
    pub fn seeds(
        &self,
        run_seed: u64,
        worker: usize,
        workers: usize,
        visits: Option<u64>,
    ) -> Seeds {
        let state = DrawState::for_worker(run_seed, worker);
        let source = match self {
            Self::Drawn(distribution) => Source::Drawn(distribution.clone()),
            Self::Sequence(sequence) => Source::Part(sequence.part(worker, workers, visits)),
        };
        Seeds { source, state }
    }
}

impl Sequence {
    fn part(&self, worker: usize, workers: usize, visits: Option<u64>) -> Part {
        let edge = |count: u64, worker: usize| {
            (u128::from(count) * worker as u128 / workers as u128) as u64
        };
        let (start, end, step) = match visits {
            Some(visits) => {
                let visited = visits.min(self.count);
                (edge(visited, worker), edge(visited, worker + 1), 1)
            }
            None => (worker as u64, self.count, workers as u64),
        };
        // More workers than seeds: those without a part share one where the sequence goes on.
        let (start, end) = if self.wrap && start >= end {
            let shared = worker as u64 % self.count;
            (shared, shared + 1)
        } else {
            (start, end)
        };
        Part {
            first: self.first,
            start,
            end,
            step,
            next: start,
            wrap: self.wrap,
            lookback: self.lookback.clone(),
            workers: workers as u64,
        }
    }
}

/// One worker's stream of seeds.
#[derive(Debug, Clone)]
pub struct Seeds {
    source: Source,
    state: DrawState,
}

#[derive(Debug, Clone)]
enum Source {
    Drawn(Distribution),
    Part(Part),
}

/// A worker's part of a sequence; positions count from the sequence's first seed.
#[derive(Debug, Clone)]
struct Part {
    first: i64,
    start: u64,
    end: u64,
    step: u64,
    next: u64,
    wrap: bool,
    lookback: Option<Distribution>,
    workers: u64,
}

impl Seeds {
    /// The next seed; None when this worker's part is through and does not start again.
    #[inline]
    pub fn draw(&mut self) -> Option<i64> {
        match &mut self.source {
            Source::Drawn(distribution) => Some(distribution.sample(&mut self.state)),
            Source::Part(part) => part.next(),
        }
    }

    /// The next seed for a read, where this worker has written the first `written` seeds of its
    /// part. Without `read-lookback` the next seed of all.
    #[inline]
    pub fn draw_for_read(&mut self, written: u64) -> Option<i64> {
        match &mut self.source {
            Source::Part(part) if part.lookback.is_some() => {
                part.look_back(written, &mut self.state)
            }
            _ => self.draw(),
        }
    }
}

impl Part {
    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.next >= self.end {
            if !self.wrap {
                return None;
            }
            self.next = self.start;
        }
        let seed = self.first + self.next.cast_signed();
        self.next += self.step;
        Some(seed)
    }

    fn look_back(&mut self, written: u64, state: &mut DrawState) -> Option<i64> {
        let count = self.end.saturating_sub(self.start).div_ceil(self.step);
        let distance = self.lookback.as_ref()?.sample(state).max(0).unsigned_abs() / self.workers;
        let back = match written.checked_sub(distance) {
            Some(back) => back,
            None if written >= count && !self.wrap => return None,
            None if written == 0 => 0,
            None => distance % written,
        };
        // A round that starts again stays in the part; the seed under way may not be there yet.
        let position = self.start + back % count.max(1) * self.step;
        Some(self.first + position.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sequence(spec: &str, wrap: bool) -> Population {
        Population::Sequence(Sequence::parse(spec, wrap, None).unwrap())
    }

    fn take(population: &Population, workers: usize, visits: Option<u64>) -> Vec<i64> {
        let share = |count: u64, worker: usize| (count * worker as u64 / workers as u64) as usize;
        let mut seeds: Vec<i64> = (0..workers)
            .flat_map(|worker| {
                let mut seeds = population.seeds(1, worker, workers, visits);
                let count = visits
                    .map_or(usize::MAX, |visits| share(visits, worker + 1) - share(visits, worker));
                std::iter::from_fn(move || seeds.draw()).take(count)
            })
            .collect();
        seeds.sort_unstable();
        seeds
    }

    #[test]
    fn bad_sequences_are_refused() {
        for spec in ["", "..", "1", "1..", "..2", "1..x", "-1..5", "1.5", "1..2..3", "x1..2"] {
            let error = Sequence::parse(spec, true, None).unwrap_err();
            assert_eq!(error, SequenceError::Form(spec.to_owned()), "{spec}");
        }
        assert!(matches!(
            Sequence::parse("2..1", true, None),
            Err(SequenceError::Down { first: 2, last: 1 })
        ));
        let far = Some(Distribution::uniform(1, 200));
        assert!(matches!(
            Sequence::parse("1..100", true, far),
            Err(SequenceError::Lookback { lookback: 200, count: 100 })
        ));
        assert_eq!(Sequence::parse("1..10M", true, None).unwrap().count(), 10_000_000);
        assert_eq!(Sequence::parse("5...6", true, None).unwrap().count(), 2);
    }

    #[test]
    fn a_round_that_starts_again_stays_in_the_sequence() {
        for workers in [1, 3, 7] {
            for worker in 0..workers {
                let mut seeds = sequence("1..5", true).seeds(1, worker, workers, None);
                let drawn: Vec<i64> = (0..20).filter_map(|_| seeds.draw()).collect();
                assert_eq!(drawn.len(), 20);
                assert!(drawn.iter().all(|seed| (1..=5).contains(seed)), "{drawn:?}");
            }
        }
    }

    #[test]
    fn one_worker_visits_in_order() {
        let mut seeds = sequence("3..5", true).seeds(1, 0, 1, None);
        let drawn: Vec<i64> = (0..7).filter_map(|_| seeds.draw()).collect();
        assert_eq!(drawn, [3, 4, 5, 3, 4, 5, 3]);
        let mut seeds = sequence("3..5", false).seeds(1, 0, 1, None);
        assert_eq!([3, 4, 5].map(Some), [seeds.draw(), seeds.draw(), seeds.draw()]);
        assert_eq!((seeds.draw(), seeds.draw()), (None, None));
    }

    #[test]
    fn reads_look_back_at_what_is_written() {
        let lookback = Some(Distribution::uniform(1, 10));
        let sequence = Sequence::parse("1..1000", false, lookback).unwrap();
        let mut seeds = Population::Sequence(sequence).seeds(1, 0, 1, None);
        for written in 1..1000u64 {
            let seed = seeds.draw_for_read(written).unwrap();
            let (low, high) = (written.saturating_sub(9).max(1), written);
            assert!((low..=high).contains(&seed.unsigned_abs()), "{seed} of {written}");
        }
    }

    #[test]
    fn drawn_seeds_differ_by_worker_and_repeat() {
        let population = Population::Drawn(Distribution::parse("gaussian(1..1b)").unwrap());
        let first = |worker| {
            let mut seeds = population.seeds(5, worker, 4, Some(100));
            [seeds.draw(), seeds.draw(), seeds.draw()]
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    proptest! {
        #[test]
        fn every_seed_is_visited_once(
            first in 0i64..1000, count in 1u64..500, workers in 1usize..20, known: bool,
        ) {
            let last = first + count.cast_signed() - 1;
            let population = sequence(&format!("{first}..{last}"), false);
            let seeds = take(&population, workers, known.then_some(count));
            prop_assert_eq!(seeds, (first..=last).collect::<Vec<_>>());
        }

        #[test]
        fn known_visits_are_the_first_of_the_sequence(
            visits in 0u64..300, workers in 1usize..20, wrap: bool,
        ) {
            let seeds = take(&sequence("1..300", wrap), workers, Some(visits));
            prop_assert_eq!(seeds, (1..=visits.cast_signed()).collect::<Vec<_>>());
        }
    }
}
