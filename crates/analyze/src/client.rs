//! Whether the client was the limit: its cpu, its lag, its bounds, and what its window leaves out.
//!
//! Input: the records of a window and the client's own counters. Output: caveats. Pure.
//!
//! Source: limits by their constants. Limits: a worker that waits for a cpu that somebody else has
//! is not busy by these counters; that shows as lag, as a busy host, and in the evidence of both.

use crate::figures::{Load, stats};
use crate::share::percent_raised;
use record::{Caveat, Latency, OpRecord};
use units::Nanos;

/// A worker that is busier than this share of the window may be what limits the result: a queue at
/// 80 % utilisation waits four times as long as it serves (M/M/1).
const BUSY_SHARE_MAX: f64 = 0.8;
/// Lag above this share of the response time is a part of the result, not noise in it; the same
/// quantile, the 99th, of both.
const LAG_SHARE_MAX: f64 = 0.1;
/// Lag that is no more than a timer's or a scheduler's is not worth a word, however fast the
/// target.
const LAG_MIN: Nanos = Nanos::from_micros(20);
/// Waiting for a cpu below this share of the window is that of any kernel.
const WAITED_SHARE_MIN: f64 = 0.01;
/// Share of a closed loop's window that may pass before its first operation falls due; as far as a
/// mean may be from Little's law.
const LATE_START_SHARE_MAX: f64 = 0.01;

/// What the client did in a window.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    /// Records by operation.
    pub ops: &'a [OpRecord],
    /// How it was driven.
    pub load: Load,
    /// Share of the window that each worker worked, polling apart.
    pub busy: &'a [f64],
    /// Share of the window that each worker was ready to work and others had its cpu.
    pub waited: &'a [f64],
    /// Whether workers poll until the next operation is due.
    pub polls: bool,
    /// Operations that may be in flight.
    pub in_flight_max: u64,
    /// How often a due operation found all of them taken.
    pub full_in_flight: u64,
    /// How often it found no stream id free on any connection.
    pub full_streams: u64,
    /// From the start of the window to the first operation that fell due in it.
    pub idle_start: Nanos,
    /// From the first operation that fell due to the last done.
    pub duration: Nanos,
}

/// What that says against the numbers.
#[must_use]
pub fn client_caveats(client: &Client<'_>) -> Vec<Caveat> {
    let bound = [in_flight_bound(client), streams_exhausted(client)];
    // Then it is known what kept operations from being sent, and it is not the client's speed.
    let explained = bound.iter().any(Option::is_some);
    let lag = if explained { None } else { lag(client) };
    let [in_flight, streams] = bound;
    [busy(client), lag, in_flight, streams, late_start(client)].into_iter().flatten().collect()
}

fn busy(client: &Client<'_>) -> Option<Caveat> {
    let workers = client.busy.iter().enumerate();
    let (worker, share) = workers.max_by(|a, b| a.1.total_cmp(b.1))?;
    (*share > BUSY_SHARE_MAX).then(|| {
        let share = percent_raised(*share);
        let text = format!(
            "A client thread was busy {share} of the time: the client may be the \
                            limit, not the target."
        );
        Caveat::new("client-busy", text)
            .evidence(format!(
                "worker {worker} of {}: {share} of the window on its cpu, polling left out; limit \
                 {:.0} %{}",
                client.busy.len(),
                BUSY_SHARE_MAX * 100.0,
                kept_waiting(client.waited)
            ))
            .cure("Give it more cpus with --client-cpus, or lower the load.")
    })
}

/// The worker that others kept from its cpu most, as the end of a sentence; empty where none was.
#[must_use]
pub fn kept_waiting(waited: &[f64]) -> String {
    let most = waited.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    most.filter(|(_, share)| **share > WAITED_SHARE_MIN).map_or(String::new(), |(worker, share)| {
        format!(
            "; others had the cpu of worker {worker} for {} of the window while it was ready to \
             run (schedstat)",
            percent_raised(*share)
        )
    })
}

fn merged(ops: &[OpRecord], of: fn(&OpRecord) -> &Latency) -> Latency {
    let mut all = Latency::new();
    ops.iter().for_each(|op| all.merge(of(op)));
    all
}

/// Also where the rate was missed and no response time is given: then it tells whose fault it was.
fn lag(client: &Client<'_>) -> Option<Caveat> {
    let (lag, response) = (merged(client.ops, |op| &op.lag), merged(client.ops, |op| &op.response));
    let (lag, response) = (lag.quantile(0.99), response.quantile(0.99));
    let share = lag.0 as f64 / (response.0 as f64).max(1.0);
    (lag > LAG_MIN && share > LAG_SHARE_MAX).then(|| {
        let text = "Operations were sent late: a good part of the response time is the client's \
                    own delay, not the target's.";
        Caveat::new("client-lag", text)
            .evidence(format!(
                "lag p99 {:.1} us is {} of response p99 {:.1} us; limit {:.0} %{}",
                lag.0 as f64 / 1e3,
                percent_raised(share),
                response.0 as f64 / 1e3,
                LAG_SHARE_MAX * 100.0,
                kept_waiting(client.waited)
            ))
            .cure(match client.polls {
                true => {
                    "Give the client cpus of its own, or more of them, with --client-cpus; service \
                     time is without the delay."
                }
                false => {
                    "Give the client cpus of its own with --client-cpus and let it poll with \
                     --wait spin; service time is without the delay."
                }
            })
    })
}

/// Little's law (J. D. C. Little, 1961): operations in flight = rate x service time.
fn in_flight_bound(client: &Client<'_>) -> Option<Caveat> {
    let Load::Open { rate_s, .. } = client.load else { return None };
    if client.full_in_flight == 0 {
        return None;
    }
    let bound = client.in_flight_max;
    let service = stats(&merged(client.ops, |op| &op.service));
    let needed = service.map(|s| (rate_s * s.mean / 1e6).ceil());
    let too_few = needed.is_some_and(|needed| needed > bound as f64 * 0.9);
    let text = match too_few {
        true => {
            "The bound of operations in flight is too low for this rate: operations waited to be \
             sent, and lag and response time hold that wait."
        }
        false => {
            "The bound of operations in flight was full at times, as in a stall of the target: \
             what fell due then waited, and lag and response time hold that wait."
        }
    };
    let needed = needed.map_or(String::new(), |needed| {
        format!("; {rate_s}/s x the mean service time needs {needed:.0}")
    });
    let times = client.full_in_flight;
    Some(
        Caveat::new("in-flight-bound", text)
            .evidence(format!("found full {times} times at {bound} in flight{needed}"))
            .cure("Raise --in-flight-max (or --threads), or lower --rate."),
    )
}

fn streams_exhausted(client: &Client<'_>) -> Option<Caveat> {
    let times = client.full_streams;
    (times > 0).then(|| {
        let text = "All connections had as many requests under way as they may: operations waited \
                    for one of them, which is in lag and response time.";
        Caveat::new("streams-exhausted", text)
            .evidence(format!(
                "found so {times} times; a connection has 32768 stream ids of CQL, or one request \
                 of Aerospike's protocol"
            ))
            .cure("Give more --connections.")
    })
}

/// In a closed loop nobody is due while all wait: a stall that begins in the warm-up and ends in
/// the window is in no operation of the window.
fn late_start(client: &Client<'_>) -> Option<Caveat> {
    if matches!(client.load, Load::Open { .. }) {
        return None;
    }
    let share = client.idle_start.0 as f64 / (client.duration.0 as f64).max(1.0);
    (share > LATE_START_SHARE_MAX).then(|| {
        let stood_s = client.idle_start.as_secs_f64();
        let text = format!(
            "For the first {stood_s:.2} s of the window every client waited for operations of the \
             warm-up: that stall is in no latency, and ops_s leaves its time out."
        );
        Caveat::new("late-start", text)
            .evidence(format!(
                "the first operation of the window fell due {stood_s:.3} s after its start"
            ))
            .cure("Warm up longer with --warm, or measure at a schedule with --rate.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Outcome;

    fn ops(lag: Nanos, service: Nanos) -> Vec<OpRecord> {
        let mut op = OpRecord::new(0);
        (0..1000).for_each(|_| op.record(Outcome::Ok, service, lag + service, lag));
        vec![op]
    }

    const OPEN: Load = Load::Open { rate_s: 1000.0, scheduled: 1000, done_in_window: 1000 };

    fn client(ops: &[OpRecord]) -> Client<'_> {
        Client {
            ops,
            load: OPEN,
            busy: &[0.1, 0.8],
            waited: &[0.0, 0.01],
            polls: true,
            in_flight_max: 64,
            full_in_flight: 0,
            full_streams: 0,
            idle_start: Nanos::ZERO,
            duration: Nanos::from_secs(1),
        }
    }

    fn codes(client: &Client<'_>) -> Vec<String> {
        client_caveats(client).into_iter().map(|c| c.code).collect()
    }

    #[test]
    fn a_client_at_its_ease_says_nothing() {
        let ops = ops(Nanos::from_micros(90), Nanos::from_millis(1));
        assert_eq!(codes(&client(&ops)), [""; 0]);
        assert_eq!(codes(&client(&[])), [""; 0]);
    }

    #[test]
    fn the_busiest_worker_is_named() {
        let ops = ops(Nanos::ZERO, Nanos::from_millis(1));
        let busy = Client { busy: &[0.1, 0.8004, 0.3], ..client(&ops) };
        let caveats = client_caveats(&busy);
        assert_eq!(caveats[0].code, "client-busy");
        assert!(caveats[0].text.contains("80.1 %"), "{caveats:?}");
        assert!(caveats[0].evidence.starts_with("worker 1 of 3"), "{caveats:?}");
        assert!(!caveats[0].evidence.contains("schedstat"), "{caveats:?}");
        let kept = Client { waited: &[0.3, 0.02, 0.0], ..busy };
        let evidence = client_caveats(&kept).remove(0).evidence;
        assert!(evidence.contains("cpu of worker 0 for 30.0 % of the window"), "{evidence}");
    }

    #[test]
    fn lag_counts_beside_the_response_time_unless_a_bound_explains_it() {
        let late = ops(Nanos::from_micros(200), Nanos::from_millis(1));
        assert_eq!(codes(&client(&late)), ["client-lag"]);
        // What is done already is no cure.
        let cure = |polls| client_caveats(&Client { polls, ..client(&late) }).remove(0).cure;
        assert!(cure(false).contains("--wait spin") && !cure(true).contains("--wait"));
        // Microseconds of a timer at a target that answers in microseconds.
        assert_eq!(codes(&client(&ops(Nanos::from_micros(15), Nanos::from_micros(30)))), [""; 0]);
        let bound = Client { full_in_flight: 3, ..client(&late) };
        assert_eq!(codes(&bound), ["in-flight-bound"]);
        let streams =
            Client { full_streams: 1, load: Load::Closed { threads: 4 }, ..client(&late) };
        assert_eq!(codes(&streams), ["streams-exhausted"]);
    }

    #[test]
    fn a_bound_below_littles_law_is_told_from_a_stall() {
        let slow = ops(Nanos::ZERO, Nanos::from_millis(100));
        let text = |ops: &[OpRecord]| {
            client_caveats(&Client { full_in_flight: 1, ..client(ops) }).remove(0)
        };
        // 1000/s x 100 ms = 100 in flight.
        let bound = text(&slow);
        assert!(bound.text.contains("too low") && bound.evidence.contains("needs 10"), "{bound:?}");
        let stall = text(&ops(Nanos::ZERO, Nanos::from_millis(1)));
        assert!(stall.text.contains("at times") && stall.evidence.contains("needs 1"), "{stall:?}");
        let closed = Client { full_in_flight: 1, load: Load::Throttled, ..client(&slow) };
        assert_eq!(codes(&closed), [""; 0]);
    }

    #[test]
    fn a_stall_before_the_first_operation_is_no_ones_latency() {
        let ops = ops(Nanos::ZERO, Nanos::from_millis(1));
        let idle_start = Nanos::from_millis(11);
        let closed = Client { idle_start, load: Load::Closed { threads: 4 }, ..client(&ops) };
        assert_eq!(codes(&closed), ["late-start"]);
        assert_eq!(codes(&Client { idle_start: Nanos::from_millis(10), ..closed }), [""; 0]);
        assert_eq!(codes(&Client { load: OPEN, ..closed }), [""; 0]);
    }
}
