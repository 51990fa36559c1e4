//! One server: a socket, info and messages, each answered before the next one is asked.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use units::{Nanos, clock};
use wire::aerospike::{DecodeError, PROTO_SIZE, ProtoHeader, ProtoKind, ResultCode, info};

/// How long a request to stop may go unseen.
const STOP_SEEN_MAX: Nanos = Nanos::from_millis(100);
/// Bytes of an answer at most.
const ANSWER_MAX: usize = 16 << 20;

/// Why a cluster cannot be used. Each text names the server and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum Error {
    /// No address was given.
    #[error("no host to connect to: give --target HOST[:PORT]")]
    NoHost,
    /// Nobody listens, or no route.
    #[error(
        "cannot connect to {address}: {source}; is the database up, and is this its service port \
         (3000 by default)?"
    )]
    Unreachable { address: SocketAddr, source: io::Error },
    /// Something listens and does not answer.
    #[error(
        "{address} accepts connections but did not answer within {timeout}; is it a service port \
         of Aerospike? --timeout gives it longer"
    )]
    Mute { address: SocketAddr, timeout: Nanos },
    /// The connection broke.
    #[error("the connection to {address} broke: {source}; does its log say why?")]
    Broken { address: SocketAddr, source: io::Error },
    /// It speaks something else.
    #[error(
        "{address} does not speak Aerospike's protocol: {reason}; is this its service port (3000 \
         by default), and not that of TLS, heartbeats or CQL?"
    )]
    Foreign { address: SocketAddr, reason: String },
    /// It wants to know who we are.
    #[error(
        "{address} wants users to log in, which wideload does not do yet: switch security off, or \
         use a server without it"
    )]
    Secured { address: SocketAddr },
    /// The namespaces are part of the servers' configuration.
    #[error(
        "{address} has no namespace '{namespace}': give one that it has with --namespace \
         ({there}); a new one takes a change of aerospike.conf and a restart"
    )]
    Namespace { address: SocketAddr, namespace: String, there: String },
    /// No server says that it is the master of some partitions.
    #[error(
        "{missing} of the {all} partitions of namespace '{namespace}' have no master among \
         {hosts}: give --target all servers, or wait until the cluster is whole"
    )]
    Partitions { missing: usize, all: usize, namespace: String, hosts: String },
    /// A record could not be read or written.
    #[error("{address} refused {what}: {result}")]
    Refused { address: SocketAddr, what: String, result: ResultCode },
    /// The stop flag was set.
    #[error("interrupted while waiting for {address}")]
    Interrupted { address: SocketAddr },
}

/// A connection to a server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    socket: TcpStream,
    timeout: Nanos,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Connects within `timeout`, which holds for each answer too.
    ///
    /// # Errors
    /// [`Error`] when nobody listens, or `stop` is set meanwhile.
    pub fn connect(
        address: SocketAddr,
        timeout: Nanos,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let socket = open(address, timeout, stop)?;
        // Only costs time where it is refused.
        let _ = socket.set_nodelay(true);
        Ok(Self { address, socket, timeout, stop: stop.clone() })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The values of names, in their order.
    ///
    /// # Errors
    /// [`Error`] when there is no answer to each.
    pub fn info<const N: usize>(&mut self, names: [&str; N]) -> Result<[String; N], Error> {
        let mut request = Vec::new();
        info::put_request(&names, &mut request);
        let body = self.ask(&request, ProtoKind::Info)?;
        let lines: Vec<_> = info::lines(&body).map_err(|e| self.foreign(&e))?.collect();
        let mut values = Vec::with_capacity(N);
        for name in names {
            let value = lines.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            match value {
                Some(value) if is_unauthenticated(value) => {
                    return Err(Error::Secured { address: self.address });
                }
                Some(value) => values.push(value.to_owned()),
                None if lines.first().is_some_and(|(line, _)| is_unauthenticated(line)) => {
                    return Err(Error::Secured { address: self.address });
                }
                None => {
                    let reason = format!("it says nothing of '{name}'");
                    return Err(Error::Foreign { address: self.address, reason });
                }
            }
        }
        values.try_into().map_err(|_| Error::NoHost)
    }

    /// Sends a message on records; the body of the answer.
    ///
    /// # Errors
    /// [`Error`] when there is none.
    pub fn message(&mut self, request: &[u8]) -> Result<Vec<u8>, Error> {
        self.ask(request, ProtoKind::Message)
    }

    fn ask(&mut self, request: &[u8], kind: ProtoKind) -> Result<Vec<u8>, Error> {
        let deadline = clock::now() + self.timeout;
        let timeout = Some(self.timeout.to_duration());
        let written = self.socket.set_write_timeout(timeout);
        written.and_then(|()| self.socket.write_all(request)).map_err(|e| self.broken(e))?;
        let mut head = [0; PROTO_SIZE];
        self.read(&mut head, deadline)?;
        let header = match ProtoHeader::decode(&head, ANSWER_MAX) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(Vec::new()),
            Err(error) => return Err(self.foreign(&error)),
        };
        let mut body = vec![0; header.size];
        self.read(&mut body, deadline)?;
        match header.kind == kind {
            true => Ok(body),
            false => {
                let reason = "it answers something else than what was asked".to_owned();
                Err(Error::Foreign { address: self.address, reason })
            }
        }
    }

    /// Fills `out` before the deadline.
    fn read(&mut self, mut out: &mut [u8], deadline: Nanos) -> Result<(), Error> {
        while !out.is_empty() {
            let left = deadline.since(clock::now());
            if left == Nanos::ZERO {
                return Err(Error::Mute { address: self.address, timeout: self.timeout });
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted { address: self.address });
            }
            let patience = left.min(STOP_SEEN_MAX).to_duration();
            let set = self.socket.set_read_timeout(Some(patience));
            match set.and_then(|()| self.socket.read(out)) {
                Ok(0) => {
                    let text = "it closed the connection instead of answering";
                    return Err(self.broken(io::Error::other(text)));
                }
                Ok(size) => out = &mut out[size..],
                Err(error) if waits(&error) => {}
                Err(error) => return Err(self.broken(error)),
            }
        }
        Ok(())
    }

    fn broken(&self, source: io::Error) -> Error {
        match waits(&source) {
            true => Error::Mute { address: self.address, timeout: self.timeout },
            false => Error::Broken { address: self.address, source },
        }
    }

    pub(super) fn foreign(&self, error: &DecodeError) -> Error {
        Error::Foreign { address: self.address, reason: error.to_string() }
    }
}

/// In the words of a server that knows users and does not know us.
fn is_unauthenticated(value: &str) -> bool {
    value.starts_with("ERROR:80:") || value.contains("not authenticated")
}

fn waits(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock | TimedOut)
}

/// A blocking socket, connected before the deadline and not beyond the wish to stop.
fn open(address: SocketAddr, timeout: Nanos, stop: &AtomicBool) -> Result<TcpStream, Error> {
    let unreachable =
        |source: Errno| Error::Unreachable { address, source: io::Error::from(source) };
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let socket = socket.map_err(unreachable)?;
    let deadline = clock::now() + timeout;
    let mut is_connected = match rustix::net::connect(&socket, &address) {
        Ok(()) => true,
        Err(Errno::INPROGRESS) => false,
        Err(error) => return Err(unreachable(error)),
    };
    while !is_connected {
        let left = deadline.since(clock::now());
        if left == Nanos::ZERO {
            return Err(unreachable(Errno::TIMEDOUT));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted { address });
        }
        let patience = Timespec { tv_sec: 0, tv_nsec: left.min(STOP_SEEN_MAX).0 as i64 };
        match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&patience)) {
            Ok(ready) => is_connected = ready > 0,
            Err(Errno::INTR) => {}
            Err(error) => return Err(unreachable(error)),
        }
    }
    sockopt::socket_error(&socket).and_then(|error| error).map_err(unreachable)?;
    rustix::io::ioctl_fionbio(&socket, false).map_err(unreachable)?;
    Ok(TcpStream::from(socket))
}
