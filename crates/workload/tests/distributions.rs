//! Distributions: every generator against a probability computed here, by another way than there.
//!
//! Pearson's chi-square at fixed seeds, the limit at p = 3e-5 (Wilson-Hilferty). Each test also
//! shows that it rejects a distribution that is wrong by little. Neither depends on the seed: both
//! hold at forty others.

// Clippy's exception for tests does not reach the functions that they share.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use workload::cassandra_stress;
use workload::ycsb::{self, Properties};
use workload::{Draw, Phase, Plan, Sampler};

fn plan(name: &str, pairs: &[&str]) -> Arc<Plan> {
    let properties = Properties::load::<&str, _>(&[], pairs).unwrap();
    Arc::new(ycsb::plan(name, &properties, None, None).unwrap().plan)
}

fn sampler(plan: &Arc<Plan>) -> Sampler {
    Sampler::new(plan.clone(), Phase::Run, 20_261_120, 0, 1)
}

fn draws(mut sampler: Sampler, count: usize) -> impl Iterator<Item = Draw> {
    (0..count).map(move |_| sampler.draw().unwrap())
}

fn count(cells: usize, values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut counts = vec![0; cells];
    values.for_each(|value| counts[value as usize] += 1);
    counts
}

/// Chi-square over its limit: at most 1 when the counts fit the probabilities. Neighbouring cells
/// are joined until 10 draws are expected in each.
fn misfit(counts: &[u64], probabilities: &[f64]) -> f64 {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    let mass: f64 = probabilities.iter().sum();
    assert!((mass - 1.0).abs() < 1e-6, "probabilities sum to {mass}");
    let (mut chi_square, mut cells) = (0.0, 0);
    let (mut seen, mut expected, mut left) = (0.0, 0.0, total as f64);
    for (count, probability) in counts.iter().zip(probabilities) {
        seen += *count as f64;
        expected += probability * total as f64;
        left -= probability * total as f64;
        if expected >= 10.0 && left >= 10.0 {
            chi_square += (seen - expected) * (seen - expected) / expected;
            cells += 1;
            (seen, expected) = (0.0, 0.0);
        }
    }
    chi_square += (seen - expected) * (seen - expected) / expected;
    let freedom = f64::from(cells);
    assert!(freedom > 0.0);
    let part = 2.0 / (9.0 * freedom);
    chi_square / (freedom * (1.0 - part + 4.0 * part.sqrt()).powi(3))
}

#[track_caller]
fn assert_fits(counts: &[u64], right: &[f64], wrong: &[f64]) {
    let (fit, power) = (misfit(counts, right), misfit(counts, wrong));
    assert!(fit <= 1.0, "rejected: {fit} times the limit");
    assert!(power > 1.0, "the test has no power: the wrong one has {power} times the limit");
}

fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn zeta(items: u64, theta: f64) -> f64 {
    (1..=items).rev().map(|i| (i as f64).powf(-theta)).sum()
}

/// P(rank < r) of Gray's generator: the closed form solved for u, not run forwards.
/// `first_items` is the n of eta.
fn gray_cdf(rank: u64, items: u64, first_items: u64, zeta_items: f64, theta: f64) -> f64 {
    let zeta_2 = 1.0 + 2f64.powf(-theta);
    match rank {
        0 => 0.0,
        1 => 1.0 / zeta_items,
        2 => zeta_2 / zeta_items,
        rank if rank >= items => 1.0,
        rank => {
            let eta =
                (1.0 - (2.0 / first_items as f64).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta_items);
            let u = 1.0 - (1.0 - (rank as f64 / items as f64).powf(1.0 - theta)) / eta;
            u.clamp(zeta_2 / zeta_items, 1.0)
        }
    }
}

fn gray(items: u64, first_items: u64, theta: f64) -> Vec<f64> {
    let zeta_items = zeta(items, theta);
    let cdf = |rank| gray_cdf(rank, items, first_items, zeta_items, theta);
    (0..items).map(|rank| cdf(rank + 1) - cdf(rank)).collect()
}

fn fnv(number: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for shift in (0..64).step_by(8) {
        hash ^= (number >> shift) & 0xFF;
        hash = hash.wrapping_mul(0x100_0000_01B3);
    }
    (hash as i64).unsigned_abs()
}

/// Shares of `items` keys: the popular ranks one by one, the rest of the 10^10 evenly.
fn scrambled(items: u64, exact_ranks: u64, theta: f64) -> Vec<f64> {
    const RANKS: u64 = 10_000_000_001;
    let cdf = |rank| gray_cdf(rank, RANKS, RANKS, 26.46902820178302, theta);
    let mut shares = vec![(1.0 - cdf(exact_ranks)) / items as f64; items as usize];
    for rank in 0..exact_ranks {
        shares[(fnv(rank) % items) as usize] += cdf(rank + 1) - cdf(rank);
    }
    shares
}

#[test]
fn operations_follow_their_weights() {
    let plan = plan(
        "a",
        &[
            "recordcount=1000",
            "readproportion=3",
            "updateproportion=1",
            "insertproportion=0.02",
            "scanproportion=4",
            "readmodifywriteproportion=2",
        ],
    );
    let counts = count(5, draws(sampler(&plan), 400_000).map(|draw| draw.operation.into()));
    let wrong = normalised(vec![3.0, 1.0, 0.03, 4.0, 2.0]);
    assert_fits(&counts, &normalised(vec![3.0, 1.0, 0.02, 4.0, 2.0]), &wrong);
}

#[test]
fn uniform_keys_are_even() {
    let plan = plan("c", &["recordcount=1000", "requestdistribution=uniform"]);
    let counts = count(1000, draws(sampler(&plan), 1_000_000).map(|draw| draw.key));
    let tilted = (0..1000).map(|key| 1.0 + 0.1 * (f64::from(key) / 1000.0 - 0.5)).collect();
    assert_fits(&counts, &[0.001; 1000], &normalised(tilted));
}

#[test]
fn zipfian_keys_are_scrambled_ranks() {
    let plan = plan("c", &["recordcount=1000"]);
    let counts = count(1000, draws(sampler(&plan), 1_000_000).map(|draw| draw.key));
    // One key more than there are; it is drawn again.
    let existing = |theta| {
        let mut shares = scrambled(1001, 2_000_000, theta);
        shares.truncate(1000);
        normalised(shares)
    };
    // The wrong one keeps zeta and so the first rank's share: only the shape behind it differs.
    assert_fits(&counts, &existing(0.99), &existing(0.98));
}

#[test]
fn the_hottest_key_has_its_share_and_that_of_its_collisions() {
    const RECORDS: u64 = 1_000_000;
    const DRAWS: usize = 4_000_000;
    let plan = plan("c", &["recordcount=1000000"]);
    let hottest = fnv(0) % (RECORDS + 1);
    let seen = draws(sampler(&plan), DRAWS).filter(|draw| draw.key == hottest).count();
    let share = seen as f64 / DRAWS as f64;
    let expected = scrambled(RECORDS + 1, 2_000_000, 0.99)[hottest as usize];
    assert!((0.03778..0.0379).contains(&expected), "{expected}");
    assert!((share - expected).abs() < 0.0005, "{share}, not {expected}");
}

#[test]
fn zipfian_leaves_room_for_new_keys_and_redraws_them() {
    // 1000 operations x 0.25 x 2 = 500 new keys; none is acknowledged, then 300 are.
    let plan = plan("c", &["recordcount=1000", "insertproportion=0.25", "readproportion=0.75"]);
    let reads = |sampler| draws(sampler, 500_000).filter(|draw| draw.operation == 0);
    let shares = scrambled(1501, 2_000_000, 0.99);
    let mut told = sampler(&plan);
    told.set_acknowledged(1299);
    for (sampler, existing) in [(sampler(&plan), 1000), (told, 1300)] {
        let counts = count(existing, reads(sampler).map(|draw| draw.key));
        let wrong = normalised(scrambled(existing as u64, 2_000_000, 0.99));
        assert_fits(&counts, &normalised(shares[..existing].to_vec()), &wrong);
    }
}

#[test]
fn latest_counts_back_from_the_newest_key() {
    let plan = plan("c", &["recordcount=1001", "requestdistribution=latest"]);
    let newest = 1000;
    let back = draws(sampler(&plan), 1_000_000).map(|draw| newest - draw.key);
    let counts = count(1000, back);
    assert_fits(&counts, &gray(1000, 1000, 0.99), &gray(1000, 1000, 0.97));
    // The two ranks with an exact share, by the definition of a zipfian distribution.
    for (rank, share) in [(0, 1.0), (1, 2f64.powf(-0.99))] {
        let (seen, wanted) = (counts[rank] as f64 / 1e6, share / zeta(1000, 0.99));
        assert!((seen - wanted).abs() < 0.0015, "rank {rank}: {seen}, not {wanted}");
    }
}

#[test]
fn latest_grows_with_acknowledged_inserts_and_keeps_its_first_eta() {
    let plan = plan("c", &["recordcount=1001", "requestdistribution=latest"]);
    let mut grown = sampler(&plan);
    for newest in 1001..=3000 {
        grown.set_acknowledged(newest);
        grown.draw().unwrap();
    }
    grown.set_acknowledged(2500);
    let counts = count(3000, draws(grown, 1_000_000).map(|draw| 3000 - draw.key));
    assert_fits(&counts, &gray(3000, 1000, 0.99), &gray(3000, 3000, 0.99));
}

#[test]
fn hotspot_keys_divide_as_told() {
    let given = |share: f64| -> Vec<f64> {
        (0..1000).map(|key| if key < 200 { share / 200.0 } else { (1.0 - share) / 800.0 }).collect()
    };
    let plan = plan("c", &["recordcount=1100", "insertstart=100", "requestdistribution=hotspot"]);
    let counts = count(1000, draws(sampler(&plan), 1_000_000).map(|draw| draw.key - 100));
    assert_fits(&counts, &given(0.8), &given(0.78));
}

#[test]
fn exponential_keys_decay_from_the_newest() {
    let given = |percentile: f64, newest: i32| {
        let gamma = -(1.0 - percentile / 100.0f64).ln() / (1000.0 * 0.8571428571);
        let decay = |distance: i32| (-gamma * f64::from(distance)).exp();
        // What falls behind the first key is drawn again: the rest is scaled up.
        normalised((0..=newest).map(|distance| decay(distance) - decay(distance + 1)).collect())
    };
    let plan = plan("c", &["recordcount=1000", "requestdistribution=exponential"]);
    let mut grown = sampler(&plan);
    grown.set_acknowledged(1499);
    for (sampler, newest) in [(sampler(&plan), 999u16), (grown, 1499)] {
        let back = draws(sampler, 1_000_000).map(|draw| u64::from(newest) - draw.key);
        let counts = count(usize::from(newest) + 1, back);
        assert_fits(&counts, &given(95.0, newest.into()), &given(94.0, newest.into()));
    }
}

#[test]
fn scan_lengths_follow_their_distribution() {
    let pairs = ["recordcount=1000", "minscanlength=11", "maxscanlength=110"];
    let lengths = |distribution: &str| {
        let distribution = format!("scanlengthdistribution={distribution}");
        let plan = plan("e", &[&pairs[..], &[&distribution]].concat());
        let scan = plan.run.iter().position(|operation| operation.name == "scan").unwrap();
        let drawn: Vec<Draw> = draws(sampler(&plan), 500_000).collect();
        let other = drawn.iter().find(|draw| usize::from(draw.operation) != scan).unwrap();
        assert_eq!(other.scan_length, 0);
        let scans = drawn.into_iter().filter(|draw| usize::from(draw.operation) == scan);
        count(100, scans.map(|draw| u64::from(draw.scan_length) - 11))
    };
    let tilted = (0..100).map(|length| 1.0 + 0.1 * (f64::from(length) / 100.0 - 0.5)).collect();
    assert_fits(&lengths("uniform"), &[0.01; 100], &normalised(tilted));
    assert_fits(&lengths("zipfian"), &gray(100, 100, 0.99), &gray(100, 100, 0.96));
}

#[test]
fn field_lengths_follow_their_distribution() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hist.txt");
    std::fs::write(&file, "BlockSize\t10\n0\t30\n1\t20\n2\t0\n3\t50\n4\t9\n").unwrap();
    let file = format!("fieldlengthhistogram={}", file.display());
    let lengths = |pairs: &[&str], min: usize, step: usize, cells: usize| {
        let plan = plan("a", &[pairs, &["recordcount=1000"]].concat());
        let mut out = vec![0; plan.value_room()];
        let sizes = draws(sampler(&plan), 300_000)
            .map(|draw| plan.write_value(&draw, b"user1", draw.column.into(), &mut out) - min);
        count(cells, sizes.map(|size| (size / step) as u64))
    };
    let pairs = ["fieldlengthdistribution=uniform", "minfieldlength=6", "fieldlength=25"];
    let tilted = (0..20).map(|size| 1.0 + 0.1 * (f64::from(size) / 20.0 - 0.5)).collect();
    assert_fits(&lengths(&pairs, 6, 1, 20), &[0.05; 20], &normalised(tilted));

    let pairs = ["fieldlengthdistribution=zipfian", "minfieldlength=6", "fieldlength=105"];
    assert_fits(&lengths(&pairs, 6, 1, 100), &gray(100, 100, 0.99), &gray(100, 100, 0.96));

    // Counts 30, 20, 0, 50, 9 of 109; "draw <= running total" moves one draw to the first bucket,
    // and the last bucket yields the length of the one before it.
    let given = |first: f64| normalised(vec![0.0, first, 20.0, 0.0, 109.0 - first - 20.0]);
    let seen = lengths(&["fieldlengthdistribution=histogram", &file], 0, 10, 5);
    assert_fits(&seen, &given(31.0), &given(30.0));
}

/// Shares of the seeds 1 to `most` that `-pop dist=` draws when `below(x)` is the probability that
/// the real number is below x: cut to whole numbers, and those beyond an end are at it.
fn cut_and_clamped(most: u64, below: impl Fn(f64) -> f64) -> Vec<f64> {
    let up_to = |seed: u64| if seed < most { below(seed as f64 + 1.0) } else { 1.0 };
    (1..=most).map(|seed| up_to(seed) - if seed > 1 { up_to(seed - 1) } else { 0.0 }).collect()
}

/// P(x) of the standard normal distribution, by Simpson's rule from 0 on.
fn normal(x: f64) -> f64 {
    let steps = 2000;
    let width = x / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let inner = (1..steps).map(|i| {
        let weight = if i % 2 == 1 { 4.0 } else { 2.0 };
        weight * density(f64::from(i) * width)
    });
    0.5 + (density(0.0) + inner.sum::<f64>() + density(x)) * width / 3.0
}

#[test]
fn seeds_of_cassandra_stress_follow_their_distribution() {
    const MOST: u64 = 2000;
    // Seeds of two workers together, each with a stream of its own.
    let drawn = |spec: &str| {
        let line = format!("read -pop dist={spec}");
        let (plan, _) =
            cassandra_stress::native(&line, 1, 1, &|_: &str| Err(String::new())).unwrap();
        let plan = Arc::new(plan);
        let of = |worker| {
            let sampler = Sampler::new(plan.clone(), Phase::Run, 20_261_122, worker, 2);
            draws(sampler, 200_000).map(|draw| draw.key - 1).collect::<Vec<_>>()
        };
        let (first, second) = (of(0), of(1));
        assert_ne!(first, second, "{spec}: workers draw for themselves");
        count(MOST as usize, first.into_iter().chain(second))
    };
    let uniform = cut_and_clamped(MOST, |x| (x - 1.0) / MOST as f64);
    let tilted = (0..MOST).map(|n| 1.0 + 0.2 * (n as f64 / MOST as f64)).collect();
    assert_fits(&drawn("uniform(1..2000)"), &uniform, &normalised(tilted));

    // Mean and deviation as given; else the middle, and a third of what lies to each side.
    let gaussian =
        |mean, deviation| cut_and_clamped(MOST, move |x: f64| normal((x - mean) / deviation));
    let narrow = drawn("gaussian(1..2000,1000,100)");
    assert_fits(&narrow, &gaussian(1000.0, 100.0), &gaussian(1001.0, 102.0));
    let wide = drawn("gaussian(1..2000)");
    let third = 1999.0 / 2.0 / 3.0;
    assert_fits(&wide, &gaussian(1000.5, third), &gaussian(1000.5, third * 1.05));
    // Many draws fall beyond an end.
    let piled = drawn("gaussian(1..2000,100,150)");
    assert!(piled[0] > 90_000, "a quarter of all: {}", piled[0]);
    assert_fits(&piled, &gaussian(100.0, 150.0), &gaussian(106.0, 150.0));

    // P(x <= 1999) = 1 - sqrt(1 / 1999), and beyond is at the end.
    let range = (MOST - 1) as f64;
    let decay = range.sqrt().ln();
    let exponential =
        |rate: f64| cut_and_clamped(MOST, move |x| -(-(x - 1.0) / range * rate).exp_m1());
    assert_fits(&drawn("exp(1..2000)"), &exponential(decay), &exponential(decay * 1.06));
    let extreme = |shape: f64| {
        let scale = range / decay.powf(1.0 / shape);
        cut_and_clamped(MOST, move |x| -(-((x - 1.0) / scale).powf(shape)).exp_m1())
    };
    assert_fits(&drawn("extreme(1..2000,2)"), &extreme(2.0), &extreme(2.1));
    let inverted: Vec<f64> = exponential(decay).into_iter().rev().collect();
    assert_fits(&drawn("~exp(1..2000)"), &inverted, &exponential(decay));
}
