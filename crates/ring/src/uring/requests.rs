//! What the io_uring engine asks the kernel for.
//!
//! In: a connection. Out: a request in the submission queue, or in the list behind it when that is
//! full; nothing here makes a system call. The memory that a request names stays where it is until
//! it has completed: [`super::Connection::pending`] counts them.

#![allow(unsafe_code)]

use super::{Kind, Uring, pool};
use crate::ConnectionId;
use io_uring::types::Fd;
use io_uring::{opcode, squeue};
use rustix::fd::AsRawFd;

impl Uring {
    /// Queues a request; the next wait submits it.
    pub(super) fn push(&mut self, entry: squeue::Entry) {
        if !self.backlog.is_empty() {
            return self.backlog.push_back(entry);
        }
        // SAFETY: whatever memory a request names belongs to a connection, which is kept, with its
        // buffers where they are, until the request has completed; or to the pool, which outlives
        // the ring.
        if unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }

    pub(super) fn receive_from(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        if connection.armed || connection.paused || connection.told {
            return;
        }
        connection.armed = true;
        connection.pending += 1;
        let entry = opcode::RecvMulti::new(Fd(connection.socket.as_raw_fd()), pool::GROUP).build();
        self.push(entry.user_data(Kind::Receive.user_data(id)));
    }

    /// Sends what of the half in flight is not with the kernel.
    pub(super) fn send_from(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        let rest = connection.rest();
        let size = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(connection.socket.as_raw_fd()), rest.as_ptr(), size)
            .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
            .build();
        connection.pending += 1;
        self.at_once += 1;
        self.push(entry.user_data(Kind::Send.user_data(id)));
    }

    /// Waits until the socket can be written to, or is connected.
    pub(super) fn poll(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        connection.pending += 1;
        let socket = Fd(connection.socket.as_raw_fd());
        let entry = opcode::PollAdd::new(socket, libc::POLLOUT as u32).build();
        self.push(entry.user_data(Kind::Poll.user_data(id)));
    }

    /// Ends a request of this kind, if there is one.
    pub(super) fn cancel(&mut self, kind: Kind, id: ConnectionId) {
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return };
        connection.pending += 1;
        self.at_once += 1;
        let entry = opcode::AsyncCancel::new(kind.user_data(id)).build();
        self.push(entry.user_data(Kind::Cancel.user_data(id)));
    }

    /// Watches a descriptor that is no connection's until it can be read from.
    pub(super) fn watch(&mut self, fd: i32, kind: Kind, id: ConnectionId) {
        let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).build();
        self.push(entry.user_data(kind.user_data(id)));
    }
}
