//! Whether a server speaks TLS: it is greeted, and whatever it answers is looked at.
//!
//! Some servers answer what is not TLS by an alert, others by closing; so it is asked in TLS.

use super::files::ClientFiles;
use super::roles::Client;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use units::Nanos;

/// First byte of a record of a handshake, and of an alert (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;
/// First byte of the version in a record, of all versions.
const VERSION: u8 = 3;

/// Whether what listens there answers a greeting in TLS by TLS. False when it does not answer, and
/// in a build without TLS. Takes at most three times `timeout`.
#[must_use]
pub fn is_spoken_at(address: SocketAddr, timeout: Nanos) -> bool {
    answer(address, timeout).is_ok_and(|answer| matches!(answer, [HANDSHAKE | ALERT, VERSION]))
}

fn answer(address: SocketAddr, timeout: Nanos) -> io::Result<[u8; 2]> {
    let anybody = ClientFiles { ca: None, identity: None, name: None, verify: false };
    let client = Client::new(&anybody).map_err(io::Error::other)?;
    let mut hello = Vec::new();
    client.session(address)?.take_wired(&mut hello);
    let timeout = timeout.to_duration();
    let mut socket = TcpStream::connect_timeout(&address, timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    socket.write_all(&hello)?;
    let mut answer = [0; 2];
    socket.read_exact(&mut answer)?;
    Ok(answer)
}
