//! Targets that stall, answer late, break off, answer nonsense or never come back: counted,
//! bounded, survived.
//!
//! The targets here are mocks: a thread that speaks just enough CQL and misbehaves as the test
//! says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, DriveError, Driven, Encoder, Ended, Unwitnessed};
use record::Outcome;
use rig::{SECOND, closed, drive, open, ops, plan, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;
use units::{Nanos, clock};
use wire::cql::{Consistency, HEADER_SIZE, Header, Opcode, put};

/// What a mock does with the nth request of a connection (STARTUP is not counted).
#[derive(Clone, Copy)]
enum Act {
    Answer,
    /// The answer comes after so long.
    Delay(Duration),
    Swallow,
    Hang,
    Close,
    /// An ERROR frame with this code.
    Fail(i32),
    /// An answer on a stream that was never used.
    Stray,
    Garbage,
}

struct Mock {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
    }
}

fn mock(act: impl Fn(usize) -> Act + Send + Sync + Clone + 'static) -> Mock {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, stopped) = (requests.clone(), stop.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let (act, counted) = (act.clone(), counted.clone());
            std::thread::spawn(move || serve(stream.unwrap(), &act, &counted));
        }
    });
    Mock { address, requests, stop }
}

fn void(stream: i16) -> Vec<u8> {
    let mut frame = Vec::new();
    Header::response(stream, Opcode::Result).frame(&mut frame, |out| put::i32(out, 1));
    frame
}

/// None when the connection is over.
fn serve(mut stream: TcpStream, act: &impl Fn(usize) -> Act, counted: &AtomicUsize) -> Option<()> {
    stream.set_nodelay(true).unwrap();
    loop {
        let mut head = [0u8; HEADER_SIZE];
        stream.read_exact(&mut head).ok()?;
        let header = Header::decode(&head).unwrap().unwrap();
        let mut body = vec![0u8; header.body_size];
        stream.read_exact(&mut body).ok()?;
        if header.opcode == Opcode::Startup as u8 {
            let ready = Header::response(header.stream, Opcode::Ready).encode();
            stream.write_all(&ready).ok()?;
            continue;
        }
        match act(counted.fetch_add(1, Ordering::Relaxed)) {
            // Byte by byte: frames arrive split.
            Act::Answer => {
                let frame = void(header.stream);
                stream.write_all(&frame[..5]).ok()?;
                stream.write_all(&frame[5..]).ok()?;
            }
            Act::Delay(time) => {
                let mut stream = stream.try_clone().unwrap();
                std::thread::spawn(move || {
                    sleep(time);
                    stream.write_all(&void(header.stream))
                });
            }
            Act::Swallow => {}
            Act::Hang => sleep(Duration::from_secs(3600)),
            Act::Close => return None,
            Act::Fail(code) => {
                let mut frame = Vec::new();
                Header::response(header.stream, Opcode::Error).frame(&mut frame, |out| {
                    wire::cql::response::put_error(out, wire::cql::ErrorCode(code), "as told");
                });
                stream.write_all(&frame).ok()?;
            }
            Act::Stray => stream.write_all(&void(31_000)).ok()?,
            Act::Garbage => stream.write_all(&[0xff; 64]).ok()?,
        }
    }
}

/// Updates only: any id will do for a mock.
fn encoder() -> Arc<Encoder> {
    let plan = plan("a", &["readproportion=0", "updateproportion=1", "fieldcount=1"], 100, None);
    let ids = vec![b"0123456789abcdef".to_vec(); plan.statements.len()];
    Arc::new(Encoder::new(plan, &rig::table(), &ids, Consistency::One))
}

fn count(driven: &Driven, outcome: Outcome) -> u64 {
    driven.total.ops.iter().map(|op| op.count(outcome)).sum()
}

#[test]
fn frames_that_arrive_in_pieces_are_put_together() {
    let mock = mock(|_| Act::Answer);
    let (driven, ..) = run(
        &drive(mock.address, &encoder(), 2, closed(32, Amount::Ops(5000))),
        vec![Unwitnessed; 2],
    );
    assert_eq!(count(&driven, Outcome::Ok), 5000);
    assert_eq!(mock.requests.load(Ordering::Relaxed), 5000);
}

#[test]
fn error_codes_become_outcome_classes() {
    for (code, outcome) in [
        (0x1000, Outcome::Unavailable),
        (0x1001, Outcome::Overloaded),
        (0x1100, Outcome::ServerTimeout),
        (0x1200, Outcome::ServerTimeout),
        (0x0000, Outcome::Error),
        (0x2200, Outcome::Error),
    ] {
        let mock = mock(move |n| if n % 10 == 0 { Act::Fail(code) } else { Act::Answer });
        let (driven, ..) = run(
            &drive(mock.address, &encoder(), 1, closed(4, Amount::Ops(1000))),
            vec![Unwitnessed],
        );
        assert_eq!((count(&driven, outcome), count(&driven, Outcome::Ok)), (100, 900), "{code:#x}");
    }
}

#[test]
fn retries_go_on_until_they_are_used_up_and_service_time_runs_from_the_first() {
    let mock = mock(|n| if n % 2 == 0 { Act::Fail(0x1001) } else { Act::Answer });
    let mut drive = drive(mock.address, &encoder(), 1, closed(1, Amount::Ops(50)));
    drive.retries = 1;
    drive.retry_pause = drive::RetryPause::constant(Nanos::from_millis(2));
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    assert_eq!(count(&driven, Outcome::Ok), 50);
    assert_eq!(mock.requests.load(Ordering::Relaxed), 100);
    assert!(driven.total.ops[0].service.min() >= Nanos::from_millis(2));
    drive.retries = 0;
    assert_eq!(count(&run(&drive, vec![Unwitnessed]).0, Outcome::Overloaded), 25);
}

#[test]
fn answers_after_the_timeout_are_counted_late_and_their_streams_are_not_reused_before() {
    // Every tenth answer comes after the timeout.
    let late = Duration::from_millis(300);
    let mock = mock(move |n| if n % 10 == 0 { Act::Delay(late) } else { Act::Answer });
    let mut drive =
        drive(mock.address, &encoder(), 1, open("500/s", Amount::Duration(SECOND), 4096));
    drive.timeout = Nanos::from_millis(100);
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    assert_eq!((count(&driven, Outcome::ClientTimeout), count(&driven, Outcome::Ok)), (50, 450));
    let late: u64 = driven.usage.iter().map(|u| u.late).sum();
    assert!((30..=50).contains(&late), "{late}");
    // A timeout stands in the headline at its real length.
    let max = driven.total.ops[0].service.max();
    let late_answer = Nanos::from_millis(300);
    assert!(max >= drive.timeout && max < late_answer, "{max}");
}

#[test]
fn a_connection_that_breaks_is_opened_again_and_its_operations_are_counted() {
    for act in [Act::Close, Act::Garbage, Act::Stray] {
        let mock = mock(move |n| if n % 200 == 150 { act } else { Act::Answer });
        let mut drive = drive(mock.address, &encoder(), 1, closed(8, Amount::Ops(1000)));
        drive.timeout = SECOND;
        let (driven, ..) = run(&drive, vec![Unwitnessed]);
        assert_eq!(ops(&driven), 1000);
        let lost = count(&driven, Outcome::ConnectionLost);
        assert!((1..=80).contains(&lost), "{lost}");
        assert_eq!(count(&driven, Outcome::Ok), 1000 - lost);
        assert!(driven.usage[0].connections_lost >= 4);
    }
}

#[test]
fn a_stall_shows_in_response_and_lag_and_every_operation_is_done() {
    // In the middle nothing is read for 400 ms: what was due meanwhile waits.
    let stall_at = 500;
    let mock = mock(move |n| {
        if n == stall_at {
            sleep(Duration::from_millis(400));
        }
        Act::Answer
    });
    let mut drive =
        drive(mock.address, &encoder(), 1, open("1000/s", Amount::Duration(SECOND), 16));
    drive.connections = 1;
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    let op = &driven.total.ops[0];
    assert_eq!(count(&driven, Outcome::Ok), 1000);
    // 40 % of the operations were due while it stood; 16 were in flight, the others waited unsent.
    assert!(op.response.quantile(0.9) > Nanos::from_millis(250), "{}", op.response.quantile(0.9));
    assert!(op.lag.quantile(0.9) > Nanos::from_millis(250));
    assert!(op.service.quantile(0.9) < Nanos::from_millis(50));
}

#[test]
fn what_was_due_and_never_sent_is_counted_when_the_drain_ends() {
    let mock = mock(|n| if n < 100 { Act::Answer } else { Act::Hang });
    let mut drive =
        drive(mock.address, &encoder(), 1, open("1000/s", Amount::Duration(SECOND), 10));
    drive.connections = 1;
    drive.timeout = Nanos::from_millis(500);
    let started = clock::now();
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    assert!(clock::now() - started < Nanos::from_secs(4));
    assert_eq!(ops(&driven), 1000, "outcomes sum to what was scheduled");
    assert_eq!(count(&driven, Outcome::Ok), 100);
    assert!(count(&driven, Outcome::ClientTimeout) >= 10);
    assert!(count(&driven, Outcome::NotSent) > 0);
    // A timeout is one: what was sent late in the drain was waited for as long as anything else.
    let timeouts = driven.total.ops[0].class(Outcome::ClientTimeout).unwrap();
    assert!(timeouts.min().0 as f64 >= drive.timeout.0 as f64 * 0.99, "{}", timeouts.min());
}

#[test]
fn a_target_that_never_answers_is_given_up() {
    let mock = mock(|_| Act::Swallow);
    for load in [
        closed(8, Amount::Ops(1_000_000)),
        open("1000/s", Amount::Duration(Nanos::from_secs(60)), 100),
    ] {
        let mut drive = drive(mock.address, &encoder(), 1, load);
        drive.timeout = Nanos::from_millis(200);
        drive.give_up = Nanos::from_millis(700);
        let started = clock::now();
        let (driven, ..) = run(&drive, vec![Unwitnessed]);
        assert_eq!(driven.ended, Ended::GaveUp);
        assert_eq!(count(&driven, Outcome::Ok), 0);
        assert!(clock::now() - started < Nanos::from_secs(4));
    }
}

#[test]
fn stopping_ends_soon_and_keeps_what_was_done() {
    let mock = mock(|_| Act::Answer);
    let drive =
        drive(mock.address, &encoder(), 2, closed(8, Amount::Duration(Nanos::from_secs(60))));
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            sleep(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
        })
    };
    let started = clock::now();
    let mut counts = rig::Counts::default();
    let (driven, _) = drive::run(&drive, vec![Unwitnessed; 2], &mut counts, &stop).unwrap();
    stopper.join().unwrap();
    assert!(clock::now() - started < Nanos::from_secs(4));
    assert_eq!(driven.ended, Ended::Stopped);
    assert!(count(&driven, Outcome::Ok) > 100);
    assert_eq!(counts.0.iter().sum::<u64>(), ops(&driven));
}

#[test]
fn a_target_that_cannot_be_connected_to_or_stays_mute_is_an_error_at_once() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    for (address, word) in [(unused, "refused"), (mute.local_addr().unwrap(), "ready within")] {
        let mut drive = drive(address, &encoder(), 2, closed(8, Amount::Ops(10)));
        drive.timeout = Nanos::from_millis(300);
        let stop = Arc::new(AtomicBool::new(false));
        let mut counts = rig::Counts::default();
        let error = drive::run(&drive, vec![Unwitnessed; 2], &mut counts, &stop).unwrap_err();
        assert!(matches!(error, DriveError::Link(_)), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}
