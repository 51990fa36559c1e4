//! Waiting on an epoll instance with nanoseconds of resolution.
//!
//! `epoll_pwait2` (Linux 5.11) takes a timespec. Older kernels say ENOSYS once; from then on a
//! timerfd in the same epoll set wakes the wait, at the price of one more system call per sleep.

#![allow(unsafe_code)]

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use units::{Nanos, clock};

/// Marks the timer among the events.
pub(crate) const TIMER: u64 = u64::MAX;

/// Room for the events of one wait; more are reported by the next.
pub(crate) const EVENTS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Waiter {
    /// Some from the moment that epoll_pwait2 was found missing.
    timer: Option<OwnedFd>,
    pub(crate) events: [libc::epoll_event; EVENTS_MAX],
}

impl Waiter {
    pub(crate) fn new() -> Self {
        Self { timer: None, events: [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX] }
    }

    /// Waits until an event or `until`; returns the number of events. 0 also when interrupted.
    pub(crate) fn wait(&mut self, epoll: &OwnedFd, until: Option<Nanos>) -> io::Result<usize> {
        if self.timer.is_none() {
            let timeout = until.map(|t| timespec(t.since(clock::now())));
            match self.pwait2(epoll, timeout.as_ref()) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    self.timer = Some(timer_in(epoll)?);
                }
                result => return result,
            }
        }
        let past = until.is_some_and(|t| t <= clock::now());
        if let (Some(timer), false) = (&self.timer, past) {
            let at = until.unwrap_or(Nanos::ZERO); // zero disarms
            let spec = Itimerspec { it_interval: timespec_raw(0), it_value: timespec_raw(at.0) };
            rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        }
        self.pwait(epoll, if past { 0 } else { -1 })
    }

    fn pwait2(&mut self, epoll: &OwnedFd, timeout: Option<&libc::timespec>) -> io::Result<usize> {
        let timeout = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` is writable for EVENTS_MAX entries for the length of the call, `timeout`
        // is null or points to a timespec that outlives it, no signal mask is given, and
        // `epoll` is an open descriptor.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        counted(count)
    }

    fn pwait(&mut self, epoll: &OwnedFd, timeout_ms: libc::c_int) -> io::Result<usize> {
        // SAFETY: as above; no timespec is passed.
        let count = unsafe {
            libc::epoll_wait(
                epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                timeout_ms,
            )
        };
        counted(libc::c_long::from(count))
    }

    #[cfg(test)]
    pub(crate) fn without_pwait2(epoll: &OwnedFd) -> io::Result<Self> {
        Ok(Self { timer: Some(timer_in(epoll)?), ..Self::new() })
    }
}

fn counted(count: libc::c_long) -> io::Result<usize> {
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}

fn timer_in(epoll: &OwnedFd) -> io::Result<OwnedFd> {
    let timer = rustix::time::timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
    )?;
    // Edge-triggered: an expiry wakes once and needs no read to be rearmed.
    let flags = EventFlags::IN | EventFlags::ET;
    epoll::add(epoll, timer.as_fd(), EventData::new_u64(TIMER), flags)?;
    Ok(timer)
}

fn timespec(time: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: (time.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (time.0 % 1_000_000_000) as libc::c_long,
    }
}

fn timespec_raw(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps_for_the_time_asked(mut waiter: Waiter, epoll: &OwnedFd) {
        for sleep in [Nanos::from_micros(300), Nanos::from_millis(3)] {
            let until = clock::now() + sleep;
            while clock::now() < until {
                waiter.wait(epoll, Some(until)).unwrap();
            }
        }
        // The past never sleeps.
        assert_eq!(waiter.wait(epoll, Some(Nanos::ZERO)).unwrap(), 0);
    }

    #[test]
    fn both_ways_of_waiting_end_in_time() {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        sleeps_for_the_time_asked(Waiter::new(), &epoll);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        sleeps_for_the_time_asked(Waiter::without_pwait2(&epoll).unwrap(), &epoll);
    }
}
