//! Ctrl-C, SIGTERM and a closed terminal as a flag that the run looks at.
//!
//! A second Ctrl-C or SIGTERM ends the program at once: the manifests of the run that goes on get
//! the verdict `interrupted`, children die with the program. A third one does not wait even for
//! that. SIGHUP comes twice from one closed terminal, by the kernel and by the shell, and is
//! therefore never a second wish. SIGXFSZ (a file grew beyond `ulimit -f`) is caught, so that the
//! write fails with an error that has a path.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::clock;

/// Exit status after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// The run directory that is being written to; none before it is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Current(Arc<Mutex<Option<PathBuf>>>);

impl Current {
    /// From now on it is this one.
    pub(crate) fn set(&self, run_dir: PathBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(run_dir);
    }

    fn get(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The flag, set by the first signal; `current` is what a second one ends.
pub(crate) fn stop_flag(current: &Current) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let twice = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, twice.clone())?;
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, stop.clone())?;
    }
    // Caught and not ignored: what this program starts must not inherit it.
    flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let current = current.clone();
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // The first one has set the flag.
        if signals.forever().nth(1).is_some() {
            twice.store(true, Ordering::Relaxed);
            end_at_once(&current);
        }
    });
    let cure = "`ulimit -u` and pids.max of the cgroup tell how many there may be";
    thread.map_err(|e| io::Error::other(format!("cannot start a thread: {e}; {cure}")))?;
    Ok(stop)
}

fn end_at_once(current: &Current) {
    let _silence = record::interrupt(current.get().as_deref(), clock::wall());
    let mut err = io::stderr();
    if err.is_terminal() {
        // The live line goes.
        let _ = write!(err, "\r\x1b[K");
    }
    // No destructors: a thread may hang, and that is why somebody asked twice.
    low_level::exit(INTERRUPTED);
}
