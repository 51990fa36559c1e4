//! What stands in for TLS in a build without it: nothing that could be made.

use super::error::{Failure, TlsError};
use super::files::{ClientFiles, ServerFiles};
use crate::{BufferSizes, Ring};
use std::io;
use std::net::SocketAddr;
use units::Nanos;

/// The ring as it is.
pub type Secured<R> = R;

/// Nothing is one.
#[derive(Debug, Clone)]
enum Never {}

/// There is none.
#[derive(Debug, Clone)]
pub struct Client(Never);

/// There is none.
#[derive(Debug, Clone)]
pub struct Server(Never);

/// There is none.
#[derive(Debug)]
pub struct Session(Never);

impl Client {
    /// # Errors
    /// Always: [`TlsError::NotBuilt`].
    pub fn new(_files: &ClientFiles) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Whether the server's certificate is verified.
    #[must_use]
    pub fn verifies(&self) -> bool {
        match self.0 {}
    }

    /// # Errors
    /// Never called.
    pub fn session(&self, _address: SocketAddr) -> io::Result<Session> {
        match self.0 {}
    }

    /// Never called.
    pub fn over<R: Ring>(&self, _ring: R, _sizes: BufferSizes) -> R {
        match self.0 {}
    }
}

impl Server {
    /// # Errors
    /// Always: [`TlsError::NotBuilt`].
    pub fn new(_files: &ServerFiles) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    /// Never called.
    pub fn over<R: Ring>(&self, _ring: R, _sizes: BufferSizes) -> R {
        match self.0 {}
    }
}

impl Session {
    /// Whether nothing can be written yet.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        match self.0 {}
    }

    /// Whether the peer has said that nothing follows.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match self.0 {}
    }

    /// # Errors
    /// Never called.
    pub fn arrived(&mut self, _wired: &[u8], _plain: impl FnMut(&[u8])) -> Result<(), Failure> {
        match self.0 {}
    }

    /// # Errors
    /// Never called.
    pub fn write(&mut self, _plain: &[u8]) -> Result<(), Failure> {
        match self.0 {}
    }

    /// Never called.
    pub fn end(&mut self) {
        match self.0 {}
    }

    /// Never called.
    pub fn take_wired(&mut self, _out: &mut Vec<u8>) -> bool {
        match self.0 {}
    }
}

/// False: it is not looked.
#[must_use]
pub fn is_spoken_at(_address: SocketAddr, _timeout: Nanos) -> bool {
    false
}
