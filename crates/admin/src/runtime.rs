//! The one thread that the driver's tasks run on.
//!
//! Futures of the facade are polled by the caller; sockets and timers are driven by this thread,
//! which stays off the workers' cpus.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use units::{CpuSet, cpus_of_current_thread, pin_current_thread};

/// How long a request to stop may go unseen.
const STOP_SEEN_MAX: Duration = Duration::from_millis(50);

/// A current-thread runtime on a thread of its own; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts the thread on cpus other than `workers`; where there are no others, on any.
    pub(crate) fn start(workers: &CpuSet) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let workers = workers.clone();
        let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
            stay_off(&workers);
            // Dropped without a word means the end as well.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// As [`Self::block_on`], but not beyond the wish to stop: None then; the future is dropped.
    pub(crate) fn block_on_unless<F: Future>(
        &self,
        stop: &AtomicBool,
        future: F,
    ) -> Option<F::Output> {
        self.block_on(async {
            let mut future = std::pin::pin!(future);
            while !stop.load(Ordering::Relaxed) {
                let done = tokio::time::timeout(STOP_SEEN_MAX, &mut future).await;
                if let Ok(done) = done {
                    return Some(done);
                }
            }
            None
        })
    }
}

/// Best effort: before and after a run it matters little, and during one nothing of this lives.
fn stay_off(workers: &CpuSet) {
    if let Ok(allowed) = cpus_of_current_thread() {
        let rest = allowed.difference(workers);
        if !rest.is_empty() {
            let _ = pin_current_thread(&rest);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic in a task of the driver has been told by its own message.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_stays_off_the_workers() {
        let allowed = cpus_of_current_thread().unwrap();
        let worker: CpuSet = allowed.iter().take(1).collect();
        let rest = allowed.difference(&worker);
        let runtime = Runtime::start(&worker).unwrap();
        let on = runtime.block_on(async {
            runtime.handle.spawn(async { cpus_of_current_thread().unwrap() }).await.unwrap()
        });
        assert_eq!(on, if rest.is_empty() { allowed } else { rest });
    }

    #[test]
    fn nothing_is_waited_for_beyond_the_wish_to_stop() {
        let runtime = Runtime::start(&CpuSet::default()).unwrap();
        let stop = AtomicBool::new(false);
        assert_eq!(runtime.block_on_unless(&stop, async { 7 }), Some(7));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(runtime.block_on_unless(&stop, std::future::pending::<()>()), None);
        });
        assert_eq!(runtime.block_on_unless(&stop, async { 7 }), None);
    }
}
