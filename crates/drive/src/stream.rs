//! The blocking socket of a control connection, inside TLS where that is asked for.
//!
//! The handshake goes on as bytes arrive, within the time that the caller gives each read; what is
//! written before it is done goes out behind it.

use ring::tls::{Client, Failure, Session};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes that are read at a time inside TLS.
const READ_SIZE: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    secured: Option<Box<Secured>>,
}

#[derive(Debug)]
struct Secured {
    session: Session,
    /// What has arrived and was not read, from `taken` on.
    plain: Vec<u8>,
    taken: usize,
    wired: Vec<u8>,
}

impl Stream {
    /// Around a connected socket.
    pub(crate) fn new(
        socket: TcpStream,
        address: SocketAddr,
        tls: Option<&Client>,
    ) -> io::Result<Self> {
        let secured = match tls {
            None => None,
            Some(client) => {
                let session = client.session(address)?;
                let (plain, wired) = (Vec::new(), Vec::new());
                Some(Box::new(Secured { session, plain, taken: 0, wired }))
            }
        };
        Ok(Self { socket, secured })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(crate) fn is_secured(&self) -> bool {
        self.secured.is_some()
    }

    /// Whether a read would not have to ask the socket.
    pub(crate) fn holds_some(&self) -> bool {
        self.secured.as_ref().is_some_and(|secured| secured.taken < secured.plain.len())
    }

    pub(crate) fn write_all(&mut self, plain: &[u8]) -> io::Result<()> {
        match &mut self.secured {
            None => self.socket.write_all(plain),
            Some(secured) => {
                secured.session.write(plain)?;
                secured.say(&mut self.socket)
            }
        }
    }

    /// Reads what is there, waiting as long as the socket's timeout says. An error of the kind
    /// `WouldBlock` also when what came was no plaintext.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.secured {
            None => self.socket.read(out),
            Some(secured) => secured.read(&mut self.socket, out),
        }
    }
}

impl Secured {
    fn say(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.wired.clear();
        self.session.take_wired(&mut self.wired);
        socket.write_all(&self.wired)
    }

    fn read(&mut self, socket: &mut TcpStream, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.plain.len() {
            self.receive(socket)?;
        }
        let rest = &self.plain[self.taken..];
        let size = rest.len().min(out.len());
        out[..size].copy_from_slice(&rest[..size]);
        self.taken += size;
        match size {
            0 if !self.session.is_ended() => Err(io::ErrorKind::WouldBlock.into()),
            size => Ok(size),
        }
    }

    fn receive(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.plain.clear();
        self.taken = 0;
        if self.session.is_ended() {
            return Ok(());
        }
        let mut wired = [0; READ_SIZE];
        let size = match socket.read(&mut wired) {
            Ok(0) => return Err(self.at_end()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(if self.session.is_handshaking() { self.at_end() } else { error });
            }
            read => read?,
        };
        let plain = &mut self.plain;
        let outcome = self.session.arrived(&wired[..size], |some| plain.extend_from_slice(some));
        let said = self.say(socket);
        outcome?;
        said
    }

    /// The peer has gone without saying so in TLS.
    fn at_end(&self) -> io::Error {
        match self.session.is_handshaking() {
            true => Failure::Ended.into(),
            false => io::ErrorKind::UnexpectedEof.into(),
        }
    }
}
