//! Limits of a process, and who listens on a port.
//!
//! Input: `proc/PID/{limits,status,stat,fd}`, `proc/net/tcp` and `tcp6`. Output: [`Limits`],
//! [`Listener`]. Source: proc(5), getrlimit(2). Limits: another user's sockets are seen by root
//! alone; one network namespace.

use crate::parse::field;
use crate::source::Source;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use units::CpuSet;

/// A resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// At most so many, or so many bytes.
    AtMost(u64),
    /// None.
    Unlimited,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(n) => write!(f, "{n}"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// The soft limits of a process that databases give advice on; `None` where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Open files.
    pub nofile: Option<Limit>,
    /// Locked memory, in bytes.
    pub memlock: Option<Limit>,
    /// Processes and threads of the user.
    pub nproc: Option<Limit>,
    /// Address space, in bytes.
    pub address_space: Option<Limit>,
}

impl Limits {
    /// Reads `/proc/PID/limits`: name, soft limit, hard limit, unit in columns of fixed names.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let soft = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            match rest.split_whitespace().next()? {
                "unlimited" => Some(Limit::Unlimited),
                number => number.parse().ok().map(Limit::AtMost),
            }
        };
        Self {
            nofile: soft("Max open files"),
            memlock: soft("Max locked memory"),
            nproc: soft("Max processes"),
            address_space: soft("Max address space"),
        }
    }
}

/// A process that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Its limits.
    pub limits: Limits,
    /// The cpus that it may run on.
    pub cpus: CpuSet,
}

/// The process below `root` that listens on this TCP address, or on its port at all addresses;
/// `None` when there is none, or it may not be seen.
#[must_use]
pub fn listener(root: &Path, address: SocketAddr) -> Option<Listener> {
    let source = Source::new(root);
    let inodes: Vec<String> = ["proc/net/tcp", "proc/net/tcp6"]
        .iter()
        .filter_map(|path| source.text(path))
        .flat_map(|table| listening(&table, address))
        .collect();
    let sockets: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    if sockets.is_empty() {
        return None;
    }
    let holds = |pid: &u32| {
        let dir = format!("proc/{pid}/fd");
        source.names(&dir).iter().any(|fd| {
            source.link(&format!("{dir}/{fd}")).is_some_and(|socket| sockets.contains(&socket))
        })
    };
    let pid = source.numbered("proc", "").into_iter().find(holds)?;
    let status = source.text(&format!("proc/{pid}/status"))?;
    Some(Listener {
        pid,
        name: field(&status, &["Name"]).unwrap_or_default().to_owned(),
        limits: Limits::parse(&source.text(&format!("proc/{pid}/limits")).unwrap_or_default()),
        cpus: field(&status, &["Cpus_allowed_list"])?.parse().ok()?,
    })
}

/// Inodes of the sockets that listen there, from a table of `proc/net/tcp`.
fn listening(table: &str, address: SocketAddr) -> Vec<String> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let (ip, port) = local.rsplit_once(':')?;
            let (ip, port) = (local_ip(ip)?, u16::from_str_radix(port, 16).ok()?);
            let fits = port == address.port()
                && (ip.is_unspecified() || ip.to_canonical() == address.ip().to_canonical());
            (*state == LISTEN && fits).then(|| (*inode).to_owned())
        })
        .collect()
}

/// An address as the kernel prints it: words of 32 bits, each in the byte order of the host.
fn local_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let words: Vec<u8> = [0, 8, 16, 24].into_iter().filter_map(word).flatten().collect();
            Some(IpAddr::from(<[u8; 16]>::try_from(words).ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_their_whole_names() {
        let limits = Limits::parse(
            "Limit                     Soft Limit           Hard Limit           Units\n\
             Max processes             96365                96365                processes\n\
             Max open files            1024                 4096                 files\n\
             Max locked memory         unlimited            unlimited            bytes\n\
             Max address space         none                 unlimited            bytes\n",
        );
        assert_eq!(limits.nofile, Some(Limit::AtMost(1024)));
        assert_eq!(limits.memlock, Some(Limit::Unlimited));
        assert_eq!(limits.nproc, Some(Limit::AtMost(96365)));
        assert_eq!(limits.address_space, None);
        assert!(Limit::Unlimited > Limit::AtMost(u64::MAX));
    }

    #[cfg(target_endian = "little")] // the table is one of such a host
    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt \
                     uid  timeout inode\n\
                     0: 0100007F:2352 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 \
                     0 4711 1 0 100 0 0 10 0\n\
                     1: 0100007F:2352 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 \
                     0 4712 1 0 100 0 0 10 0\n\
                     2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 \
                     0 4713 1 0 100 0 0 10 0\n";
        let of = |table: &str, address: &str| listening(table, address.parse().unwrap());
        // 2352 is 9042 in hex; the address of the last line is the unspecified one.
        assert_eq!(of(table, "127.0.0.1:9042"), ["4711"]);
        assert!(of(table, "127.0.0.2:9042").is_empty());
        assert_eq!(of(table, "127.0.0.2:8080"), ["4713"]);
        assert!(of("", "[::1]:1").is_empty() && of("x\ny z\n", "[::1]:1").is_empty());
        let mapped = "0000000000000000FFFF00000100007F";
        assert_eq!(local_ip(mapped).unwrap().to_canonical(), IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn a_listening_process_of_ours_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let found = listener(Path::new("/"), address).unwrap();
        assert_eq!(found.pid, std::process::id());
        assert!(!found.cpus.is_empty() && found.limits.nofile.is_some(), "{found:?}");
        drop(socket);
        assert_ne!(listener(Path::new("/"), address).map(|l| l.pid), Some(std::process::id()));
    }
}
