//! Partitions that are written in several visits, and which of them is visited next.
//!
//! In: a distribution of visits, one over partitions that are not through, new keys. Out: a key and
//! the number of the visit to it. A partition that was begun waits among others; one of them, by
//! its place in their order, is visited when the distribution yields a place that is taken, else a
//! new one is begun. Each worker has partitions of its own. How many visits a partition has follows
//! from its seed. Source: cassandra-stress, `generate/SeedManager.java`. Memory grows with the
//! partitions that are not through; nothing else is allocated.

use crate::cassandra_stress::{
    Distribution, DrawState, JavaRandom, Partition, PartitionGenerator, SeedVisits, Selection,
};

/// Visits of a partition at most: they are counted in 16 bits, and levels of few values have more
/// than were asked for.
pub const VISITS_MAX: i64 = 10_000;
/// Keeps the number of visits apart from whatever else follows from a seed.
const VISITS_SALT: i64 = 0x56_49_53_49_54;

/// In how many visits partitions are written, and how one that is not through is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Visits {
    /// Visits of a partition.
    pub visits: Distribution,
    /// Places of those that are not through, counted from its least value.
    pub revisit: Distribution,
}

impl Visits {
    /// Those of a seed's partition.
    #[must_use]
    pub fn of(&self, seed: i64) -> i64 {
        self.visits.sample(&mut DrawState::seeded(seed ^ VISITS_SALT)).clamp(1, VISITS_MAX)
    }

    /// The visit of that number to a seed's partition.
    #[must_use]
    pub fn visit(
        &self,
        generator: &PartitionGenerator,
        partition: &mut Partition,
        seed: i64,
        number: u16,
    ) -> SeedVisits {
        let visits = self.of(seed);
        let size = partition.visit_size(generator, seed, visits);
        SeedVisits { seed, visits, position: size.saturating_mul(i64::from(number)) }
    }
}

/// A partition that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    key: u64,
    /// The visit that is next.
    next: u16,
}

/// One worker's partitions that are not through.
#[derive(Debug, Clone)]
pub(crate) struct Revisits {
    visits: Visits,
    generator: PartitionGenerator,
    partition: Partition,
    random: JavaRandom,
    state: DrawState,
    workers: i64,
    begun: Ranked,
}

impl Revisits {
    pub(crate) fn new(
        visits: &Visits,
        generator: &PartitionGenerator,
        state: DrawState,
        workers: usize,
    ) -> Self {
        Self {
            visits: visits.clone(),
            partition: Partition::new(generator),
            generator: generator.clone(),
            random: JavaRandom::seeded(0),
            state,
            workers: workers as i64,
            begun: Ranked::default(),
        }
    }

    /// The key to visit, and the number of the visit; None when a new one is due and there is none.
    pub(crate) fn pick(
        &mut self,
        seed_of: impl Fn(u64) -> i64,
        mut new: impl FnMut() -> Option<u64>,
    ) -> Option<(u64, u16)> {
        loop {
            let revisit = &self.visits.revisit;
            // The newest is at the first place.
            let place = (revisit.max() - revisit.sample(&mut self.state)) / self.workers;
            let old = usize::try_from(place).ok().and_then(|place| self.begun.at(place));
            let (slot, Begun { key, next }) = match old {
                Some((slot, begun)) => (Some(slot), begun),
                None => (None, Begun { key: new()?, next: 0 }),
            };
            let Some(visit) = self.existing(seed_of(key), next) else {
                slot.into_iter().for_each(|slot| self.begun.remove(slot));
                continue;
            };
            let more = visit.checked_add(1).and_then(|next| self.existing(seed_of(key), next));
            match (slot, more) {
                (Some(slot), Some(next)) => self.begun.slots[slot] = Some(Begun { key, next }),
                (Some(slot), None) => self.begun.remove(slot),
                (None, Some(next)) => self.begun.push(Begun { key, next }),
                (None, None) => {}
            }
            return Some((key, visit));
        }
    }

    /// The first visit from that number on that finds rows; None when the partition is through.
    fn existing(&mut self, seed: i64, number: u16) -> Option<u16> {
        let mut visit = self.visits.visit(&self.generator, &mut self.partition, seed, number);
        let (generator, whole) = (&self.generator, Selection::Share(1.0));
        let some = self.partition.start_write(generator, &mut visit, whole, 1.0, &mut self.random);
        let size = self.partition.visit_size(generator, seed, visit.visits);
        u16::try_from(visit.position / size - 1).ok().filter(|_| some)
    }
}

/// Elements in the order in which they came, found by their place from the end, in a logarithm of
/// their number.
#[derive(Debug, Clone, Default)]
struct Ranked {
    /// Those that were removed are None.
    slots: Vec<Option<Begun>>,
    /// Of a Fenwick tree over all slots that there is room for: at `i`, how many are taken of the
    /// `i & -i` up to it.
    taken: Vec<u32>,
    count: usize,
}

impl Ranked {
    /// The element with so many behind it, and its slot.
    fn at(&self, place: usize) -> Option<(usize, Begun)> {
        let mut left = u32::try_from(self.count.checked_sub(place + 1)?).ok()?;
        let mut slot = 0;
        let mut step = self.taken.len() / 2;
        while step > 0 {
            if let Some(&taken) = self.taken.get(slot + step).filter(|taken| **taken <= left) {
                left -= taken;
                slot += step;
            }
            step /= 2;
        }
        self.slots.get(slot).copied().flatten().map(|begun| (slot, begun))
    }

    fn push(&mut self, begun: Begun) {
        if self.slots.len() + 1 >= self.taken.len() {
            self.rebuild();
        }
        self.slots.push(Some(begun));
        self.count += 1;
        self.add(self.slots.len(), 1);
    }

    fn remove(&mut self, slot: usize) {
        self.slots[slot] = None;
        self.count -= 1;
        self.add(slot + 1, u32::MAX);
    }

    /// Adds to the slot before `index`; the greatest number takes one away.
    fn add(&mut self, mut index: usize, number: u32) {
        while let Some(taken) = self.taken.get_mut(index) {
            *taken = taken.wrapping_add(number);
            index += index & index.wrapping_neg();
        }
    }

    /// Drops the slots that are not taken, and makes room for as many again.
    fn rebuild(&mut self) {
        self.slots.retain(Option::is_some);
        let room = (2 * self.slots.len()).max(32).next_power_of_two();
        self.taken.clear();
        self.taken.resize(room, 0);
        for index in 1..=self.slots.len() {
            self.add(index, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra_stress::Order;
    use crate::cassandra_stress::Profile;
    use std::collections::BTreeMap;

    #[test]
    fn elements_are_found_by_their_place_from_the_end() {
        let (mut ranked, mut plain) = (Ranked::default(), Vec::<Begun>::new());
        let mut random = JavaRandom::seeded(7);
        for key in 0..5000 {
            let begun = Begun { key, next: 0 };
            ranked.push(begun);
            plain.push(begun);
            for _ in 0..2 {
                let place = (random.next_f64() * plain.len() as f64 * 1.2) as usize;
                let wanted = plain.len().checked_sub(place + 1).map(|index| plain[index]);
                let found = ranked.at(place);
                assert_eq!(found.map(|(_, begun)| begun), wanted);
                if let (Some((slot, _)), true) = (found, random.next_f64() < 0.45) {
                    ranked.remove(slot);
                    plain.remove(plain.len() - 1 - place);
                }
            }
        }
        assert_eq!(ranked.count, plain.len());
        assert!(plain.len() > 100, "{}", plain.len());
    }

    #[test]
    fn each_part_of_a_partition_is_visited_once_and_in_order() {
        let profile = Profile::parse(
            "keyspace: k\ntable: t\ntable_definition: create table t (p int, c int, v int, \
             primary key (p, c))\ncolumnspec:\n - {name: c, cluster: uniform(5..15)}\nqueries: {}",
        )
        .unwrap();
        let table = profile.table(profile.definition.as_ref().unwrap(), false).unwrap();
        let generator = PartitionGenerator::new(&table, Order::Arbitrary);
        let visits = Visits {
            visits: Distribution::parse("uniform(2..4)").unwrap(),
            revisit: Distribution::parse("uniform(1..20)").unwrap(),
        };
        let mut revisits = Revisits::new(&visits, &generator, DrawState::seeded(1), 1);
        let mut keys = 0..200;
        let mut partition = Partition::new(&generator);
        let mut random = JavaRandom::seeded(0);
        let mut written: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
        let mut numbers: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
        while let Some((key, number)) = revisits.pick(u64::cast_signed, || keys.next()) {
            numbers.entry(key).or_default().push(number);
            let mut visit = visits.visit(&generator, &mut partition, key.cast_signed(), number);
            let whole = Selection::Share(1.0);
            assert!(partition.start_write(&generator, &mut visit, whole, 1.0, &mut random));
            while partition.has_row() {
                written.entry(key).or_default().push(partition.clustering(0).to_vec());
                partition.advance(&generator, &mut random);
            }
        }
        assert_eq!(numbers.len(), 200);
        let several = numbers.values().filter(|numbers| numbers.len() > 1).count();
        assert!(several > 150, "{several}");
        assert!(numbers.values().all(|numbers| numbers.is_sorted_by(|a, b| a < b)));
        let through = written.iter().filter(|(key, rows)| {
            let key = key.cast_signed();
            partition.start_write(
                &generator,
                &mut SeedVisits::new(key, 1),
                Selection::Share(1.0),
                1.0,
                &mut random,
            );
            let mut whole = Vec::new();
            while partition.has_row() {
                whole.push(partition.clustering(0).to_vec());
                partition.advance(&generator, &mut random);
            }
            assert!(whole.starts_with(rows), "no row twice, none left out");
            whole.len() == rows.len()
        });
        // Those that were begun last are not through when there is no new key any more.
        let through = through.count();
        assert!((150..=200).contains(&through), "{through}");
    }
}
