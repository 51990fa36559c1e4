//! Tests of the recording: intervals in, memory that does not grow out.

use super::*;
use record::{IntervalRecord, Outcome, RunDir};
use units::CpuSet;

struct Unseen;

impl Live for Unseen {
    fn stage(&mut self, _: &str) {}
    fn notice(&mut self, _: &str) {}
    fn loading(&mut self, _: u64, _: u64) {}
    fn running(&mut self, _: Nanos, _: &Window) {}
    fn interval(&mut self, _: &LiveInterval<'_>) {}
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Memory does not grow with the length of a run. 20,000 intervals here; the variable sets another
/// number, such as the 3,600,000 of an hour of 1 ms.
#[test]
fn any_number_of_intervals_is_recorded_in_the_same_memory() {
    let intervals: u64 = match std::env::var("WIDELOAD_TEST_INTERVALS") {
        Ok(text) => text.parse().expect("WIDELOAD_TEST_INTERVALS is a number"),
        Err(_) => 20_000,
    };
    let dir = tempfile::tempdir().unwrap();
    let run_dir = RunDir::create(Some(&dir.path().join("run")), "long").unwrap();
    let trial_dir = run_dir.trial(1).unwrap();
    let names = [OpNames::single("read"), OpNames::single("update")];
    let mut live = Unseen;
    let capture = Capture::new(CpuSet::default(), Vec::new(), false);
    let mut recording =
        Recording::new(&trial_dir, &names, false, false, capture, None, &mut live).unwrap();
    let mut record = IntervalRecord::new(&[0, 0]);
    let mut after_warm_up_kib = 0;
    for index in 0..intervals {
        record.clear();
        (record.start, record.end) = (Nanos::from_millis(index), Nanos::from_millis(index + 1));
        for op in &mut record.ops {
            for value in 0..20 {
                // Other buckets in each interval, up to a second.
                let time = Nanos(1000 + (index * 7919 + value * 104_729) % 1_000_000_000);
                op.record(Outcome::Ok, time, time, Nanos(value));
            }
        }
        let usage = [WorkerUsage::default(); 2];
        recording.interval(Interval { index, record: &record, usage: &usage }).unwrap();
        if index == intervals / 10 {
            after_warm_up_kib = resident_kib();
        }
    }
    recording.finish(&[]).unwrap();
    let grown_kib = resident_kib().saturating_sub(after_warm_up_kib);
    println!("{intervals} intervals: {after_warm_up_kib} KiB after a tenth, {grown_kib} KiB more");
    assert!(grown_kib < 2048, "{grown_kib} KiB more than after a tenth of the intervals");
}
