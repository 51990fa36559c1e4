//! The data plane over Aerospike's protocol: what is loaded is read, what is late costs its
//! connection, and an operation that fails is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, OpDone, Unwitnessed, Witness};
use record::Outcome;
use rig::{closed, drive, load, ok, open, ops, plan, records, run, serve_records};
use std::io::Read;
use std::net::TcpListener;
use units::Nanos;
use wire::aerospike::RecordExists;

/// What is measured, by outcome.
fn outcomes(driven: &drive::Driven, outcome: Outcome) -> u64 {
    driven.total.ops.iter().map(|op| op.count(outcome)).sum()
}

#[test]
fn what_was_loaded_is_read_updated_and_verified() {
    let target = serve_records(|config| config.threads = 2);
    let integrity = ["dataintegrity=true", "fieldlengthdistribution=constant", "fieldlength=32"];
    for update in [RecordExists::Update, RecordExists::ReplaceOnly] {
        for workload in ["a", "c", "d", "f"] {
            let plan = plan(workload, &integrity, 500, None);
            let encoder = records(&plan, update);
            let mut loading = drive(target.local_addr(), &encoder, 2, drive::Load::every_key(32));
            loading.connections = 32;
            let (loaded, ..) = run(&loading, vec![Unwitnessed; 2]);
            // Whoever loads twice creates nothing.
            let created = [500, 0].contains(&ok(&loaded)) || workload == "d";
            assert!(created && ops(&loaded) == 500, "{:?}", loaded.first_error);
            let load = closed(20, Amount::Ops(4000));
            let mut drive = drive(target.local_addr(), &encoder, 2, load);
            drive.connections = 20;
            let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
            let inserts = if workload == "d" { outcomes(&driven, Outcome::Error) } else { 0 };
            assert_eq!(ok(&driven) + inserts, 4000, "{workload}: {:?}", driven.first_error);
        }
    }
}

#[test]
fn fewer_connections_than_operations_make_a_queue() {
    let target = serve_records(|_| {});
    let plan = plan("c", &[], 100, None);
    let encoder = records(&plan, RecordExists::Update);
    assert_eq!(ok(&load(target.local_addr(), &encoder, 1)), 100);
    let mut drive = drive(target.local_addr(), &encoder, 1, closed(64, Amount::Ops(5000)));
    drive.connections = 3;
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    assert_eq!(ok(&driven), 5000, "{:?}", driven.first_error);
    assert!(driven.usage[0].full_streams > 0, "it is told what the bound was");
}

#[test]
fn what_is_missing_or_there_already_has_an_outcome_of_its_own() {
    let target = serve_records(|_| {});
    let plan = plan("a", &["readproportion=0", "updateproportion=1"], 100, None);
    let encoder = records(&plan, RecordExists::ReplaceOnly);
    let run_it = || {
        run(&drive(target.local_addr(), &encoder, 1, closed(2, Amount::Ops(50))), vec![Unwitnessed])
            .0
    };
    assert_eq!(outcomes(&run_it(), Outcome::NotFound), 50);
    assert_eq!(ok(&load(target.local_addr(), &encoder, 1)), 100);
    assert_eq!(ok(&run_it()), 50);
    let again = load(target.local_addr(), &encoder, 1);
    assert_eq!(outcomes(&again, Outcome::Error), 100);
    assert_eq!(again.first_error.as_deref(), Some("record exists (5)"));
}

/// Service times of what timed out.
#[derive(Default)]
struct TimedOut(Vec<Nanos>);

impl Witness for TimedOut {
    fn op(&mut self, done: OpDone) {
        if done.outcome == Outcome::ClientTimeout {
            self.0.push(done.done.since(done.sent.unwrap()));
        }
    }
}

#[test]
fn a_request_that_times_out_costs_its_connection_and_nothing_else() {
    // One answer in some dozen comes a second late: nobody is there for it any more.
    let target = serve_records(|config| {
        config.faults.shares = vec!["late:1s=3%".parse().unwrap()];
    });
    let plan = plan("c", &[], 50, None);
    let encoder = records(&plan, RecordExists::Update);
    let mut loading = drive(target.local_addr(), &encoder, 1, drive::Load::every_key(50));
    loading.connections = 50;
    assert_eq!(ok(&run(&loading, vec![Unwitnessed]).0), 50);
    let mut drive = drive(target.local_addr(), &encoder, 1, closed(16, Amount::Ops(600)));
    (drive.connections, drive.timeout) = (16, Nanos::from_millis(100));
    let (driven, witnesses, _) = run(&drive, vec![TimedOut::default()]);
    let late = outcomes(&driven, Outcome::ClientTimeout);
    assert!(late > 0 && ok(&driven) == 600 - late, "{late} of {:?}", driven.first_error);
    let usage = &driven.usage[0];
    assert_eq!((usage.connections_replaced, usage.connections_lost, usage.late), (late, 0, 0));
    let TimedOut(times) = &witnesses[0];
    assert_eq!(times.len() as u64, late);
    assert!(times.iter().all(|&time| time >= drive.timeout), "{times:?}");
}

#[test]
fn what_makes_no_sense_ends_the_connection_with_a_reason() {
    use std::io::Write;
    for (answer, says) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "no answer of Aerospike's protocol"),
        (&[2, 3, 0, 0, 0, 0, 0, 2, 22, 0], "no message on a record"),
        (&[2, 3, 0, 0, 0, 0, 0, 6, 21, 0, 0, 0, 0, 0], "another size"),
        (&[2, 3, 0, 0, 255, 255, 255, 255], "no answer of Aerospike's protocol"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let mut request = [0; 512];
                // An empty one tells that the test is over.
                if stream.read(&mut request).is_ok_and(|size| size == 0) {
                    return;
                }
                let _ = stream.write_all(answer);
            }
        });
        let encoder = records(&plan("c", &[], 10, None), RecordExists::Update);
        let mut drive = drive(address, &encoder, 1, closed(1, Amount::Ops(2)));
        drive.connections = 1;
        let (driven, ..) = run(&drive, vec![Unwitnessed]);
        assert_eq!(outcomes(&driven, Outcome::ConnectionLost), 2, "{says}");
        let said = driven.first_error.unwrap();
        assert!(said.contains(says), "{said} is not {says}");
        drop(std::net::TcpStream::connect(address));
        thread.join().unwrap();
    }
}

#[test]
fn an_open_loop_goes_over_as_many_connections_as_it_needs() {
    let target = serve_records(|_| {});
    let plan = plan("c", &[], 100, None);
    let encoder = records(&plan, RecordExists::Update);
    assert_eq!(ok(&load(target.local_addr(), &encoder, 1)), 100);
    let amount = Amount::Duration(Nanos::from_millis(500));
    let mut drive = drive(target.local_addr(), &encoder, 1, open("2k/s", amount, 64));
    drive.connections = 64;
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    assert_eq!(ok(&driven), 1000, "{:?}", driven.first_error);
}
