//! Requests on one record written in place: what stays the same is copied, what differs is patched.
//!
//! The data plane writes one request per operation. All of a read but the digest is the same each
//! time; a write differs in its values and their sizes too. Nothing is allocated.

use super::command::Command;
use super::key::{DIGEST_SIZE, Digest};
use super::message::MESSAGE_HEADER_SIZE;
use super::proto::{PROTO_SIZE, ProtoHeader, ProtoKind};

/// Bytes of a field's size and kind.
const FIELD_HEAD: usize = 5;
/// Bytes of an operation's size, kind, particle type, version and size of name.
const OP_HEAD: usize = 8;

/// A request that is sent for one record after the other.
#[derive(Debug, Clone)]
pub struct CommandTemplate {
    /// With the values that it was made of.
    bytes: Vec<u8>,
    digest: usize,
    /// Where the operations begin.
    ops: usize,
    /// By operation: where its head begins, and where its value does.
    heads: Vec<(usize, usize)>,
}

impl CommandTemplate {
    /// Of a command that does not send the key along: its digest is replaced, and so are the values
    /// of its operations by [`MessageWriter::value`].
    #[must_use]
    pub fn new(command: &Command<'_>) -> Self {
        let mut bytes = Vec::new();
        let unkeyed = Command { send_key: false, ..*command };
        unkeyed.encode(&mut bytes);
        let key = unkeyed.key;
        let set = if key.set.is_empty() { 0 } else { FIELD_HEAD + key.set.len() };
        let head = PROTO_SIZE + MESSAGE_HEADER_SIZE + FIELD_HEAD + key.namespace.len() + set;
        let digest = head + FIELD_HEAD;
        let ops = digest + DIGEST_SIZE;
        let (mut heads, mut at) = (Vec::new(), ops);
        while let Some(head) = bytes.get(at..at + OP_HEAD) {
            let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            heads.push((at, at + OP_HEAD + usize::from(head[7])));
            at += 4 + size;
        }
        Self { bytes, digest, ops, heads }
    }

    /// Bytes of a request whose operations have values of `values` bytes in all.
    #[must_use]
    pub fn size(&self, values: usize) -> usize {
        let heads = self.heads.iter().map(|(head, value)| value - head).sum::<usize>();
        self.bytes.len().max(self.ops + heads + values)
    }

    /// Writes the request for this digest as it is to the front of `out`, which has room for it;
    /// returns its size.
    #[inline]
    pub fn write(&self, digest: &Digest, out: &mut [u8]) -> usize {
        let size = self.bytes.len();
        out[..size].copy_from_slice(&self.bytes);
        out[self.digest..self.digest + DIGEST_SIZE].copy_from_slice(digest);
        size
    }

    /// Begins a request for this digest at the start of `out`, which has room for the whole of it;
    /// each operation's value follows in order.
    #[inline]
    pub fn begin<'a>(&'a self, digest: &Digest, out: &'a mut [u8]) -> MessageWriter<'a> {
        out[..self.ops].copy_from_slice(&self.bytes[..self.ops]);
        out[self.digest..self.digest + DIGEST_SIZE].copy_from_slice(digest);
        MessageWriter { template: self, out, size: self.ops, op: 0 }
    }
}

/// A request being written.
#[derive(Debug)]
pub struct MessageWriter<'a> {
    template: &'a CommandTemplate,
    out: &'a mut [u8],
    size: usize,
    op: usize,
}

impl MessageWriter<'_> {
    /// Appends the next operation: `fill` is given all the room that is left, writes the value to
    /// the front of it and says how long it is.
    ///
    /// # Panics
    /// When the template has no further operation.
    #[inline]
    pub fn value(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        let (from, to) = self.template.heads[self.op];
        let (head, rest) = self.out[self.size..].split_at_mut(to - from);
        head.copy_from_slice(&self.template.bytes[from..to]);
        let written = fill(rest);
        let size = (head.len() - 4 + written) as u32;
        head[..4].copy_from_slice(&size.to_be_bytes());
        self.size += head.len() + written;
        self.op += 1;
    }

    /// Sets the size of the whole; returns it, bytes.
    #[inline]
    pub fn finish(self) -> usize {
        let header = ProtoHeader { kind: ProtoKind::Message, size: self.size - PROTO_SIZE };
        self.out[..PROTO_SIZE].copy_from_slice(&header.encode());
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Key, OpKind, Particle, ReadLevel, UserKey, Wanted, WritePolicy};
    use super::*;

    fn encoded(command: &Command<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_template_gives_the_bytes_of_the_general_encoder() {
        let policy = WritePolicy { timeout_ms: 1000, ..WritePolicy::default() };
        for set in ["", "usertable"] {
            let first = Key::new("test", set, UserKey::String("a"));
            let other = Key::new("test", set, UserKey::String("another"));
            let mut out = vec![0xAA; 1000];
            for wanted in [Wanted::All, Wanted::Existence, Wanted::Bins(&["x", "yy"])] {
                let get = |key| Command::get(key, wanted, ReadLevel::All, 20);
                let (of_first, of_other) = (get(&first), get(&other));
                let template = CommandTemplate::new(&of_first);
                let size = template.write(&other.digest, &mut out);
                assert_eq!(out[..size], encoded(&of_other)[..]);
                assert_eq!(template.size(0), size);
            }
            let empty = ["x", "yy"].map(|bin| (OpKind::Write, bin, Particle::Blob(b"")));
            let template = CommandTemplate::new(&Command::operate(&first, &policy, &empty));
            let values: [&[u8]; 2] = [b"one", b""];
            let full = [("x", values[0]), ("yy", values[1])];
            let full = full.map(|(bin, value)| (OpKind::Write, bin, Particle::Blob(value)));
            let mut writer = template.begin(&other.digest, &mut out);
            for value in values {
                writer.value(|out| {
                    out[..value.len()].copy_from_slice(value);
                    value.len()
                });
            }
            let size = writer.finish();
            assert_eq!(out[..size], encoded(&Command::operate(&other, &policy, &full))[..]);
            assert_eq!(template.size(3), size);
        }
    }
}
