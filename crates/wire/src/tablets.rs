//! Tablets: which replica, and which of its shards, has a range of a table's tokens.
//!
//! In: rows of `system.tablets`, and the payload `tablets-routing-v1` that a server adds to the
//! answer of a request that came to the wrong host or shard. Out: the replicas of a token, by
//! binary search, without allocation. Source: ScyllaDB's `docs/dev/protocol-extensions.md`,
//! "Tablets routing v1". A range is open on the left: `(first, last]`.

use crate::cql::{Cursor, DecodeError, Header, flags, put};

/// The payload's key.
pub const PAYLOAD: &str = "tablets-routing-v1";

/// A replica: a host by its id, and the shard on it.
pub type Replica = ([u8; 16], u16);

/// A range of a table's tokens; on the wire with [`Replica`]s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tablet<R = Replica> {
    /// The last token that is not in it.
    pub first: i64,
    /// The last token that is in it.
    pub last: i64,
    /// Who has it.
    pub replicas: Vec<R>,
}

/// A cell of exactly this many bytes.
fn cell<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<Cursor<'a>, DecodeError> {
    let offset = cursor.offset();
    let bytes = cursor.bytes(what)?;
    Ok(Cursor::new(bytes.ok_or(DecodeError::Length { what, value: -1, offset })?))
}

fn replica(mut cursor: Cursor<'_>) -> Result<Replica, DecodeError> {
    let host = cell(&mut cursor, "host of a replica")?.uuid("host of a replica")?;
    let offset = cursor.offset();
    let shard = cell(&mut cursor, "shard of a replica")?.i32("shard of a replica")?;
    let (what, value) = ("shard of a replica", i64::from(shard));
    let shard = shard.try_into().map_err(|_| DecodeError::Length { what, value, offset })?;
    Ok((host, shard))
}

/// The replicas in a cell of type `list<tuple<uuid, int>>`.
///
/// # Errors
/// [`DecodeError`] for anything else.
pub fn decode_replicas(bytes: &[u8]) -> Result<Vec<Replica>, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    // Each is a length, and two of these with 16 and 4 bytes behind them.
    let count = cursor.count(32, "number of replicas")?;
    (0..count).map(|_| replica(cell(&mut cursor, "replica")?)).collect()
}

/// The cell that [`decode_replicas`] reads.
#[must_use]
pub fn encode_replicas(replicas: &[Replica]) -> Vec<u8> {
    let mut out = Vec::new();
    put::i32(&mut out, replicas.len() as i32);
    for (host, shard) in replicas {
        let mut tuple = Vec::new();
        put::bytes(&mut tuple, Some(host));
        put::bytes(&mut tuple, Some(&i32::from(*shard).to_be_bytes()));
        put::bytes(&mut out, Some(&tuple));
    }
    out
}

impl Tablet {
    /// The value of a payload: `tuple<bigint, bigint, list<tuple<uuid, int>>>`.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else, and for a range that is empty or runs over the ring's
    /// end.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let first = cell(&mut cursor, "first token of a tablet")?.i64("first token of a tablet")?;
        let offset = cursor.offset();
        let last = cell(&mut cursor, "last token of a tablet")?.i64("last token of a tablet")?;
        if last <= first {
            let what = "last token of a tablet";
            return Err(DecodeError::Length { what, value: last, offset });
        }
        let replicas = cursor.bytes("replicas of a tablet")?.unwrap_or(&[0; 4]);
        Ok(Self { first, last, replicas: decode_replicas(replicas)? })
    }

    /// The value that [`Self::decode`] reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put::bytes(&mut out, Some(&self.first.to_be_bytes()));
        put::bytes(&mut out, Some(&self.last.to_be_bytes()));
        put::bytes(&mut out, Some(&encode_replicas(&self.replicas)));
        out
    }

    /// The tablet that an answer tells of; None when it tells of none.
    ///
    /// # Errors
    /// [`DecodeError`] when what precedes the answer's body is torn, or the payload is no tablet.
    pub fn told_in(header: &Header, body: &[u8]) -> Result<Option<Self>, DecodeError> {
        if header.flags & flags::CUSTOM_PAYLOAD == 0 {
            return Ok(None);
        }
        let mut cursor = Cursor::new(body);
        if header.flags & flags::TRACING != 0 {
            cursor.uuid("tracing id")?;
        }
        if header.flags & flags::WARNING != 0 {
            cursor.string_list("warnings")?;
        }
        for _ in 0..cursor.u16("custom payload")? {
            let key = cursor.string("custom payload")?;
            let value = cursor.bytes("custom payload")?;
            if key == PAYLOAD {
                return Self::decode(value.unwrap_or_default()).map(Some);
            }
        }
        Ok(None)
    }

    /// Appends the payload that tells of it, as it precedes an answer's body.
    pub fn put_payload(&self, out: &mut Vec<u8>) {
        put::u16(out, 1);
        put::string(out, PAYLOAD);
        put::bytes(out, Some(&self.encode()));
    }
}

impl<R> Tablet<R> {
    /// The same with its replicas as `other` has them; those that it does not know are left out.
    #[must_use]
    pub fn with<S>(&self, other: impl FnMut(&R) -> Option<S>) -> Tablet<S> {
        let replicas = self.replicas.iter().filter_map(other).collect();
        Tablet { first: self.first, last: self.last, replicas }
    }
}

/// The tablets of a table, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabletMap<R = Replica> {
    /// Ascending, none overlaps another.
    tablets: Vec<Tablet<R>>,
}

impl<R> Default for TabletMap<R> {
    fn default() -> Self {
        Self { tablets: Vec::new() }
    }
}

impl<R> TabletMap<R> {
    /// Of all tablets of a table, by their last tokens: each begins behind the one before it, the
    /// first one with the least token.
    #[must_use]
    pub fn of_all(mut ends: Vec<(i64, Vec<R>)>) -> Self {
        ends.sort_by_key(|(last, _)| *last);
        ends.dedup_by_key(|(last, _)| *last);
        let mut first = i64::MIN;
        let tablets = ends.into_iter().filter_map(|(last, replicas)| {
            let tablet = Tablet { first, last, replicas };
            first = last;
            (tablet.first < last).then_some(tablet)
        });
        Self { tablets: tablets.collect() }
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tablets.is_empty()
    }

    /// In the ring's order.
    #[must_use]
    pub fn tablets(&self) -> &[Tablet<R>] {
        &self.tablets
    }

    /// The same with the replicas of each as `other` has them; see [`Tablet::with`].
    #[must_use]
    pub fn with<S>(&self, mut other: impl FnMut(&R) -> Option<S>) -> TabletMap<S> {
        TabletMap { tablets: self.tablets.iter().map(|tablet| tablet.with(&mut other)).collect() }
    }

    /// The tablet that `token` is in, if it is known. Of all tokens the least one is in none: no
    /// key has it.
    #[inline]
    #[must_use]
    pub fn of(&self, token: i64) -> Option<&Tablet<R>> {
        let at = self.tablets.partition_point(|tablet| tablet.last < token);
        self.tablets.get(at).filter(|tablet| tablet.first < token)
    }

    /// Learns of a tablet: it takes the place of all that it overlaps.
    pub fn learn(&mut self, tablet: Tablet<R>) {
        let from = self.tablets.partition_point(|known| known.last <= tablet.first);
        let to = self.tablets.partition_point(|known| known.first < tablet.last);
        self.tablets.splice(from..to.max(from), [tablet]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cql::Opcode;
    use proptest::prelude::*;

    fn tablet(first: i64, last: i64, shard: u16) -> Tablet {
        Tablet { first, last, replicas: vec![([7; 16], shard)] }
    }

    /// As a server of that protocol lays it out, byte by byte.
    #[test]
    fn a_payload_is_read_as_it_is_laid_out() {
        let host = [0xab; 16];
        let mut value = vec![0, 0, 0, 8];
        value.extend((-2i64).to_be_bytes());
        value.extend([0, 0, 0, 8]);
        value.extend(9i64.to_be_bytes());
        // A list of one tuple of 4 + 16 + 4 + 4 bytes.
        value.extend([0, 0, 0, 36, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 16]);
        value.extend(host);
        value.extend([0, 0, 0, 4, 0, 0, 0, 3]);
        let expected = Tablet { first: -2, last: 9, replicas: vec![(host, 3)] };
        assert_eq!(Tablet::decode(&value).unwrap(), expected);
        assert_eq!(expected.encode(), value);

        let mut body = Vec::new();
        expected.put_payload(&mut body);
        put::i32(&mut body, 1);
        let mut header = Header::response(0, Opcode::Result);
        assert_eq!(Tablet::told_in(&header, &body), Ok(None), "the flag is not set");
        header.flags = flags::CUSTOM_PAYLOAD;
        assert_eq!(Tablet::told_in(&header, &body), Ok(Some(expected)));
        let mut other = Vec::new();
        put::u16(&mut other, 1);
        put::string(&mut other, "something-else");
        put::bytes(&mut other, None);
        assert_eq!(Tablet::told_in(&header, &other), Ok(None));
    }

    #[test]
    fn garbage_is_refused() {
        let sound = tablet(0, 5, 1).encode();
        for size in 0..sound.len() {
            // Without its replicas it is a tablet of which nobody is known to have it... or torn.
            assert!(Tablet::decode(&sound[..size]).is_err(), "{size}");
        }
        assert!(Tablet::decode(&tablet(5, 5, 1).encode()).is_err());
        assert!(Tablet::decode(&tablet(5, 4, 1).encode()).is_err());
        let mut negative = sound.clone();
        let end = negative.len();
        negative[end - 4..].copy_from_slice(&(-1i32).to_be_bytes());
        assert!(Tablet::decode(&negative).is_err());
        let mut many = sound;
        many[28..32].copy_from_slice(&i32::MAX.to_be_bytes());
        assert!(Tablet::decode(&many).is_err());
    }

    #[test]
    fn all_tablets_of_a_table_leave_no_gap() {
        let ends = [(i64::MAX, 1), (0, 0)].map(|(last, shard)| (last, vec![([7; 16], shard)]));
        let map = TabletMap::of_all(ends.to_vec());
        let shard = |token| map.of(token).map(|tablet| tablet.replicas[0].1);
        assert_eq!([i64::MIN + 1, 0, 1, i64::MAX].map(shard), [0, 0, 1, 1].map(Some));
        assert_eq!(shard(i64::MIN), None);
    }

    proptest! {
        /// Against a map that knows each token by itself.
        #[test]
        fn what_was_learnt_last_holds(
            learnt in prop::collection::vec((-20i64..20, 1i64..15), 0..20),
        ) {
            let mut map = TabletMap::default();
            let mut by_token = [None; 60];
            for (shard, (first, size)) in learnt.into_iter().enumerate() {
                let last = first + size;
                // What a new one overlaps is forgotten as a whole.
                let gone: Vec<_> = (first + 1..=last)
                    .filter_map(|token| by_token[(token + 25) as usize])
                    .collect();
                for known in &mut by_token {
                    if known.is_some_and(|known| gone.contains(&known)) {
                        *known = None;
                    }
                }
                for token in first + 1..=last {
                    by_token[(token + 25) as usize] = Some(shard as u16);
                }
                map.learn(tablet(first, last, shard as u16));
                prop_assert!(map.tablets().windows(2).all(|w| w[0].last <= w[1].first));
            }
            for token in -25i64..35 {
                let found = map.of(token).map(|tablet| tablet.replicas[0].1);
                prop_assert_eq!(found, by_token[(token + 25) as usize], "{}", token);
            }
        }

        #[test]
        fn tablets_come_back_as_they_went(
            first: i64,
            size in 1i64..1_000_000,
            replicas in prop::collection::vec((any::<[u8; 16]>(), 0u16..=i16::MAX as u16), 0..5),
        ) {
            prop_assume!(first < i64::MAX - size);
            let tablet = Tablet { first, last: first + size, replicas };
            prop_assert_eq!(Tablet::decode(&tablet.encode()), Ok(tablet));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, flags: u8) {
            let _ = Tablet::decode(&bytes);
            let header = Header { flags, ..Header::response(0, Opcode::Result) };
            let _ = Tablet::told_in(&header, &bytes);
        }
    }
}
