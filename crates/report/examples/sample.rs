//! Writes an invented run directory and builds its report, to see what the page looks like.
//!
//! `cargo run -p report --example sample -- DIR [KIND [SECONDS [WORKERS [TRIALS]]]]`; KIND is
//! `reference` (default) or the name of a database. 5000 op/s for 30 s by 2 workers; the target
//! stands still from 12 s to 14 s. Only the first trials have all files, as in a study of many.
//! A DIR that is a run already is left as it is, and its report and data are built.

// An example may fail as loudly as a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use analyze::{Load, Window, figures};
use record::hlog::HlogWriter;
use record::run_dir::{COUNTERS_CSV, LATENCY_HLOG, MANIFEST, SUMMARY, TOTAL_HLOG, TRIALS_CSV};
use record::summary::{ClientCost, SCHEMA, Stats, Target};
use record::table::{Counter, CountersWriter, TrialRow, TrialsWriter};
use record::{
    Caveat, IntervalRecord, Latency, Manifest, OpNames, Outcome, RunDir, Summary, TrialDir, Verdict,
};
use serde_json::json;
use std::path::Path;
use units::Nanos;

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

/// What is invented.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) kind: String,
    pub(crate) seconds: u64,
    pub(crate) workers: usize,
    pub(crate) trials: u32,
}

impl Shape {
    pub(crate) fn of(kind: &str) -> Self {
        Self { kind: kind.to_owned(), seconds: 30, workers: 2, trials: 1 }
    }
}

/// Trials with all files; those behind them have what a report of many reads.
const WHOLE_MAX: u32 = 6;

/// Writes a run of that shape to `dir`, which must be absent or empty.
pub(crate) fn write(dir: &Path, shape: &Shape) -> RunDir {
    let run = RunDir::create(Some(dir), "sample").unwrap();
    let mut manifest = manifest(&shape.kind);
    manifest.settings.insert("duration".into(), json!(format!("{}s", shape.seconds)));
    manifest.end(Verdict::Ok, None, BASE + Nanos::from_secs(shape.seconds + 5));
    let (names, mut draw) = (names(), draws());
    let mut table = TrialsWriter::new(run.append(TRIALS_CSV).unwrap());
    let all = write_trial(&run.trial(1).unwrap(), shape, &mut draw);
    let first = summary(&names, &all, shape, dir);
    for number in 1..=shape.trials {
        let trial = run.trial(number).unwrap();
        let mut summary = first.clone();
        if number > 1 {
            summary.ops_s *= 1.0 + (draw() - 0.5) * 0.04;
            if number <= WHOLE_MAX {
                write_trial(&trial, shape, &mut draw);
            }
        }
        trial.write_json(SUMMARY, &summary).unwrap();
        trial.write_json(MANIFEST, &manifest.for_trial(number)).unwrap();
        table.row(&row(number, &summary, &all)).unwrap();
    }
    run.write_json(MANIFEST, &manifest).unwrap();
    run
}

/// Writes logs and counters of a trial, and gives all of its operations.
fn write_trial(trial: &TrialDir, shape: &Shape, draw: &mut impl FnMut() -> f64) -> IntervalRecord {
    let names = names();
    let mut log = HlogWriter::new(trial.append(LATENCY_HLOG).unwrap(), BASE).unwrap();
    let mut all = IntervalRecord::new(&[0, 2]);
    for number in 0..shape.seconds {
        let interval = second(number, draw);
        log.write_interval(&names, &interval, Nanos::ZERO).unwrap();
        all.merge(&interval);
    }
    log.finish().unwrap();
    let mut total = HlogWriter::new(trial.append(TOTAL_HLOG).unwrap(), BASE).unwrap();
    total.write_interval(&names, &all, Nanos::ZERO).unwrap();
    total.finish().unwrap();
    write_counters(trial.append(COUNTERS_CSV).unwrap(), shape, draw);
    all
}

fn row(number: u32, summary: &Summary, all: &IntervalRecord) -> TrialRow {
    let stats = |pick: fn(&record::OpRecord) -> &Latency| {
        let mut merged = Latency::new();
        all.ops.iter().for_each(|op| merged.merge(pick(op)));
        let us = |q: f64| merged.quantile(q).0 as f64 / 1e3;
        let (mean, max) = (merged.mean() / 1e3, merged.max().0 as f64 / 1e3);
        Some(Stats { mean, p50: us(0.5), p90: us(0.9), p99: us(0.99), p999: us(0.999), max })
    };
    let times = [stats(|op| &op.service), stats(|op| &op.response), stats(|op| &op.lag)];
    TrialRow::of(number, summary, times, Verdict::Ok)
}

fn summary(names: &[OpNames], all: &IntervalRecord, shape: &Shape, dir: &Path) -> Summary {
    let kind = &shape.kind;
    let scheduled = RATE * shape.seconds;
    let load = Load::Open { rate_s: RATE as f64, scheduled, done_in_window: scheduled };
    let window = Window { names, ops: &all.ops, duration: Nanos::from_secs(shape.seconds), load };
    let figures = figures(&window);
    let busy = "A client thread was busy most of the time: the client, not the target, may be what \
                was measured.";
    let mut caveats = figures.caveats;
    let busy = Caveat::new("client-busy", busy).evidence("busiest worker 91 % of the window");
    caveats.push(busy.cure("Give it more cpus with --client-cpus."));
    Summary {
        schema: SCHEMA,
        workload: "ycsb:f".into(),
        target: Target { kind: kind.clone(), version: Some("5.0.5".into()), protocol: Some(4) },
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
        shards: None,
        repeats: None,
        run: dir.display().to_string(),
    }
}

fn write_counters(file: std::fs::File, shape: &Shape, draw: &mut impl FnMut() -> f64) {
    let mut table = CountersWriter::new(file).unwrap();
    let mut write = |t_s: f64, source: &str, metric: &str, value: f64, unit: &str| {
        let (host, source) = ("local".into(), source.into());
        let (metric, unit) = (metric.into(), unit.into());
        table.write(&Counter { t_s, host, source, metric, value, unit }).unwrap();
    };
    for second in 1..=shape.seconds {
        let t_s = second as f64;
        let still = (13..=14).contains(&second);
        for worker in 0..shape.workers {
            let source = format!("client-{worker}");
            let busy = if still { 0.01 } else { 0.5 + 0.3 * draw() + 0.1 * (worker % 3) as f64 };
            write(t_s, &source, "busy", busy, "share");
            write(t_s, &source, "in_flight", 0.0, "ops");
            write(t_s, &source, "late", 0.0, "answers");
            let lost = f64::from(u8::from(second == 15 && worker == 1));
            write(t_s, &source, "connections_lost", lost, "connections");
        }
        let cpu = if still { 0.05 } else { 0.4 + 0.2 * draw() };
        write(t_s, "procfs", "cpu_user", cpu, "share");
        write(t_s, "procfs", "cpu_system", cpu / 2.0, "share");
        write(t_s, "procfs", "cpu_steal", 0.0, "share");
        write(t_s, "procfs", "procs_running", (6.0 * draw()).round(), "tasks");
        write(t_s, "procfs", "frequency", 2700.0 + 50.0 * draw(), "MHz");
        write(t_s, "target", "resident_set", (400.0 + t_s) * 1048576.0, "bytes");
    }
    // The drain: a moment in which a worker was busy throughout.
    write(shape.seconds as f64 + 0.002, "client-0", "busy", 40.0, "share");
    table.flush().unwrap();
}

/// A machine of 128 cpus, as the crate `machine` writes it.
fn machine() -> serde_json::Value {
    let cpu = |id: u64| {
        json!({"id": id, "package": id / 32 % 2, "die": id / 8 % 4, "core": id % 64,
               "siblings": format!("{},{}", id % 64, id % 64 + 64), "numa": id / 8 % 8,
               "llc": id / 4 % 16})
    };
    let numa = |id: u64| {
        json!({"id": id, "cpus": format!("{}-{}", id * 8, id * 8 + 7),
               "memory_bytes": 64u64 << 30, "distances": [10, 16, 16, 16, 32, 32, 32, 32]})
    };
    json!({
        "present": "0-127", "online": "0-127", "offline": "", "allowed": "0-127",
        "cpus": (0..128).map(cpu).collect::<Vec<_>>(), "numa": (0..8).map(numa).collect::<Vec<_>>(),
        "settings": {
            "cpu_model": "AMD EPYC 7601 32-Core Processor", "kernel_release": "6.12.9",
            "kernel_command_line": "root=UUID=3c9b2f5e ro quiet transparent_hugepage=madvise",
            "memory_bytes": 512u64 << 30, "swap_bytes": 0, "swappiness": 1,
            "governors": {"performance": "0-127"}, "boost": true, "smt": true,
            "thp_enabled": "madvise", "thp_defrag": "madvise", "clock_source": "tsc",
            "numa_balancing": 0,
            "mitigations": {"l1tf": "Not affected", "meltdown": "Not affected",
                            "retbleed": "Mitigation: untrained return thunk; SMT vulnerable",
                            "spectre_v2": "Mitigation: Retpolines", "mds": "Not affected"},
            "virtualisation": {"hypervisor_flag": false, "sys_vendor": "Dell Inc.",
                               "product_name": "PowerEdge R7425"}
        }
    })
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
    manifest.host = machine();
    manifest
}

#[allow(dead_code)] // The test of the page uses the rest of this file.
fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("usage: sample DIR [KIND [SECONDS [WORKERS [TRIALS]]]]");
    let mut shape = Shape::of(&arguments.next().unwrap_or_else(|| Target::REFERENCE.into()));
    let mut number = || arguments.next().map(|text| text.parse::<u32>().expect("a number"));
    shape.seconds = number().map_or(shape.seconds, u64::from);
    shape.workers = number().map_or(shape.workers, |n| n as usize);
    shape.trials = number().unwrap_or(shape.trials);
    let dir = Path::new(&dir);
    let found = dir.join(MANIFEST).exists();
    if !found {
        write(dir, &shape);
    }
    let started = std::time::Instant::now();
    let page = if found {
        report::build_with_data(dir).unwrap().remove(0)
    } else {
        report::build(dir).unwrap()
    };
    println!("{} in {:.2} s", page.display(), started.elapsed().as_secs_f64());
}
