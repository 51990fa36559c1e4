//! Experiments made to order: noise of some percent, and drift that interleaving has to cancel.

use super::*;
use crate::draws::Draws;

/// Deviation of a trial's logarithm.
const NOISE: f64 = 0.04;

/// What the host does to trial `i` of `n`: it slows down by a fifth, and swings twice.
fn drift(i: usize, n: usize) -> f64 {
    let at = i as f64 / n as f64;
    (1.0 - 0.2 * at) * (1.0 + 0.05 * (2.0 * std::f64::consts::TAU * at).sin())
}

/// Values of arms with the factors given over so many blocks, each arm having its turn in each
/// block, in the order of the block and back in the next.
fn interleaved(factors: &[f64], blocks: usize, seed: u64) -> Vec<Vec<Option<f64>>> {
    let mut draws = Draws::new(seed);
    let count = factors.len();
    let mut arms = vec![Vec::new(); count];
    for block in 0..blocks {
        // In the other direction in every second block, so the values of one are collected first.
        let mut values = vec![None; count];
        for turn in 0..count {
            let arm = if block % 2 == 0 { turn } else { count - 1 - turn };
            let host = drift(block * count + turn, count * blocks);
            let noise = (NOISE * draws.normal()).exp();
            values[arm] = Some(1e5 * factors[arm] * host * noise);
        }
        arms.iter_mut().zip(values).for_each(|(arm, value)| arm.push(value));
    }
    arms
}

const NAMES: [&str; 4] = ["single", "per-package", "per-numa", "per-llc"];

fn arms(values: &[Vec<Option<f64>>]) -> Vec<Arm<'_>> {
    NAMES.iter().zip(values).map(|(name, values)| Arm { name, values }).collect()
}

fn compared(values: &[Vec<Option<f64>>]) -> Comparison {
    compare(&arms(values)).unwrap()
}

fn is_winner(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Winner { .. })
}

#[test]
fn identical_arms_have_a_winner_in_1_of_100_runs() {
    for (arms, blocks) in [(2, 4), (2, 5), (2, 6), (2, 10), (3, 6), (4, 6), (4, 8)] {
        let factors = vec![1.0; arms];
        let runs: u64 = 1000;
        let none =
            (0..runs).filter(|seed| !is_winner(&compared(&interleaved(&factors, blocks, *seed))));
        let none = none.count() as u64;
        println!("{arms} arms, {blocks} blocks: no winner in {none} of {runs}");
        // 1 % of 1000, and three deviations of that.
        assert!(none >= runs - 20, "{arms} arms, {blocks} blocks: {none} of {runs}");
    }
}

#[test]
fn a_better_arm_is_found_with_its_gain() {
    let factors = [1.0, 1.1, 1.3];
    let (mut won, mut held) = (0, 0);
    for seed in 0..100 {
        let comparison = compared(&interleaved(&factors, 8, seed));
        won += u32::from(is_winner(&comparison) && comparison.best == 2);
        let versus = &comparison.versus;
        held += u32::from(
            comparison.best == 2 && {
                let inside = |v: &Versus| {
                    let truth = factors[2] / factors[v.arm];
                    let (low, high) = v.ratio.interval.unwrap();
                    (low..=high).contains(&truth)
                };
                versus.iter().all(inside)
            },
        );
    }
    assert!(won >= 95, "{won} of 100 won");
    assert!(held >= 92, "{held} of 100 hold the truth");
}

#[test]
fn three_against_three_lead_and_do_not_win() {
    let values = [vec![100.0, 101.0, 99.0], vec![300.0, 303.0, 297.0]];
    let values: Vec<Vec<_>> =
        values.iter().map(|v: &Vec<f64>| v.iter().map(|v| Some(*v)).collect()).collect();
    let comparison = compared(&values);
    assert_eq!(comparison.best, 1);
    let versus = comparison.versus[0];
    assert!((versus.p - 0.1).abs() < 1e-12, "{versus:?}");
    assert_eq!((versus.test, versus.ratio.interval_kind), (Test::Ranks, IntervalKind::Range));
    assert_eq!(comparison.verdict, Verdict::Leads { certainty: 1.0 - versus.p });
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    assert!(
        sentence.starts_with(
            "ahead by throughput is per-package: 3.000 times single (3.000 to 3.000, min-max)"
        ),
        "{sentence}"
    );
    assert!(sentence.contains("not proven, certainty 90 %"), "{sentence}");
    let surely = comparison.surely();
    assert!(surely.contains("in 100 of 1000") && surely.contains("3 repetitions"), "{surely}");
}

#[test]
fn one_repetition_says_nothing_and_gives_no_bound() {
    let values = [vec![Some(4995.0)], vec![Some(4986.0)]];
    let comparison = compared(&values);
    assert_eq!(comparison.versus[0].ratio.interval, None);
    let unbounded = Verdict::CannotTell { difference_share_max: None, bound: IntervalKind::Alone };
    assert_eq!(comparison.verdict, unbounded);
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    assert_eq!(
        sentence,
        "cannot tell single from per-package by throughput: one repetition says nothing (1.002 \
         times per-package (one value))"
    );
}

#[test]
fn what_was_seen_of_a_few_is_called_no_bound() {
    let some = |values: [f64; 3]| values.map(Some).to_vec();
    let values = [some([100.0, 250.0, 90.0]), some([110.0, 100.0, 120.0])];
    let comparison = compared(&values);
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    let Verdict::CannotTell { difference_share_max, bound } = comparison.verdict else {
        panic!("{comparison:?}")
    };
    assert_eq!((difference_share_max, bound), (None, IntervalKind::Range));
    assert!(!sentence.contains("at most"), "{sentence}");
    assert!(sentence.contains("fewer than 6 repetitions give no bound (1.195 times per-package"));
}

/// Each ratio of the first arm to another is given, with scatter that cancels over the blocks.
fn with_ratios(others: &[f64], scatter: f64) -> Vec<Vec<Option<f64>>> {
    let block = |i: u32| if i.is_multiple_of(2) { scatter } else { -scatter };
    let of = |ratio: &f64| (0..8).map(|i| Some(1e5 / ratio * f64::exp(block(i)))).collect();
    std::iter::once(vec![Some(1e5); 8]).chain(others.iter().map(of)).collect()
}

#[test]
fn a_bound_holds_for_every_arm_that_its_sentence_speaks_of() {
    // The first beats the third by far; the second may be better or worse.
    let values = with_ratios(&[1.01, 1.2], 0.02);
    let comparison = compared(&values);
    let Verdict::CannotTell { difference_share_max: Some(share), .. } = comparison.verdict else {
        panic!("{comparison:?}")
    };
    let (low, high) = comparison.versus[0].ratio.interval.unwrap();
    assert!((share - (high - 1.0).max(1.0 / low - 1.0)).abs() < 1e-12, "{comparison:?}");
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    let (told, behind) = sentence.split_once("; surely behind: ").unwrap();
    assert!(told.starts_with("cannot tell single from per-package by throughput: at most "));
    assert!(!told.contains("per-numa") && behind.starts_with("per-numa (single has "), "{behind}");
    // How far the better of two is ahead has no upper end, and there is no minus 178 %.
    let wide = compared(&with_ratios(&[1.2], 1.0));
    let sentence = wide.sentence(&arms(&with_ratios(&[1.2], 1.0)), By::Throughput);
    assert!(sentence.contains("at most a factor of "), "{sentence}");
}

#[test]
fn of_several_arms_the_nearest_comes_first() {
    let values = with_ratios(&[8.0, 1.4, 3.0], 0.001);
    let comparison = compared(&values);
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    let places: Vec<_> =
        ["per-package", "per-llc", "per-numa"].map(|arm| sentence.find(arm).unwrap()).to_vec();
    assert!(sentence.starts_with("best by throughput is single: 1.400 times per-numa"));
    assert!(places.is_sorted_by(|a, b| a > b), "{sentence}");
    assert!(comparison.surely().contains("fewer than 1 of 1000"));
    let waits = comparison.sentence(&arms(&values), By::ResponseP99);
    assert!(waits.contains("that of per-numa is 1.400 times as long"), "{waits}");
}

#[test]
fn between_95_and_99_percent_an_arm_leads() {
    // Six pairs whose mean is three standard errors from 0: p = 0.030 by Student's table.
    let noise = [0.02, -0.02, 0.02, -0.02, 0.02, -0.02];
    let error = 0.02 * (6.0f64 / 5.0).sqrt() / 6.0f64.sqrt();
    let one: Vec<Option<f64>> = vec![Some(100.0); 6];
    let other = noise.iter().map(|n| Some(100.0 * (n + 3.0 * error).exp())).collect();
    let values = [one, other];
    let comparison = compared(&values);
    let Verdict::Leads { certainty } = comparison.verdict else { panic!("{comparison:?}") };
    assert!((certainty - 0.970).abs() < 0.001, "{certainty}");
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    assert!(sentence.contains("not proven, certainty 96.9 %"), "{sentence}");
    assert!(comparison.surely().contains("in 31 of 1000"), "{}", comparison.surely());
}

#[test]
fn exact_ranks_are_those_of_the_table() {
    // Two-sided: twice the number of choices as extreme, over all choices.
    let low = [1.0, 2.0, 3.0];
    assert!((rank_test(&low, &[4.0, 5.0, 6.0]) - 2.0 / 20.0).abs() < 1e-12);
    assert!((rank_test(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0]) - 4.0 / 20.0).abs() < 1e-12);
    assert!((rank_test(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]) - 2.0 / 70.0).abs() < 1e-12);
    // U = 2 of 5 against 5 has 4 of 252 choices at or below it.
    let two = rank_test(&[1.0, 2.0, 3.0, 4.0, 7.0], &[5.0, 6.0, 8.0, 9.0, 10.0]);
    assert!((two - 8.0 / 252.0).abs() < 1e-12, "{two}");
    assert_eq!(rank_test(&[1.0; 4], &[1.0; 4]), 1.0);
    assert_eq!(rank_test(&[1.0, 4.0], &[2.0, 3.0]), 1.0);
}

#[test]
fn what_cannot_be_told_is_bounded_by_the_arms_that_are_not_beaten() {
    let values = interleaved(&[0.5, 1.0, 1.0], 8, 3);
    let comparison = compared(&values);
    let Verdict::CannotTell { difference_share_max, bound } = comparison.verdict else {
        panic!("{comparison:?}")
    };
    let share = difference_share_max.unwrap();
    assert!(share < 0.15 && bound == IntervalKind::Sure, "{comparison:?}");
    assert!(comparison.versus[0].p < 0.001, "the arm of half the speed is beaten");
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    assert!(sentence.contains(" apart (95 %); surely behind: single ("), "{sentence}");
}

#[test]
fn failed_trials_leave_their_block_out_and_arms_without_values_are_none() {
    let mut values = interleaved(&[1.0, 1.5], 8, 5);
    values[0][2] = None;
    values[1][5] = None;
    let comparison = compared(&values);
    assert_eq!((comparison.versus[0].ratio.pairs, comparison.best), (6, 1));
    assert!(is_winner(&comparison));
    let sentence = comparison.sentence(&arms(&values), By::Throughput);
    assert!(
        sentence.starts_with("best by throughput is per-package: 1.")
            && sentence.contains("certainty")
    );
    let nothing = vec![vec![None; 8], values[1].clone()];
    assert_eq!(compare(&arms(&nothing)), None);
    assert_eq!(compare(&arms(&values[..1])), None);
    assert_eq!(compare(&[]), None);
}
