//! TLS for a driver that has none of its own: it connects to an address of this host, and what it
//! says goes on inside TLS to the host that it means.
//!
//! (The driver's own TLS would bring cryptography that is built with cmake.) In: addresses of
//! hosts. Out: for each a loopback address to connect to instead, and back again from what the
//! driver tells of its hosts. It lives as long as its runtime. Whoever connects and is not this
//! process is closed at once: no other program of this host gets in with our certificate.

use crate::connect::ConnectError;
use ring::tls::{Client, Failure, Session};
use scylla::errors::{CustomTranslationError, TranslationError};
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::net::{TcpListener, TcpStream};

/// Where the driver connects to: an address of loopback at which no database will be.
const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 84, 76, 83));

/// Bytes that are moved at a time.
const PIECE: usize = 16 << 10;

/// The future that the driver's trait wants back.
type Translated<'a> =
    Pin<Box<dyn Future<Output = Result<SocketAddr, TranslationError>> + Send + 'a>>;

#[derive(Debug, Default)]
struct Ways {
    /// Port at [`HOME`] by host.
    ports: HashMap<SocketAddr, u16>,
    /// What went wrong first with a host.
    failures: HashMap<SocketAddr, Arc<io::Error>>,
}

/// Ways into TLS. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Bridge {
    tls: Client,
    ways: Arc<Mutex<Ways>>,
}

impl Bridge {
    pub(crate) fn new(tls: Client) -> Self {
        Self { tls, ways: Arc::default() }
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a host is connected to. Within a runtime.
    pub(crate) fn way_to(&self, host: SocketAddr) -> io::Result<SocketAddr> {
        let mut ways = self.ways();
        if let Some(&port) = ways.ports.get(&host) {
            return Ok(SocketAddr::new(HOME, port));
        }
        let listener = std::net::TcpListener::bind((HOME, 0))?;
        listener.set_nonblocking(true)?;
        let way = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        ways.ports.insert(host, way.port());
        drop(ways);
        let bridge = self.clone();
        tokio::spawn(async move {
            while let Ok((near, peer)) = listener.accept().await {
                if is_own(peer, way) {
                    tokio::spawn(bridge.clone().carry(near, host));
                }
            }
        });
        Ok(way)
    }

    /// The host that the driver means by an address. It gives other hosts the port of the one
    /// that tells it of them.
    pub(crate) fn host_at(&self, address: SocketAddr) -> SocketAddr {
        let ways = self.ways();
        let port = address.port();
        match ways.ports.iter().find(|(_, own)| **own == port).map(|(host, _)| *host) {
            Some(host) if address.ip() == HOME => host,
            Some(host) => SocketAddr::new(address.ip(), host.port()),
            None => address,
        }
    }

    /// Why a host could not be reached or spoken with, when that is so.
    pub(crate) fn failure(&self, address: SocketAddr) -> Option<ConnectError> {
        let source = self.ways().failures.get(&address)?.clone();
        Some(match Failure::of(&source).cloned() {
            Some(failure) => ConnectError::Tls { address, failure },
            None => ConnectError::Unreachable { address, source },
        })
    }

    async fn carry(self, near: TcpStream, host: SocketAddr) {
        let carried = match TcpStream::connect(host).await {
            Ok(far) => self.move_bytes(near, far, host).await,
            Err(error) => Err(error),
        };
        if let Err(error) = carried {
            self.ways().failures.entry(host).or_insert_with(|| Arc::new(error));
        }
    }

    async fn move_bytes(
        &self,
        near: TcpStream,
        far: TcpStream,
        host: SocketAddr,
    ) -> io::Result<()> {
        let session = self.tls.session(host)?;
        far.set_nodelay(true)?;
        near.set_nodelay(true)?;
        let mut carrier = Carrier {
            near,
            far,
            session,
            to_near: Vec::new(),
            to_far: Vec::new(),
            piece: vec![0; PIECE].into_boxed_slice(),
        };
        std::future::poll_fn(|context| carrier.poll(context)).await
    }
}

/// One connection of the driver's.
struct Carrier {
    near: TcpStream,
    far: TcpStream,
    session: Session,
    to_near: Vec<u8>,
    to_far: Vec<u8>,
    piece: Box<[u8]>,
}

impl Carrier {
    /// Moves what can be moved, until one side ends.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.session.take_wired(&mut self.to_far);
            let from_near = self.poll_near(context)?;
            let from_far = self.poll_far(context)?;
            match (from_near, from_far) {
                (Poll::Ready(true), _) | (_, Poll::Ready(true)) => return Poll::Ready(Ok(())),
                (Poll::Pending, Poll::Pending) => return Poll::Pending,
                _ => {}
            }
        }
    }

    /// Sends what waits for the host, then reads the driver. Ready(true) at the driver's end.
    fn poll_near(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while !self.to_far.is_empty() {
            ready!(self.far.poll_write_ready(context))?;
            match self.far.try_write(&self.to_far) {
                Ok(size) => drop(self.to_far.drain(..size)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The host may have said why before it went.
                Err(error) => return self.last_words(error),
            }
        }
        ready!(self.near.poll_read_ready(context))?;
        match self.near.try_read(&mut self.piece) {
            Ok(0) => Poll::Ready(Ok(true)),
            Ok(size) => {
                self.session.write(&self.piece[..size])?;
                Poll::Ready(Ok(false))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Ready(Ok(false)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Sends what waits for the driver, then reads the host. Ready(true) at the host's end.
    fn poll_far(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while !self.to_near.is_empty() {
            ready!(self.near.poll_write_ready(context))?;
            match self.near.try_write(&self.to_near) {
                Ok(size) => drop(self.to_near.drain(..size)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.session.is_ended() {
            return Poll::Ready(Ok(true));
        }
        ready!(self.far.poll_read_ready(context))?;
        match self.far.try_read(&mut self.piece) {
            Ok(0) if self.session.is_handshaking() => Poll::Ready(Err(Failure::Ended.into())),
            Ok(0) => Poll::Ready(Ok(true)),
            Ok(size) => {
                let to_near = &mut self.to_near;
                let arrived = self.session.arrived(&self.piece[..size], |plain| {
                    to_near.extend_from_slice(plain);
                });
                if let Err(failure) = arrived {
                    // It learns why; a failure of that is the lesser one.
                    self.session.take_wired(&mut self.to_far);
                    let _ = self.far.try_write(&self.to_far);
                    return Poll::Ready(Err(failure.into()));
                }
                Poll::Ready(Ok(false))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Ready(Ok(false)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn last_words(&mut self, error: io::Error) -> Poll<io::Result<bool>> {
        if let Ok(size) = self.far.try_read(&mut self.piece) {
            self.session.arrived(&self.piece[..size], |_| {})?;
        }
        Poll::Ready(Err(error))
    }
}

/// Whether the connection from `peer` to `way` is one of this process. Source: proc_net(5), the
/// `tcp` table, and the links in `/proc/self/fd`.
fn is_own(peer: SocketAddr, way: SocketAddr) -> bool {
    let Ok(table) = std::fs::read_to_string("/proc/self/net/tcp") else { return false };
    let Some(inode) = inode_of(&table, peer, way) else { return false };
    let socket = format!("socket:[{inode}]");
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return false };
    descriptors
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|link| link.as_os_str() == socket.as_str())
}

/// The inode of the socket that is `local` on its side and connected to `remote`.
fn inode_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<&str> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let ends = (address(words.next()?)?, address(words.next()?)?);
        // Behind the state: queues, timer, retransmits, uid, timeout.
        (ends == (local, remote)).then(|| words.nth(6)).flatten()
    })
}

/// `0100007F:2352`: the address as the number that the machine has in memory.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let ip = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port))
}

/// Sends the driver over the bridge, behind another translator where there is one.
pub(crate) struct Over {
    pub(crate) bridge: Bridge,
    pub(crate) behind: Option<Arc<dyn AddressTranslator>>,
}

impl AddressTranslator for Over {
    fn translate_address<'a, 'b, 'r>(&'a self, peer: &'b UntranslatedPeer<'_>) -> Translated<'r>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        Box::pin(async move {
            let host = match &self.behind {
                Some(behind) => behind.translate_address(peer).await?,
                None => self.bridge.host_at(peer.untranslated_address()),
            };
            let way = self.bridge.way_to(host);
            way.map_err(|error| TranslationError::Custom(CustomTranslationError::new(error)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_found_in_the_table_by_both_its_ends() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode\n\
                     0: 0100007F:2352 534C547F:9C40 01 00000000:00000000 00:00000000 00000000  \
                     1000 0 4711 1 0000000000000000 20 4 30 10 -1\n";
        let (local, remote) = ("127.0.0.1:9042", "127.84.76.83:40000");
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(inode_of(table, local, remote), Some("4711"));
            assert_eq!(inode_of(table, remote, local), None);
        }
    }

    #[test]
    fn only_sockets_of_this_process_are_its_own() {
        let listener = std::net::TcpListener::bind((HOME, 0)).unwrap();
        let way = listener.local_addr().unwrap();
        let own = std::net::TcpStream::connect(way).unwrap();
        assert!(is_own(own.local_addr().unwrap(), way));
        let gone = own.local_addr().unwrap();
        drop(own);
        assert!(!is_own(gone, way));
        // Another program's.
        let script = format!("exec 3<>/dev/tcp/{}/{}; read line <&3", way.ip(), way.port());
        let mut other = std::process::Command::new("bash").args(["-c", &script]).spawn().unwrap();
        drop(listener.accept().unwrap());
        let (_held, peer) = listener.accept().unwrap();
        assert!(!is_own(peer, way));
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
