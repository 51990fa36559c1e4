//! One connection of the io_uring engine.

use super::arrivals::Arrivals;
use crate::BufferSizes;
use crate::buffer::SendBuffer;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::io;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) connecting: bool,
    /// Counted by the mailbox.
    pub(super) accepted: bool,
    /// A receive is with the kernel.
    pub(super) armed: bool,
    pub(super) paused: bool,
    /// Bytes came while it was paused, which its owner was not told.
    pub(super) held: bool,
    /// Its owner knows that it is closed.
    pub(super) told: bool,
    /// Its owner has closed it; it is here for what is still with the kernel.
    pub(super) closing: bool,
    /// Requests with the kernel, or on their way to it.
    pub(super) pending: u32,
    pub(super) filling: SendBuffer,
    pub(super) flying: SendBuffer,
    /// Bytes of `flying` that the kernel has taken.
    pub(super) taken: usize,
    pub(super) arrivals: Arrivals,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, connecting: bool, sizes: BufferSizes) -> Self {
        Self {
            socket,
            connecting,
            accepted: false,
            armed: false,
            paused: false,
            held: false,
            told: false,
            closing: false,
            pending: 0,
            filling: SendBuffer::new(sizes.send),
            flying: SendBuffer::new(sizes.send),
            taken: 0,
            arrivals: Arrivals::new(sizes),
        }
    }

    /// What of the half in flight the kernel has not taken.
    pub(super) fn rest(&self) -> &[u8] {
        &self.flying.filled()[self.taken..]
    }

    /// What became of the connecting, once the socket can be written to.
    pub(super) fn connected(&mut self) -> io::Result<()> {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => {
                self.connecting = false;
                // The kernel refuses to wait for one that is asked not to.
                Ok(rustix::io::ioctl_fionbio(&self.socket, false)?)
            }
            Ok(Err(error)) | Err(error) => Err(error.into()),
        }
    }
}
