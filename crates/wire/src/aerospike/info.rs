//! Info: names in lines, and for each a line with its value. Partition maps, peers and addresses
//! come this way.

use super::DecodeError;
use super::key::PARTITIONS;
use super::proto::{ProtoKind, begin, finish};
use super::reader::text;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Bytes of a map that has a bit for each partition, the first in the greatest bit.
const BITMAP_SIZE: usize = PARTITIONS / 8;

/// Appends a request for these names.
pub fn put_request(names: &[&str], out: &mut Vec<u8>) {
    let start = begin(out);
    for name in names {
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    finish(out, start, ProtoKind::Info);
}

/// The names of a request.
///
/// # Errors
/// [`DecodeError::NotUtf8`] when it is not text.
pub fn names(body: &[u8]) -> Result<impl Iterator<Item = &str>, DecodeError> {
    let text = text(body, "an info request")?;
    Ok(text.split('\n').map(str::trim).filter(|name| !name.is_empty()))
}

/// Appends the line of a name and its value.
pub fn put_line(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'\t');
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}

/// Names and values of an answer; a name without a value has an empty one.
///
/// # Errors
/// [`DecodeError::NotUtf8`] when it is not text.
pub fn lines(body: &[u8]) -> Result<impl Iterator<Item = (&str, &str)>, DecodeError> {
    let lines = text(body, "an info answer")?.split('\n').filter(|line| !line.is_empty());
    Ok(lines.map(|line| line.split_once('\t').unwrap_or((line, ""))))
}

/// Which partitions of a namespace a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replicas {
    /// The namespace.
    pub namespace: String,
    /// Counts changes of who is the master, where consistency is strong; else 0.
    pub regime: u32,
    /// For each copy, the master's first: a bit for each partition.
    pub copies: Vec<Vec<u8>>,
}

impl Replicas {
    /// Of a server that has all of a namespace alone.
    #[must_use]
    pub fn whole(namespace: &str) -> Self {
        let copies = vec![vec![0xFF; BITMAP_SIZE]];
        Self { namespace: namespace.to_owned(), regime: 0, copies }
    }

    /// Whether the server has this copy (0 is the master's) of a partition.
    #[must_use]
    pub fn has(&self, copy: usize, partition: usize) -> bool {
        let byte = self.copies.get(copy).and_then(|map| map.get(partition / 8));
        byte.is_some_and(|byte| byte & (0x80 >> (partition % 8)) != 0)
    }

    /// As in the value of `replicas`: `NAMESPACE:REGIME,COPIES,MAP,...`.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = format!("{}:{},{}", self.namespace, self.regime, self.copies.len());
        for copy in &self.copies {
            text.push(',');
            text.push_str(&BASE64_STANDARD.encode(copy));
        }
        text
    }

    /// All of the value of `replicas`, which are separated by semicolons.
    ///
    /// # Errors
    /// [`DecodeError`] when a number or a map is none.
    pub fn decode(value: &str) -> Result<Vec<Self>, DecodeError> {
        value.split(';').filter(|part| !part.is_empty()).map(Self::decode_one).collect()
    }

    fn decode_one(part: &str) -> Result<Self, DecodeError> {
        let truncated = |what| DecodeError::Truncated { what, offset: part.len() };
        let number = |text: Option<&str>, what| -> Result<u32, DecodeError> {
            text.and_then(|text| text.parse().ok()).ok_or(truncated(what))
        };
        let (namespace, rest) = part.split_once(':').ok_or(truncated("a partition map"))?;
        let mut parts = rest.split(',');
        let regime = number(parts.next(), "the regime of a partition map")?;
        let count = number(parts.next(), "the copies of a partition map")?;
        let copies = parts.map(|map| match BASE64_STANDARD.decode(map) {
            Ok(map) if map.len() == BITMAP_SIZE => Ok(map),
            _ => Err(truncated("the bits of a partition map")),
        });
        let copies = copies.collect::<Result<Vec<_>, _>>()?;
        match copies.len() as u64 {
            value if value != u64::from(count) => {
                let (what, max) = ("copies of a partition map", u64::from(count));
                Err(DecodeError::Length { what, value, max })
            }
            _ => Ok(Self { namespace: namespace.to_owned(), regime, copies }),
        }
    }
}

/// A server that another one has told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name, 15 hexadecimal digits mostly.
    pub name: String,
    /// Where it can be reached: `HOST` or `HOST:PORT`, with brackets around IPv6.
    pub addresses: Vec<String>,
}

/// What a server says of its peers, itself left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peers {
    /// Grows with each change of them.
    pub generation: u64,
    /// The port of addresses that have none.
    pub default_port: Option<u16>,
    /// All of them.
    pub peers: Vec<Peer>,
}

impl Peers {
    /// As in the value of `peers-clear-std`: `GENERATION,PORT,[[NAME,TLS,[ADDRESS,...]],...]`.
    #[must_use]
    pub fn encode(&self) -> String {
        let port = self.default_port.map(|port| port.to_string()).unwrap_or_default();
        let peers = self.peers.iter();
        let peers = peers.map(|peer| format!("[{},,[{}]]", peer.name, peer.addresses.join(",")));
        format!("{},{port},[{}]", self.generation, peers.collect::<Vec<_>>().join(","))
    }

    /// The value of `peers-clear-std` and its likes.
    ///
    /// # Errors
    /// [`DecodeError`] when it is none.
    pub fn decode(value: &str) -> Result<Self, DecodeError> {
        let broken = |what| DecodeError::Truncated { what, offset: value.len() };
        let mut parts = value.splitn(3, ',');
        let generation = parts.next().and_then(|text| text.trim().parse().ok());
        let generation = generation.ok_or(broken("the generation of peers"))?;
        let port = parts.next().ok_or(broken("the port of peers"))?.trim();
        let default_port = match port {
            "" => None,
            port => Some(port.parse().map_err(|_| broken("the port of peers"))?),
        };
        let list = parts.next().and_then(bracketed).ok_or(broken("a list of peers"))?;
        let peers = split(list).map(|peer| Self::decode_one(peer).ok_or(broken("a peer")));
        Ok(Self { generation, default_port, peers: peers.collect::<Result<_, _>>()? })
    }

    fn decode_one(text: &str) -> Option<Peer> {
        let mut parts = split(bracketed(text)?);
        let (name, _tls) = (parts.next()?, parts.next()?);
        let addresses = split(bracketed(parts.next()?)?).map(str::to_owned).collect();
        Some(Peer { name: name.to_owned(), addresses })
    }
}

/// What stands in one pair of brackets.
fn bracketed(text: &str) -> Option<&str> {
    text.trim().strip_prefix('[')?.strip_suffix(']')
}

/// Parts between commas that stand in no brackets; none of an empty text.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .filter(move |_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_read_as_they_are_written() {
        let peer = |name: &str, addresses: &[&str]| Peer {
            name: name.to_owned(),
            addresses: addresses.iter().map(|&address| address.to_owned()).collect(),
        };
        let peers = Peers {
            generation: 7,
            default_port: Some(3000),
            peers: vec![
                peer("BB9020011AC4202", &["10.0.0.2:3100", "[fe80::2]:3100"]),
                peer("A", &["host"]),
            ],
        };
        let text = "7,3000,[[BB9020011AC4202,,[10.0.0.2:3100,[fe80::2]:3100]],[A,,[host]]]";
        assert_eq!(peers.encode(), text);
        assert_eq!(Peers::decode(text), Ok(peers));
        let none = Peers { generation: 1, default_port: None, peers: Vec::new() };
        assert_eq!(Peers::decode("1,,[]"), Ok(none));
        for wrong in
            ["", "1", "x,3000,[]", "1,99999,[]", "1,3000,[[A]]", "1,3000,[A,,[b]", "1,3,]["]
        {
            assert!(Peers::decode(wrong).is_err(), "{wrong}");
        }
    }
}
