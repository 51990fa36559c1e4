//! The control connection: one blocking socket that creates the schema and prepares statements
//! before a run.
//!
//! It is closed while the data plane measures; one that only listens may be kept (`listening`).
//! Everything that it waits for is bounded by one timeout per request, and ends within 100 ms of
//! the caller's wish to stop.

use crate::access::Access;
use crate::handshake::{self, Next, Refusal};
use crate::stream::Stream;
use ring::tls::{Failure, is_spoken_at};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use units::{Nanos, clock};
use wire::cql::framing::{FramingError, Incoming, Outgoing};
use wire::cql::request::{QueryParameters, Request};
use wire::cql::response::{Prepared, Response};
use wire::cql::{Consistency, DecodeError, ErrorCode, HEADER_SIZE, Header, Protocol, RESPONSE};
use wire::shards::{Offer, ShardError};

/// An answer to the control connection is never longer than this, in bytes.
const ANSWER_SIZE_MAX: usize = 16 << 20;

/// Bytes that are read at a time where it is not known how many come.
const READ_SIZE: usize = 16 << 10;

/// How long a server that does not speak CQL may take to answer in TLS.
const GREETING_MAX: Nanos = Nanos::from_secs(2);

/// How long the wish to stop may go unseen.
const STOP_SEEN_MAX: Nanos = Nanos::from_millis(100);

/// Why the control connection could not do its work. Each text names the address and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum ControlError {
    /// Nobody listens, or no route.
    #[error(
        "cannot connect to {address}: {source}; is the database up, and is this its CQL address?"
    )]
    Unreachable { address: SocketAddr, source: io::Error },
    /// Something listens and does not answer.
    #[error(
        "{address} accepts connections but did not answer within {timeout}; is it a CQL port? \
         --timeout gives it longer"
    )]
    Mute { address: SocketAddr, timeout: Nanos },
    /// The connection broke.
    #[error(
        "the connection to {address} broke: {source}; is the database up, and is this its \
         CQL address?"
    )]
    Broken { address: SocketAddr, source: io::Error },
    /// It is reached, and TLS with it does not come about.
    #[error("cannot speak TLS with {address}: {failure}")]
    Tls { address: SocketAddr, failure: Failure },
    /// It wants TLS.
    #[error("{address} speaks TLS: add --tls, and with --tls-ca FILE whom to trust")]
    WantsTls { address: SocketAddr },
    /// It answers, but not with this protocol.
    #[error("{address} does not speak the CQL protocol ({reason}); is it the database's CQL port?")]
    NotCql { address: SocketAddr, reason: String },
    /// It does not let us in.
    #[error("{address} is of no use: {refusal}")]
    NotLetIn { address: SocketAddr, refusal: Refusal },
    /// The caller does not want it any more.
    #[error("interrupted while waiting for {address}")]
    Interrupted { address: SocketAddr },
    /// It refused a statement.
    #[error("{address} refused '{statement}': {message} (code {code:#06x})")]
    Refused { address: SocketAddr, statement: String, message: String, code: i32 },
}

/// An open control connection.
#[derive(Debug)]
pub struct Control {
    address: SocketAddr,
    timeout: Nanos,
    stream: Stream,
    stop: Arc<AtomicBool>,
    protocol: Protocol,
    framed: Option<Framed>,
}

/// What a framed connection has received, and how it frames.
#[derive(Debug)]
struct Framed {
    incoming: Incoming,
    outgoing: Outgoing,
    received: Vec<u8>,
}

impl Control {
    /// Connects and says STARTUP. `timeout` bounds the connect and each request after it.
    ///
    /// # Errors
    /// [`ControlError`]: unreachable, mute, of another protocol, or wanting to know who we are.
    pub fn connect(address: SocketAddr, timeout: Nanos) -> Result<Self, ControlError> {
        Self::connect_as(address, timeout, &Access::default())
    }

    /// As [`Self::connect`], at a target that wants a password, or TLS.
    ///
    /// # Errors
    /// As for [`Self::connect`], and a refused password.
    pub fn connect_as(
        address: SocketAddr,
        timeout: Nanos,
        access: &Access,
    ) -> Result<Self, ControlError> {
        Self::connect_unless(address, timeout, access, &Arc::default())
    }

    /// As [`Self::connect_as`], but not beyond the wish to stop.
    ///
    /// # Errors
    /// As for [`Self::connect_as`], and [`ControlError::Interrupted`] soon after `stop` is set,
    /// from this and every later request.
    pub fn connect_unless(
        address: SocketAddr,
        timeout: Nanos,
        access: &Access,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, ControlError> {
        Self::speaking(Protocol::default(), address, timeout, access, stop)
    }

    /// As [`Self::connect_unless`], in this protocol.
    ///
    /// # Errors
    /// As for [`Self::connect_unless`], and [`ControlError::NotLetIn`] when the target does not
    /// take the protocol.
    pub fn speaking(
        protocol: Protocol,
        address: SocketAddr,
        timeout: Nanos,
        access: &Access,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, ControlError> {
        let unreachable = |source| ControlError::Unreachable { address, source };
        let socket = open(address, timeout, stop)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        socket.set_write_timeout(Some(timeout.to_duration())).map_err(unreachable)?;
        let stop = stop.clone();
        let stream = Stream::new(socket, address, access.tls.as_ref()).map_err(unreachable)?;
        let mut control = Self { address, timeout, stream, stop, protocol, framed: None };
        let mut frame = handshake::startup(protocol, false);
        // STARTUP and the password; whoever asks for more than that is not let have it.
        for _ in 0..2 {
            let answered = control.exchange(&frame);
            let (header, body) = answered.map_err(|error| control.unless_tls(error))?;
            if control.framed.is_none() && !protocol.is_bare() {
                control.framed = Some(Framed {
                    incoming: Incoming::new(protocol, ANSWER_SIZE_MAX),
                    outgoing: Outgoing::new(protocol),
                    received: Vec::new(),
                });
            }
            match handshake::next(protocol, &header, &body, access.credentials.as_ref()) {
                Ok(Next::Ready) => return Ok(control),
                Ok(Next::Send(answer)) => frame = answer,
                Ok(Next::Offered(_)) => {
                    let reason = "its answer to STARTUP is no answer to that".to_owned();
                    return Err(ControlError::NotCql { address, reason });
                }
                Err(Refusal::Other(reason)) => {
                    return Err(ControlError::NotCql { address, reason });
                }
                Err(refusal) => return Err(ControlError::NotLetIn { address, refusal }),
            }
        }
        let reason = "it asks for the password again and again".to_owned();
        Err(ControlError::NotCql { address, reason })
    }

    /// What went wrong at the beginning, or that the target wants TLS, where that explains it.
    fn unless_tls(&self, error: ControlError) -> ControlError {
        let address = self.address;
        match error {
            ControlError::Broken { .. } | ControlError::NotCql { .. }
                if !self.stream.is_secured()
                    && is_spoken_at(address, self.timeout.min(GREETING_MAX)) =>
            {
                ControlError::WantsTls { address }
            }
            error => error,
        }
    }

    /// Runs one statement; returns the rows' cells, empty for other results.
    ///
    /// # Errors
    /// [`ControlError::Refused`] when the server says no, others when the connection fails.
    pub fn query(&mut self, text: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, ControlError> {
        let request = Request::Query(text, QueryParameters::plain(Consistency::LocalOne));
        let (header, body) = self.ask(&request)?;
        match self.decode(&header, &body)? {
            Response::Rows(rows) => {
                let rows = rows.collect().map_err(|e| self.not_cql(&e))?;
                Ok(rows
                    .into_iter()
                    .map(|row| row.into_iter().map(|c| c.map(<[u8]>::to_vec)).collect())
                    .collect())
            }
            Response::Void | Response::SchemaChange | Response::SetKeyspace(_) => Ok(Vec::new()),
            Response::Error { code, message, .. } => Err(self.refused(text, code, message)),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Prepares one statement.
    ///
    /// # Errors
    /// As for [`Self::query`].
    pub fn prepare(&mut self, text: &str) -> Result<Prepared, ControlError> {
        let (header, body) = self.ask(&Request::Prepare(text, None))?;
        match self.decode(&header, &body)? {
            Response::Prepared(prepared) => Ok(prepared),
            Response::Error { code, message, .. } => Err(self.refused(text, code, message)),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What the host says of its shards, its port the one for a connection like this one; None when
    /// it has none. Inside the outer result: that it
    /// says what nobody can route by.
    ///
    /// # Errors
    /// As for [`Self::query`].
    pub fn offer(&mut self) -> Result<Result<Option<Offer>, ShardError>, ControlError> {
        let (header, body) = self.ask(&Request::Options)?;
        match self.decode(&header, &body)? {
            Response::Supported(options) => {
                let is_tls = self.stream.is_secured();
                let ours = |offer: Offer| {
                    if is_tls { Offer { port: offer.port_tls, ..offer } } else { offer }
                };
                Ok(Offer::read(&options).map(|offer| offer.map(ours)))
            }
            Response::Error { code, message, .. } => Err(self.refused("OPTIONS", code, message)),
            other => Err(self.unexpected(&other)),
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Result<(Header, Vec<u8>), ControlError> {
        let mut frame = Vec::new();
        request.encode_at(self.protocol.version(), 0, &mut frame);
        let (header, body) = self.exchange(&frame)?;
        let version = header.version & !RESPONSE;
        if version != self.protocol.version() {
            let reason = format!("it answers in version {version}");
            return Err(ControlError::NotCql { address: self.address, reason });
        }
        Ok((header, body))
    }

    fn exchange(&mut self, frame: &[u8]) -> Result<(Header, Vec<u8>), ControlError> {
        let mut wired = Vec::new();
        match &mut self.framed {
            Some(framed) => framed.outgoing.encode(frame, &mut wired),
            None => wired.extend_from_slice(frame),
        }
        self.stream.write_all(&wired).map_err(|e| self.broken(e))?;
        self.frame()
    }

    /// Whether a frame has arrived that was not taken yet.
    pub(crate) fn has_frame(&self) -> bool {
        self.framed.as_ref().is_some_and(|framed| framed.incoming.has_frames())
            || self.stream.holds_some()
    }

    /// The next frame that the target sends.
    pub(crate) fn frame(&mut self) -> Result<(Header, Vec<u8>), ControlError> {
        let deadline = clock::now() + self.timeout;
        match self.framed.take() {
            Some(mut framed) => {
                let frame = self.framed_frame(&mut framed, deadline);
                self.framed = Some(framed);
                frame
            }
            None => self.bare_frame(deadline),
        }
    }

    fn framed_frame(
        &mut self,
        framed: &mut Framed,
        deadline: Nanos,
    ) -> Result<(Header, Vec<u8>), ControlError> {
        let Framed { incoming, received, .. } = framed;
        loop {
            let broken = |error: FramingError| self.broken(io::Error::other(error));
            let consumed = incoming.advance(received).map_err(broken)?;
            received.drain(..consumed);
            let frames = incoming.frames(received);
            if let Some(header) = Header::decode(frames).map_err(|e| self.not_cql(&e))? {
                let size = HEADER_SIZE + header.body_size;
                let body = frames.get(HEADER_SIZE..size).unwrap_or_default().to_vec();
                let consumed = incoming.take(size);
                received.drain(..consumed);
                return Ok((header, body));
            }
            let start = received.len();
            received.resize(start + READ_SIZE, 0);
            let size = self.read_some(&mut received[start..], deadline);
            received.truncate(start + size.as_ref().copied().unwrap_or(0));
            size?;
        }
    }

    fn bare_frame(&mut self, deadline: Nanos) -> Result<(Header, Vec<u8>), ControlError> {
        let mut head = [0u8; HEADER_SIZE];
        self.read(&mut head, deadline)?;
        let header = Header::decode(&head).map_err(|e| self.not_cql(&e))?;
        let Some(header) =
            header.filter(|h| h.version & RESPONSE != 0 && h.body_size <= ANSWER_SIZE_MAX)
        else {
            let reason = format!("its answer begins with {:02x?}", &head[..4]);
            return Err(ControlError::NotCql { address: self.address, reason });
        };
        let mut body = vec![0u8; header.body_size];
        self.read(&mut body, deadline)?;
        Ok((header, body))
    }

    /// Fills `out` before the deadline, however small the pieces are in which it comes.
    fn read(&mut self, mut out: &mut [u8], deadline: Nanos) -> Result<(), ControlError> {
        while !out.is_empty() {
            let size = self.read_some(out, deadline)?;
            out = &mut out[size..];
        }
        Ok(())
    }

    /// Reads what is there, at least one byte, before the deadline.
    fn read_some(&mut self, out: &mut [u8], deadline: Nanos) -> Result<usize, ControlError> {
        loop {
            let left = deadline.since(clock::now());
            if left == Nanos::ZERO {
                return Err(ControlError::Mute { address: self.address, timeout: self.timeout });
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(ControlError::Interrupted { address: self.address });
            }
            let patience = left.min(STOP_SEEN_MAX).to_duration();
            let set = self.stream.socket().set_read_timeout(Some(patience));
            match set.and_then(|()| self.stream.read(out)) {
                Ok(0) => {
                    let source = io::Error::other("it closed the connection instead of answering");
                    return Err(ControlError::Broken { address: self.address, source });
                }
                Ok(size) => return Ok(size),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted
                            | io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    pub(crate) fn decode<'a>(
        &self,
        header: &Header,
        body: &'a [u8],
    ) -> Result<Response<'a>, ControlError> {
        Response::decode(header, body).map_err(|e| self.not_cql(&e))
    }

    pub(crate) fn broken(&self, source: io::Error) -> ControlError {
        let address = self.address;
        if let Some(failure) = Failure::of(&source).cloned() {
            return ControlError::Tls { address, failure };
        }
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                ControlError::Mute { address, timeout: self.timeout }
            }
            _ => ControlError::Broken { address, source },
        }
    }

    pub(crate) fn not_cql(&self, error: &DecodeError) -> ControlError {
        ControlError::NotCql { address: self.address, reason: error.to_string() }
    }

    pub(crate) fn unexpected(&self, response: &Response<'_>) -> ControlError {
        let mut reason = format!("unexpected answer {response:?}");
        reason.truncate(reason.char_indices().nth(200).map_or(reason.len(), |(at, _)| at));
        ControlError::NotCql { address: self.address, reason }
    }

    pub(crate) fn refused(&self, statement: &str, code: ErrorCode, message: &str) -> ControlError {
        let (statement, message) = (statement.to_owned(), message.to_owned());
        ControlError::Refused { address: self.address, statement, message, code: code.0 }
    }
}

/// A blocking socket, connected before the deadline and not beyond the wish to stop.
fn open(address: SocketAddr, timeout: Nanos, stop: &AtomicBool) -> Result<TcpStream, ControlError> {
    let unreachable =
        |source: Errno| ControlError::Unreachable { address, source: io::Error::from(source) };
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let socket = socket.map_err(unreachable)?;
    let deadline = clock::now() + timeout;
    let mut connected = match rustix::net::connect(&socket, &address) {
        Ok(()) => true,
        Err(Errno::INPROGRESS) => false,
        Err(error) => return Err(unreachable(error)),
    };
    while !connected {
        let left = deadline.since(clock::now());
        if left == Nanos::ZERO {
            return Err(unreachable(Errno::TIMEDOUT));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(ControlError::Interrupted { address });
        }
        let patience = left.min(STOP_SEEN_MAX);
        let patience = Timespec { tv_sec: 0, tv_nsec: patience.0 as i64 };
        match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&patience)) {
            Ok(ready) => connected = ready > 0,
            Err(Errno::INTR) => {}
            Err(error) => return Err(unreachable(error)),
        }
    }
    sockopt::socket_error(&socket).and_then(|error| error).map_err(unreachable)?;
    rustix::io::ioctl_fionbio(&socket, false).map_err(unreachable)?;
    Ok(TcpStream::from(socket))
}
