//! Serialized keys. A partition key of one column is its value; of several it is, for each, a
//! 16-bit length, the value and a zero (Cassandra's `CompositeType`), and its Murmur3 hash is its
//! token. A clustering is each value as `[bytes]`.

use crate::error::{CqlError, invalid};
use std::borrow::Cow;

/// Appends the partition key of these values, in the order of the key's columns.
///
/// # Errors
/// [`CqlError::Invalid`] when it is empty or longer than 65535 bytes.
pub(crate) fn append_partition_key(
    parts: &[Cow<'_, [u8]>],
    out: &mut Vec<u8>,
) -> Result<(), CqlError> {
    let start = out.len();
    match parts {
        [part] => out.extend_from_slice(part),
        _ => {
            for part in parts {
                out.extend_from_slice(&(part.len() as u16).to_be_bytes());
                out.extend_from_slice(part);
                out.push(0);
            }
        }
    }
    let size = out.len() - start;
    if size == 0 {
        return Err(invalid("Key may not be empty"));
    }
    let longest = parts.iter().map(|p| p.len()).max().unwrap_or(0).max(size);
    if longest > usize::from(u16::MAX) {
        return Err(invalid(format!("Key length of {longest} is longer than maximum of 65535")));
    }
    Ok(())
}

/// The `index`-th value of a partition key of `count` columns.
#[inline]
pub(crate) fn partition_part(key: &[u8], index: usize, count: usize) -> Option<&[u8]> {
    if count == 1 {
        return Some(key);
    }
    let mut rest = key;
    for n in 0..=index {
        let (size, tail) = rest.split_first_chunk()?;
        let size = usize::from(u16::from_be_bytes(*size));
        if n == index {
            return tail.get(..size);
        }
        rest = tail.get(size + 1..)?;
    }
    None
}

/// The `index`-th value of a clustering.
#[inline]
pub(crate) fn clustering_part(clustering: &[u8], index: usize) -> Option<&[u8]> {
    let mut rest = clustering;
    for n in 0..=index {
        let (size, tail) = rest.split_first_chunk()?;
        let size = usize::try_from(i32::from_be_bytes(*size)).ok()?;
        if n == index {
            return tail.get(..size);
        }
        rest = tail.get(size..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_come_back(parts in proptest::collection::vec(any::<Vec<u8>>(), 2..5)) {
            let mut key = Vec::new();
            let cows: Vec<_> = parts.iter().map(|p| Cow::Borrowed(&p[..])).collect();
            append_partition_key(&cows, &mut key).unwrap();
            let mut clustering = Vec::new();
            for part in &parts {
                wire::cql::put::bytes(&mut clustering, Some(part));
            }
            for (n, part) in parts.iter().enumerate() {
                prop_assert_eq!(partition_part(&key, n, parts.len()), Some(&part[..]));
                prop_assert_eq!(clustering_part(&clustering, n), Some(&part[..]));
            }
            prop_assert_eq!(clustering_part(&clustering, parts.len()), None);
        }

        #[test]
        fn hostile_keys_never_panic(key: Vec<u8>, index in 0usize..4) {
            let _ = (partition_part(&key, index, 3), clustering_part(&key, index));
        }
    }
}
