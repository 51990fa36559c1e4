//! Arrivals by a schedule, counted by the target: exactly rate x time of them, of the warm-up and
//! of the window, whether the client keeps up or not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::summary::{OpSummary, Outcomes, Summary, Target};
use rig::serve::{executed, two_cpus};
use rig::{Home, RunDir, Serve, alone};

/// A schedule, and the operations that it has.
struct Schedule {
    rate: &'static str,
    poisson: bool,
    warm: &'static str,
    window: &'static str,
}

/// A mock on a cpu of its own, with the table in it.
struct Mock {
    home: Home,
    serve: Serve,
    client_cpu: String,
}

impl Mock {
    fn start() -> Self {
        let home = Home::new();
        let (target_cpu, client_cpu) = two_cpus();
        let serve = Serve::start(&home, &["--storage", "null", "--cpus", &target_cpu]);
        let target = serve.target();
        let create = ["run", "ycsb:c", "--records", "100", "--ops", "100", "--warm", "0s"];
        home.summary(&[&create[..], &["--target", &target]].concat());
        Self { home, serve, client_cpu }
    }

    /// Drives a schedule; the summary, and what the target executed meanwhile.
    fn drive(&self, out: &str, schedule: &Schedule) -> (Summary, u64) {
        let mut control = self.serve.control();
        let before = executed(&mut control);
        let (target, out) = (self.serve.target(), self.home.at(out));
        let summary = self.home.summary(&[
            "run",
            "ycsb:c",
            "--target",
            &target,
            "--skip-load",
            "--records",
            "100",
            "--rate",
            schedule.rate,
            "--arrivals",
            if schedule.poisson { "poisson" } else { "constant" },
            "--warm",
            schedule.warm,
            "--duration",
            schedule.window,
            // Late is allowed, lost is not: on a busy host the backlog may take long to drain.
            "--timeout",
            "60s",
            "--client-cpus",
            &self.client_cpu,
            "--out",
            out.to_str().unwrap(),
        ]);
        (summary, executed(&mut control) - before)
    }

    /// Constant arrivals, of which there must be exactly so many in warm-up and window.
    fn exact(&self, schedule: &Schedule, warm: u64, window: u64) -> Summary {
        let (summary, counted) = self.drive(&format!("out-{warm}-{window}"), schedule);
        assert_eq!(summary.ops, window, "{summary:?}");
        assert_eq!((summary.errors, summary.outcomes), (0, ok(window)));
        assert_eq!(counted, warm + window, "by the target's count, with the warm-up");
        summary
    }
}

fn ok(ops: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    outcomes.0[record::Outcome::Ok.index()] = ops;
    outcomes
}

/// The caveats that a schedule at a mock may have on a busy host, and the one that it must have.
fn assert_caveats(summary: &Summary) {
    let codes: Vec<_> = summary.caveats.iter().map(|c| c.code.as_str()).collect();
    assert!(codes.contains(&"stand-in"), "{codes:?}");
    let may = [
        "stand-in",
        "wait-sleep",
        "client-busy",
        "client-lag",
        "rate-missed",
        "in-flight-bound",
        "intervals-merged",
        "few-samples",
        // Of windows below a second.
        "partial-intervals",
        "busy-host",
        "steal",
        "swap",
        "governor",
        "clock-source",
        "shared-cpus",
    ];
    assert!(codes.iter().all(|code| may.contains(code)), "{codes:?}");
    // A response time is given exactly when the rate was kept.
    let given = summary.latency_us.values().all(|op: &OpSummary| op.response.is_some());
    assert_eq!(given, !codes.contains(&"rate-missed"), "{summary:?}");
    assert_eq!(summary.target.kind, Target::NULL_MOCK);
}

#[test]
fn constant_arrivals_are_exact_at_a_thousand_a_second() {
    let _alone = alone();
    let mock = Mock::start();
    let cold = Schedule { rate: "1k/s", poisson: false, warm: "0s", window: "2s" };
    assert_caveats(&mock.exact(&cold, 0, 2000));
    // At 0, 1, ..., 499 ms of the warm-up.
    let warm = Schedule { rate: "1k/s", poisson: false, warm: "500ms", window: "1s" };
    assert_caveats(&mock.exact(&warm, 500, 1000));
}

#[test]
fn constant_arrivals_are_exact_at_an_odd_rate() {
    let _alone = alone();
    let mock = Mock::start();
    let cold = Schedule { rate: "99999/s", poisson: false, warm: "0s", window: "1s" };
    assert_caveats(&mock.exact(&cold, 0, 99_999));
    // 0.3 s x 99,999/s = 29,999.7: arrivals 0 to 29,999 are within the warm-up.
    let warm = Schedule { rate: "99999/s", poisson: false, warm: "300ms", window: "2s" };
    let summary = mock.exact(&warm, 30_000, 199_998);
    assert_caveats(&summary);
    assert_eq!(summary.scheduled_rate_s, Some(99_999.0));
}

#[test]
fn constant_arrivals_are_exact_at_a_million_a_second_however_late() {
    let _alone = alone();
    let mock = Mock::start();
    let cold = Schedule { rate: "1M/s", poisson: false, warm: "0s", window: "1s" };
    assert_caveats(&mock.exact(&cold, 0, 1_000_000));
    let warm = Schedule { rate: "1M/s", poisson: false, warm: "200ms", window: "1s" };
    assert_caveats(&mock.exact(&warm, 200_000, 1_000_000));
}

#[test]
fn an_amount_at_a_rate_is_that_amount() {
    let _alone = alone();
    let mock = Mock::start();
    let target = mock.serve.target();
    let mut control = mock.serve.control();
    let before = executed(&mut control);
    let arguments = ["run", "ycsb:c", "--skip-load", "--records", "100", "--target", &target];
    let load = ["--rate", "7777/s", "--ops", "12345", "--warm", "100ms"];
    let summary = mock.home.summary(&[&arguments[..], &load].concat());
    assert_eq!((summary.ops, summary.outcomes), (12_345, ok(12_345)));
    // 0.1 s x 7777/s = 777.7.
    assert_eq!(executed(&mut control) - before, 778 + 12_345);
}

#[test]
fn poisson_arrivals_are_as_many_as_chance_allows() {
    let _alone = alone();
    let mock = Mock::start();
    let schedule = Schedule { rate: "20k/s", poisson: true, warm: "500ms", window: "3s" };
    let (summary, counted) = mock.drive("poisson", &schedule);
    let within = |count: u64, mean: f64| (count as f64 - mean).abs() <= 5.0 * mean.sqrt();
    assert!(within(summary.ops, 60_000.0), "{} in the window", summary.ops);
    let warm = counted - summary.ops;
    assert!(within(warm, 10_000.0), "{warm} in the warm-up");
    // A constant schedule by mistake would have exactly these.
    assert_ne!((summary.ops, warm), (60_000, 10_000));
    assert_eq!((summary.errors, summary.outcomes), (0, ok(summary.ops)));
    assert_caveats(&summary);
    let lag = RunDir(mock.home.at("poisson")).series("total.hlog", "lag");
    assert_eq!(lag.count(), summary.ops);
}
