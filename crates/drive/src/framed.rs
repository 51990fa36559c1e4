//! A connection whose frames do not stand on the wire as they are: protocol v5's segments, or
//! compressed bodies.
//!
//! Operations encode whole frames into a buffer as they would into that of the socket; what is
//! ready at a flush is framed together, so that a send carries one segment where it can. Answers
//! are read where they lie, or from one buffer that holds what was unpacked. A connection without
//! any of this has no [`Framed`], and pays a test of a pointer.
//!
//! While a send is in flight nothing is framed: what is encoded meanwhile goes out together.

use ring::{ConnectionId, Ring, SendBuffer};
use wire::cql::framing::{FramingError, Incoming, Outgoing};
use wire::cql::{BODY_SIZE_MAX, Protocol};

#[derive(Debug)]
pub(crate) struct Framed {
    incoming: Incoming,
    outgoing: Outgoing,
    /// Whole frames that are not framed yet.
    pub(crate) pending: SendBuffer,
}

impl Framed {
    /// Of a connection that is past the first answer; None where its frames stand as they are.
    /// `size` bytes of frames can be pending.
    pub(crate) fn of(protocol: Protocol, size: usize) -> Option<Box<Self>> {
        if protocol.is_bare() {
            return None;
        }
        let mut incoming = Incoming::new(protocol, BODY_SIZE_MAX);
        let mut outgoing = Outgoing::new(protocol);
        // At once, so that nothing is allocated per operation; untouched pages cost nothing.
        incoming.reserve();
        outgoing.reserve(size);
        Some(Box::new(Self { incoming, outgoing, pending: SendBuffer::new(size) }))
    }

    /// Frames what is pending into the send buffer, unless the send before is still in flight.
    pub(crate) fn offer<R: Ring>(&mut self, ring: &mut R, id: ConnectionId) {
        if self.pending.filled().is_empty() || ring.unsent(id) > 0 {
            return;
        }
        ring.filling(id).append(|out| self.outgoing.encode(self.pending.filled(), out));
        self.pending.clear();
    }

    /// Whole frames that have arrived and were not taken; empty when there are none.
    ///
    /// # Errors
    /// [`FramingError`]; the connection is of no further use then.
    #[inline]
    pub(crate) fn frames<'a, R: Ring>(
        &'a mut self,
        ring: &'a mut R,
        id: ConnectionId,
    ) -> Result<&'a [u8], FramingError> {
        let consumed = self.incoming.advance(ring.received(id))?;
        ring.consume(id, consumed);
        Ok(self.incoming.frames(ring.received(id)))
    }

    /// The first `size` bytes of [`Self::frames`] are done with.
    #[inline]
    pub(crate) fn take<R: Ring>(&mut self, ring: &mut R, id: ConnectionId, size: usize) {
        ring.consume(id, self.incoming.take(size));
    }
}
