//! A ring of which every connection is inside TLS.
//!
//! Whoever drives it sees plaintext and the same events as without: a connection is established
//! when the handshake is done, what has arrived is what was in whole records. What is filled is
//! encrypted at a flush, after the clock was read for it; what is received is decrypted after the
//! clock was read behind the receive (see `docs/METHODOLOGY.md`). While a send is in flight nothing
//! is encrypted: what is filled meanwhile goes out together.

use super::error::Failure;
use super::session::Session;
use crate::buffer::{ReceiveBuffer, SendBuffer};
use crate::{BufferSizes, ConnectionId, Event, Flush, Mailbox, Ring, Syscalls};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use units::Nanos;

/// Makes the session of a connection with this peer. Called once a connection.
type Begin = Box<dyn Fn(SocketAddr) -> io::Result<Session> + Send>;

/// Memory beyond so many bytes is given back when a send has gone out, as the engines do.
const SEND_KEPT_MAX: usize = 1 << 20;

#[derive(Debug)]
enum Stage {
    /// The socket is not connected yet.
    Opening,
    /// Nothing can be sent yet.
    Shaking,
    Open,
    /// It has failed; what is told to the peer about that is under way.
    Failing(io::Error),
    /// Told to be closed.
    Over,
}

#[derive(Debug)]
struct Link {
    session: Session,
    stage: Stage,
    filling: SendBuffer,
    received: ReceiveBuffer,
}

/// A [`Ring`] inside TLS.
pub struct Secured<R> {
    ring: R,
    begin: Begin,
    sizes: BufferSizes,
    links: Vec<Option<Link>>,
    /// What happened on the wire; kept for its memory.
    wired: Vec<Event>,
    nowhere: SendBuffer,
}

impl<R> std::fmt::Debug for Secured<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secured").field("links", &self.links.len()).finish_non_exhaustive()
    }
}

impl<R: Ring> Secured<R> {
    pub(super) fn new(ring: R, sizes: BufferSizes, begin: Begin) -> Self {
        let (links, wired) = (Vec::new(), Vec::new());
        Self { ring, begin, sizes, links, wired, nowhere: SendBuffer::default() }
    }

    fn add(&mut self, id: ConnectionId, session: Session, stage: Stage) {
        if self.links.len() <= id.index() {
            self.links.resize_with(id.index() + 1, || None);
        }
        self.links[id.index()] = Some(Link {
            session,
            stage,
            filling: SendBuffer::new(self.sizes.send),
            received: ReceiveBuffer::new(self.sizes.receive, self.sizes.receive_max),
        });
    }

    fn link(&self, id: ConnectionId) -> Option<&Link> {
        self.links.get(id.index())?.as_ref()
    }

    fn link_mut(&mut self, id: ConnectionId) -> Option<&mut Link> {
        self.links.get_mut(id.index())?.as_mut()
    }

    /// Sends what TLS itself has to say.
    fn say(&mut self, id: ConnectionId) -> io::Result<()> {
        let Some(Some(link)) = self.links.get_mut(id.index()) else { return Ok(()) };
        if self.ring.filling(id).append(|out| link.session.take_wired(out)) {
            self.ring.flush(id)?;
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event, events: &mut Vec<Event>) {
        match event {
            Event::Connected { connection } => {
                if let Some(link) = self.link_mut(connection) {
                    link.stage = Stage::Shaking;
                }
                if let Err(error) = self.say(connection) {
                    self.over(connection, Some(error), events);
                }
            }
            Event::Received { connection, at } => self.on_received(connection, at, events),
            Event::Writable { connection } => self.on_writable(connection, events),
            Event::Closed { connection, error } => self.on_closed(connection, error, events),
            Event::Accepted { connection, peer, port } => match (self.begin)(peer) {
                Ok(session) => {
                    self.add(connection, session, Stage::Shaking);
                    events.push(Event::Accepted { connection, peer, port });
                }
                Err(_) => self.ring.close(connection),
            },
        }
    }

    fn on_received(&mut self, id: ConnectionId, at: Nanos, events: &mut Vec<Event>) {
        let Some(Some(link)) = self.links.get_mut(id.index()) else { return };
        let wired = self.ring.received(id);
        let size = wired.len();
        if matches!(link.stage, Stage::Failing(_) | Stage::Over) {
            return self.ring.consume(id, size);
        }
        let Link { session, received, .. } = link;
        let before = received.received().len();
        let outcome = session.arrived(wired, |plain| received.push(plain));
        self.ring.consume(id, size);
        let more = link.received.received().len() > before;
        let (full, ended) = (link.received.is_full(), link.session.is_ended());
        let said = self.say(id);
        self.open(id, events);
        if more {
            events.push(Event::Received { connection: id, at });
        }
        match (outcome, said) {
            (Err(failure), _) => self.fail(id, failure.into(), events),
            (Ok(()), Err(error)) => self.over(id, Some(error), events),
            (Ok(()), Ok(())) if full => {
                let long = io::Error::other("a frame is longer than the receive buffer may grow");
                self.over(id, Some(long), events);
            }
            (Ok(()), Ok(())) if ended => self.over(id, None, events),
            (Ok(()), Ok(())) => {}
        }
    }

    /// Once the handshake is done and all of it is with the kernel, so that the first flush goes
    /// out at once as it does without TLS.
    fn open(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let unsent = self.ring.unsent(id);
        let Some(link) = self.link_mut(id) else { return };
        if !matches!(link.stage, Stage::Shaking) || link.session.is_handshaking() || unsent > 0 {
            return;
        }
        link.stage = Stage::Open;
        // An accepted connection was told of before, and may have something to say by now.
        events.push(match link.session.is_client() {
            true => Event::Connected { connection: id },
            false => Event::Writable { connection: id },
        });
    }

    /// The connection is of no use; the peer is told why before it is closed.
    fn fail(&mut self, id: ConnectionId, error: io::Error, events: &mut Vec<Event>) {
        if self.ring.unsent(id) == 0 {
            return self.over(id, Some(error), events);
        }
        if let Some(link) = self.link_mut(id) {
            link.stage = Stage::Failing(error);
        }
    }

    fn over(&mut self, id: ConnectionId, error: Option<io::Error>, events: &mut Vec<Event>) {
        if let Some(link) = self.link_mut(id) {
            link.stage = Stage::Over;
        }
        events.push(Event::Closed { connection: id, error });
    }

    fn on_writable(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let Some(link) = self.link_mut(id) else { return };
        match &mut link.stage {
            Stage::Open => events.push(Event::Writable { connection: id }),
            Stage::Failing(error) => {
                let error = std::mem::replace(error, io::ErrorKind::Other.into());
                self.over(id, Some(error), events);
            }
            Stage::Opening | Stage::Shaking => {
                // More of the handshake may have waited for what was in flight.
                match self.ring.flush(id) {
                    Ok(_) => self.open(id, events),
                    Err(error) => self.over(id, Some(error), events),
                }
            }
            Stage::Over => {}
        }
    }

    fn on_closed(&mut self, id: ConnectionId, error: Option<io::Error>, events: &mut Vec<Event>) {
        let Some(link) = self.link_mut(id) else { return };
        let error = match std::mem::replace(&mut link.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Failing(error) => Some(error),
            Stage::Shaking => Some(Failure::Ended.into()),
            Stage::Opening | Stage::Open => error,
        };
        events.push(Event::Closed { connection: id, error });
    }
}

impl<R: Ring> Ring for Secured<R> {
    fn connect_from(&mut self, port: Option<u16>, address: SocketAddr) -> io::Result<ConnectionId> {
        let session = (self.begin)(address)?;
        let id = self.ring.connect_from(port, address)?;
        self.add(id, session, Stage::Opening);
        Ok(id)
    }

    fn attach(&mut self, stream: TcpStream) -> io::Result<ConnectionId> {
        let session = (self.begin)(stream.peer_addr()?)?;
        let id = self.ring.attach(stream)?;
        self.add(id, session, Stage::Shaking);
        self.say(id)?;
        Ok(id)
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        self.ring.listen(listener)
    }

    fn mailbox(&mut self) -> io::Result<Arc<Mailbox>> {
        self.ring.mailbox()
    }

    fn share(&mut self, rings: Vec<Arc<Mailbox>>) {
        self.ring.share(rings);
    }

    fn close(&mut self, connection: ConnectionId) {
        let link = self.links.get_mut(connection.index()).and_then(Option::take);
        if let Some(mut link) = link.filter(|link| matches!(link.stage, Stage::Open)) {
            link.session.end();
            self.ring.filling(connection).append(|out| link.session.take_wired(out));
            // Of use to the peer where the kernel takes it at once, and no loss where not.
            let _ = self.ring.flush(connection);
        }
        self.ring.close(connection);
    }

    #[inline]
    fn filling(&mut self, connection: ConnectionId) -> &mut SendBuffer {
        match self.links.get_mut(connection.index()) {
            Some(Some(link)) => &mut link.filling,
            _ => {
                self.nowhere.shrink(0);
                &mut self.nowhere
            }
        }
    }

    fn unsent(&self, connection: ConnectionId) -> usize {
        let filled = self.link(connection).map_or(0, |link| link.filling.filled().len());
        filled + self.ring.unsent(connection)
    }

    fn flush(&mut self, connection: ConnectionId) -> io::Result<Flush> {
        let kept_max = self.sizes.send.max(SEND_KEPT_MAX);
        let Some(Some(link)) = self.links.get_mut(connection.index()) else {
            return Ok(Flush::Empty);
        };
        match link.stage {
            Stage::Open => {}
            Stage::Opening | Stage::Shaking => return Ok(Flush::Waiting),
            Stage::Failing(_) | Stage::Over => return Ok(Flush::Empty),
        }
        if self.ring.unsent(connection) > 0 {
            // An answer of TLS itself may have waited for what was in flight.
            self.ring.flush(connection)?;
            if self.ring.unsent(connection) > 0 {
                return Ok(Flush::Waiting);
            }
        }
        if link.filling.filled().is_empty() {
            return Ok(Flush::Empty);
        }
        link.session.write(link.filling.filled())?;
        link.filling.shrink(kept_max);
        self.ring.filling(connection).append(|out| link.session.take_wired(out));
        self.ring.flush(connection)
    }

    #[inline]
    fn received(&self, connection: ConnectionId) -> &[u8] {
        self.link(connection).map_or(&[], |link| link.received.received())
    }

    #[inline]
    fn consume(&mut self, connection: ConnectionId, size: usize) {
        if let Some(link) = self.link_mut(connection) {
            link.received.consume(size);
        }
    }

    fn pause_receiving(&mut self, connection: ConnectionId, pause: bool) -> io::Result<()> {
        self.ring.pause_receiving(connection, pause)
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> io::Result<()> {
        let mut wired = std::mem::take(&mut self.wired);
        let waited = self.ring.wait(until, &mut wired);
        for event in wired.drain(..) {
            self.on_event(event, events);
        }
        self.wired = wired;
        waited
    }

    fn syscalls(&self) -> Syscalls {
        self.ring.syscalls()
    }
}
