//! A partition as bytes, as it lies on disk, and back.
//!
//! Numbers are big-endian; bytes stand behind their length (u32), what may be missing behind 0 or
//! 1. A change of this is a change of `lsm::FORMAT`.

use super::partition::Rows;
use super::row::Cell;
use super::{Atom, Content, Elements, Expiry, KeyRange, Partition, Row};
use std::collections::BTreeMap;

const ATOM: u8 = 0;
const COUNTER: u8 = 1;
const ELEMENTS: u8 = 2;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn put_some<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_be_bytes());
}

fn put_time(out: &mut Vec<u8>, time_us: i64) {
    out.extend_from_slice(&time_us.to_be_bytes());
}

/// What is left of the bytes; None when they end too early.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn time(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    fn some<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => get(self).map(Some),
            _ => None,
        }
    }

    /// So many things as stand before them.
    fn all<T>(&mut self, mut get: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        // Not reserved: the count may be wrong.
        (0..count).map(|_| get(self)).collect()
    }
}

impl Atom {
    fn encode(&self, out: &mut Vec<u8>) {
        put_time(out, self.timestamp_us);
        out.extend_from_slice(&self.expiry.ttl_s.to_be_bytes());
        out.extend_from_slice(&self.expiry.at_s.to_be_bytes());
        put_some(out, self.value.as_deref(), put_bytes);
    }

    fn decode(rest: &mut Rest<'_>) -> Option<Self> {
        let timestamp_us = rest.time()?;
        let expiry = Expiry { ttl_s: rest.u32()?, at_s: rest.u32()? };
        let value = rest.some(Rest::bytes)?.map(Box::from);
        Some(Self { timestamp_us, expiry, value })
    }
}

impl Content {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Atom(atom) => {
                out.push(ATOM);
                atom.encode(out);
            }
            Self::Counter { sum, timestamp_us } => {
                out.push(COUNTER);
                put_some(out, *sum, put_time);
                put_time(out, *timestamp_us);
            }
            Self::Elements(elements) => {
                out.push(ELEMENTS);
                put_time(out, elements.deleted_us);
                put_count(out, elements.items.len());
                for (key, (path, atom)) in &elements.items {
                    put_bytes(out, key);
                    put_bytes(out, path);
                    atom.encode(out);
                }
            }
        }
    }

    fn decode(rest: &mut Rest<'_>) -> Option<Self> {
        match rest.byte()? {
            ATOM => Atom::decode(rest).map(Self::Atom),
            COUNTER => {
                let sum = rest.some(Rest::time)?;
                Some(Self::Counter { sum, timestamp_us: rest.time()? })
            }
            ELEMENTS => {
                let deleted_us = rest.time()?;
                let element = |rest: &mut Rest<'_>| {
                    let (key, path) = (rest.bytes()?.into(), rest.bytes()?.into());
                    Some((key, (path, Atom::decode(rest)?)))
                };
                let items: BTreeMap<_, _> = rest.all(element)?.into_iter().collect();
                Some(Self::Elements(Box::new(Elements { deleted_us, items })))
            }
            _ => None,
        }
    }
}

impl Row {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.clustering);
        put_time(out, self.deleted_us);
        self.marker.encode(out);
        put_count(out, self.cells.len());
        for Cell { column, content } in &self.cells {
            out.extend_from_slice(&column.to_be_bytes());
            content.encode(out);
        }
    }

    fn decode(rest: &mut Rest<'_>) -> Option<Self> {
        let mut row = Self::new(rest.bytes()?, rest.time()?);
        row.marker = Atom::decode(rest)?;
        row.cells = rest.all(|rest| {
            let column = rest.array().map(u16::from_be_bytes)?;
            Some(Cell { column, content: Content::decode(rest)? })
        })?;
        Some(row)
    }
}

impl Partition {
    /// Appends the partition.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_time(out, self.deleted_us);
        put_count(out, self.deleted_ranges.len());
        for (range, time_us) in &self.deleted_ranges {
            put_bytes(out, &range.from);
            put_some(out, range.to.as_deref(), put_bytes);
            put_time(out, *time_us);
        }
        put_some(out, self.statics.as_deref(), |out, row| row.encode(out));
        match &self.rows {
            Rows::One(row) => put_some(out, row.as_ref(), |out, row| row.encode(out)),
            Rows::Many(rows) => {
                put_count(out, rows.len());
                for (key, row) in rows {
                    put_bytes(out, key);
                    row.encode(out);
                }
            }
        }
    }

    /// The partition of a table that is `clustered` or not; None for bytes that are none.
    pub(super) fn decode(bytes: &[u8], clustered: bool) -> Option<Self> {
        let mut rest = Rest(bytes);
        let mut partition = Self::new(clustered);
        partition.deleted_us = rest.time()?;
        partition.deleted_ranges = rest.all(|rest| {
            let from = rest.bytes()?.to_vec();
            let to = rest.some(Rest::bytes)?.map(<[u8]>::to_vec);
            Some((KeyRange { from, to }, rest.time()?))
        })?;
        partition.statics = rest.some(Row::decode)?.map(Box::new);
        partition.rows = match clustered {
            false => Rows::One(rest.some(Row::decode)?),
            true => {
                let row = |rest: &mut Rest<'_>| Some((rest.bytes()?.into(), Row::decode(rest)?));
                Rows::Many(rest.all(row)?.into_iter().collect())
            }
        };
        rest.0.is_empty().then_some(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Write;
    use super::*;
    use proptest::prelude::*;

    /// A partition with all that there is.
    fn partition(clustered: bool, seed: &[u8]) -> Partition {
        let mut partition = Partition::new(clustered);
        let mut time_us = 1;
        for (n, byte) in seed.iter().enumerate() {
            time_us += 1;
            let expiry = Expiry { ttl_s: u32::from(*byte), at_s: u32::from(*byte) * 3 };
            let write = Write { timestamp_us: time_us, expiry, now_s: 0 };
            let key = &[*byte];
            let value = (byte % 5 > 0).then_some(&seed[..n]);
            match byte % 7 {
                0 => {
                    partition.write_statics(|row| row.write(u16::from(*byte), value, write));
                }
                1 if clustered => {
                    let to = byte.is_multiple_of(2).then(|| vec![byte.saturating_add(9)]);
                    partition.delete_range(KeyRange { from: key.to_vec(), to }, time_us);
                }
                2 => {
                    partition.write_row(key, key, |row| row.add(7, i64::from(*byte), write));
                }
                3 => {
                    partition.write_row(key, key, |row| {
                        let elements = row.elements(9, write);
                        elements.map_or(0, |(e, _)| e.write(key, &seed[..n], value, write))
                    });
                }
                4 if n % 9 == 0 => {
                    partition.delete(time_us - 3);
                }
                _ => {
                    partition.write_row(key, key, |row| {
                        row.mark(write);
                        row.write(1, value, write)
                    });
                }
            }
        }
        partition
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seed: Vec<u8>, clustered: bool) {
            let partition = partition(clustered, &seed);
            let mut bytes = Vec::new();
            partition.encode(&mut bytes);
            let read = Partition::decode(&bytes, clustered).unwrap();
            prop_assert_eq!(format!("{partition:?}"), format!("{read:?}"));
            // Nothing shorter is one, and nothing of it panics.
            for size in 0..bytes.len() {
                prop_assert!(Partition::decode(&bytes[..size], clustered).is_none());
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, clustered: bool) {
            let _ = Partition::decode(&bytes, clustered);
        }
    }
}
