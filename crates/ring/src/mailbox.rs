//! Connections on their way to another thread's ring.
//!
//! In: an accepted stream. Out: an event of the ring that owns the mailbox, which wakes for it. The
//! mailbox also tells how many connections that ring has, so that whoever accepts can give each new
//! one to the ring with the fewest.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A ring's mailbox; see [`crate::Ring::mailbox`].
#[derive(Debug)]
pub struct Mailbox {
    bell: OwnedFd,
    streams: Mutex<Vec<(TcpStream, SocketAddr)>>,
    connections: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell, streams: Mutex::default(), connections: AtomicUsize::new(0) })
    }

    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Accepted connections that the ring has, those on their way to it included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives a stream to the ring; it counts from now on.
    pub(crate) fn give(&self, stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        self.opened();
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push((stream, peer));
        rustix::io::write(&self.bell, &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// What has come.
    pub(crate) fn take(&self) -> Vec<(TcpStream, SocketAddr)> {
        // Silenced first: what comes after the look rings again.
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        std::mem::take(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
