//! Ctrl-C, SIGTERM and a closed terminal as a flag that the run looks at. A second one ends the
//! program at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The flag, set by the first signal.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Order matters: the second signal finds the flag set and ends the program; children die
        // with it.
        flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}
