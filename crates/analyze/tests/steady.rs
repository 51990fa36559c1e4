//! How often the judgement of steadiness is right: on series made to order, whose truth is known,
//! and on recorded ones. Prints a table of confusion.
//!
//! A series that is not steady changes by at least 5 %, and by at least five standard errors of
//! its noise: what is less, nobody could tell from noise in so few blocks. A steady one changes by
//! at most 0.5 %.

#![allow(clippy::unwrap_used)]

use analyze::steady::{Block, State, is_warm, steadiness};
use std::collections::BTreeMap;
use std::f64::consts::TAU;

const LENGTHS: [usize; 10] = [10, 12, 15, 20, 30, 45, 60, 120, 300, 600];
/// Of independent noise, as shares of the mean.
const NOISES: [f64; 4] = [0.002, 0.008, 0.02, 0.04];
/// Series of each kind, length and noise.
const REPEATS: u64 = 10;
const RIGHT_SHARE_MIN: f64 = 0.95;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (self.word() >> 11) as f64 / (1u64 << 53) as f64 * (high - low)
    }

    fn sign(&mut self) -> f64 {
        if self.word() & 1 == 0 { 1.0 } else { -1.0 }
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.between(1e-12, 1.0), self.between(0.0, TAU));
        (-2.0 * a.ln()).sqrt() * b.cos()
    }
}

/// What a series is made of: the share that is added to 1 in block `i` of `n`.
type Shape = Box<dyn Fn(usize) -> f64>;
/// By random numbers, length and the least change that counts.
type Make = fn(&mut Random, usize, f64) -> Shape;

const STEADY: [(&str, Make); 5] = [
    ("flat", |_, _, _| Box::new(|_| 0.0)),
    ("slow drift below 0.5 %", |random, n, _| {
        let change = random.between(-0.005, 0.005);
        Box::new(move |i| change * i as f64 / n as f64)
    }),
    ("collections that come again", |random, n, _| {
        let period = random.between(3.0, (n as f64 / 4.0).clamp(3.5, 30.0));
        let (depth, phase) = (random.between(0.05, 0.4), random.between(0.0, period));
        // A pause of a part of a second falls into one block.
        Box::new(move |i| {
            let into = (i as f64 + phase) % period;
            if into < 1.0 { -depth } else { 0.0 }
        })
    }),
    ("a fast ripple", |random, n, _| {
        let period = random.between(2.0, (n as f64 / 5.0).clamp(2.5, 20.0));
        let (height, phase) = (random.between(0.01, 0.05), random.between(0.0, TAU));
        Box::new(move |i| height * (i as f64 * TAU / period + phase).sin())
    }),
    ("one pause", |random, n, _| {
        let (at, depth) = (random.between(0.0, n as f64) as usize, random.between(0.1, 0.5));
        Box::new(move |i| if i == at { -depth } else { 0.0 })
    }),
];

const MOVING: [(&str, Make); 5] = [
    ("ramp", |random, n, least| {
        let change = random.sign() * random.between(least, least.max(0.3));
        Box::new(move |i| change * i as f64 / n as f64)
    }),
    ("step", |random, n, least| {
        let at = n as f64 * random.between(0.25, 0.75);
        let height = random.sign() * random.between(least, least.max(0.3));
        Box::new(move |i| if i as f64 >= at { height } else { 0.0 })
    }),
    ("warm-up", |random, n, least| {
        let (height, tau) = (random.between(least, 0.6) * 1.5, n as f64 * random.between(0.1, 0.5));
        Box::new(move |i| -height * (-(i as f64) / tau).exp())
    }),
    ("drift from some moment on", |random, n, least| {
        let from = n as f64 * random.between(0.2, 0.5);
        let change = random.sign() * random.between(least, 0.4) * 1.3;
        Box::new(move |i| change * (i as f64 - from).max(0.0) / (n as f64 - from))
    }),
    ("ramp under collections", |random, n, least| {
        let period = random.between(3.0, (n as f64 / 4.0).clamp(3.5, 30.0));
        let (depth, change) = (random.between(0.05, 0.2), random.between(least, 0.4) + 0.1);
        Box::new(move |i| {
            let pause = if (i as f64) % period < 1.0 { -depth } else { 0.0 };
            pause + change * i as f64 / n as f64
        })
    }),
];

/// A closed loop of 64 clients: the median follows the throughput, p99 scatters on its own.
fn series(random: &mut Random, shape: &Shape, n: usize, noise: f64, memory: f64) -> Vec<Block> {
    let mut before = random.normal();
    let block = |i: usize| {
        before = memory * before + (1.0 - memory * memory).sqrt() * random.normal();
        let level = (1.0 + shape(i) + noise * before).max(0.01);
        let p50_us = 1000.0 / level * (0.3 * noise * random.normal()).exp();
        Block {
            start_s: i as f64,
            length_s: 1.0,
            ops_s: 64_000.0 * level,
            p50_us: Some(p50_us),
            p99_us: Some(4.0 * p50_us * (3.0 * noise * random.normal()).exp()),
        }
    };
    (0..n).map(block).collect()
}

/// The noise of neighbours is alike in half of the series, as queues and caches make it.
const MEMORIES: [f64; 2] = [0.0, 0.5];

/// Right and all, by kind and by length.
#[derive(Default)]
struct Table(BTreeMap<String, [u32; 2]>);

impl Table {
    fn add(&mut self, row: &str, right: bool) {
        let cell = self.0.entry(row.to_owned()).or_default();
        cell[0] += u32::from(right);
        cell[1] += 1;
    }

    fn share(&self, row: &str) -> f64 {
        let [right, all] = self.0[row];
        f64::from(right) / f64::from(all)
    }
}

#[test]
fn series_made_to_order_are_judged_right() {
    let mut random = Random(2026);
    let mut table = Table::default();
    for (class, kinds) in [("steady", &STEADY), ("not steady", &MOVING)] {
        for (kind, make) in kinds {
            for (n, noise, memory, _) in grid() {
                // Five standard errors of a slope over so many blocks.
                let error = noise * (12.0 / n as f64 * (1.0 + memory) / (1.0 - memory)).sqrt();
                let shape = make(&mut random, n, (5.0 * error).max(0.05));
                let blocks = series(&mut random, &shape, n, noise, memory);
                let judged = steadiness(&blocks);
                let right = (judged.state == State::NotSteady) == (class == "not steady");
                assert_ne!(judged.state, State::TooShortToTell);
                for row in [
                    format!("all {class}"),
                    format!("{class}: {kind}"),
                    format!("{class}: {n:>3} blocks"),
                    format!("{class}: noise {noise:.3}, memory {memory}"),
                ] {
                    table.add(&row, right);
                }
            }
        }
    }
    println!("{:<50}{:>10}{:>10}{:>10}", "", "right", "of", "share");
    for (row, [right, all]) in &table.0 {
        println!("{row:<50}{right:>10}{all:>10}{:>9.1}%", table.share(row) * 100.0);
    }
    for class in ["steady", "not steady"] {
        let share = table.share(&format!("all {class}"));
        assert!(share >= RIGHT_SHARE_MIN, "{class}: right in {:.1} %", share * 100.0);
    }
}

fn grid() -> impl Iterator<Item = (usize, f64, f64, u64)> {
    let lengths = LENGTHS.into_iter();
    lengths.flat_map(|n| {
        NOISES.into_iter().flat_map(move |noise| {
            let memories = MEMORIES.into_iter();
            memories.flat_map(move |m| (0..REPEATS).map(move |r| (n, noise, m, r)))
        })
    })
}

/// A warm-up of 2 blocks a second: what is left of it when it was found to be over.
#[test]
fn a_warm_up_is_over_when_little_of_it_is_left() {
    let mut random = Random(7);
    let (mut left, mut endless) = (Vec::new(), 0);
    for (tau, noise) in [3.0, 8.0, 20.0, 40.0].into_iter().flat_map(|t| NOISES.map(|n| (t, n))) {
        for _ in 0..10 {
            let height = random.between(0.2, 0.7);
            let curve: Shape = Box::new(move |i| -height * (-(i as f64) / tau).exp());
            let blocks = series(&mut random, &curve, 600, noise, 0.3);
            match (20..=blocks.len()).step_by(2).find(|&n| is_warm(&blocks[..n])) {
                Some(end) => left.push(height * (-(end as f64) / tau).exp()),
                None => endless += 1,
            }
        }
    }
    let all = (left.len() + endless) as f64;
    let early = left.iter().filter(|&&share| share > 0.02).count();
    println!("ended before 2 % was left: {early}, never: {endless}, of {all}");
    assert!(early as f64 <= 0.05 * all, "{early} of {all} ended early");
    assert!((endless as f64) <= 0.05 * all, "{endless} of {all} never ended");
}

/// The `blocks.csv` of real runs, in `series/`: what they are is the begin of their names.
fn recorded(kind: &str, phase: &str) -> Vec<(String, Vec<Block>)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/series");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = files
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(name, _)| name.starts_with(kind))
        .map(|(name, path)| (name, blocks(&std::fs::read_to_string(path).unwrap(), phase)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn blocks(text: &str, phase: &str) -> Vec<Block> {
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[2] == phase)
        .map(|row| Block {
            start_s: row[0].parse().unwrap(),
            length_s: row[1].parse().unwrap(),
            ops_s: row[3].parse().unwrap(),
            p50_us: row[4].parse().ok(),
            p99_us: row[5].parse().ok(),
        })
        .collect()
}

#[test]
fn recorded_windows_are_judged_right() {
    let mut right = 0;
    let mut all = 0;
    for (kind, state) in [("steady", State::Steady), ("moving", State::NotSteady)] {
        let windows = recorded(kind, "window");
        assert!(!windows.is_empty(), "no recorded series is {kind}");
        for (name, window) in windows {
            let judged = steadiness(&window);
            println!("{name}: {}", analyze::steady::evidence(&judged));
            right += u32::from(judged.state == state);
            all += 1;
        }
    }
    println!("{right} of {all} recorded windows are judged right");
    assert!(f64::from(right) >= RIGHT_SHARE_MIN * f64::from(all), "{right} of {all}");
}

#[test]
fn a_recorded_warm_up_of_a_jvm_is_not_over_before_it_is() {
    // How long each of them rises, and by when it is found to be over, in s.
    let expected = [
        ("warm-cassandra-busy", 72.0, None),
        ("warm-cassandra-cold", 76.0, None),
        ("warm-cassandra-shared", 83.0, Some(120.0)),
    ];
    let warm_ups = recorded("warm", "warm");
    assert_eq!(warm_ups.len(), expected.len());
    for ((name, blocks), (of, risen_s, over_by_s)) in warm_ups.iter().zip(expected) {
        assert_eq!(name, of);
        let at_s = |n: usize| blocks[n - 1].start_s - blocks[0].start_s;
        // As often as a run looks.
        let looks = (1..=blocks.len()).step_by(4);
        let end = looks.into_iter().find(|&n| is_warm(&blocks[..n])).map(at_s);
        println!("{name}: rises for {risen_s} s, over at {end:?} s");
        assert!(end.is_none_or(|end_s| end_s > risen_s), "{name}: {end:?}");
        assert!(
            over_by_s.is_none() || end.is_some_and(|s| Some(s) <= over_by_s),
            "{name}: {end:?}"
        );
        // From the moment on at which it was still rising it does not look steady, either.
        let risen = (1..=blocks.len()).filter(|&n| at_s(n) < risen_s).count();
        assert_eq!(steadiness(&blocks[..risen]).state, State::NotSteady, "{name}");
    }
}
