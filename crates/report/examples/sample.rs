//! Writes the run directory of an invented run and builds its report: for work on the page itself.
//!
//! `cargo run -p report --example sample -- DIR [KIND]`; KIND is `reference` (default) or the name
//! of a database. 5000 op/s for 30 s; the target stands still from 12 s to 14 s.

// An example may fail as loudly as a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use analyze::{Load, Window, figures};
use record::hlog::HlogWriter;
use record::run_dir::{COUNTERS_CSV, LATENCY_HLOG, MANIFEST, SUMMARY, TOTAL_HLOG};
use record::summary::{ClientCost, SCHEMA, Target};
use record::table::{Counter, CountersWriter};
use record::{Caveat, IntervalRecord, Manifest, OpNames, Outcome, RunDir, Summary, Verdict};
use serde_json::json;
use std::path::Path;
use units::Nanos;

/// Seconds that the invented run takes.
const SECONDS: u64 = 30;
const RATE: u64 = 5000;
const BASE: Nanos = Nanos::from_secs(1_790_000_000);

/// The operations of the invented run, one of them with two steps.
fn names() -> Vec<OpNames> {
    let parts = vec!["read".into(), "update".into()];
    vec![OpNames::single("read"), OpNames { name: "read_modify_write".into(), parts }]
}

/// A fixed sequence of shares of 1, evenly spread.
fn draws() -> impl FnMut() -> f64 {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One second of the run: its operations with the times of a target that stood still for 2 s.
fn second(number: u64, draw: &mut impl FnMut() -> f64) -> IntervalRecord {
    let mut interval = IntervalRecord::new(&[0, 2]);
    interval.start = Nanos::from_secs(number);
    interval.end = Nanos::from_secs(number + 1);
    let done = match number {
        12 | 13 => return interval,
        14 => 3 * RATE,
        _ => RATE,
    };
    for i in 0..done {
        let service = Nanos((140_000.0 / (1.0 - draw()).powf(0.35)) as u64);
        // What was due while the target stood is late by what was left of the pause.
        let due_s = if number == 14 { 12.0 + 3.0 * i as f64 / done as f64 } else { number as f64 };
        let late = if number == 14 { (14.0 - due_s).max(0.0) } else { 0.0 };
        let lag = Nanos((late * 1e9) as u64 + 4_000 + (draw() * 9_000.0) as u64);
        let op = &mut interval.ops[usize::from(draw() < 0.3)];
        let outcome = if draw() < 0.0002 { Outcome::Overloaded } else { Outcome::Ok };
        op.record(outcome, service, service + lag, lag);
        op.record_part(0, Nanos(service.0 / 3));
        op.record_part(1, Nanos(service.0 / 3 * 2));
    }
    interval
}

/// Writes a run of that kind of target to `dir`, which must be absent or empty.
pub(crate) fn write(dir: &Path, kind: &str) -> RunDir {
    let run = RunDir::create(Some(dir), "sample").unwrap();
    let trial = run.trial(1).unwrap();
    let (names, mut draw) = (names(), draws());
    let mut log = HlogWriter::new(trial.append(LATENCY_HLOG).unwrap(), BASE).unwrap();
    let mut all = IntervalRecord::new(&[0, 2]);
    for number in 0..SECONDS {
        let interval = second(number, &mut draw);
        log.write_interval(&names, &interval, Nanos::ZERO).unwrap();
        all.merge(&interval);
    }
    log.finish().unwrap();
    let mut total = HlogWriter::new(trial.append(TOTAL_HLOG).unwrap(), BASE).unwrap();
    total.write_interval(&names, &all, Nanos::ZERO).unwrap();
    total.finish().unwrap();
    write_counters(trial.append(COUNTERS_CSV).unwrap(), &mut draw);

    let summary = summary(&names, &all, kind, dir);
    trial.write_json(SUMMARY, &summary).unwrap();
    let mut manifest = manifest(kind);
    manifest.end(Verdict::Ok, None, BASE + Nanos::from_secs(SECONDS + 5));
    trial.write_json(MANIFEST, &manifest.for_trial(1)).unwrap();
    run.write_json(MANIFEST, &manifest).unwrap();
    run
}

fn summary(names: &[OpNames], all: &IntervalRecord, kind: &str, dir: &Path) -> Summary {
    let scheduled = RATE * SECONDS;
    let load = Load::Open { rate_s: RATE as f64, scheduled, done_in_window: scheduled };
    let window = Window { names, ops: &all.ops, duration: Nanos::from_secs(SECONDS), load };
    let figures = figures(&window);
    let busy = "The busiest worker was busy 91 % of the time: the client, not the target, may be \
                what was measured. Give it more cpus with --client-cpus.";
    let mut caveats = figures.caveats;
    caveats.push(Caveat::new("client-busy", busy));
    Summary {
        schema: SCHEMA,
        workload: "ycsb:f".into(),
        target: Target { kind: kind.into(), version: Some("5.0.5".into()), protocol: Some(4) },
        ops: figures.ops,
        ops_s: figures.ops_s,
        duration_s: figures.duration_s,
        errors: figures.errors,
        outcomes: figures.outcomes,
        scheduled_rate_s: figures.scheduled_rate_s,
        latency_us: figures.latency_us,
        client: ClientCost {
            cpu_us_per_op: Some(3.12),
            syscalls_per_op: Some(0.43),
            rss_mib_max: Some(18.2),
            busy_max: Some(0.91),
            spin_share: Some(0.052),
        },
        caveats,
        repeats: None,
        run: dir.display().to_string(),
    }
}

fn write_counters(file: std::fs::File, draw: &mut impl FnMut() -> f64) {
    let mut table = CountersWriter::new(file).unwrap();
    for t in 0..SECONDS {
        for (source, metric, value, unit) in [
            ("client", "cpu", 0.8 + 0.2 * draw(), "cpus"),
            ("target", "cpu", if t == 12 || t == 13 { 0.0 } else { 1.5 + 0.3 * draw() }, "cpus"),
            ("target", "resident set", 400.0 + 5.0 * t as f64, "MiB"),
        ] {
            let (host, source) = ("local".into(), source.into());
            let (metric, unit) = (metric.into(), unit.into());
            let counter = Counter { t_s: t as f64, host, source, metric, value, unit };
            table.write(&counter).unwrap();
        }
    }
    table.flush().unwrap();
}

fn manifest(kind: &str) -> Manifest {
    let line = "wideload run ycsb:f --rate 5000/s --duration 30s --name sample";
    let line = line.split(' ').map(String::from).collect();
    let mut manifest = Manifest::starting("sample", line, BASE);
    let settings = json!({
        "rate": "5k/s", "arrivals": "constant", "duration": "30s", "warm": "3s", "threads": null,
        "in-flight-max": 4096, "connections": 8, "consistency": "LOCAL_ONE", "timeout": "10s",
        "seed": 42, "records": "100k", "protocol": 4, "engine": "epoll"
    });
    manifest.settings = settings.as_object().unwrap().clone();
    manifest.seeds.insert("keys".into(), 42);
    manifest.target = json!({ "kind": kind, "address": "127.0.0.1:9042", "cpus": "1" });
    manifest.host = json!({
        "cpu": { "model": "AMD EPYC 7601", "online": "0-1", "governor": "performance" },
        "memory": { "total": "24.0 GiB", "transparent_hugepages": "madvise" },
        "kernel": { "release": "6.18.2", "numa_balancing": 0, "swappiness": 60 },
        "clock_source": "tsc"
    });
    manifest
}

#[allow(dead_code)] // The test of the page uses the rest of this file.
fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("usage: sample DIR [KIND]");
    let kind = arguments.next().unwrap_or_else(|| Target::REFERENCE.into());
    let run = write(Path::new(&dir), &kind);
    println!("{}", report::build(run.path()).unwrap().display());
}
