//! Who listens at an address of this host, and on which cpus.
//!
//! Input: `/proc/net/{tcp,tcp6}`, `/proc/PID/fd`, `/proc/PID/task/*/status` (proc(5)). Output:
//! [`Listener`]. Limits: processes of other users can be looked into by root only, those in another
//! network namespace (most containers) not at all; both are `None`.

use crate::process::ProcessId;
use crate::verify::field;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use units::{CpuId, CpuSet};

/// A process that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Which.
    pub process: ProcessId,
    /// All cpus that some thread of it may run on.
    pub cpus: CpuSet,
}

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Whether an address is this host's: only then can a socket be bound to it.
#[must_use]
pub fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// The processes that listen at `addresses`, in their order; None where none can be found. All of
/// this host's processes are looked through once.
#[must_use]
pub fn at(addresses: &[SocketAddr]) -> Vec<Option<Listener>> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let inodes: Vec<Option<u64>> = addresses
        .iter()
        .map(|address| tables.iter().find_map(|table| inode_of(table, *address)))
        .collect();
    let owners = owners(&inodes.iter().flatten().copied().collect::<Vec<_>>());
    let listener =
        |pid: u32| Some(Listener { process: ProcessId::of(pid).ok()?, cpus: cpus_of(pid)? });
    inodes.iter().map(|inode| listener(*owners.get(&(*inode)?)?)).collect()
}

/// The socket that listens at an address, or at all of this host's with its port.
fn inode_of(table: &str, address: SocketAddr) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (ip, port) = fields.get(1)?.split_once(':')?;
        let ip = parse_ip(ip)?;
        let here = ip.is_unspecified() || ip == address.ip();
        let port = u16::from_str_radix(port, 16).ok()?;
        (here && port == address.port() && fields.get(3) == Some(&LISTEN))
            .then(|| fields.get(9)?.parse().ok())?
    })
}

/// Words of 32 bits, each in the order of this machine; IPv4 in IPv6 is IPv4.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(8 * at..8 * at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Which processes have these sockets open: inode -> pid.
fn owners(inodes: &[u64]) -> BTreeMap<u64, u32> {
    let mut owners = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return owners };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids {
        if owners.len() == inodes.len() {
            break;
        }
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for target in files.flatten().filter_map(|file| fs::read_link(file.path()).ok()) {
            let inode = target.to_str().and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']'));
            if let Some(inode) = inode.and_then(|inode| inode.parse().ok())
                && inodes.contains(&inode)
            {
                owners.entry(inode).or_insert(pid);
            }
        }
    }
    owners
}

/// The union over the threads.
fn cpus_of(pid: u32) -> Option<CpuSet> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let cpus: Vec<CpuId> = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok())
        .filter_map(|status| field(&status, "Cpus_allowed_list")?.parse::<CpuSet>().ok())
        .flat_map(|cpus| cpus.iter().collect::<Vec<_>>())
        .collect();
    (!cpus.is_empty()).then(|| cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_of_this_process_is_found() {
        for listen in ["127.0.0.1:0", "0.0.0.0:0"] {
            let socket = TcpListener::bind(listen).unwrap();
            let port = socket.local_addr().unwrap().port();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            // Nobody listens at port 0.
            let found = at(&["127.0.0.1:0".parse().unwrap(), address]);
            let [None, Some(listener)] = &found[..] else { panic!("{listen}: {found:?}") };
            assert_eq!(listener.process.pid, std::process::id(), "{listen}");
            assert!(!listener.cpus.is_empty());
            drop(socket);
            assert_eq!(at(&[address]), [None]);
        }
    }

    #[test]
    fn addresses_of_this_host_are_told_from_others() {
        assert!(is_here("127.9.9.9".parse().unwrap()) && is_here("::1".parse().unwrap()));
        // For documentation only (RFC 5737): nobody's.
        assert!(!is_here("192.0.2.1".parse().unwrap()));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn tables_are_read_and_garbage_is_not() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 71 1
   1: 0200007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 72 1
   2: 0100007F:0050 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 73 1
";
        let at = |text: &str| inode_of(table, text.parse().unwrap());
        assert_eq!(at("127.0.0.1:9090"), Some(71));
        assert_eq!(at("127.0.0.2:9090"), Some(72));
        assert_eq!(at("127.0.0.3:9090"), None);
        assert_eq!(at("127.0.0.1:80"), None, "connected, not listening");
        let mapped = "0000000000000000FFFF00000100007F";
        assert_eq!(parse_ip(mapped), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(parse_ip(&"0".repeat(32)), Some(Ipv6Addr::UNSPECIFIED.into()));
        for text in ["", "0100007", "0100007G", "é100007F", &"F".repeat(33)] {
            assert_eq!(parse_ip(text), None, "{text}");
        }
        for cut in 0..table.len() {
            let _ = inode_of(&table[..cut], "127.0.0.1:9090".parse().unwrap());
        }
    }
}
