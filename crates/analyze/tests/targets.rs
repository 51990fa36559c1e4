//! Preflight rules at targets, as they may answer.

#![allow(clippy::unwrap_used, clippy::panic)]

use analyze::check::{
    Clock, Finding, Local, Reached, Setting, Target, Verdict, heap, java, ports, target,
    unreachable,
};
use machine::{Limit, Limits};
use units::CpuSet;

fn elsewhere() -> Reached {
    Reached {
        version: Some("5.0.5".into()),
        stand_in: false,
        connect_us: 120.0,
        query_us: 350.0,
        clock: Some(Clock { ahead_ms: 0.2, error_ms: 0.4 }),
        local: Local::Elsewhere,
        settings: Some(Vec::new()),
    }
}

fn judged(reached: Reached) -> Vec<Finding> {
    let client: CpuSet = "2-3".parse().unwrap();
    target(&Target { address: "10.0.0.5:9042".into(), reached: Ok(reached) }, &client, None)
}

fn verdict(findings: &[Finding], id: &str) -> Verdict {
    findings.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("{id}: {findings:#?}")).verdict
}

#[test]
fn a_target_that_does_not_answer_is_one_finding() {
    let asked = Target { address: "h:1".into(), reached: Err("refused; is it up?".into()) };
    let found = target(&asked, &CpuSet::default(), None);
    assert_eq!(found, [unreachable("h:1", "refused; is it up?")]);
    assert_eq!(found[0].verdict, Verdict::Fail);
    assert_eq!(found[0].line(), "FAIL CQL at h:1: no answer, wanted answers");
}

#[test]
fn a_good_target_has_no_findings_but_good_ones() {
    let found = judged(elsewhere());
    assert!(found.iter().all(|f| f.verdict == Verdict::Ok), "{found:#?}");
    assert!(found.iter().any(|f| f.value == "120 us connect, 350 us query"));
}

#[test]
fn a_stand_in_is_no_database() {
    let reached = Reached { stand_in: true, settings: None, ..elsewhere() };
    let found = judged(reached);
    assert_eq!(verdict(&found, "target.version"), Verdict::Warn);
    assert_eq!(verdict(&found, "target.settings"), Verdict::Unknown);
}

#[test]
fn clocks_are_judged_by_what_is_certain() {
    for (clock, wanted) in [
        (Some((0.9, 0.5)), Verdict::Ok),
        (Some((1.4, 0.5)), Verdict::Ok),
        (Some((1.6, 0.5)), Verdict::Warn),
        (Some((-700.0, 3.0)), Verdict::Warn),
        (Some((2.0, 40.0)), Verdict::Unknown),
        (None, Verdict::Unknown),
    ] {
        let clock = clock.map(|(ahead_ms, error_ms)| Clock { ahead_ms, error_ms });
        let found = judged(Reached { clock, ..elsewhere() });
        assert_eq!(verdict(&found, "target.clock"), wanted, "{clock:?}");
    }
    let here = judged(Reached { clock: None, local: Local::Hidden, ..elsewhere() });
    assert_eq!(verdict(&here, "target.clock"), Verdict::Ok, "it is one clock");
    assert_eq!(verdict(&here, "target.cpus"), Verdict::Unknown);
}

#[test]
fn a_local_process_has_cpus_and_limits() {
    let here = |cpus: &str, nofile| Local::Here {
        pid: 77,
        name: "java".into(),
        limits: Limits {
            nofile: Some(Limit::AtMost(nofile)),
            memlock: Some(Limit::Unlimited),
            nproc: Some(Limit::Unlimited),
            address_space: None,
        },
        cpus: cpus.parse().unwrap(),
    };
    let found = judged(Reached { local: here("0-1", 1 << 20), ..elsewhere() });
    assert_eq!(verdict(&found, "target.cpus"), Verdict::Ok);
    assert_eq!(verdict(&found, "limits.nofile"), Verdict::Ok);
    assert_eq!(verdict(&found, "limits.address_space"), Verdict::Unknown);
    let found = judged(Reached { local: here("0-3", 1024), ..elsewhere() });
    let cpus = found.iter().find(|f| f.id == "target.cpus").unwrap();
    assert_eq!(cpus.verdict, Verdict::Fail);
    assert!(cpus.why.contains("2-3") && cpus.mend.contains("taskset -acp CPUS 77"), "{cpus:?}");
    assert_eq!(verdict(&found, "limits.nofile"), Verdict::Fail);
}

#[test]
fn settings_that_falsify_are_found_under_either_name() {
    let with = |name: &str, value: &str| {
        let setting = Setting { name: name.into(), value: value.into() };
        judged(Reached { settings: Some(vec![setting]), ..elsewhere() })
    };
    for (name, value, id, wanted) in [
        ("row_cache_size", "0MiB", "setting.row_cache", Verdict::Ok),
        ("row_cache_size", "100MiB", "setting.row_cache", Verdict::Warn),
        ("row_cache_size_in_mb", "64", "setting.row_cache", Verdict::Warn),
        ("cdc_enabled", "true", "setting.cdc", Verdict::Warn),
        ("cdc_enabled", "false", "setting.cdc", Verdict::Ok),
        ("audit_logging_options_enabled", "true", "setting.audit", Verdict::Warn),
        ("commitlog_sync", "periodic", "setting.commitlog_sync", Verdict::Ok),
        ("read_request_timeout", "5000ms", "setting.read_timeout", Verdict::Ok),
    ] {
        assert_eq!(verdict(&with(name, value), id), wanted, "{name}={value}");
    }
    let other = with("no_such_setting", "1");
    assert!(other.iter().all(|finding| !finding.id.starts_with("setting.")));
}

#[test]
fn what_a_cassandra_needs_is_there_or_told() {
    assert_eq!(java(Ok("17.0.15".into())).verdict, Verdict::Ok);
    let none = java(Err("no java is on PATH".into()));
    assert_eq!((none.verdict, none.why.as_str()), (Verdict::Fail, "no java is on PATH"));
    assert_eq!(heap(Err("too large".into())).verdict, Verdict::Fail);
    assert_eq!(heap(Ok("1 GiB".into())).value, "1 GiB");
    assert_eq!(ports(Ok("127.0.0.1:9042 is free".into())).verdict, Verdict::Ok);
    assert_eq!(ports(Err("taken by another".into())).verdict, Verdict::Fail);
}
