//! Courses of hosts that were written down for the test.

use super::*;
use machine::CpuTimes;

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Two cpus after `s` seconds: cpu 0 all idle, cpu 1 all in user mode, `stolen` ticks of it gone.
fn reading(s: u64, stolen: u64) -> Reading {
    let idle = CpuTimes { idle_ticks: 100 * s, ..CpuTimes::default() };
    let busy = CpuTimes { user_ticks: 100 * s - stolen, steal_ticks: stolen, ..idle };
    let busy = CpuTimes { idle_ticks: 0, ..busy };
    let all = CpuTimes {
        user_ticks: busy.user_ticks,
        idle_ticks: idle.idle_ticks,
        steal_ticks: stolen,
        ..CpuTimes::default()
    };
    let activity = Activity {
        all: Some(all),
        cpus: vec![(CpuId(0), idle), (CpuId(1), busy)],
        runnable_tasks: Some(3),
        ..Activity::default()
    };
    Reading { at: Nanos::from_secs(s), activity, ours: Some(Nanos::from_secs(s)) }
}

/// 10 s, changed by `change` from second 1 on.
fn course(change: impl Fn(u64, &mut Reading)) -> Vec<Caveat> {
    let mut course = Course::begin(&set("0-1"), reading(0, 0));
    for s in 1..=10 {
        let mut reading = reading(s, 0);
        change(s, &mut reading);
        course.add(reading);
    }
    course.caveats()
}

fn codes(caveats: &[Caveat]) -> Vec<&str> {
    caveats.iter().map(|c| c.code.as_str()).collect()
}

#[test]
fn a_calm_host_says_nothing() {
    assert_eq!(course(|_, _| {}), []);
    assert_eq!(Course::begin(&set("0-1"), Reading::default()).caveats(), []);
    // A kernel that tells nothing.
    assert_eq!(course(|_, r| r.activity = Activity::default()), []);
}

#[test]
fn steal_is_judged_by_the_worst_watched_cpu() {
    let stolen = |of: u64| move |s: u64, r: &mut Reading| *r = reading(s, s * of);
    assert_eq!(codes(&course(stolen(1))), [""; 0], "1 % is the limit");
    let caveats = course(stolen(2));
    assert_eq!(codes(&caveats), ["steal"]);
    assert!(caveats[0].evidence.starts_with("cpu 1: 2.0 %"), "{caveats:?}");
    let mut elsewhere = Course::begin(&set("0"), reading(0, 0));
    elsewhere.add(reading(10, 50));
    assert_eq!(codes(&elsewhere.caveats()), [""; 0], "nobody of ours runs there");
    let mut short = Course::begin(&set("0-1"), reading(1, 0));
    short.add(Reading { at: Nanos::from_millis(1100), ..reading(2, 50) });
    assert_eq!(codes(&short.caveats()), [""; 0], "ticks of 100 ms say nothing");
}

#[test]
fn swap_in_use_and_swapping_are_told_apart() {
    let used = course(|_, r| r.activity.swap_used_bytes = Some(1 << 20));
    assert_eq!(codes(&used), ["swap"]);
    assert!(used[0].text.contains("in use") && used[0].evidence.contains("1.0 MiB"), "{used:?}");
    // Used at one moment only.
    let moment = |s, r: &mut Reading| r.activity.swap_used_bytes = Some(u64::from(s == 5));
    assert_eq!(codes(&course(moment)), ["swap"]);
    let mut swapping = Course::begin(&set("0"), reading(0, 0));
    let mut before = reading(1, 0);
    before.activity.swapped_in_pages = Some(7);
    swapping = Course { first: before.clone(), ..swapping };
    before.activity.swapped_in_pages = Some(9);
    swapping.add(before);
    let caveats = swapping.caveats();
    assert!(caveats[0].text.contains("while measuring"), "{caveats:?}");
    assert!(caveats[0].evidence.contains("2 pages in and 0 out"), "{caveats:?}");
}

#[test]
fn work_of_others_is_what_neither_client_nor_target_did() {
    // One cpu is busy; ours is less and less of it. The limit on 2 cpus is half a cpu.
    let ours =
        |share: f64| course(move |s, r| r.ours = Some(Nanos((s as f64 * share * 1e9) as u64)));
    assert_eq!(codes(&ours(0.51)), [""; 0]);
    let caveats = ours(0.4);
    assert_eq!(codes(&caveats), ["busy-host"]);
    assert!(caveats[0].evidence.starts_with("0.60 of 2 cpus"), "{caveats:?}");
    assert!(caveats[0].evidence.contains("procs_running was 3.0"), "{caveats:?}");
    assert_eq!(codes(&course(|_, r| r.ours = None)), [""; 0], "it cannot be told");
}

#[test]
fn throttling_and_a_drifting_clock() {
    let mut hot = Course::begin(&set("0"), {
        let mut first = reading(0, 0);
        first.activity.throttle_events = Some(40);
        first
    });
    let mut last = reading(1, 0);
    last.activity.throttle_events = Some(43);
    hot.add(last);
    let caveats = hot.caveats();
    assert_eq!(codes(&caveats), ["throttled-cpu"]);
    assert!(caveats[0].evidence.starts_with("3 events"), "{caveats:?}");

    let clock = |mhz: fn(u64) -> f64| course(move |s, r| r.activity.frequency_mhz = Some(mhz(s)));
    assert_eq!(codes(&clock(|s| 3000.0 + (s % 2) as f64 * 40.0)), [""; 0], "noise");
    let caveats = clock(|s| 3000.0 - s as f64 * 10.0);
    assert_eq!(codes(&caveats), ["frequency"]);
    assert!(caveats[0].text.contains("fell by 3.4 %"), "{caveats:?}");
    let mut few = Course::begin(&set("0"), reading(0, 0));
    for s in 1..9 {
        let mut reading = reading(s, 0);
        reading.activity.frequency_mhz = Some(1000.0 * s as f64);
        few.add(reading);
    }
    assert_eq!(codes(&few.caveats()), [""; 0], "too few readings");
}
