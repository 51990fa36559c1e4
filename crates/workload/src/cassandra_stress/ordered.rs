//! Maps of a profile in the order in which they are written, and in that of Java's hash maps: what
//! the original shows them in.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Keys and values, in the order of the file.
#[derive(Debug, Clone)]
pub(super) struct Ordered<V>(pub(super) Vec<(String, V)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Pairs<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
    type Value = Ordered<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Ordered(pairs))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

/// Puts pairs in the order of a `java.util.HashMap` that they were put into one by one.
pub(super) fn hash_ordered<V>(mut pairs: Vec<(String, V)>) -> Vec<(String, V)> {
    // It has 16 places, and doubles them when more than three quarters are needed.
    let mut places = 16;
    while pairs.len() * 4 > places * 3 {
        places *= 2;
    }
    pairs.sort_by_key(|(name, _)| {
        let hash = name
            .encode_utf16()
            .fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
        (hash ^ hash >> 16) as usize & (places - 1)
    });
    pairs
}
