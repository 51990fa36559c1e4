//! What happened in a run, and when: stretches of the interval log and of the counters that stand
//! out.
//!
//! Input: every interval of `latency.hlog` as a [`Moment`], the counters, and what `events.csv`
//! tells of the target; output: events with
//! their time in seconds since the start of the window, in the order of time. They are found in
//! the intervals as written, not in the bins that are drawn: a pause of one second is found in a
//! run of twelve hours.
//!
//! Limits: what is shorter than an interval shows in its maximum only. With more events than
//! [`EVENTS_MAX`] the worst are kept, and the others counted.

use crate::counters::Metric;
use crate::number::{grouped, latency, percent, short};
use crate::series::{LAST_SHARE_MIN, Moment};
use record::Outcome;
use record::events::EventKind;

/// Events that are listed.
pub(crate) const EVENTS_MAX: usize = 30;
/// An interval whose p99 is so many times the median interval's is slow.
const SLOW_FACTOR: f64 = 5.0;
/// An interval with less than this share of the median interval's throughput is a drop.
const DROP_SHARE: f64 = 0.5;
/// Fewer intervals have no usual one.
const INTERVALS_MIN: usize = 5;
/// When more than this share of the intervals stands out, that is how the run was, not an event.
const USUAL_SHARE: f64 = 0.3;
/// Share of an interval's operations that failed; fewer are seen in the plot of failures.
const ERRORS_MIN: f64 = 0.01;
/// Time that other guests took, as a share.
const STEAL_MIN: f64 = 0.01;

/// What an event is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// No operation ended, in whatever way.
    Nothing,
    /// Operations ended, none of them ok.
    NoSuccess,
    /// A connection broke.
    ConnectionsLost,
    /// More than a few operations did not end ok.
    Errors,
    /// Hosts came or went.
    Ring,
    /// The table was changed.
    Schema,
    /// A host was up or down, says the target.
    Status,
    /// Far below the usual throughput.
    Drop,
    /// Far above the usual p99.
    Slow,
    /// Answers behind their timeout.
    Late,
    /// Another guest had the cpu.
    Steal,
}

impl Kind {
    /// Whether operations failed, or nothing went on.
    pub(crate) fn is_bad(self) -> bool {
        self <= Self::Errors
    }

    /// The term of the glossary.
    pub(crate) fn term(self) -> &'static str {
        match self {
            Self::Nothing => "nothing done",
            Self::NoSuccess => "no success",
            Self::ConnectionsLost => "connections lost",
            Self::Errors => "many errors",
            Self::Ring => "ring change",
            Self::Schema => "schema change",
            Self::Status => "host status",
            Self::Drop => "throughput drop",
            Self::Slow => "slow",
            Self::Late => "late answers",
            Self::Steal => "steal",
        }
    }
}

/// Something that happened in a stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) text: String,
}

/// The events of a trial in the order of time, and how many more there were.
pub(crate) fn find(
    moments: &[Moment],
    counters: &[Metric],
    told: &[record::events::Event],
) -> (Vec<Event>, usize) {
    let mut events = pauses(moments);
    events.extend(told.iter().filter(|event| event.t_s >= 0.0).map(of_target));
    events.extend(stretches(moments, Kind::NoSuccess, |m| m.ok() == 0, no_success_text));
    let failing = |m: &Moment| m.ok() > 0 && m.errors() as f64 > m.ok() as f64 * ERRORS_MIN;
    events.extend(stretches(moments, Kind::Errors, failing, errors_text));
    events.extend(unusual(moments));
    let counted = |kind, metric: &str, what| counted(counters, kind, metric, what);
    events.extend(counted(Kind::ConnectionsLost, "connections_lost", "broken connections"));
    events.extend(counted(Kind::Late, "late", "answers behind their timeout"));
    events.extend(steal(counters));
    let length_s = |event: &Event| event.to_s - event.from_s;
    events.sort_by(|a, b| a.kind.cmp(&b.kind).then(length_s(b).total_cmp(&length_s(a))));
    let more = events.len().saturating_sub(EVENTS_MAX);
    events.truncate(EVENTS_MAX);
    events.sort_by(|a, b| a.from_s.total_cmp(&b.from_s).then(a.kind.cmp(&b.kind)));
    (events, more)
}

/// What was learnt of the target at a moment.
fn of_target(told: &record::events::Event) -> Event {
    let kind = match told.kind {
        EventKind::Ring | EventKind::Unread => Kind::Ring,
        EventKind::Schema => Kind::Schema,
        EventKind::Status => Kind::Status,
    };
    // A moment has to be wide enough to be hit.
    Event { kind, from_s: told.t_s, to_s: told.t_s + 1.0, text: told.text.clone() }
}

/// Holes between intervals: an interval without any sample has no line in the log.
fn pauses(moments: &[Moment]) -> Vec<Event> {
    let starts = std::iter::once(0.0).chain(moments.iter().map(|m| m.to_s));
    let holes = starts.zip(moments).filter_map(|(end_s, next)| {
        let missing_s = next.from_s - end_s;
        let interval_s = next.to_s - next.from_s;
        (missing_s > interval_s.max(1e-3) / 2.0).then(|| Event {
            kind: Kind::Nothing,
            from_s: end_s,
            to_s: next.from_s,
            text: format!(
                "For {} s no operation ended: the target or the way to it stood still, or the \
                 client did",
                short(missing_s)
            ),
        })
    });
    holes.collect()
}

/// Consecutive intervals for which `matches` holds, as one event each.
fn stretches(
    moments: &[Moment],
    kind: Kind,
    matches: impl Fn(&Moment) -> bool,
    text: impl Fn(&[Moment]) -> String,
) -> Vec<Event> {
    let adjacent = |a: &Moment, b: &Moment| {
        matches(a) == matches(b) && b.from_s - a.to_s < (a.to_s - a.from_s) / 2.0
    };
    let runs = moments.chunk_by(adjacent).filter(|run| run.first().is_some_and(&matches));
    let event = |run: &[Moment]| {
        let (first, last) = (run.first()?, run.last()?);
        Some(Event { kind, from_s: first.from_s, to_s: last.to_s, text: text(run) })
    };
    runs.filter_map(event).collect()
}

fn no_success_text(run: &[Moment]) -> String {
    format!("No operation succeeded: {}", failures(run))
}

fn errors_text(run: &[Moment]) -> String {
    format!("Operations failed: {}", failures(run))
}

/// `overloaded 20, client timeout 3`.
fn failures(run: &[Moment]) -> String {
    let of = |outcome: Outcome| run.iter().map(|m| m.outcomes[outcome.index()]).sum::<u64>();
    let counts = Outcome::ALL.into_iter().skip(1).map(|o| (o, of(o))).filter(|(_, n)| *n > 0);
    let texts: Vec<_> =
        counts.map(|(o, n)| format!("{} {}", o.name().replace('_', " "), grouped(n))).collect();
    texts.join(", ")
}

/// Intervals far from the usual one: slow ones, and such in which little was done.
fn unusual(moments: &[Moment]) -> Vec<Event> {
    let lengths = median(moments.iter().map(|m| m.to_s - m.from_s));
    let full = |m: &Moment| m.to_s - m.from_s >= lengths * LAST_SHARE_MIN && m.ok() > 0;
    let whole: Vec<Moment> = moments.iter().filter(|m| full(m)).cloned().collect();
    if whole.len() < INTERVALS_MIN {
        return Vec::new();
    }
    let (p99_us, ok_s) =
        (median(whole.iter().map(|m| m.p99_us)), median(whole.iter().map(Moment::ok_s)));
    let slow = stretches(
        &whole,
        Kind::Slow,
        |m| m.p99_us > p99_us * SLOW_FACTOR,
        |run| {
            let worst = run.iter().map(|m| m.p99_us).fold(0.0, f64::max);
            format!(
                "p99 of the service time up to {}, {} times that of the median interval",
                latency(worst),
                short(worst / p99_us)
            )
        },
    );
    let drops = stretches(
        &whole,
        Kind::Drop,
        |m| m.ok_s() < ok_s * DROP_SHARE,
        |run| {
            let least = run.iter().map(Moment::ok_s).fold(f64::INFINITY, f64::min);
            format!("Throughput down to {} of the median interval's", percent(least / ok_s))
        },
    );
    let usual = whole.len() as f64 * USUAL_SHARE;
    let rare = |events: Vec<Event>| if events.len() as f64 > usual { Vec::new() } else { events };
    [rare(slow), rare(drops)].concat()
}

/// Counts of a metric above 0, the sources of one moment together.
fn counted(counters: &[Metric], kind: Kind, metric: &str, what: &str) -> Vec<Event> {
    let found = counters.iter().find(|counter| counter.name() == metric);
    let rows = found.map(Metric::values).unwrap_or_default();
    let mut events: Vec<Event> = Vec::new();
    let mut before_s = 0.0;
    for together in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some((t_s, _)) = together.first().copied() else { continue };
        let from_s = std::mem::replace(&mut before_s, t_s);
        let count: f64 = together.iter().map(|row| row.1).filter(|value| *value > 0.0).sum();
        if count > 0.0 {
            let text = format!("{what}: {}", short(count));
            events.push(Event { kind, from_s, to_s: t_s, text });
        }
    }
    events
}

/// Stretches in which a host says that other guests took more than a little.
fn steal(counters: &[Metric]) -> Vec<Event> {
    let is_steal = |c: &&Metric| c.name().contains("steal") && c.unit_name() == "share";
    let rows = counters.iter().find(is_steal).map(Metric::values).unwrap_or_default();
    let high = rows.chunk_by(|a, b| (a.1 > STEAL_MIN) == (b.1 > STEAL_MIN));
    let event = |run: &[(f64, f64)]| {
        let (first, last) = (run.first()?, run.last()?);
        let worst = run.iter().map(|row| row.1).fold(0.0, f64::max);
        let text = format!("Other guests had up to {} of the cpu time", percent(worst));
        let (from_s, to_s) = (first.0, last.0);
        (worst > STEAL_MIN).then_some(Event { kind: Kind::Steal, from_s, to_s, text })
    };
    high.filter_map(event).collect()
}

/// The middle value; 0 without any.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use record::table::Counter;

    fn moment(second: u64, ok: u64, errors: u64, p99_us: f64) -> Moment {
        let mut outcomes = [0; Outcome::COUNT];
        outcomes[Outcome::Ok.index()] = ok;
        outcomes[Outcome::Overloaded.index()] = errors;
        Moment { from_s: second as f64, to_s: second as f64 + 1.0, outcomes, p99_us }
    }

    fn kinds(events: &[Event]) -> Vec<(Kind, f64, f64)> {
        events.iter().map(|e| (e.kind, e.from_s, e.to_s)).collect()
    }

    #[test]
    fn a_steady_run_has_no_events() {
        let moments: Vec<_> =
            (0..60).map(|s| moment(s, 1000 + s % 7, 0, 500.0 + s as f64)).collect();
        assert_eq!(find(&moments, &[], &[]), (Vec::new(), 0));
    }

    #[test]
    fn pauses_failures_and_slow_intervals_are_found() {
        let mut moments: Vec<_> = (0..60).map(|s| moment(s, 1000, 0, 500.0)).collect();
        moments[10] = moment(10, 950, 50, 500.0);
        // Fewer than one in a hundred.
        moments[13] = moment(13, 995, 5, 500.0);
        moments[11] = moment(11, 980, 20, 500.0);
        moments[20] = moment(20, 0, 40, 0.0);
        moments[30] = moment(30, 1000, 0, 9000.0);
        moments[40] = moment(40, 100, 0, 500.0);
        moments.drain(50..52);
        let (events, more) = find(&moments, &[], &[]);
        let expected = [
            (Kind::Errors, 10.0, 12.0),
            (Kind::NoSuccess, 20.0, 21.0),
            (Kind::Slow, 30.0, 31.0),
            (Kind::Drop, 40.0, 41.0),
            (Kind::Nothing, 50.0, 52.0),
        ];
        assert_eq!((kinds(&events), more), (expected.to_vec(), 0));
        assert_eq!(events[0].text, "Operations failed: overloaded 70");
        assert!(events[4].text.starts_with("For 2 s no operation ended"));
    }

    #[test]
    fn a_window_that_begins_with_silence_says_so() {
        let moments: Vec<_> = (3..20).map(|s| moment(s, 1000, 0, 500.0)).collect();
        assert_eq!(kinds(&find(&moments, &[], &[]).0), [(Kind::Nothing, 0.0, 3.0)]);
    }

    #[test]
    fn what_the_target_told_is_marked_where_it_was_learnt() {
        let told = |t_s, kind| record::events::Event { t_s, kind, text: "x joined".to_owned() };
        let told = [told(-3.0, EventKind::Ring), told(7.5, EventKind::Ring)];
        let (events, _) = find(&[], &[], &told);
        assert_eq!(kinds(&events), [(Kind::Ring, 7.5, 8.5)]);
        assert_eq!((events[0].text.as_str(), events[0].kind.is_bad()), ("x joined", false));
    }

    #[test]
    fn what_is_usual_is_no_event() {
        let moments: Vec<_> = (0..60)
            .map(|s| moment(s, 1000, 0, if s % 3 == 0 { 90_000.0 } else { 100.0 }))
            .collect();
        assert_eq!(find(&moments, &[], &[]).0, []);
    }

    #[test]
    fn counters_tell_of_connections_answers_and_steal() {
        let mut counters = Counters::default();
        let mut add = |t_s: f64, source: &str, metric: &str, value: f64, unit: &str| {
            let (host, source) = ("local".into(), source.into());
            let (metric, unit) = (metric.into(), unit.into());
            counters.add(Counter { t_s, host, source, metric, value, unit });
        };
        for second in 1..=5 {
            let t_s = f64::from(second);
            for source in ["client-0", "client-1"] {
                let lost = if second == 3 { 2.0 } else { 0.0 };
                add(t_s, source, "connections_lost", lost, "connections");
                let late = if second == 4 { 1.0 } else { 0.0 };
                add(t_s, source, "late", late, "answers");
            }
            let steal = if second > 3 { 0.2 } else { 0.0 };
            add(t_s, "procfs", "steal", steal, "share");
        }
        let (events, _) = find(&[], &counters.metrics, &[]);
        let expected =
            [(Kind::ConnectionsLost, 2.0, 3.0), (Kind::Late, 3.0, 4.0), (Kind::Steal, 4.0, 5.0)];
        assert_eq!(kinds(&events), expected);
        assert_eq!(events[0].text, "broken connections: 4");
    }

    #[test]
    fn the_worst_are_kept_when_there_are_many() {
        let mut moments: Vec<_> =
            (0..400).map(|s| moment(s, 1000, if s % 4 == 0 { 50 } else { 0 }, 500.0)).collect();
        moments.remove(333);
        let (events, more) = find(&moments, &[], &[]);
        assert_eq!((events.len(), more), (EVENTS_MAX, 71));
        assert!(events.iter().any(|e| e.kind == Kind::Nothing));
    }
}
