//! How late this machine is by itself: a thread of its own on a cpu that waits for moments and does
//! nothing else.
//!
//! Input: a cpu, the gap between moments, how long. Output: a histogram of the nanoseconds between
//! each moment and the clock read that found it past. Moments lie on a fixed schedule, so that
//! being away for a while makes every moment missed meanwhile late, as it does in an open loop.
//! Sleeping is done as a worker does it ([`Ring::wait`] with an end), polling by clock reads alone.
//! Limits: what interrupts, the hypervisor and other tasks do to the cpu at the time.

use crate::load::Wait;
use crate::ramp::pin;
use record::Latency;
use ring::{BufferSizes, Epoll, Ring};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{CpuId, Nanos, clock};

/// The lateness of a thread that is pinned to `cpu` and waits every `gap` for `length`, or until
/// `stop`: [`Wait::Sleep`] sleeps until each moment, [`Wait::Spin`] polls the clock.
///
/// # Errors
/// What the kernel says: the cpu may not be used, or there is no thread or epoll instance.
pub fn jitter(
    cpu: CpuId,
    wait: Wait,
    gap: Nanos,
    length: Nanos,
    stop: &AtomicBool,
) -> io::Result<Latency> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("jitter".to_owned());
        let measured = thread.spawn_scoped(scope, || {
            pin(cpu)?;
            measure(wait, gap, length, stop)
        })?;
        measured.join().map_err(|_| io::Error::other("the measuring thread panicked"))?
    })
}

fn measure(wait: Wait, gap: Nanos, length: Nanos, stop: &AtomicBool) -> io::Result<Latency> {
    let mut ring = Epoll::new(BufferSizes { send: 0, receive: 0, receive_max: 0 })?;
    let (mut late, mut events) = (Latency::new(), Vec::new());
    let begin = clock::now();
    let (end, mut due) = (begin + length, begin + gap);
    while due < end && !stop.load(Ordering::Relaxed) {
        let mut now = clock::now();
        while now < due {
            if wait == Wait::Sleep {
                ring.wait(Some(due), &mut events)?;
            }
            now = clock::now();
        }
        late.record(now.since(due));
        due += gap;
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu() -> CpuId {
        units::cpus_of_current_thread().unwrap().iter().next().unwrap()
    }

    #[test]
    fn every_moment_is_counted_once() {
        let running = AtomicBool::new(false);
        for wait in [Wait::Sleep, Wait::Spin] {
            let (gap, length) = (Nanos::from_millis(1), Nanos::from_millis(50));
            let late = jitter(cpu(), wait, gap, length, &running).unwrap();
            assert_eq!(late.count(), 49, "{wait:?}: 1 to 49 ms");
        }
    }

    #[test]
    fn a_wish_to_stop_ends_it() {
        let stopped = AtomicBool::new(true);
        let hour = Nanos::from_secs(3600);
        let late = jitter(cpu(), Wait::Spin, Nanos::from_millis(1), hour, &stopped).unwrap();
        assert_eq!(late.count(), 0);
        assert!(jitter(CpuId(60_000), Wait::Spin, hour, hour, &stopped).is_err());
    }
}
