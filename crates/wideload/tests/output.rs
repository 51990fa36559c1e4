//! What a run leaves: a summary that keeps to its schema, a run directory that is complete and
//! agrees with it, and a terminal that says first what the target is not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Summary;
use record::summary::{JSON_SCHEMA, Target};
use rig::{Home, RunDir, Serve};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// A short run.
const SHORT: [&str; 6] = ["--records", "1k", "--warm", "100ms", "--duration", "500ms"];

/// The files of FORMAT.md, for a run at its own reference target.
const FILES: [&str; 12] = [
    "manifest.json",
    "report.html",
    "trial-0001/",
    "trial-0001/blocks.csv",
    "trial-0001/counters.csv",
    "trial-0001/latency.hlog",
    "trial-0001/manifest.json",
    "trial-0001/raw/",
    "trial-0001/raw/reference-target.log",
    "trial-0001/summary.json",
    "trial-0001/total.hlog",
    "trials.csv",
];

fn assert_schema(json: &str) {
    let schema = serde_json::from_str(JSON_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value = serde_json::from_str(json).unwrap();
    let broken: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(broken.is_empty(), "{broken:?} in {json}");
}

/// Counts of the summary are sums of one another, and those of both logs.
fn assert_agrees(directory: &RunDir, summary: &Summary) {
    assert_eq!(summary.outcomes.total(), summary.ops);
    assert_eq!(summary.outcomes.errors(), summary.errors);
    let (ops, errors) = summary
        .latency_us
        .values()
        .fold((0, 0), |(ops, errors), op| (ops + op.ops, errors + op.errors));
    assert_eq!((ops, errors), (summary.ops, summary.errors));
    for log in ["total.hlog", "latency.hlog"] {
        let histograms = directory.histograms(log);
        let count = |tag: &str| {
            histograms.iter().find(|(t, _)| t == tag).map_or(0, |(_, latency)| latency.count())
        };
        for (name, op) in &summary.latency_us {
            let series = |series: &str| count(&format!("{name}-{series}"));
            assert_eq!(series("response") + series("failed_response"), op.ops, "{log}: {name}");
            let timeouts = series("class_client_timeout") + series("class_server_timeout");
            assert_eq!(series("service") - timeouts, op.ops - op.errors, "{log}: {name}");
            assert_eq!(series("lag"), op.ops, "{log}: {name}: all were sent");
        }
    }
    let buckets = |log: &str| directory.series(log, "service").buckets().collect::<Vec<_>>();
    assert!(buckets("total.hlog") == buckets("latency.hlog"), "the intervals merge to the whole");
    let served = summary.outcomes.of(record::Outcome::Ok) as f64;
    assert!((summary.ops_s * summary.duration_s / served - 1.0).abs() < 1e-9);
}

#[test]
fn every_workload_leaves_a_complete_directory_that_agrees_with_its_summary() {
    let operations = [
        ("ycsb:a", "read update"),
        ("ycsb:b", "read update"),
        ("ycsb:c", "read"),
        ("ycsb:d", "insert read"),
        ("ycsb:e", "insert scan"),
        ("ycsb:f", "read read-modify-write"),
    ];
    for (workload, names) in operations {
        let home = Home::new();
        let out = home.at("out");
        let arguments = ["run", workload, "--out", out.to_str().unwrap(), "--json"];
        let ended = home.run(&[&arguments[..], &SHORT].concat());
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        home.assert_nothing_left();
        assert_schema(&ended.stdout);
        let summary = ended.summary();
        assert_eq!((summary.workload.as_str(), summary.errors), (workload, 0), "{summary:?}");
        let found: Vec<_> = summary.latency_us.keys().map(String::as_str).collect();
        assert_eq!(found.join(" "), names);
        assert!(summary.latency_us.values().all(|op| op.ops > 0 && op.service.is_some()));
        assert_eq!(summary.run, out.display().to_string());

        let directory = RunDir(out);
        assert_eq!(directory.files(), FILES);
        assert_eq!(directory.summary(), summary);
        assert_agrees(&directory, &summary);
        let manifest = directory.manifest();
        assert_eq!(manifest.verdict, record::Verdict::Ok);
        assert_eq!(manifest.settings["workload"], workload);
        assert_eq!(manifest.caveats, summary.caveats);
    }
}

#[test]
fn a_read_modify_write_shows_its_parts() {
    let home = Home::new();
    let summary = home.summary(&[&["run", "ycsb:f", "--out", "out"][..], &SHORT].concat());
    let op = &summary.latency_us["read-modify-write"];
    let parts: Vec<_> = op.parts.keys().map(String::as_str).collect();
    assert_eq!(parts, ["read", "update"]);
    let mean = |part: &str| op.parts[part].unwrap().mean;
    let whole = op.service.unwrap().mean;
    // The client's time between the parts belongs to the whole alone.
    assert!(mean("read") + mean("update") <= whole, "{op:?}");
    let histograms = RunDir(home.at("out")).histograms("total.hlog");
    for part in ["part_read", "part_update"] {
        let tag = format!("read-modify-write-{part}");
        let count = histograms.iter().find(|(t, _)| *t == tag).map(|(_, l)| l.count());
        assert_eq!(count, Some(op.ops), "{tag}");
    }
}

#[test]
fn the_first_line_says_what_the_result_does_not_say() {
    let home = Home::new();
    let null = Serve::start(&home, &["--storage", "null"]);
    let memory = Serve::start(&home, &[]);
    let (null, memory) = (null.target(), memory.target());
    let targets: [(&[&str], &str); 4] = [
        (&[], Target::REFERENCE),
        (&["--storage", "null"], Target::NULL_MOCK),
        // Whoever has started it.
        (&["--target", &memory], Target::REFERENCE),
        (&["--target", &null], Target::NULL_MOCK),
    ];
    for (number, (target, kind)) in targets.into_iter().enumerate() {
        let out = format!("out-{number}");
        let arguments = ["run", "ycsb:a", "--out", &out];
        let ended = home.run(&[&arguments[..], &SHORT, target].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        // What a target that is not our own has to take is told before.
        let told: Vec<_> = ended.stderr.lines().collect();
        assert_eq!(told.len(), usize::from(target.contains(&"--target")), "{ended:?}");
        assert!(told.iter().all(|line| line.starts_with("loading 1000 rows")), "{ended:?}");
        // Two lines at 80 columns; the headline with the first number comes right behind them.
        let headline = format!("\nycsb:a at {kind}: ");
        let (first, _) = ended.stdout.split_once(&headline).expect("there is a headline");
        let first = first.replace('\n', " ");
        assert!(first.contains("says nothing about"), "{target:?}: {first}");
        assert!(first.contains("database") && !first.contains("op/s"), "{target:?}: {first}");
        let directory = RunDir(home.at(&out));
        assert_eq!(directory.summary().target.kind, kind);
        let page = fs::read_to_string(home.at(&out).join("report.html")).unwrap();
        let main = page.split_once("<main>").expect("a page has a main part").1;
        let (before, _) = main.split_once("says nothing about").expect("the report says so");
        assert!(!before.contains("<h1"), "{before}: not in the first line");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let home = Home::new();
    for arguments in [
        &["ycsb:a"][..],
        &["ycsb:e", "--rate", "5k/s", "--arrivals", "poisson", "--out", "out"],
        // Nobody listens there, and nobody is asked.
        &["ycsb:c", "--target", "127.0.0.1:1", "--skip-load"],
        &["ycsb:f", "--storage", "null"],
    ] {
        let ended = home.run(&[&["run", "--dry-run"], arguments].concat());
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        for word in ["prepare", "drive", "client", "limits", "record"] {
            let said = ended.stdout.lines().any(|line| line.starts_with(word));
            assert!(said, "{arguments:?}: no line about {word}: {}", ended.stdout);
        }
        assert!(RunDir(home.path().to_owned()).files().is_empty(), "{arguments:?}");
    }
    assert!(home.left().is_empty());
}

#[test]
fn the_report_can_be_built_again_from_the_directory_alone() {
    let home = Home::new();
    home.summary(&[&["run", "ycsb:a", "--out", "out"][..], &SHORT].concat());
    let first = fs::read(home.at("out/report.html")).unwrap();
    // It was archived and came back elsewhere.
    fs::rename(home.at("out"), home.at("moved")).unwrap();
    fs::remove_file(home.at("moved/report.html")).unwrap();
    let ended = home.run(&["report", "moved"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(0), "moved/report.html\n"));
    assert!(first == fs::read(home.at("moved/report.html")).unwrap(), "the same page");
    let files: Vec<_> = FILES.map(str::to_owned).into();
    assert_eq!(RunDir(home.at("moved")).files(), files);
}

#[test]
fn latest_points_at_the_newest_run() {
    let home = Home::new();
    let latest = home.at("runs/latest");
    let mut before = None;
    for (name, seed) in [("first", "1"), ("second", "2")] {
        let arguments = ["run", "ycsb:c", "--name", name, "--seed", seed];
        let summary = home.summary(&[&arguments[..], &SHORT].concat());
        let run = fs::canonicalize(&latest).unwrap();
        assert_eq!(run, fs::canonicalize(home.at(&summary.run)).unwrap());
        assert!(run.file_name().unwrap().to_str().unwrap().ends_with(&format!("Z-{name}")));
        assert_eq!(RunDir(run.clone()).manifest().seeds["workload"].to_string(), seed);
        assert_ne!(before.replace(run), Some(fs::canonicalize(&latest).unwrap()));
    }
    // A run that is put elsewhere does not move it.
    let newest = fs::canonicalize(&latest).unwrap();
    home.summary(&[&["run", "ycsb:c", "--out", "out"][..], &SHORT].concat());
    assert_eq!(fs::canonicalize(&latest).unwrap(), newest);
    assert!(RunDir(newest).files().contains(&"report.html".to_owned()));
}

/// The examples in a verb's help, as they would be pasted.
fn examples(home: &Home, verb: &str) -> Vec<String> {
    let help = home.run(&[verb, "--help"]);
    assert_eq!((help.status, help.stderr.as_str()), (Some(0), ""), "{help:?}");
    let from = help.stdout.find("Example").expect("a help has an example");
    let lines = help.stdout[from..].lines();
    let examples: Vec<_> = lines
        .map(|line| line.trim_start_matches("Example:").trim().to_owned())
        .filter(|line| line.starts_with("wideload "))
        .collect();
    assert!(!examples.is_empty(), "{}", help.stdout);
    examples
}

/// The arguments of a pasted line, as a shell would split it.
fn arguments(line: &str) -> Vec<&str> {
    let command = line.split_once(" #").map_or(line, |(command, _)| command);
    assert!(!command.contains(['\'', '"', '$', '\\']), "{line}: needs a real shell");
    command.split_whitespace().skip(1).collect()
}

#[test]
fn the_examples_of_run_work_as_pasted() {
    let home = Home::new();
    for line in examples(&home, "run") {
        let mut arguments = arguments(&line);
        if !arguments.contains(&"--dry-run") {
            arguments.push("--dry-run");
        }
        let ended = home.run(&arguments);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{line}: {ended:?}");
    }
}

#[test]
fn the_examples_of_report_and_serve_work_as_pasted() {
    let home = Home::new();
    for name in ["adq-on", "adq-off", "client-1", "client-2", "client-3"] {
        let out = ["--out", &format!("runs/{name}")];
        home.summary(&[&["run", "ycsb:c"][..], &SHORT, &out].concat());
    }
    home.summary(&[&["run", "ycsb:c"][..], &SHORT].concat());
    for line in examples(&home, "report") {
        assert_eq!(home.run(&arguments(&line)).status, Some(0), "{line}");
    }
    for line in examples(&home, "serve") {
        // On another port, for that one may be in use here, and this host may have a single cpu.
        let line = line.replace("--cpus 1", "--cpus 0");
        let mut arguments = arguments(&line);
        assert_eq!(arguments.remove(0), "serve");
        let listen = arguments.iter().position(|word| *word == "--listen").unwrap();
        arguments.drain(listen..listen + 2);
        if arguments.contains(&"--tls-cert") {
            // Whoever pastes it has made the certificate; `tests/tls.rs` does.
            let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"], &arguments[..]].concat());
            assert!(ended.stderr.contains("server.pem"), "{line}: {ended:?}");
            continue;
        }
        let serve = Serve::start(&home, &arguments);
        if !arguments.contains(&"aerospike") {
            serve.control().query("SELECT key FROM system.local").unwrap();
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let home = Home::new();
    let run = [&["run", "ycsb:c"][..], &SHORT].concat();
    for arguments in [
        &["run", "--help"][..],
        &["--version"],
        &["run", "ycsb:a", "--dry-run"],
        &["report", "runs/latest"],
        &run,
        &[&run[..], &["--json"]].concat(),
    ] {
        if arguments[0] == "report" {
            home.summary(&run);
        }
        let mut child = home
            .wideload(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{arguments:?}");
    }
    home.assert_nothing_left();
}

#[test]
fn a_stderr_that_goes_away_is_no_panic() {
    let home = Home::new();
    let mut command = home.wideload(&["run", "ycsb:z"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let run = [&["run", "ycsb:c", "--json", "--out", "out"][..], &SHORT].concat();
    let output = home.wideload(&run).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("stdout") && stderr.contains("No space"), "{stderr}");
    assert!(RunDir(home.at("out")).summary().ops > 0, "the run directory has the result");
}

#[test]
fn serve_says_what_it_is_not() {
    let home = Home::new();
    let serve = Serve::start(&home, &["--storage", "null"]);
    let said =
        rig::eventually(Duration::from_secs(5), || serve.process.stdout().lines().count() == 2);
    assert!(said, "{}", serve.process.stdout());
    assert!(serve.process.stdout().contains("say nothing about Cassandra"));
}
