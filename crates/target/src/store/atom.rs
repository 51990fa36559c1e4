//! The smallest thing that is written at once: a value or a tombstone, with its time.

use super::NEVER;

/// When a value ends. Zero in `at_s` stands for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Expiry {
    /// As asked for, in seconds.
    pub(crate) ttl_s: u32,
    /// Seconds since 1970.
    pub(crate) at_s: u32,
}

impl Expiry {
    pub(crate) fn is_over(self, now_s: u32) -> bool {
        self.at_s != 0 && self.at_s <= now_s
    }

    /// Orders expiries; never is the latest.
    fn rank(self) -> u32 {
        self.at_s.wrapping_sub(1)
    }
}

/// A value (or a tombstone: None) with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) timestamp_us: i64,
    pub(crate) expiry: Expiry,
    pub(super) value: Option<Box<[u8]>>,
}

impl Atom {
    /// What was never written.
    pub(crate) fn absent() -> Self {
        Self { timestamp_us: NEVER, expiry: Expiry::default(), value: None }
    }

    /// The value, unless deleted or expired.
    #[inline]
    pub(crate) fn live(&self, now_s: u32) -> Option<&[u8]> {
        match &self.value {
            Some(value) if !self.expiry.is_over(now_s) => Some(value),
            _ => None,
        }
    }

    /// Bytes of the value, live or not.
    pub(crate) fn size(&self) -> i64 {
        self.value.as_ref().map_or(0, |v| v.len() as i64)
    }

    /// Reconciles with a write; returns the growth in bytes. A value of equal length is written in
    /// place.
    #[inline]
    pub(crate) fn write(
        &mut self,
        timestamp_us: i64,
        expiry: Expiry,
        value: Option<&[u8]>,
        now_s: u32,
    ) -> i64 {
        if !self.loses_to(timestamp_us, expiry, value, now_s) {
            return 0;
        }
        let before = self.size();
        self.timestamp_us = timestamp_us;
        self.expiry = expiry;
        match (&mut self.value, value) {
            (Some(old), Some(new)) if old.len() == new.len() => old.copy_from_slice(new),
            (old, new) => *old = new.map(Box::from),
        }
        self.size() - before
    }

    fn loses_to(
        &self,
        timestamp_us: i64,
        expiry: Expiry,
        value: Option<&[u8]>,
        now_s: u32,
    ) -> bool {
        if timestamp_us != self.timestamp_us {
            return timestamp_us > self.timestamp_us;
        }
        let live = value.filter(|_| !expiry.is_over(now_s));
        match (self.live(now_s), live) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => expiry.rank() > self.expiry.rank(),
            (Some(old), Some(new)) => (new, expiry.rank()) > (old, self.expiry.rank()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write() -> impl Strategy<Value = (i64, Expiry, Option<Vec<u8>>)> {
        let expiry = prop_oneof![
            Just(Expiry::default()),
            (1u32..4).prop_map(|at_s| Expiry { ttl_s: 1, at_s: at_s * 50 })
        ];
        (0i64..4, expiry, proptest::option::of(proptest::collection::vec(0u8..3, 0..3)))
    }

    proptest! {
        /// Last write wins whatever the order of arrival.
        #[test]
        fn order_of_arrival_does_not_matter(
            (writes, shuffled) in proptest::collection::vec(write(), 0..8)
                .prop_flat_map(|w| (Just(w.clone()), Just(w).prop_shuffle()))
        ) {
            let apply = |writes: &[(i64, Expiry, Option<Vec<u8>>)]| {
                let mut atom = Atom::absent();
                let sizes: i64 = writes
                    .iter()
                    .map(|(t, e, v)| atom.write(*t, *e, v.as_deref(), 100))
                    .sum();
                assert_eq!(sizes, atom.size());
                atom
            };
            let (a, b) = (apply(&writes), apply(&shuffled));
            prop_assert_eq!(a.live(100), b.live(100));
            prop_assert_eq!(a.timestamp_us, b.timestamp_us);
        }
    }

    #[test]
    fn ties_as_in_cassandra() {
        let mut atom = Atom::absent();
        atom.write(5, Expiry::default(), Some(b"a"), 0);
        atom.write(5, Expiry::default(), Some(b"b"), 0);
        assert_eq!(atom.live(0), Some(&b"b"[..]));
        atom.write(5, Expiry::default(), Some(b"a"), 0);
        assert_eq!(atom.live(0), Some(&b"b"[..]));
        atom.write(5, Expiry::default(), None, 0);
        assert_eq!(atom.live(0), None);
        atom.write(5, Expiry::default(), Some(b"z"), 0);
        assert_eq!(atom.live(0), None);
        atom.write(6, Expiry { ttl_s: 10, at_s: 20 }, Some(b"z"), 10);
        assert_eq!((atom.live(19), atom.live(20)), (Some(&b"z"[..]), None));
    }
}
