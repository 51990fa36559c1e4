//! Accepted connections, shared out among the rings of a server.
//!
//! In: what a listener accepts, and what other rings put into this one's mailbox. Out: streams for
//! this ring; the others go to the ring that has the fewest.

use crate::mailbox::Mailbox;
use rustix::fd::OwnedFd;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Connections taken from the listener per wake-up, so that a flood of them does not starve the
/// others.
pub(crate) const ACCEPTS_MAX: usize = 64;

/// What a ring has to do with accepting.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    listeners: Vec<TcpListener>,
    mailbox: Option<Arc<Mailbox>>,
    /// Rings among which accepted connections are shared out; this one alone when empty.
    sharers: Vec<Arc<Mailbox>>,
}

impl Sharing {
    /// One more; its index.
    pub(crate) fn listen(&mut self, listener: TcpListener) -> usize {
        self.listeners.push(listener);
        self.listeners.len() - 1
    }

    /// The mailbox, and whether it was made only now.
    pub(crate) fn mailbox(&mut self) -> io::Result<(Arc<Mailbox>, bool)> {
        if let Some(mailbox) = &self.mailbox {
            return Ok((mailbox.clone(), false));
        }
        let mailbox = Arc::new(Mailbox::new()?);
        self.mailbox = Some(mailbox.clone());
        Ok((mailbox, true))
    }

    pub(crate) fn listener(&self, index: usize) -> Option<&TcpListener> {
        self.listeners.get(index)
    }

    /// Can be read from when something has come into the mailbox.
    pub(crate) fn bell(&self) -> Option<&OwnedFd> {
        self.mailbox.as_ref().map(|mailbox| mailbox.bell())
    }

    pub(crate) fn share(&mut self, rings: Vec<Arc<Mailbox>>) {
        self.sharers = rings;
    }

    /// Accepts one connection of any listener; None when there is none. Those of other rings are
    /// with them already.
    pub(crate) fn accept(&self) -> Option<Accepted> {
        // Refused for good or for now (no descriptor is left): the next wait tells.
        let (stream, peer) = self.listeners.iter().find_map(|one| one.accept().ok())?;
        let fewest = self.sharers.iter().min_by_key(|ring| ring.connections());
        let own = |ring: &Arc<Mailbox>| {
            self.mailbox.as_ref().is_some_and(|mailbox| Arc::ptr_eq(mailbox, ring))
        };
        match fewest {
            Some(ring) if !own(ring) => {
                // It is lost when its ring cannot be woken; the client sees it closed.
                drop(ring.give(stream, peer));
                Some(Accepted::Elsewhere)
            }
            _ => {
                self.mailbox.iter().for_each(|mailbox| mailbox.opened());
                Some(Accepted::Here(stream, peer))
            }
        }
    }

    /// What others have accepted for this ring.
    pub(crate) fn take(&self) -> Vec<(TcpStream, SocketAddr)> {
        self.mailbox.as_ref().map_or(Vec::new(), |mailbox| mailbox.take())
    }

    /// A connection that was accepted is closed.
    pub(crate) fn closed(&self) {
        self.mailbox.iter().for_each(|mailbox| mailbox.closed());
    }
}

/// Where an accepted connection goes.
pub(crate) enum Accepted {
    /// To this ring; its mailbox counts it already.
    Here(TcpStream, SocketAddr),
    /// To another one.
    Elsewhere,
}
