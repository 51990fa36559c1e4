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
