//! A process that cannot be mistaken for a later one with the same pid.
//!
//! Input: `/proc/PID/stat` (proc(5)). Output: [`ProcessId`], and the fields of stat in use.
//! Limits: the start time counts clock ticks (mostly 10 ms) since boot.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use thiserror::Error;

/// A pid and when its process started: the pair is unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The kernel's number, which is given again after the process has ended.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks from boot to its start.
    pub start_ticks: u64,
}

/// A signal did not reach its process.
#[derive(Debug, Error)]
#[error("cannot signal process {pid}: {cause}; it may belong to another user")]
pub struct SignalError {
    /// The process.
    pub pid: u32,
    /// The kernel's answer.
    pub cause: io::Error,
}

impl ProcessId {
    /// The process that has this pid now.
    ///
    /// # Errors
    /// When there is none, or procfs cannot be read.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, start_ticks: Stat::read(pid)?.start_ticks })
    }

    /// Whether this very process still runs; one that has ended and is not reaped does not.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Stat::read(self.pid)
            .is_ok_and(|stat| stat.start_ticks == self.start_ticks && !stat.has_ended())
    }

    /// Sends `signal` to this very process. False when it has ended, whoever has its pid now.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn signal(self, signal: Signal) -> Result<bool, SignalError> {
        let Some(pid) = self.as_pid() else { return Ok(false) };
        let failed = |cause: rustix::io::Errno| match cause {
            rustix::io::Errno::SRCH => Ok(false),
            cause => Err(SignalError { pid: self.pid, cause: cause.into() }),
        };
        // The descriptor pins whoever has the pid now; the start time then tells who it is.
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(cause) => return failed(cause),
        };
        if !self.is_alive() {
            return Ok(false);
        }
        pidfd_send_signal(descriptor, signal).map_or_else(failed, |()| Ok(true))
    }

    pub(crate) fn as_pid(self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }
}

/// The fields of `/proc/PID/stat` in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) start_ticks: u64,
}

impl Stat {
    pub(crate) fn read(pid: u32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path)?;
        Self::parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not of the known form"))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        // The name, field 2, may itself hold blanks and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // `fields[0]` is field 3 of proc(5).
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            user_ticks: number(14)?,
            system_ticks: number(15)?,
            start_ticks: number(22)?,
        })
    }

    /// Dead or a zombie.
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_hostile_name() {
        let text = "42 (a) R 7 (b)) S 1 42 42 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 987654 9";
        let stat = Stat { state: 'S', user_ticks: 150, system_ticks: 25, start_ticks: 987_654 };
        assert_eq!(Stat::parse(text), Some(stat));
        for cut in 0..text.len() {
            let _ = Stat::parse(&text[..cut]);
        }
        assert_eq!(Stat::parse("42 (sh) S 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn a_recycled_pid_is_another_process() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_alive());
        let earlier = ProcessId { start_ticks: me.start_ticks.wrapping_sub(1), ..me };
        assert!(!earlier.is_alive());
        // Were it sent, this signal would end the test.
        assert!(!earlier.signal(Signal::KILL).unwrap());
    }
}
