//! Command lines of cassandra-stress against the reference target: published lines with sizes and
//! addresses changed, data that is the original's, lines that scripts read, and failures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::stress::{Stress, result};
use rig::{Ended, Home, Serve, eventually};
use stage::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The only cell of the first row.
fn cell(rig: &Stress, query: &str) -> Option<Vec<u8>> {
    rig.cells(query).first().and_then(|row| row[0].clone())
}

/// Rows of the intervals, cut into their cells.
fn rows(ended: &Ended, name: &str) -> Vec<Vec<f64>> {
    let lines = ended.stdout.lines().filter(|line| line.starts_with(&format!("{name},")));
    lines
        .map(|line| line.split(',').skip(1).map(|cell| cell.trim().parse().unwrap()).collect())
        .collect()
}

#[test]
fn what_is_written_is_the_originals_and_reads_back() {
    let rig = Stress::new();
    let wrote = rig.good("write n=20k no-warmup -rate threads=64 -pop seq=1..20000");
    let order = [
        "******************** Stress Settings ********************",
        "Created keyspaces.",
        "Running WRITE with 64 threads for 20000 iteration",
        "type       total ops,    op/s,    pk/s,   row/s,    mean,",
        "total,",
        "Results:",
        "Op rate                   :",
        "Total partitions          :     20,000 [WRITE: 20,000]",
        "Total errors              :          0 [WRITE: 0]",
        "Total operation time      : 00:00:0",
        "END",
    ];
    let mut lines = wrote.stdout.lines();
    for begin in order {
        assert!(lines.any(|line| line.starts_with(begin)), "{begin} in {wrote:?}");
    }
    // Each seed has its row, but for those that share a key, as in the original.
    let there = rig.count("keyspace1.standard1");
    assert!((19_990..=20_000).contains(&there), "{there}");
    // Seed 1: key 0P37709P21, and the first column of 34 bytes.
    let key = "0x30503337373039503231";
    let c0 = cell(&rig, &format!("SELECT \"C0\" FROM keyspace1.standard1 WHERE key = {key}"));
    let hex: String = c0.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "85182fdfe7f86306cd58ce81aa53cca24c193841d6ae8a91646a4c304dd9f47892f9");

    let read = rig.good("read n=20k no-warmup -rate threads=64 -pop seq=1..20000");
    assert_eq!(result(&read, "Total partitions"), 20000.0);
    // Another size would be another row: every column is compared.
    let other =
        rig.stress("read n=1k no-warmup -rate threads=4 -pop seq=1..1000 -col size=FIXED(33)");
    assert_eq!(other.status, Some(1), "{other:?}");
    assert!(other.stdout.trim_end().ends_with("FAILURE"), "{other:?}");
    assert!(other.stderr.contains("Operation x0 on key(s) ["), "{other:?}");
    assert!(other.stderr.contains("Data returned was not validated"), "{other:?}");
    assert!(other.stderr.contains("Failed to execute stress action"), "{other:?}");
    // A row that is not there is one that differs, and -errors ignore goes on.
    let line = "read n=2k no-warmup -rate threads=4 -pop seq=19001..21000 -errors";
    let ignored = rig.good(&format!("{line} ignore"));
    assert_eq!(result(&ignored, "Total errors"), 1000.0, "{ignored:?}");
    assert_eq!(result(&ignored, "Total partitions"), 1000.0);
    let skipped = rig.good(&format!("{line} skip-read-validation"));
    assert_eq!(result(&skipped, "Total errors"), 0.0, "{skipped:?}");
}

#[test]
fn the_line_of_000_runs_and_its_script_reads_the_figure() {
    let rig = Stress::new();
    let published = "write no-warmup duration=3s cl=one -rate threads=200 fixed=900/s -schema \
                     replication(factor=3) -pop seq=1..100000000 no-wrap -log interval=1";
    let ended = rig.good(published);
    assert!(ended.stdout.contains("Running WRITE with 200 threads 3 seconds"), "{ended:?}");
    let totals = rows(&ended, "total");
    assert!((3..=4).contains(&totals.len()), "{totals:?}");
    for (second, row) in totals.iter().take(3).enumerate() {
        assert_eq!(row[10], (second + 1) as f64, "whole seconds: {row:?}");
    }
    let replication = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = \
                       'keyspace1'";
    let keyspace = cell(&rig, replication);
    let text = String::from_utf8_lossy(&keyspace.unwrap()).into_owned();
    assert!(text.contains("SimpleStrategy") && text.contains("replication_factor"), "{text}");
    // As casstest.sh keeps and reads it.
    let kept: String = ended
        .stdout
        .lines()
        .map(|line| format!("amd_cluster1\t2026-11-21 21:00:00.000 {}\n", line.trim()))
        .collect();
    fs::write(rig.home.at("amd_cluster1_driver1.txt"), kept).unwrap();
    let script = "grep \"Op rate\" *_cluster*_driver*.txt | tee results.txt\n\
                  sed 's/,/,/' results.txt | awk '{sum=sum+$7}END{print \"Total op/s: \"sum}'";
    let mut shell = rig.home.command("sh");
    let out = shell.args(["-c", script]).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let rate = result(&ended, "Op rate");
    assert!(said.trim_end().ends_with(&format!("Total op/s: {rate}")), "{said} for {rate}");
    assert!((850.0..=950.0).contains(&rate), "the schedule was kept: {rate}");
}

#[test]
fn the_lines_of_003_run() {
    let rig = Stress::new();
    let schema =
        "-schema keyspace=ksx replication(strategy=NetworkTopologyStrategy, datacenter1=1)";
    let mode = "-mode native cql3";
    let write =
        format!("write no-warmup n=9000 -rate threads=100 {mode} -pop seq=1..9000 {schema}");
    rig.good(&write);
    let gaussian = "-pop dist=gaussian(1..9000,4500,100)";
    let read = format!("read no-warmup n=9000 -rate threads=400 {mode} {gaussian} {schema}");
    let read = rig.good(&read);
    assert!(read.stderr.contains("-schema replication has no effect"), "{read:?}");
    let mixed = format!(
        "mixed ratio(write=2,read=8) no-warmup n=9000 -rate threads=400 {mode} {gaussian} {schema}"
    );
    let mixed = rig.good(&mixed);
    assert!(mixed.stdout.contains("Running [READ, WRITE] with 400 threads"), "{mixed:?}");
    let last = |name| rows(&mixed, name).last().unwrap()[0];
    let (writes, reads, total) = (last("WRITE"), last("READ"), last("total"));
    assert_eq!((writes + reads, total), (9000.0, 9000.0));
    assert!((0.1..0.3).contains(&(writes / total)), "{writes} of {total}");
}

#[test]
fn counters_grow_and_are_read() {
    let rig = Stress::new();
    rig.good("counter_write n=100 no-warmup add=fixed(3) -rate threads=4 -pop seq=1..50");
    let key = "0x30503337373039503231";
    let sum = cell(&rig, &format!("SELECT \"C4\" FROM keyspace1.counter1 WHERE key = {key}"));
    assert_eq!(sum.unwrap(), 6i64.to_be_bytes());
    rig.good("counter_read n=100 no-warmup -rate threads=4 -pop seq=1..50");
    let mixed = "mixed ratio(counter_write=1,counter_read=1) n=400 no-warmup -rate threads=4";
    rig.good(&format!("{mixed} -pop dist=uniform(1..50)"));
}

/// Both tables in one run: rows are compared, counters grow by what they are told to.
#[test]
fn rows_and_counters_are_mixed() {
    let rig = Stress::new();
    let columns = "-col n=fixed(2) size=fixed(3)";
    for command in ["write", "counter_write"] {
        rig.good(&format!("{command} n=50 no-warmup -rate threads=4 -pop seq=1..50 {columns}"));
    }
    let ratio = "ratio(read=1,write=1,counter_write=1,counter_read=1)";
    let mixed = rig.good(&format!(
        "mixed {ratio} n=2000 no-warmup add=fixed(3) -rate threads=8 -pop seq=1..50 {columns}"
    ));
    assert_eq!(result(&mixed, "Total errors"), 0.0, "{mixed:?}");
    let of = |name: &str| -> i64 {
        let line = mixed.stdout.lines().find(|line| line.starts_with("Total partitions")).unwrap();
        let (_, rest) = line.split_once(&format!("{name}: ")).unwrap();
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.unwrap().parse().unwrap()
    };
    let written = of("COUNTER_WRITE");
    assert!((200..=900).contains(&written) && of("READ") > 100, "{mixed:?}");
    let sums = rig.cells("SELECT \"C0\" FROM keyspace1.counter1");
    let sum: i64 = sums
        .iter()
        .map(|row| i64::from_be_bytes(row[0].clone().unwrap()[..].try_into().unwrap()))
        .sum();
    assert_eq!((sum, rig.count("keyspace1.standard1")), (50 + 3 * written, 50));
}

#[test]
fn warm_up_truncate_lookback_and_an_empty_run() {
    let rig = Stress::new();
    let only = rig.stress("write n=0 -rate threads=4");
    assert_eq!(only.status, Some(0), "{only:?}");
    assert!(only.stdout.contains("N=0: SCHEMA CREATED, NOTHING ELSE DONE."), "{only:?}");
    assert_eq!(rig.count("keyspace1.standard1"), 0);
    let warm = rig.good("write n=4000 truncate=once -rate threads=4 -pop seq=1..4000");
    assert!(warm.stdout.contains("Warming up WRITE with 1000 iterations..."), "{warm:?}");
    assert!(warm.stdout.contains("Truncated keyspace1.standard1."), "{warm:?}");
    let again = rig.good("write n=10 no-warmup truncate=once -rate threads=1 -pop seq=5001..5010");
    assert_eq!(result(&again, "Total partitions"), 10.0);
    assert_eq!(rig.count("keyspace1.standard1"), 10);
    let line = "mixed ratio(read=1,write=1) n=4000 no-warmup -rate threads=16 -pop seq=1..4000";
    let behind = rig.good(&format!("{line} read-lookback=fixed(1) -errors ignore"));
    // All but the reads before the first write find their row.
    let errors = result(&behind, "Total errors") as u64;
    assert!(errors <= 64, "{behind:?}");
    // With no-wrap the run ends when each seed was taken.
    let ended = rig.good("write n=5000 no-warmup -rate threads=4 -pop seq=1..300 no-wrap");
    assert_eq!(result(&ended, "Total partitions"), 300.0);
}

#[test]
fn statements_run_beforehand_and_what_is_refused_is_listed() {
    let rig = Stress::new();
    let ddl = "CREATE KEYSPACE k3 WITH replication = {'class': 'SimpleStrategy', \
               'replication_factor': 1}; -- first\n\
               CREATE TABLE k3.standard1 (key blob PRIMARY KEY, \"C0\" blob) \
               WITH COMPACT STORAGE;\n\
               CREATE INDEX ON k3.standard1 (\"C0\");\n\
               DROP TABLE k3.standard1;\n\
               CREATE TABLE k3.standard1 (key blob PRIMARY KEY, \"C0\" blob, more text);";
    fs::write(rig.home.at("own.cql"), ddl).unwrap();
    let port = format!("native={}", rig.serve.address.port());
    let line = "write n=100 no-warmup -rate threads=4 -col n=fixed(1) -schema keyspace=k3";
    let words: Vec<&str> = line.split(' ').collect();
    let own = ["cassandra-stress", "--ddl", "own.cql"];
    let target = ["-node", "127.0.0.1", "-port", &port];
    let ended = rig.home.run(&[&own, &words[..], &target].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let told: Vec<_> = ended.stderr.lines().filter(|l| l.starts_with("--ddl: ")).collect();
    assert!(matches!(told[..], [line] if line.contains("secondary indexes")), "{ended:?}");
    let more = rig.serve.control().query("SELECT more FROM k3.standard1").unwrap();
    assert_eq!(more.len(), 100, "the table is the one that was made beforehand");
    let own = ["explain", "--ddl", "own.cql", "cassandra-stress"];
    let explained = rig.home.run(&[&own, &words[..]].concat());
    assert!(explained.stdout.contains("ddl          CREATE KEYSPACE k3"), "{explained:?}");
}

#[test]
fn steps_and_uncertainty_end() {
    let rig = Stress::new();
    rig.good("write n=500 no-warmup -rate threads=4 -pop seq=1..500");
    let line = "read no-warmup err<0.9 n>3 n<5 -pop dist=uniform(1..500) -log interval=200ms -rate";
    let stepped = rig.good(&format!("{line} threads>=2 threads<=110 auto"));
    for text in [
        "Thread count was not specified",
        "WARNING: uncertainty mode (err<)",
        "Running with 2 threadCount",
        "Running READ with 2 threads until stderr of mean < 0.9",
        "Running with 102 threadCount",
        "Improvement over 2 threadCount: ",
        "             id, type       total ops,",
        "  2 threadCount, READ,",
        "102 threadCount, total,",
    ] {
        assert!(stepped.stdout.lines().any(|line| line.starts_with(text)), "{text}: {stepped:?}");
    }
    assert_eq!(stepped.stderr.lines().filter(|line| line.starts_with("run: ")).count(), 2);
}

#[test]
fn the_log_goes_where_it_is_wanted_and_histograms_have_their_tags() {
    let rig = Stress::new();
    let (log, hdr, graph) =
        (rig.home.at("log.txt"), rig.home.at("stress.hdr"), rig.home.at("graph.html"));
    let ended = rig.stress(&format!(
        "write n=1500 no-warmup -rate threads=16 fixed=1000/s -pop seq=1..1500 -log file={} \
         hdrfile={} no-settings interval=500ms -graph file={} title=x",
        log.display(),
        hdr.display(),
        graph.display()
    ));
    assert_eq!((ended.status, &ended.stdout[..]), (Some(0), ""), "{ended:?}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("Stress Settings") && text.trim_end().ends_with("END"), "{text}");
    assert!(fs::read_to_string(&graph).unwrap().contains("<html"), "the report");
    let hlog = fs::read_to_string(&hdr).unwrap();
    assert!(hlog.starts_with("#Logging op latencies for Cassandra Stress\n"), "{hlog}");
    for tag in ["WRITE-st", "WRITE-rt", "WRITE-wt"] {
        let lines = hlog.lines().filter(|line| line.starts_with(&format!("Tag={tag},"))).count();
        assert!((3..=5).contains(&lines), "{tag}: {lines} intervals of 500 ms");
    }
    assert_read_by_python(&hdr, "WRITE-st", 1500);
    // Another run of the same without a rate has service times alone.
    let plain = rig.home.at("plain.hdr");
    let plain_line =
        format!("write n=100 no-warmup -rate threads=4 -log hdrfile={}", plain.display());
    rig.good(&plain_line);
    let hlog = fs::read_to_string(&plain).unwrap();
    assert!(hlog.contains("Tag=WRITE-st,") && !hlog.contains("Tag=WRITE-rt,"), "{hlog}");
}

/// Reads a log with the HdrHistogram library of Python, where the tests have one.
fn assert_read_by_python(log: &Path, tag: &str, count: u64) {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools");
    let venv = tools.join("python");
    let python = venv.join("bin/python");
    let run = |program: &Path, arguments: &[&str]| {
        let out = Command::new(program).args(arguments).output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() { Ok(out.stdout) } else { Err(said.replace('\n', " ")) }
    };
    let made = || -> Result<(), String> {
        if run(&python, &["-c", "import hdrh.log"]).is_ok() {
            return Ok(());
        }
        fs::create_dir_all(&tools).map_err(|e| e.to_string())?;
        run(Path::new("python3"), &["-m", "venv", "--clear", venv.to_str().unwrap()])?;
        let install = ["-m", "pip", "install", "-q", "--retries", "1", "hdrhistogram==0.10.8"];
        run(&python, &install).map(drop)
    };
    if let Err(why) = made() {
        eprintln!("SKIP: Python reader of the histograms: {why}");
        return;
    }
    let program = "import sys\n\
        from hdrh.histogram import HdrHistogram\n\
        from hdrh.log import HistogramLogReader\n\
        reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000000, 3))\n\
        total = 0\n\
        while True:\n\
        \x20   one = reader.get_next_interval_histogram()\n\
        \x20   if one is None: break\n\
        \x20   if one.get_tag() == sys.argv[2]: total += one.get_total_count()\n\
        print(total)";
    let said = run(&python, &["-c", program, log.to_str().unwrap(), tag]).unwrap();
    assert_eq!(String::from_utf8(said).unwrap().trim(), count.to_string());
}

#[test]
fn throttle_shows_service_and_the_caveat_tells() {
    let rig = Stress::new();
    let ended = rig.good("write n=300 no-warmup -rate threads=4 throttle=700000/s -pop seq=1..300");
    assert!(
        ended.stderr.contains("caveat: The lines of throttle= show service times"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("Here it is 700000/s"), "{ended:?}");
    // 10^9 / 500 is whole.
    let ended = rig.good("write n=300 no-warmup -rate threads=4 fixed=500/s -pop seq=1..300");
    assert!(!ended.stderr.contains("whole nanoseconds"), "{ended:?}");
}

#[test]
fn it_is_cassandra_stress_when_called_so_and_explains_itself() {
    let rig = Stress::new();
    let link = rig.home.at("cassandra-stress");
    symlink(env!("CARGO_BIN_EXE_wideload"), &link).unwrap();
    let port = format!("native={}", rig.serve.address.port());
    let mut command = rig.home.command(&link);
    command.args(["write n=100 no-warmup -rate threads=4 -node 127.0.0.1 -port", &port]);
    let ended = rig::Process::start(command).wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(rig.count("keyspace1.standard1"), 100);
    let before = rig.serve.executed();
    let explained = rig.home.run(&[
        "explain",
        "cassandra-stress",
        "write",
        "n=1M",
        "-rate",
        "threads=50",
        "-node",
        "a,b",
    ]);
    assert_eq!(explained.status, Some(0), "{explained:?}");
    for text in [
        "connect      a:9042, b:9042",
        "create       CREATE KEYSPACE IF NOT EXISTS \"keyspace1\"",
        "prepare      UPDATE keyspace1.standard1 SET \"C0\" = ?, \"C1\" = ?",
        "warm up      100000 operations write by 50 threads",
        "closed loop, 50 threads",
    ] {
        assert!(explained.stdout.contains(text), "{text}: {explained:?}");
    }
    assert_eq!(rig.serve.executed(), before, "nothing was done");
    let foreign = rig.home.run(&["explain", "othertool", "x"]);
    assert_eq!(foreign.status, Some(2), "{foreign:?}");
}

#[test]
fn lines_that_mean_nothing_fail_as_the_originals_do() {
    let home = Home::new();
    for (line, status, said) in [
        ("write n=x", 1, "Invalid value x; must match pattern [0-9]+[bmk]?"),
        ("write -rate threads=1 foo=2", 1, "Invalid parameter foo=2"),
        ("wrte", 1, "Invalid command wrte"),
        ("write n=1 -pop dist=foo(1)", 1, "Illegal distribution type: foo"),
        ("user profile=x ops(insert=1)", 1, "Cannot read the profile x"),
        ("write n=1 -mode thrift", 2, "Thrift"),
        ("write n=1 -node file=missing.txt", 3, "cannot read the hosts in 'missing.txt'"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ended = home.run(&[&["cassandra-stress"], &words[..]].concat());
        assert_eq!(ended.status, Some(status), "{line}: {ended:?}");
        let all = ended.stdout + &ended.stderr;
        assert!(all.contains(said), "{line}: {all}");
        assert!(!all.contains("panicked"), "{all}");
    }
    let help = home.run(&["cassandra-stress", "help", "-rate"]);
    assert!(help.status == Some(0) && help.stdout.contains("Usage: -rate"), "{help:?}");
    let print = home.run(&["cassandra-stress", "print", "dist=uniform(1..100)"]);
    assert!(print.stdout.starts_with("% of samples    Range       % of total"), "{print:?}");
    assert!(print.stdout.contains("50.0            51"), "{print:?}");
    let version = home.run(&["cassandra-stress", "version"]);
    assert!(version.stdout.starts_with("Version: wideload"), "{version:?}");
}

#[test]
fn passwords_stay_out_of_every_file() {
    let rig = Stress::new();
    let out = rig.home.at("run");
    let port = format!("native={}", rig.serve.address.port());
    let line = "write n=100 no-warmup -rate threads=4 -mode native cql3 user=me password=hunter2";
    let words: Vec<&str> = line.split(' ').collect();
    let own = ["cassandra-stress", "--out", out.to_str().unwrap()];
    let ended = rig.home.run(&[&own, &words[..], &["-node", "127.0.0.1", "-port", &port]].concat());
    assert!(ended.stdout.contains("*suppressed*"), "{ended:?}");
    assert!(!(ended.stdout.clone() + &ended.stderr).contains("hunter2"), "{ended:?}");
    let grep = Command::new("grep").args(["-rl", "hunter2"]).arg(&out).output().unwrap();
    assert!(grep.stdout.is_empty(), "{}", String::from_utf8_lossy(&grep.stdout));
}

#[test]
fn its_workloads_run_as_our_own() {
    let home = Home::new();
    let run = |workload: &str, records: &str| {
        let load = ["--records", records, "--ops", "3k", "--warm", "0s", "--threads", "8"];
        home.summary(&[&["run", workload], &load[..]].concat())
    };
    let mixed = run("cassandra-stress:mixed ratio(read=1,write=1) -col n=fixed(3)", "1k");
    assert_eq!((&mixed.workload[..], mixed.errors), ("cassandra-stress:mixed", 0));
    assert_eq!(mixed.latency_us.keys().map(String::as_str).collect::<Vec<_>>(), ["read", "write"]);
    // The second run finds the rows of the first by its marker, and the keys that it looks for.
    let serve = Serve::start(&home, &[]);
    let target = serve.target();
    for workload in ["cassandra-stress:write", "cassandra-stress:read -pop seq=1..1000"] {
        let words = ["run", workload, "--target", &target, "--records", "1k", "--ops", "2k"];
        let more = ["--warm", "0s", "--threads", "8", "--keyspace", "stress"];
        let summary = home.summary(&[&words[..], &more].concat());
        assert_eq!((summary.ops, summary.errors), (2000, 0), "{workload}");
    }
    let dry = home.run(&["run", "cassandra-stress:write", "--dry-run", "--records", "10"]);
    assert!(dry.stdout.contains("standard1 (key blob PRIMARY KEY, \"C0\" blob"), "{dry:?}");
    let odd = home.run(&["run", "cassandra-stress:write n=5"]);
    assert_eq!(odd.status, Some(2), "{odd:?}");
    assert!(odd.stderr.contains("n=5 is not part of a workload"), "{odd:?}");
}

/// Before anything is measured for them, and without waiting for who may never come.
#[test]
fn files_that_cannot_be_written_are_told_at_once() {
    let rig = Stress::new();
    let pipe = rig.home.at("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
    let before = rig.serve.executed();
    for (words, said) in [
        ("-log file=pipe", "pipe that nobody reads"),
        ("-log hdrfile=pipe", "pipe that nobody reads"),
        ("-graph file=pipe", "pipe that nobody reads"),
        ("-graph file=no/such/dir.html", "no/such/dir.html"),
    ] {
        let ended = rig.stress(&format!("write n=100 no-warmup -rate threads=2 {words}"));
        assert_eq!(ended.status, Some(3), "{words}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words}: {ended:?}");
    }
    assert_eq!(rig.serve.executed(), before, "nothing was done");
}

#[test]
fn a_search_for_threads_that_is_interrupted_in_its_pause_has_not_ended_well() {
    let rig = Stress::new();
    let run = rig.start("write n=50 no-warmup -rate threads>=4");
    let paused = || run.stdout().contains("Sleeping for 15s");
    assert!(eventually(Duration::from_secs(60), paused), "{}", run.stdout());
    assert!(run.signal(Signal::INT));
    let ended = run.wait(Duration::from_secs(10));
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stdout.trim_end().ends_with("FAILURE"), "{ended:?}");
    drop(rig.serve);
    rig.home.assert_nothing_left();
}
