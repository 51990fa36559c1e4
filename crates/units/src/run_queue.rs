//! How long a thread was ready to run and another one had its cpu.
//!
//! In: `/proc/thread-self/schedstat`, second number. Out: nanoseconds since the thread began. Cost:
//! one read of a file of procfs, without allocation. Source: the kernel's
//! Documentation/scheduler/sched-stats.rst. Limits: kernels without `CONFIG_SCHED_INFO` do not say.

use crate::Nanos;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Three numbers of 20 digits.
const TEXT_BYTES_MAX: usize = 64;

/// Of the thread that has opened it.
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// Of the calling thread; None where the kernel does not say.
    #[must_use]
    pub fn of_current_thread() -> Option<Self> {
        File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    /// The time so far.
    #[must_use]
    pub fn waited(&self) -> Option<Nanos> {
        let mut text = [0; TEXT_BYTES_MAX];
        let size = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..size]).ok()?;
        text.split_whitespace().nth(1)?.parse().ok().map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn a_thread_that_shares_its_cpu_waits() {
        let Some(queue) = RunQueue::of_current_thread() else {
            println!("SKIP: this kernel has no schedstat");
            return;
        };
        let before = queue.waited().unwrap();
        let cpus = crate::cpus_of_current_thread().unwrap();
        let one = cpus.iter().take(1).collect();
        crate::pin_current_thread(&one).unwrap();
        // Inherits the cpu.
        let other = std::thread::spawn(|| {
            let end = clock::now() + Nanos::from_millis(200);
            while clock::now() < end {}
        });
        let end = clock::now() + Nanos::from_millis(200);
        while clock::now() < end {}
        other.join().unwrap();
        assert!(queue.waited().unwrap() > before + Nanos::from_millis(10));
        crate::pin_current_thread(&cpus).unwrap();
    }
}
