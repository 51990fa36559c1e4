//! Laws that are known, with noise as throughput has it.

use super::*;

const BUDGETS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];

fn series(law: &Law, noise: f64, repetitions: usize, seed: u64) -> Vec<(f64, f64)> {
    let mut draws = Draws::new(seed);
    let points = BUDGETS.iter().flat_map(|n| vec![*n; repetitions]);
    points.map(|n| (n, law.at(n) * (noise * draws.normal()).exp())).collect()
}

fn fitted(points: &[(f64, f64)]) -> Fit {
    match usl(points, 7) {
        Usl::Fitted(fit) => fit,
        Usl::NotFitted { reason } => panic!("{reason}"),
    }
}

const LAWS: [Law; 5] = [
    Law { lambda: 10_000.0, sigma: 0.05, kappa: 0.002 },
    Law { lambda: 2000.0, sigma: 0.2, kappa: 0.0 },
    Law { lambda: 1_000_000.0, sigma: 0.0, kappa: 0.01 },
    Law { lambda: 3.0, sigma: 0.0, kappa: 0.0 },
    Law { lambda: 50.0, sigma: 0.9, kappa: 0.05 },
];

#[test]
fn a_law_without_noise_is_found_as_it_is() {
    for law in LAWS {
        let fit = fitted(&series(&law, 0.0, 1, 1)).law;
        assert!((fit.lambda / law.lambda - 1.0).abs() < 1e-6, "{fit:?} of {law:?}");
        assert!((fit.sigma - law.sigma).abs() < 1e-6, "{fit:?} of {law:?}");
        assert!((fit.kappa - law.kappa).abs() < 1e-6, "{fit:?} of {law:?}");
    }
}

#[test]
fn the_truth_is_within_its_intervals_in_90_of_100_noisy_series() {
    for (law, (noise, repetitions)) in
        LAWS.iter().flat_map(|l| [(0.02, 1), (0.03, 3), (0.05, 5)].map(|noise| (l, noise)))
    {
        let mut held = [0; 3];
        for seed in 0..100 {
            let fit = fitted(&series(law, noise, repetitions, 1000 + seed));
            let holds = |(low, high): (f64, f64), truth: f64| (low..=high).contains(&truth);
            assert!(fit.law.sigma >= 0.0 && fit.law.kappa >= 0.0, "{fit:?}");
            assert!(holds(fit.sigma_interval, fit.law.sigma), "{fit:?}");
            held[0] += u32::from(holds(fit.lambda_interval, law.lambda));
            held[1] += u32::from(holds(fit.sigma_interval, law.sigma));
            held[2] += u32::from(holds(fit.kappa_interval, law.kappa));
        }
        println!("{law:?} noise {noise} x {repetitions}: {held:?}");
        assert!(held.iter().all(|held| *held >= 90), "{law:?} {noise} x {repetitions}: {held:?}");
    }
}

#[test]
fn residuals_say_how_far_each_point_is_off() {
    let law = LAWS[0];
    let mut points = series(&law, 0.0, 1, 1);
    points[3].1 *= 1.1;
    let fit = fitted(&points);
    let worst = fit.residual_shares.iter().copied().fold(0.0, f64::max);
    assert_eq!(worst, fit.residual_shares[3]);
    assert!((0.04..0.1).contains(&worst) && fit.residual_share_deviation > 0.01, "{fit:?}");
    assert_eq!(fit, fitted(&points), "the same seed, the same intervals");
    let peak = law.peak().unwrap();
    assert!((peak - (0.95f64 / 0.002).sqrt()).abs() < 1e-9);
    assert!(law.at(peak) > law.at(peak * 1.1) && law.at(peak) > law.at(peak * 0.9));
    assert_eq!(LAWS[1].peak(), None);
}

#[test]
fn too_few_or_impossible_points_have_a_reason() {
    let reason = |points: &[(f64, f64)]| match usl(points, 1) {
        Usl::NotFitted { reason } => reason,
        Usl::Fitted(fit) => panic!("{fit:?}"),
    };
    let five: Vec<_> = [1.0, 2.0, 4.0, 6.0, 8.0].iter().flat_map(|n| [(*n, *n); 4]).collect();
    assert!(reason(&five).starts_with("5 distinct N were measured"), "{}", reason(&five));
    let mut bad = series(&LAWS[0], 0.0, 1, 1);
    bad[2].1 = 0.0;
    assert!(reason(&bad).contains("N = 3"), "{}", reason(&bad));
    assert!(reason(&[]).starts_with("0 distinct"));
}
