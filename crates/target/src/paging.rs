//! The paging state: where the page before ended. Opaque to clients, checked when it comes back.
//!
//! Layout: token i64, rows left by LIMIT u32 and by PER PARTITION LIMIT u32, partition key
//! `[bytes]`, clustering key `[bytes]` or null (the partition is done), Murmur3 of all before it
//! i64. A state that was altered, or belongs to another statement's columns, is refused or at worst
//! names another place in the ring: it is only ever compared.

use crate::error::CqlError;
use wire::cql::{Cursor, DecodeError, put};
use wire::murmur3;

/// Where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagingState {
    pub(crate) token: i64,
    pub(crate) key: Vec<u8>,
    /// The last row sent; None when its partition is done.
    pub(crate) row: Option<Vec<u8>>,
    pub(crate) limit_left: u32,
    pub(crate) partition_left: u32,
}

/// Sets the states of this program apart from those of other servers.
const SEED: u64 = 0x7769_6465_6c6f_6164;

impl PagingState {
    /// Appends the state.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        put::i64(out, self.token);
        put::i32(out, self.limit_left as i32);
        put::i32(out, self.partition_left as i32);
        put::bytes(out, Some(&self.key));
        put::bytes(out, self.row.as_deref());
        let (sum, _) = murmur3::hash(&out[start..], SEED);
        put::i64(out, sum as i64);
    }

    /// Reads a state back.
    ///
    /// # Errors
    /// [`CqlError::Protocol`] for bytes that [`Self::encode`] has not made.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, CqlError> {
        let foreign = || {
            CqlError::Protocol(
                "Invalid value for the paging state: send back what the page before came with"
                    .to_owned(),
            )
        };
        let (content, sum) = bytes.split_last_chunk::<8>().ok_or_else(foreign)?;
        if murmur3::hash(content, SEED).0 != u64::from_be_bytes(*sum) {
            return Err(foreign());
        }
        Self::fields(content).map_err(|_| foreign())
    }

    fn fields(content: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(content);
        Ok(Self {
            token: cursor.i64("token")?,
            limit_left: cursor.i32("limit")? as u32,
            partition_left: cursor.i32("partition limit")? as u32,
            key: cursor.bytes("key")?.unwrap_or(&[]).to_vec(),
            row: cursor.bytes("row")?.map(<[u8]>::to_vec),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn states_come_back(
            token: i64,
            key: Vec<u8>,
            row: Option<Vec<u8>>,
            limit_left: u32,
            flip in any::<prop::sample::Index>(),
        ) {
            let state = PagingState { token, key, row, limit_left, partition_left: 7 };
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            prop_assert_eq!(PagingState::decode(&bytes).unwrap(), state);
            let at = flip.index(bytes.len());
            bytes[at] ^= 1;
            prop_assert!(PagingState::decode(&bytes).is_err());
        }

        #[test]
        fn hostile_states_never_panic(bytes: Vec<u8>) {
            prop_assert!(PagingState::decode(&bytes).is_err());
        }
    }
}
