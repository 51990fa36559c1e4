//! Where a worker's operations come from: its share of the clients of a closed loop, or of an open
//! loop's schedule.

use crate::load::{Amount, Arrivals, Load, share};
use crate::pacer::Pacer;
use std::collections::VecDeque;
use units::{Nanos, Rate};

/// The measured window, on [`units::clock::now`]. Operations belong to it by the time they were
/// scheduled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Warm-up begins.
    pub begin: Nanos,
    /// Warm-up ends.
    pub start: Nanos,
    /// Where it is known beforehand: for a duration, or an amount at a rate.
    pub end: Option<Nanos>,
}

impl Window {
    /// Of a load that begins at `begin`.
    #[must_use]
    pub fn of(load: &Load, begin: Nanos) -> Self {
        let start = begin + load.warm;
        let length = match (length(load), load.limit) {
            (Some(length), Some(limit)) => Some(length.min(limit)),
            (length, limit) => length.or(limit),
        };
        Self { begin, start, end: length.map(|length| start + length) }
    }

    /// The same, as long, with a warm-up that ends at `start`.
    pub(crate) fn starting(&self, start: Nanos) -> Self {
        let end = self.end.map(|end| start + end.since(self.start));
        Self { start, end, ..*self }
    }
}

/// How long the amount of a load takes, where it is known beforehand.
fn length(load: &Load) -> Option<Nanos> {
    match (load.amount, load.arrivals) {
        (Amount::Duration(duration), _) => Some(duration),
        (Amount::Ops(ops), Arrivals::Open { rate, .. }) => {
            let ns = u128::from(ops) * u128::from(rate.per_ns()) / u128::from(rate.events());
            Some(Nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
        }
        _ => None,
    }
}

/// An operation that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) scheduled: Nanos,
    /// The connection that the client used before; None where it does not matter.
    pub(crate) connection: Option<u16>,
    pub(crate) measured: bool,
}

#[derive(Debug)]
enum Kind {
    Closed { ready: VecDeque<(Nanos, u16)>, throttle: Option<Throttle> },
    Open { warm: Pacer, measured: Pacer },
}

/// The operations of one worker.
#[derive(Debug)]
pub(crate) struct Source {
    kind: Kind,
    window: Window,
    /// Nothing scheduled from then on is of the warm-up.
    horizon: Nanos,
    /// The horizon is the start of the window.
    settled: bool,
    /// Measured operations left; `u64::MAX` where time or keys end it.
    left: u64,
    /// The window ends the load although operations are left.
    limited: bool,
    /// Nothing scheduled from then on is begun.
    cut: Nanos,
    ended: bool,
}

impl Source {
    pub(crate) fn new(
        load: &Load,
        window: Window,
        seed: u64,
        worker: usize,
        workers: usize,
    ) -> Self {
        let kind = match load.arrivals {
            Arrivals::Closed { threads, throttle } => {
                let own = share(threads as u64, worker, workers) as usize;
                let mut throttle = throttle.map(|rate| Throttle::new(rate, window.begin, workers));
                let mut ready = VecDeque::with_capacity(own);
                for client in 0..own {
                    let scheduled =
                        throttle.as_mut().map_or(window.begin, |t| t.allow(window.begin));
                    ready.push_back((scheduled, client as u16));
                }
                Kind::Closed { ready, throttle }
            }
            Arrivals::Open { rate, poisson, .. } => {
                let pacer = |epoch, salt| match poisson {
                    true => Pacer::poisson(rate, epoch, worker, workers, seed ^ salt),
                    false => Pacer::constant(rate, epoch, worker, workers),
                };
                // Two schedules, so that the window's number of arrivals is exact whatever the
                // warm-up was.
                Kind::Open {
                    warm: pacer(window.begin, WARM_SALT),
                    measured: pacer(window.start, 0),
                }
            }
        };
        let left = match load.amount {
            Amount::Ops(ops) => share(ops, worker, workers),
            Amount::Duration(_) | Amount::EveryKey => u64::MAX,
        };
        let (horizon, settled) = (window.start, true);
        let by_amount = length(load).unwrap_or(Nanos::MAX);
        let limited = load.limit.is_some_and(|limit| limit < by_amount);
        Self { kind, window, horizon, settled, left, limited, cut: Nanos::MAX, ended: false }
    }

    /// The window starts at `horizon` or later, and is not known yet.
    pub(crate) fn look_ahead(&mut self, horizon: Nanos) {
        (self.horizon, self.settled) = (horizon, false);
    }

    /// The window is known: its start is no earlier than any horizon before.
    pub(crate) fn settle(&mut self, window: Window) {
        if let Kind::Open { measured, .. } = &mut self.kind {
            measured.rebase(self.window.start, window.start);
        }
        (self.window, self.horizon, self.settled) = (window, window.start, true);
    }

    /// Whether the window is known.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether what is due next has to wait until the window is known.
    pub(crate) fn is_held(&self) -> bool {
        let next = match &self.kind {
            Kind::Closed { ready, .. } => ready.front().map(|&(at, _)| at),
            Kind::Open { warm, .. } => Some(warm.next()),
        };
        !self.settled && !self.ended && next.is_some_and(|at| at >= self.horizon)
    }

    /// The next operation, when it is due by `now`.
    #[inline]
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Due> {
        let due = self.next()?;
        (due.scheduled <= now).then_some(due)
    }

    /// The next operation, whenever it is due; None when there is none (for now, in a closed loop).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Due> {
        if self.ended {
            return None;
        }
        let (scheduled, connection) = match &self.kind {
            Kind::Closed { ready, .. } => {
                ready.front().map(|&(at, connection)| (at, Some(connection)))?
            }
            Kind::Open { warm, .. } if !self.settled || warm.next() < self.horizon => {
                (warm.next(), None)
            }
            Kind::Open { measured, .. } => (measured.next(), None),
        };
        if !self.settled && scheduled >= self.horizon && scheduled < self.cut {
            return None;
        }
        let measured = scheduled >= self.horizon;
        // A schedule with an amount ends with its amount, whatever rounding does to the end of the
        // window.
        let by_time = self.left == u64::MAX || self.limited;
        let over = by_time && self.window.end.is_some_and(|end| scheduled >= end);
        if scheduled >= self.cut || measured && (over || self.left == 0) {
            self.ended = true;
            return None;
        }
        Some(Due { scheduled, connection, measured })
    }

    /// The operation that [`Self::next`] told is under way.
    #[inline(always)]
    pub(crate) fn take(&mut self, due: &Due) {
        match &mut self.kind {
            Kind::Closed { ready, .. } => {
                ready.pop_front();
            }
            Kind::Open { measured, .. } if due.measured => measured.advance(),
            Kind::Open { warm, .. } => warm.advance(),
        }
        if due.measured && self.left != u64::MAX {
            self.left -= 1;
        }
    }

    /// The client of the operation that [`Self::next`] told has nothing to do any more; of a
    /// schedule its turn is.
    pub(crate) fn retire(&mut self, due: &Due) {
        match &mut self.kind {
            Kind::Closed { ready, .. } => drop(ready.pop_front()),
            Kind::Open { .. } => self.take(due),
        }
    }

    /// An operation is over: in a closed loop its client is ready for the next one.
    #[inline]
    pub(crate) fn done(&mut self, at: Nanos, connection: u16) {
        if let Kind::Closed { ready, throttle } = &mut self.kind {
            let scheduled = throttle.as_mut().map_or(at, |t| t.allow(at));
            ready.push_back((scheduled, connection));
        }
    }

    /// No further operation begins.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The run ends at `now`: a closed loop begins nothing more, a schedule only what was due
    /// before.
    pub(crate) fn cut(&mut self, now: Nanos) {
        self.cut = self.cut.min(now);
        self.ended |= !self.is_open();
    }

    /// In an open loop what is due waits when it cannot be sent; a closed loop has nothing to wait
    /// for it.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.kind, Kind::Open { .. })
    }
}

/// Makes the warm-up's gaps others than the window's.
const WARM_SALT: u64 = 0x57_41_52_4d;

/// Allows one operation per gap and never makes up for gaps that nobody used.
#[derive(Debug)]
struct Throttle {
    epoch: Nanos,
    /// Past the epoch; a double keeps fractions of a nanosecond and holds 104 days to the
    /// nanosecond.
    next_ns: f64,
    gap_ns: f64,
}

impl Throttle {
    fn new(rate: Rate, epoch: Nanos, workers: usize) -> Self {
        let gap_ns = rate.per_ns() as f64 / rate.events() as f64 * workers as f64;
        Self { epoch, next_ns: 0.0, gap_ns }
    }

    /// When a client that is ready at `at` may go on.
    fn allow(&mut self, at: Nanos) -> Nanos {
        let allowed_ns = self.next_ns.max(at.since(self.epoch).0 as f64);
        self.next_ns = allowed_ns + self.gap_ns;
        self.epoch + Nanos(allowed_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arrivals: Arrivals, amount: Amount) -> Load {
        Load { arrivals, amount, warm: Nanos::from_millis(100), limit: None }
    }

    fn drain(source: &mut Source) -> (u64, u64) {
        let (mut warm, mut measured) = (0, 0);
        while let Some(due) = source.next() {
            source.take(&due);
            *if due.measured { &mut measured } else { &mut warm } += 1;
            source.done(due.scheduled + Nanos::from_micros(100), 0);
        }
        (warm, measured)
    }

    #[test]
    fn a_schedule_has_exactly_the_operations_of_its_window() {
        let rate = "99999/s".parse().unwrap();
        let arrivals = Arrivals::Open { rate, poisson: false, in_flight_max: 10 };
        for amount in [Amount::Duration(Nanos::from_secs(2)), Amount::Ops(199_998)] {
            let load = load(arrivals, amount);
            let window = Window::of(&load, Nanos(77));
            let counts: Vec<_> =
                (0..3).map(|w| drain(&mut Source::new(&load, window, 1, w, 3))).collect();
            assert_eq!(counts.iter().map(|c| c.1).sum::<u64>(), 199_998, "{amount:?}");
            assert_eq!(counts.iter().map(|c| c.0).sum::<u64>(), 10_000, "{amount:?}");
        }
    }

    #[test]
    fn a_closed_loop_measures_its_share_of_the_amount() {
        let load = load(Arrivals::Closed { threads: 5, throttle: None }, Amount::Ops(1001));
        let window = Window::of(&load, Nanos(1));
        let measured: Vec<_> =
            (0..2).map(|w| drain(&mut Source::new(&load, window, 1, w, 2)).1).collect();
        assert_eq!(measured, [501, 500]);
    }

    #[test]
    fn a_limit_ends_what_would_take_longer() {
        let (second, rate) = (Nanos::from_secs(1), "10k/s".parse().unwrap());
        let open = Arrivals::Open { rate, poisson: false, in_flight_max: 10 };
        // A client is ready again after 100 us.
        let closed = Arrivals::Closed { threads: 1, throttle: None };
        for (arrivals, amount, limit, measured) in [
            (closed, Amount::Ops(50_000), second, 10_000),
            (closed, Amount::Ops(500), second, 500),
            (closed, Amount::EveryKey, second, 10_000),
            (open, Amount::Ops(50_000), second, 10_000),
            (open, Amount::Ops(500), second, 500),
            (open, Amount::Duration(Nanos::from_secs(3)), second, 10_000),
            (open, Amount::Duration(Nanos::from_millis(500)), second, 5000),
        ] {
            let load = Load { limit: Some(limit), ..load(arrivals, amount) };
            let mut source = Source::new(&load, Window::of(&load, Nanos(7)), 1, 0, 1);
            assert_eq!(drain(&mut source).1, measured, "{arrivals:?} {amount:?}");
        }
    }

    /// Operations begun before the window was known, then all others, for one worker.
    fn drain_with_late_news(load: &Load) -> (u64, u64) {
        let latest = Window::of(load, Nanos(77));
        let mut source = Source::new(load, latest, 1, 0, 1);
        let mut warm = 0;
        for horizon_ms in [20, 40] {
            source.look_ahead(Nanos(77) + Nanos::from_millis(horizon_ms));
            let (more, measured) = drain(&mut source);
            assert_eq!(measured, 0);
            assert!(source.is_held() && !source.is_settled());
            warm += more;
        }
        source.settle(latest.starting(Nanos(77) + Nanos::from_millis(50)));
        let (more, measured) = drain(&mut source);
        assert!(!source.is_held());
        (warm + more, measured)
    }

    #[test]
    fn a_window_that_is_known_late_has_exactly_its_operations() {
        let rate = "10k/s".parse().unwrap();
        let arrivals = Arrivals::Open { rate, poisson: false, in_flight_max: 10 };
        let duration = Amount::Duration(Nanos::from_secs(1));
        assert_eq!(drain_with_late_news(&load(arrivals, duration)), (500, 10_000));
        assert_eq!(drain_with_late_news(&load(arrivals, Amount::Ops(777))), (500, 777));
        // A client is ready again after 100 us.
        let arrivals = Arrivals::Closed { threads: 3, throttle: None };
        assert_eq!(drain_with_late_news(&load(arrivals, Amount::Ops(1000))), (1500, 1000));
        assert_eq!(drain_with_late_news(&load(arrivals, duration)), (1500, 30_000));
    }

    #[test]
    fn poisson_arrivals_of_the_window_do_not_depend_on_when_it_starts() {
        let rate = "10k/s".parse().unwrap();
        let arrivals = Arrivals::Open { rate, poisson: true, in_flight_max: 10 };
        let load = load(arrivals, Amount::Duration(Nanos::from_secs(1)));
        let gaps = |start_ms: u64| {
            let mut source = Source::new(&load, Window::of(&load, Nanos(0)), 1, 0, 1);
            let window = Window::of(&load, Nanos(0)).starting(Nanos::from_millis(start_ms));
            source.settle(window);
            let mut gaps = Vec::new();
            while let Some(due) = source.next() {
                source.take(&due);
                gaps.extend(due.measured.then(|| due.scheduled.since(window.start)));
            }
            gaps
        };
        assert!(gaps(100).len() > 9000);
        assert_eq!(gaps(100), gaps(60));
    }

    #[test]
    fn a_throttle_spaces_clients_and_forgets_what_was_missed() {
        let mut throttle = Throttle::new("1k/s".parse().unwrap(), Nanos(0), 1);
        let ms = Nanos::from_millis;
        assert_eq!(
            [throttle.allow(ms(0)), throttle.allow(ms(0)), throttle.allow(ms(1))],
            [ms(0), ms(1), ms(2)]
        );
        assert_eq!([throttle.allow(ms(50)), throttle.allow(ms(50))], [ms(50), ms(51)]);
    }
}
