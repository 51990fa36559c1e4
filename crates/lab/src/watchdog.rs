//! Ends a run when its target has: nobody waits for answers of a process that is gone.
//!
//! In: the processes of a deployment and the caller's stop flag. Out: a flag for the data plane,
//! set when either the caller wants to stop or the target is over. One of several instances of a
//! ring may die: the others go on. Of databases that know nothing of each other none may: nobody
//! answers for its rows, and what the others do is no result of the layout.

use stage::ProcessId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use units::Nanos;

/// How often it looks; each look takes 18 us of cpu time, which counts as the client's.
const LOOK: Nanos = Nanos::from_millis(100);

/// Looks after a run's target while it lives.
#[derive(Debug)]
pub(crate) struct Watchdog {
    flags: Arc<Flags>,
    halt: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Flags {
    over: AtomicBool,
    died: AtomicBool,
}

impl Watchdog {
    /// Begins to look. Without processes (a target of somebody else) only `stop` is passed on.
    /// `apart`: the processes know nothing of each other.
    pub(crate) fn start(
        processes: Vec<ProcessId>,
        apart: bool,
        stop: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        let (flags, halt) = (Arc::<Flags>::default(), Arc::<AtomicBool>::default());
        let (its_flags, its_halt) = (flags.clone(), halt.clone());
        let look = move || {
            while !its_flags.over.load(Ordering::Relaxed) {
                let mut alive = processes.iter().map(|p| p.is_alive());
                let goes_on = if apart { alive.all(|one| one) } else { alive.any(|one| one) };
                let died = !processes.is_empty() && !goes_on;
                its_flags.died.fetch_or(died, Ordering::Relaxed);
                its_halt.fetch_or(died || stop.load(Ordering::Relaxed), Ordering::Relaxed);
                std::thread::sleep(LOOK.to_duration());
            }
        };
        let thread = Some(std::thread::Builder::new().name("watchdog".to_owned()).spawn(look)?);
        Ok(Self { flags, halt, thread })
    }

    /// For the data plane.
    pub(crate) fn halt(&self) -> &Arc<AtomicBool> {
        &self.halt
    }

    /// Whether the target is over.
    pub(crate) fn died(&self) -> bool {
        self.flags.died.load(Ordering::Relaxed)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.flags.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked; if it has, there is nobody to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn waits_for(what: impl Fn() -> bool) -> bool {
        (0..250).any(|_| {
            std::thread::sleep(LOOK.to_duration());
            what()
        })
    }

    #[test]
    fn it_halts_when_the_last_process_has_ended() {
        let mut children =
            [60, 60].map(|s| Command::new("sleep").arg(s.to_string()).spawn().unwrap());
        let ids = children.iter().map(|c| ProcessId::of(c.id()).unwrap()).collect();
        let watchdog = Watchdog::start(ids, false, Arc::default()).unwrap();
        children[0].kill().unwrap();
        std::thread::sleep(Nanos::from_millis(200).to_duration());
        assert!(!watchdog.died() && !watchdog.halt().load(Ordering::Relaxed));
        children[1].kill().unwrap();
        assert!(waits_for(|| watchdog.died() && watchdog.halt().load(Ordering::Relaxed)));
        children.iter_mut().for_each(|c| drop(c.wait()));
    }

    #[test]
    fn it_halts_when_one_of_several_databases_has_ended() {
        let mut children =
            [60, 60].map(|s| Command::new("sleep").arg(s.to_string()).spawn().unwrap());
        let ids = children.iter().map(|c| ProcessId::of(c.id()).unwrap()).collect();
        let watchdog = Watchdog::start(ids, true, Arc::default()).unwrap();
        std::thread::sleep(Nanos::from_millis(200).to_duration());
        assert!(!watchdog.died());
        children[0].kill().unwrap();
        assert!(waits_for(|| watchdog.died() && watchdog.halt().load(Ordering::Relaxed)));
        children[1].kill().unwrap();
        children.iter_mut().for_each(|c| drop(c.wait()));
    }

    #[test]
    fn it_passes_the_wish_to_stop_on() {
        let stop = Arc::new(AtomicBool::new(false));
        let watchdog = Watchdog::start(Vec::new(), false, stop.clone()).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(waits_for(|| watchdog.halt().load(Ordering::Relaxed)));
        assert!(!watchdog.died());
    }
}
