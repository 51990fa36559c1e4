//! Tests of the series: recorded operations in, names, counts and means out.

use super::*;
use units::Nanos;
use workload::ycsb::{Job, Line};

fn measurement(pairs: &[&str]) -> Measurement {
    let mut words = vec!["run", "basic", "-p", "workload=site.ycsb.workloads.CoreWorkload"];
    pairs.iter().for_each(|pair| words.extend(["-p", pair]));
    Job::read(&Line::parse(&words).unwrap()).unwrap().measurement
}

const US: u64 = 1000;

fn record(op: &mut OpRecord, outcome: Outcome, service_us: u64, response_us: u64) {
    let lag = Nanos((response_us - service_us) * US);
    op.record(outcome, Nanos(service_us * US), Nanos(response_us * US), lag);
}

/// Name, operations, mean in us and statuses of every series.
fn seen(view: &View<'_>, names: &[OpNames], ops: &[OpRecord]) -> Vec<String> {
    let cleanup = Latency::new();
    let told = all(view, names, ops, Some(&cleanup)).into_iter().map(|series| {
        let latency = series.latency.map_or("untimed".to_owned(), |latency| {
            format!("{} of {:.0}", latency.count(), latency.mean() / 1e3)
        });
        let returns = series.returns.iter().map(|(status, n)| format!(" {status}={n}"));
        format!("{} {latency}{}", series.name, returns.collect::<String>())
    });
    told.collect()
}

fn view(measurement: &Measurement) -> View<'_> {
    View { measurement, scheduled: true, verifies: false }
}

fn reads() -> (Vec<OpNames>, Vec<OpRecord>) {
    let mut read = OpRecord::new(0);
    (0..8).for_each(|_| record(&mut read, Outcome::Ok, 100, 300));
    record(&mut read, Outcome::NotFound, 50, 60);
    record(&mut read, Outcome::ClientTimeout, 9000, 9900);
    record(&mut read, Outcome::NotSent, 0, 500);
    (vec![OpNames::single("read")], vec![read])
}

#[test]
fn failures_have_a_series_of_their_own() {
    let (names, ops) = reads();
    let plain = measurement(&[]);
    assert_eq!(
        seen(&view(&plain), &names, &ops),
        ["READ 8 of 100 OK=8 NOT_FOUND=1 ERROR=1", "CLEANUP 0 of 0", "READ-FAILED 2 of 4525"]
    );
    for pairs in [["reportlatencyforeacherror=true"], ["latencytrackederrors=ERROR,NOT_FOUND"]] {
        let each = measurement(&pairs);
        assert_eq!(
            seen(&view(&each), &names, &ops),
            [
                "READ 8 of 100 OK=8 NOT_FOUND=1 ERROR=1",
                "READ-NOT_FOUND 1 of 50",
                "READ-ERROR 1 of 9000",
                "CLEANUP 0 of 0"
            ]
        );
    }
    let one = measurement(&["latencytrackederrors=NOT_FOUND"]);
    assert!(seen(&view(&one), &names, &ops).contains(&"READ-FAILED 1 of 9000".to_owned()));
}

#[test]
fn intended_times_are_those_from_the_schedule_if_there_is_one() {
    let (names, ops) = reads();
    let intended = measurement(&["measurement.interval=intended"]);
    assert_eq!(seen(&view(&intended), &names, &ops)[0], "READ 8 of 300 OK=8 NOT_FOUND=1 ERROR=1");
    let unscheduled = View { scheduled: false, ..view(&intended) };
    assert!(seen(&unscheduled, &names, &ops)[0].starts_with("READ 8 of 100 "));
    let both = measurement(&["measurement.interval=both"]);
    assert_eq!(
        seen(&view(&both), &names, &ops),
        [
            "READ 8 of 100 OK=8 NOT_FOUND=1 ERROR=1",
            "CLEANUP 0 of 0",
            "READ-FAILED 2 of 4525",
            "Intended-READ 8 of 300",
            "Intended-CLEANUP 0 of 0",
            "Intended-READ-FAILED 2 of 4975"
        ]
    );
}

#[test]
fn a_read_modify_write_is_three_series() {
    let mut rmw = OpRecord::new(2);
    for _ in 0..4 {
        record(&mut rmw, Outcome::Ok, 300, 400);
        rmw.record_part(0, Nanos(100 * US));
        rmw.record_part(1, Nanos(200 * US));
    }
    record(&mut rmw, Outcome::NotFound, 80, 90);
    let mut read = OpRecord::new(0);
    record(&mut read, Outcome::Ok, 600, 700);
    let parts = vec!["read".to_owned(), "update".to_owned()];
    let names = [OpNames::single("read"), OpNames { name: "read-modify-write".to_owned(), parts }];
    let plain = measurement(&[]);
    assert_eq!(
        seen(&view(&plain), &names, &[read, rmw]),
        [
            "READ 5 of 200 OK=5 NOT_FOUND=1",
            "READ-MODIFY-WRITE 5 of 256",
            "CLEANUP 0 of 0",
            "UPDATE 4 of 200 OK=4",
            "READ-FAILED 1 of 80"
        ]
    );
}

#[test]
fn what_was_read_back_is_counted_for_verify() {
    let mut read = OpRecord::new(0);
    (0..3).for_each(|_| record(&mut read, Outcome::Ok, 100, 100));
    record(&mut read, Outcome::Invalid, 100, 100);
    record(&mut read, Outcome::NotFound, 100, 100);
    let plain = measurement(&[]);
    let verifying = View { verifies: true, ..view(&plain) };
    let seen = seen(&verifying, &[OpNames::single("read")], &[read]);
    assert!(
        seen.contains(&"VERIFY untimed OK=3 UNEXPECTED_STATE=1 ERROR=1".to_owned()),
        "{seen:?}"
    );
    assert!(seen.iter().any(|line| line.starts_with("READ 4 of 100 OK=4 NOT_FOUND=1")), "{seen:?}");
}
