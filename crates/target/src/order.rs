//! Order-preserving keys: serialized values -> bytes whose unsigned order is the order of the CQL
//! type.
//!
//! Clustering rows are kept in a map ordered by these bytes, so a slice of a partition is a range
//! of the map, and a descending column is its bytes inverted. Every encoding is prefix-free: the
//! key of (a, b) begins with the key of (a) and with no other's.
//!
//! Orders follow Cassandra's: text by bytes, `uuid` by version and then (version 1) time,
//! `timeuuid` by time and then signed bytes, floats by Java's `compare` (-0.0 < 0.0 < NaN). Limits:
//! `decimal`, `duration`, collections and tuples have no key here; they are refused as clustering
//! columns and in filters by range.

use wire::cql::ColumnType;

/// Whether values of the type can be ordered here.
pub(crate) fn is_ordered(kind: &ColumnType) -> bool {
    !matches!(
        kind,
        ColumnType::Decimal
            | ColumnType::Duration
            | ColumnType::Custom(_)
            | ColumnType::List(_)
            | ColumnType::Set(_)
            | ColumnType::Map(..)
            | ColumnType::Tuple(_)
            | ColumnType::Udt { .. }
    )
}

/// Appends the key of a valid value; inverted when `descending`.
pub(crate) fn append(kind: &ColumnType, value: &[u8], descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match kind {
        ColumnType::Varint => varint(value, out),
        ColumnType::Blob | ColumnType::Varchar | ColumnType::Ascii | ColumnType::Inet => {
            escaped(value, out);
        }
        _ if value.is_empty() => out.push(0),
        _ => {
            out.push(1);
            fixed(kind, value, out);
        }
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// Appends a key of any type's value, ascending: of the type's order, or of its bytes where it has
/// none here.
pub(crate) fn append_any(kind: &ColumnType, value: &[u8], out: &mut Vec<u8>) {
    match is_ordered(kind) {
        true => append(kind, value, false, out),
        false => out.extend_from_slice(value),
    }
}

/// Each zero becomes 00 FF, the end is 00 00: shorter texts come first, and no key begins another.
fn escaped(value: &[u8], out: &mut Vec<u8>) {
    for part in value.split_inclusive(|&b| b == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn fixed(kind: &ColumnType, value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    match kind {
        ColumnType::Uuid => uuid(value, out),
        ColumnType::Timeuuid => timeuuid(value, out),
        ColumnType::Float | ColumnType::Double => float(value, out),
        _ => out.extend_from_slice(value),
    }
    let signed = matches!(
        kind,
        ColumnType::Tinyint
            | ColumnType::Smallint
            | ColumnType::Int
            | ColumnType::Bigint
            | ColumnType::Counter
            | ColumnType::Timestamp
            | ColumnType::Time
    );
    if let (true, Some(first)) = (signed, out.get_mut(start)) {
        *first ^= 0x80;
    }
}

fn float(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let nan = match value.len() {
        4 => value.try_into().is_ok_and(|v| f32::from_be_bytes(v).is_nan()),
        _ => value.try_into().is_ok_and(|v| f64::from_be_bytes(v).is_nan()),
    };
    if nan {
        out.resize(start + value.len(), 0xff);
        return;
    }
    out.extend_from_slice(value);
    if value.first().is_some_and(|b| b & 0x80 != 0) {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    } else if let Some(first) = out.get_mut(start) {
        *first |= 0x80;
    }
}

/// The 60-bit time of a version 1 UUID, most significant first; the version's nibble leads.
fn uuid_time(value: &[u8], out: &mut Vec<u8>) {
    for range in [6..8, 4..6, 0..4] {
        out.extend_from_slice(value.get(range).unwrap_or(&[]));
    }
}

fn uuid(value: &[u8], out: &mut Vec<u8>) {
    let version = value.get(6).map_or(0, |b| b >> 4);
    out.push(version);
    if version == 1 {
        uuid_time(value, out);
    }
    out.extend_from_slice(value);
}

fn timeuuid(value: &[u8], out: &mut Vec<u8>) {
    uuid_time(value, out);
    out.extend(value.get(8..).unwrap_or(&[]).iter().map(|b| b ^ 0x80));
}

/// Sign, length, magnitude; leading bytes that only repeat the sign do not count.
fn varint(value: &[u8], out: &mut Vec<u8>) {
    let negative = value.first().is_some_and(|b| b & 0x80 != 0);
    let filler = if negative { 0xff } else { 0 };
    let skip =
        value.windows(2).take_while(|w| w[0] == filler && (w[1] & 0x80 != 0) == negative).count();
    let digits = value.get(skip..).unwrap_or(&[]);
    let size = digits.len() as u32;
    out.push(u8::from(!negative));
    out.extend_from_slice(&(if negative { !size } else { size }).to_be_bytes());
    out.extend_from_slice(digits);
}

/// Turns `key` into the least key that is greater than every key beginning with it; false when
/// there is none.
pub(crate) fn successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last != 0xff {
            key.push(last + 1);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(kind: &ColumnType, value: &[u8], descending: bool) -> Vec<u8> {
        let mut out = Vec::new();
        append(kind, value, descending, &mut out);
        out
    }

    fn ascending(kind: &ColumnType, values: &[&[u8]]) {
        for pair in values.windows(2) {
            assert!(key(kind, pair[0], false) < key(kind, pair[1], false), "{kind:?} {pair:?}");
            assert!(key(kind, pair[0], true) > key(kind, pair[1], true), "{kind:?} {pair:?}");
        }
    }

    #[test]
    fn orders_of_types() {
        ascending(
            &ColumnType::Int,
            &[
                &[],
                &i32::MIN.to_be_bytes(),
                &(-1i32).to_be_bytes(),
                &0i32.to_be_bytes(),
                &i32::MAX.to_be_bytes(),
            ],
        );
        ascending(&ColumnType::Varchar, &[b"", b"\0", b"\0\0", b"\0a", b"a", b"a\0", b"ab", b"b"]);
        let floats = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-300, 7.0, f64::INFINITY, f64::NAN];
        let bytes: Vec<_> = floats.iter().map(|f| f.to_be_bytes()).collect();
        let floats: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
        ascending(&ColumnType::Double, &floats);
        ascending(
            &ColumnType::Varint,
            &[&[0x80, 0], &[0xff, 0x7f], &[0x80], &[0xff], &[0], &[1], &[0, 0x80], &[1, 0]],
        );
        assert_eq!(
            key(&ColumnType::Varint, &[0, 0, 1], false),
            key(&ColumnType::Varint, &[1], false)
        );
        let mut early = [0u8; 16];
        let mut late = [0u8; 16];
        (early[0], early[6], late[5], late[6]) = (0xff, 0x10, 1, 0x10);
        ascending(&ColumnType::Timeuuid, &[&early, &late]);
        ascending(&ColumnType::Uuid, &[&early, &late, &[0x40; 16]]);
    }

    proptest! {
        #[test]
        fn texts_and_numbers(a in any::<Vec<u8>>(), b in any::<Vec<u8>>(), x: i64, y: i64) {
            for descending in [false, true] {
                let order = |o: std::cmp::Ordering| if descending { o.reverse() } else { o };
                let ka = key(&ColumnType::Blob, &a, descending);
                let kb = key(&ColumnType::Blob, &b, descending);
                prop_assert_eq!(ka.cmp(&kb), order(a.cmp(&b)));
                prop_assert!(a == b || !kb.starts_with(&ka));
                let (kx, ky) = (
                    key(&ColumnType::Bigint, &x.to_be_bytes(), descending),
                    key(&ColumnType::Bigint, &y.to_be_bytes(), descending),
                );
                prop_assert_eq!(kx.cmp(&ky), order(x.cmp(&y)));
            }
        }

        #[test]
        fn varints(x: i64, y: i64) {
            let (kx, ky) = (
                key(&ColumnType::Varint, &x.to_be_bytes(), false),
                key(&ColumnType::Varint, &y.to_be_bytes(), false),
            );
            prop_assert_eq!(kx.cmp(&ky), x.cmp(&y));
        }

        #[test]
        fn successor_bounds_a_prefix(prefix in any::<Vec<u8>>(), tail in any::<Vec<u8>>()) {
            let whole = [prefix.clone(), tail].concat();
            let mut bound = prefix.clone();
            if successor(&mut bound) {
                prop_assert!(bound > whole && bound > prefix);
            } else {
                prop_assert!(prefix.iter().all(|b| *b == 0xff));
            }
        }
    }
}
