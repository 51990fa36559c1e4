//! The bins of a record, as an answer has them: one operation after the other. A record that is
//! read whole is copied, not encoded.

use wire::aerospike::{Op, OpKind};

/// Size, kind, type, version, and the length of the name.
const HEAD: usize = 8;

/// Bins as operations.
#[derive(Debug, Clone, Default)]
pub(super) struct Bins {
    pub(super) count: u16,
    pub(super) ops: Vec<u8>,
}

/// A bin among operations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bin<'a> {
    /// All its bytes.
    pub(super) op: &'a [u8],
    start: usize,
    /// The type of its particle.
    pub(super) particle: u8,
    /// The bytes of that.
    pub(super) value: &'a [u8],
}

/// The bin of this name.
pub(super) fn find<'a>(ops: &'a [u8], name: &[u8]) -> Option<Bin<'a>> {
    let mut start = 0;
    while let Some((head, rest)) = ops.get(start..).and_then(|ops| ops.split_first_chunk::<HEAD>())
    {
        let size = 4 + u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let name_size = usize::from(head[7]);
        if rest.get(..name_size) == Some(name) {
            let op = ops.get(start..start + size)?;
            let value = op.get(HEAD + name_size..)?;
            return Some(Bin { op, start, particle: head[5], value });
        }
        start += size;
    }
    None
}

/// Appends an operation as an answer has it.
pub(super) fn put(out: &mut Vec<u8>, name: &[u8], particle: u8, value: &[&[u8]]) {
    let size = 4 + name.len() + value.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&(size as u32).to_be_bytes());
    out.extend_from_slice(&[OpKind::Read as u8, particle, 0, name.len() as u8]);
    out.extend_from_slice(name);
    value.iter().for_each(|part| out.extend_from_slice(part));
}

impl Bins {
    /// Deletes a bin.
    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(Bin { op, start, .. }) = find(&self.ops, name) {
            let end = start + op.len();
            self.ops.drain(start..end);
            self.count -= 1;
        }
    }

    /// Sets the bin that an operation names to what it has; false when there are too many.
    pub(super) fn set(&mut self, op: &Op<'_>) -> bool {
        self.set_parts(op.name, op.particle, &[op.value])
    }

    /// Sets a bin to bytes in parts.
    pub(super) fn set_parts(&mut self, name: &[u8], particle: u8, parts: &[&[u8]]) -> bool {
        self.remove(name);
        let Some(count) = self.count.checked_add(1) else { return false };
        put(&mut self.ops, name, particle, parts);
        self.count = count;
        true
    }
}
