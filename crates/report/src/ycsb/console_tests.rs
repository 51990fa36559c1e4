//! Tests of the console: intervals in, lines and figures out.

use super::*;
use crate::ycsb::export;
use record::hlog::HlogReader;
use record::{OpRecord, Outcome};
use workload::ycsb::{Exporter, Job, Line};

fn measurement(words: &str) -> Measurement {
    let words: Vec<_> = "run basic -p workload=site.ycsb.workloads.CoreWorkload "
        .split(' ')
        .chain(words.split(' '))
        .filter(|word| !word.is_empty())
        .collect();
    Job::read(&Line::parse(&words).unwrap()).unwrap().measurement
}

fn names() -> Vec<OpNames> {
    vec![OpNames::single("read"), OpNames::single("update")]
}

/// A second in which 10 reads took 200 us and, from the second one on, 5 updates 400 us.
fn second(index: u64) -> IntervalRecord {
    let mut ops = vec![OpRecord::new(0), OpRecord::new(0)];
    let mut record = |op: usize, n: u64, us: u64| {
        let time = Nanos(us * 1000 + 500);
        (0..n).for_each(|_| ops[op].record(Outcome::Ok, time, time, Nanos::ZERO));
    };
    record(0, 10, 200);
    record(1, if index > 0 { 5 } else { 0 }, 400);
    let at = |s| Nanos::from_secs(100 + s);
    IntervalRecord { start: at(index), end: at(index + 1), ops }
}

fn told(words: &str, seconds: u64) -> (Vec<String>, Vec<Figure>) {
    let mut console = Console::new(measurement(words), false, false, Some(60));
    let wall = |s| Nanos::from_secs(1_700_000_000 + s);
    let mut lines: Vec<String> = console.begin(wall(0)).into_iter().collect();
    let mut total = IntervalRecord::new(&[]);
    for index in 0..seconds {
        let record = second(index);
        total.merge(&record);
        lines.extend(console.interval(&names(), &record, wall(index + 1)).unwrap());
    }
    let runtime = Nanos::from_secs(seconds);
    let (cleanup, wall) = (Nanos(3_000_500), wall(seconds));
    let ending = Ending { total: &total, runtime, cleanup, wall };
    let (line, figures) = console.end(&names(), &ending).unwrap();
    lines.extend(line);
    (lines, figures)
}

#[test]
fn the_final_text_has_the_names_and_the_order_of_the_original() {
    let (lines, figures) = told("", 2);
    assert!(lines.is_empty());
    assert_eq!(
        export(Exporter::Text, &figures),
        "\
[OVERALL], RunTime(ms), 2000
[OVERALL], Throughput(ops/sec), 12.5
[TOTAL_GCs], Count, 0
[TOTAL_GC_TIME], Time(ms), 0
[TOTAL_GC_TIME_%], Time(%), 0.0
[READ], Operations, 20
[READ], AverageLatency(us), 200.5
[READ], MinLatency(us), 200
[READ], MaxLatency(us), 200
[READ], 50thPercentileLatency(us), 200
[READ], 95thPercentileLatency(us), 200
[READ], 99thPercentileLatency(us), 200
[READ], Return=OK, 20
[CLEANUP], Operations, 1
[CLEANUP], AverageLatency(us), 3000.5
[CLEANUP], MinLatency(us), 3000
[CLEANUP], MaxLatency(us), 3001
[CLEANUP], 50thPercentileLatency(us), 3001
[CLEANUP], 95thPercentileLatency(us), 3001
[CLEANUP], 99thPercentileLatency(us), 3001
[UPDATE], Operations, 5
[UPDATE], AverageLatency(us), 400.5
[UPDATE], MinLatency(us), 400
[UPDATE], MaxLatency(us), 400
[UPDATE], 50thPercentileLatency(us), 400
[UPDATE], 95thPercentileLatency(us), 400
[UPDATE], 99thPercentileLatency(us), 400
[UPDATE], Return=OK, 5
"
    );
}

#[test]
fn status_lines_come_at_the_begin_each_interval_and_at_the_end() {
    let (lines, _) = told("-s -p status.interval=2 -l one", 5);
    let heads: Vec<_> = lines.iter().map(|l| l.split(" [").next().unwrap().to_owned()).collect();
    assert_eq!(
        heads,
        [
            "one2023-11-14 22:13:20:000 0 sec: 0 operations; est completion in 0 second ",
            "one2023-11-14 22:13:22:000 2 sec: 25 operations; 12.5 current ops/sec; est completion \
             in 3 second",
            "one2023-11-14 22:13:24:000 4 sec: 55 operations; 15 current ops/sec; est completion \
             in 1 second",
            "one2023-11-14 22:13:25:000 5 sec: 70 operations; 15 current ops/sec;",
        ]
    );
    assert!(
        lines[1].contains("[READ: Count=20, Max=200, Min=200, Avg=200.5, 50=200,"),
        "{lines:?}"
    );
    assert!(lines[3].contains("[UPDATE: Count=5, Max=400,") && lines[3].ends_with("] "));
    assert!(told("", 5).0.is_empty());
}

fn of(figures: &[Figure], metric: &str) -> Vec<String> {
    let all = figures.iter().filter(|f| f.metric == metric).cloned().collect::<Vec<_>>();
    export(Exporter::Text, &all)
        .lines()
        .map(|line| line.replacen(&format!("[{metric}], "), "", 1))
        .collect()
}

#[test]
fn other_types_of_measurement_tell_what_theirs_tell() {
    let figures = told("-p measurementtype=timeseries", 3).1;
    let updates = ["Operations, 10", "AverageLatency(us), 400.5", "MinLatency(us), 400"];
    let rest = ["MaxLatency(us), 400", "Return=OK, 10", "1000, 400.5", "2000, 400.5"];
    assert_eq!(of(&figures, "UPDATE"), [&updates[..], &rest].concat());
    let figures = told("-p measurementtype=histogram -p histogram.buckets=2", 3).1;
    let reads = ["Operations, 30", "AverageLatency(us), 200.0", "LatencyVariance(us), 0.0"];
    let more = ["MinLatency(us), 200", "MaxLatency(us), 200", "95thPercentileLatency(us), 0"];
    let rest = ["99thPercentileLatency(us), 0", "Return=OK, 30"];
    assert_eq!(of(&figures, "READ"), [&reads[..], &more, &rest].concat());
    let verbose = "-p measurementtype=hdrhistogram+histogram -p histogram.buckets=2 \
                   -p measurement.histogram.verbose=true -p hdrhistogram.percentiles=99.9";
    let figures = told(verbose, 3).1;
    let hdr = of(&figures, "HdrREAD");
    assert_eq!(hdr[4..], ["99.9PercentileLatency(us), 200", "Return=OK, 30", "200, 30.0"]);
    let bucket = of(&figures, "BucketREAD");
    assert_eq!(
        bucket[5..],
        ["95thPercentileLatency(us), 0", "99thPercentileLatency(us), 0", "0, 30", "1, 0", ">2, 0"]
    );
    let kept = "-p measurementtype=raw -p operationcount=60";
    let raw = of(&told(kept, 3).1, "READ");
    assert_eq!(
        raw[..3],
        [
            "Total Operations, 30",
            "Below is a summary of latency in microseconds:, -1",
            "Average, 200.5"
        ]
    );
    assert_eq!(raw[3..6], ["Min, 200", "Max, 200", "p1, 200"]);
}

#[test]
fn histogram_logs_are_read_back_in_microseconds() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = format!("{}/", directory.path().display());
    let logs = "hdrhistogram.fileoutput=true -p hdrhistogram.output.path=";
    told(&format!("-s -p status.interval=2 -p {logs}{prefix}"), 5);
    for (file, spans, counts) in [
        ("READ.hdr", vec![(0, 2), (2, 2), (4, 1)], vec![20, 20, 10]),
        ("UPDATE.hdr", vec![(0, 2), (2, 2), (4, 1)], vec![5, 10, 5]),
        ("CLEANUP.hdr", vec![(5, 0)], vec![1]),
    ] {
        let text = std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert!(text.starts_with(&format!("#[Logging for: {}]\n", &file[..file.len() - 4])));
        assert!(text.contains("#[StartTime: 1700000000.000 (seconds since epoch), "), "{text}");
        let mut seen = (Vec::new(), Vec::new());
        for entry in HlogReader::new(text.as_bytes()) {
            let entry = entry.unwrap();
            seen.0.push((entry.start.0 / 1_000_000_000, entry.length.0 / 1_000_000_000));
            seen.1.push(entry.latency.count());
            let longest = if file == "READ.hdr" { 200 } else { 3001 };
            assert!(entry.latency.max().0 <= longest, "{file}: {:?}", entry.latency.max());
        }
        assert_eq!(seen, (spans, counts), "{file}");
    }
    let nowhere =
        measurement("-p hdrhistogram.fileoutput=true -p hdrhistogram.output.path=/no/such/");
    let mut console = Console::new(nowhere, false, false, None);
    let record = second(1);
    console.interval(&names(), &record, Nanos::ZERO).unwrap();
    let (runtime, cleanup, wall) = (Nanos(1), Nanos(1), Nanos(1));
    let error = console.end(&names(), &Ending { total: &record, runtime, cleanup, wall });
    assert!(error.unwrap_err().to_string().contains("'/no/such/READ.hdr'"));
}
