//! Experiments' files: those that are shipped, held to the publications they are made of, and files
//! that are wrong.

#![allow(clippy::unwrap_used, clippy::panic)]

use lab::experiment::{Experiment, ExperimentError, Planned, plan_file, plan_text};
use std::path::{Path, PathBuf};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(name)
}

fn planned(name: &str) -> (Experiment, Vec<Planned>) {
    plan_file(&shipped(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// File, trials, and what no version has built yet.
const SHIPPED: [(&str, usize, &[&str]); 6] = [
    ("000-epyc-xeon-clusters.toml", 2, &["cassandra-stress", "vm", "clusters", "clients"]),
    ("001-vsphere-vtopology.toml", 2 * 30, &["nosqlbench", "vm", "clients"]),
    ("002-cassandra-numa.toml", 3 * 4 * 5 * 6, &["clients", "hosts"]),
    ("002-small.toml", 2 * 6 * 3, &[]),
    ("003-scylla-power9.toml", 2 * 3 * 3, &["cassandra-stress", "clients"]),
    ("004-aerospike-adq.toml", 2 * 2 * 3 * 3, &["aerospike", "asbench", "tune", "clients"]),
];

#[test]
fn all_shipped_experiments_are_planned_and_say_what_is_not_built() {
    let mut files: Vec<_> = std::fs::read_dir(shipped("")).unwrap().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    assert!(files.iter().map(std::fs::DirEntry::file_name).eq(SHIPPED.map(|(name, ..)| name)));
    for (name, trials, needs) in SHIPPED {
        let (experiment, planned) = planned(name);
        assert_eq!(experiment.name, name.trim_end_matches(".toml"));
        assert_eq!(planned.len(), trials, "{name}");
        for trial in &planned {
            let has = |need: &&str| trial.needs.iter().any(|n| n == need);
            assert!(needs.iter().all(has), "{name}: {:?}", trial.needs);
            assert_eq!(trial.needs.is_empty(), needs.is_empty(), "{name}: {:?}", trial.needs);
            assert!(trial.expected.total().as_secs_f64() > 1.0);
        }
    }
}

/// Words of a study's text, a setting, and what its value has in it.
type Fixed = (&'static str, &'static str, &'static str);

/// What studies fix: how the name of the text begins, the experiment, and settings of some trial.
const FIXED: [(&str, &str, &[Fixed]); 5] = [
    (
        "000_",
        "000-epyc-xeon-clusters.toml",
        &[
            ("THREADS=1000", "threads", "1000"),
            ("DURATION=300", "duration", "300s"),
            ("replication(factor=3)", "replication", "3"),
            ("cl=one", "consistency", "ONE"),
            ("-pop seq=1..100000000 no-wrap", "population", "seq=1..100000000 no-wrap"),
            ("memtable_allocation_type: offheap_objects", "cassandra", "offheap_objects"),
            ("endpoint_snitch: GossipingPropertyFileSnitch", "cassandra", "GossipingProperty"),
            (
                "<topology sockets='1' cores='8' threads='1' />",
                "vm",
                "sockets=1, cores=8, threads=1",
            ),
            ("CLIENT_CORES=7", "clients", "cores=7"),
            ("CLIENT_HTSKIP=44", "clients", "sibling-offset=44"),
            ("HOST_COUNT=6", "cluster", "hosts=6"),
        ],
    ),
    (
        "001_",
        "001-vsphere-vtopology.toml",
        &[
            ("total number of cycles was 600 million", "ops", "600M"),
            ("replication factor (RF) to 2", "replication", "2"),
            ("consistency level (CL) to ONE", "consistency", "ONE"),
            ("MAX_HEAP_SIZE of 32768MB", "heap", "32GiB"),
            ("12,320 threads", "threads", "12320"),
            ("33,600 threads", "threads", "33600"),
            ("each VM had 14 sockets", "vm", "sockets=14, cores=1"),
            ("1 socket with 14 vCPUs", "vm", "sockets=1, cores=14"),
        ],
    ),
    (
        "002_",
        "002-cassandra-numa.toml",
        &[
            ("replication factor set to 1", "replication", "1"),
            ("zipfian distribution", "property", "requestdistribution=zipfian"),
            ("Cassandra 3.10", "version", "3.10"),
            ("'8D' implies each server gets one entire socket", "layout", "per-package"),
            ("-XX:+useNUMA", "jvm", "-XX:+UseNUMA"),
        ],
    ),
    (
        "003_",
        "003-scylla-power9.toml",
        &[
            ("56 cassandra-stress loaders", "clients", "loaders=56"),
            ("-rate threads=100 ", "threads", "5600"),
            ("-rate threads=400 ", "threads", "22400"),
            ("--smp 172 --cpuset 4-175", "scylla", "smp=172, cpuset=4-175"),
            ("--max-io-requests 480", "scylla", "max-io-requests=480"),
            ("-Xms64G -Xmx64G", "heap", "64GiB"),
            ("Cassandra 3.11.2", "version", "3.11.2"),
        ],
    ),
    (
        "004_",
        "004-aerospike-adq.toml",
        &[
            ("KEYS=1000000 # 1M", "records", "1M"),
            ("WARMUP=10", "warm", "10s"),
            ("RUNTIME=20", "duration", "20s"),
            ("-o S:32 -w RU,100", "workload", "asbench:RU,100"),
            ("replication-factor 2", "replication", "2"),
            ("memory-size 128G", "aerospike", "memory-size=128G"),
            ("proto-fd-max 15000", "aerospike", "proto-fd-max=15000"),
            ("net.core.somaxconn=4096", "tune", "net.core.somaxconn=4096"),
            ("bp=${6:-50000}", "tune", "net.core.busy_poll=50000"),
        ],
    ),
];

#[test]
fn what_the_studies_fix_stands_in_their_files() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published");
    for (prefix, file, fixed) in FIXED {
        let text = std::fs::read_dir(&dir).ok().and_then(|entries| {
            let mut paths = entries.flatten().map(|entry| entry.path());
            paths.find(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix))
        });
        let text = text.map(|path| std::fs::read_to_string(path).unwrap());
        let plain = |text: &str| text.replace(['‘', '’', '\''], "\"").replace("\\\"", "\"");
        if text.is_none() {
            println!("SKIP: the text of {prefix} is not under {}", dir.display());
        }
        let (_, trials) = planned(file);
        for (words, setting, value) in fixed {
            if let Some(text) = &text {
                assert!(plain(text).contains(&plain(words)), "{prefix} does not say: {words}");
            }
            let is_set = |trial: &Planned| {
                let mut settings = trial.settings.iter();
                settings.any(|(name, v)| name == setting && v.to_string().contains(value))
            };
            assert!(trials.iter().any(is_set), "{file}: no trial has {setting} = {value}");
        }
    }
}

/// A file that is right, and what is done to it: the line and column of the error, what it says and
/// the cure.
const GOOD: &str = "\
[experiment]
name = \"e\"
repetitions = 2

[settings]
workload = \"ycsb:a\"
duration = \"2s\"

[factors]
threads = [1, 2]
layout = [{ name = \"one\", records = 10 }, { name = \"two\" }]
";

fn error_of(text: &str) -> ExperimentError {
    match plan_text(Path::new("e.toml"), text) {
        Err(error) => error,
        Ok((_, planned)) => panic!("{} trials of:\n{text}", planned.len()),
    }
}

#[test]
fn a_wrong_file_is_told_with_line_column_and_cure() {
    assert_eq!(plan_text(Path::new("e.toml"), GOOD).unwrap().1.len(), 8);
    for (from, to, at, says, cure) in [
        ("threads = [1, 2]", "thread = [1, 2]", (10, 1), "'thread'", "'threads'"),
        ("threads = [1, 2]", "threads = [1, \"x\"]", (10, 15), "'threads' cannot be x", "64"),
        ("threads = [1, 2]", "threads = 3", (10, 11), "no list", "threads = [1, 2, 4]"),
        ("threads = [1, 2]", "threads = []", (10, 11), "no levels", "at least one"),
        ("threads = [1, 2]", "threads = [1, 1]", (10, 15), "twice", "take one out"),
        ("duration = \"2s\"", "duration = 2", (7, 12), "cannot be 2", "a time like"),
        ("duration = \"2s\"", "duration = \"2s\nx", (7, 15), "", "toml.io"),
        ("duration = \"2s\"", "duratoin = \"2s\"", (7, 1), "unknown", "'duration'"),
        ("duration", "ops = 5\nduration", (1, 1), "both ops and duration", "leave"),
        ("duration = \"2s\"", "duration = 2026-11-21", (7, 12), "date", "quotes"),
        ("workload = \"ycsb:a\"\n", "", (1, 1), "no workload", "ycsb:a"),
        ("repetitions = 2", "repetitions = 0", (3, 15), "'repetitions'", "1 to 1000"),
        ("repetitions = 2", "order = \"random\"", (3, 9), "'random'", "interleaved"),
        ("repetitions = 2", "compare = \"layuot\"", (3, 11), "'layuot'", "'layout'"),
        ("repetitions = 2", "budget = \"layout\"", (3, 10), "'one', no number", "1, 2, 4"),
        ("repetitions = 2", "needs = [\"moon\"]", (3, 10), "'moon'", "vm"),
        ("[experiment]\nname = \"e\"", "[experiments]", (1, 2), "unknown", "'experiment'"),
        ("name = \"e\"\n", "", (1, 2), "no name", "add name"),
        ("[experiment]\nname = \"e\"\nrepetitions = 2", "", (1, 1), "no [experiment]", "begin"),
        ("name = \"two\"", "records = 5", (11, 43), "no name", "add name"),
        ("records = 10", "records = true", (11, 37), "cannot be true", "whole number"),
    ] {
        assert_eq!(GOOD.matches(from).count(), 1, "{from}");
        let error = error_of(&GOOD.replace(from, to));
        let ExperimentError::Text { at: found, .. } = &error else { panic!("{error}") };
        let text = error.to_string();
        assert_eq!((found.line, found.column), at, "{text}");
        assert!(text.contains(says) && text.contains(cure), "{text}");
        assert!(text.starts_with("e.toml, line "), "{text}");
    }
}

#[test]
fn wrong_combinations_are_told() {
    for (more, at, says) in [
        ("[[except]]\nlayout = \"three\"\n", (13, 10), "no level 'three'; it has one, two"),
        ("[[except]]\n", (12, 1), "says nothing"),
        ("[[when]]\nlayout = \"one\"\n", (12, 1), "says nothing"),
        ("[[except]]\nlayuot = \"one\"\n", (13, 1), "is 'layout' meant?"),
        (
            "[[except]]\nlayout = \"one\"\n[[except]]\nlayout = \"two\"\n",
            (1, 1),
            "every combination",
        ),
        ("[load]\nthreads = [4]\n", (1, 1), "a factor and a point of the load"),
        ("[load]\nrecords = [1, 2, 3]\n\n[when]\nx = 1", (15, 2), "[[when]]"),
    ] {
        let error = error_of(&format!("{GOOD}{more}"));
        let ExperimentError::Text { at: found, .. } = &error else { panic!("{error}") };
        assert_eq!((found.line, found.column), at, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let many = GOOD.replace("repetitions = 2", "repetitions = 1000");
    let levels: Vec<_> = (1..60).map(|n| n.to_string()).collect();
    let error = error_of(&many.replace("[1, 2]", &format!("[{}]", levels.join(","))));
    assert!(error.to_string().contains("118000 trials are more than 100000"), "{error}");
    let absent = plan_file(Path::new("no/such/file.toml")).unwrap_err().to_string();
    assert!(absent.contains("no/such/file.toml") && absent.contains("TOML"), "{absent}");
}
