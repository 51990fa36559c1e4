//! Requests on one record, as a client sends them.

use super::key::Key;
use super::message::{Field, FieldKind, MessageHeader, OpKind, info1, info2, info3, put_op};
use super::particle::Particle;
use super::proto::{ProtoKind, begin, finish};

/// What must be the case for a write, and what it leaves of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordExists {
    /// Creates the record, or changes the bins that are written.
    #[default]
    Update,
    /// Changes bins of a record that is there.
    UpdateOnly,
    /// Creates the record, or replaces it whole.
    Replace,
    /// Replaces a record that is there.
    ReplaceOnly,
    /// Creates the record.
    CreateOnly,
}

/// Which generation a record must have for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// Any.
    #[default]
    Any,
    /// This one.
    Equal(u32),
    /// One below this.
    Below(u32),
}

/// When a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// As the namespace has it.
    #[default]
    Namespace,
    /// Never.
    Never,
    /// As it was.
    Keep,
    /// So many seconds from now.
    Seconds(u32),
}

impl Expiry {
    /// Of the field of a request.
    #[must_use]
    pub fn of(ttl_s: u32) -> Self {
        match ttl_s {
            0 => Self::Namespace,
            u32::MAX => Self::Never,
            0xFFFF_FFFE => Self::Keep,
            seconds => Self::Seconds(seconds),
        }
    }

    fn ttl_s(self) -> u32 {
        match self {
            Self::Namespace => 0,
            Self::Never => u32::MAX,
            Self::Keep => u32::MAX - 1,
            Self::Seconds(seconds) => seconds,
        }
    }
}

/// How a write is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WritePolicy {
    /// What must be there, and what is left of it.
    pub exists: RecordExists,
    /// Which generation it must have.
    pub generation: Generation,
    /// When it ends.
    pub expiry: Expiry,
    /// Acknowledged when the first copy is written, instead of all.
    pub commit_master: bool,
    /// Each operation has a result, also those that only write.
    pub respond_all: bool,
    /// The server shall keep the key.
    pub send_key: bool,
    /// How long the server may take, ms; 0 for as long as it likes.
    pub timeout_ms: u32,
}

/// How many copies a read asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadLevel {
    /// One.
    #[default]
    One,
    /// All, while they may differ.
    All,
}

/// What a read wants of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted<'a> {
    /// Whether it is there.
    Existence,
    /// Generation and expiry.
    Header,
    /// All bins.
    All,
    /// Bins by name.
    Bins(&'a [&'a str]),
}

/// Operations of a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ops<'a> {
    Of(&'a [(OpKind, &'a str, Particle<'a>)]),
    Bins(&'a [&'a str]),
    /// One without a bin.
    Bare(OpKind),
}

impl Ops<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Of(ops) => ops.len(),
            Self::Bins(names) => names.len(),
            Self::Bare(_) => 1,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Of(ops) => {
                ops.iter().for_each(|(kind, bin, value)| put_op(out, *kind, bin.as_bytes(), value));
            }
            Self::Bins(names) => {
                let read =
                    |name: &&str| put_op(out, OpKind::Read, name.as_bytes(), &Particle::Null);
                names.iter().for_each(read);
            }
            Self::Bare(kind) => put_op(out, *kind, b"", &Particle::Null),
        }
    }
}

/// A request on one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Command<'a> {
    pub(super) key: &'a Key<'a>,
    pub(super) header: MessageHeader,
    pub(super) send_key: bool,
    pub(super) ops: Ops<'a>,
}

impl<'a> Command<'a> {
    fn of_policy(key: &'a Key<'a>, policy: &WritePolicy, ops: Ops<'a>) -> Self {
        let mut header = MessageHeader {
            info2: info2::WRITE,
            ttl_s: policy.expiry.ttl_s(),
            timeout_ms: policy.timeout_ms,
            ..MessageHeader::default()
        };
        match policy.exists {
            RecordExists::Update => {}
            RecordExists::UpdateOnly => header.info3 |= info3::UPDATE_ONLY,
            RecordExists::Replace => header.info3 |= info3::CREATE_OR_REPLACE,
            RecordExists::ReplaceOnly => header.info3 |= info3::REPLACE_ONLY,
            RecordExists::CreateOnly => header.info2 |= info2::CREATE_ONLY,
        }
        match policy.generation {
            Generation::Any => {}
            Generation::Equal(generation) => {
                (header.generation, header.info2) = (generation, header.info2 | info2::GENERATION);
            }
            Generation::Below(generation) => {
                header.generation = generation;
                header.info2 |= info2::GENERATION_GREATER;
            }
        }
        if policy.respond_all {
            header.info2 |= info2::RESPOND_ALL;
        }
        if policy.commit_master {
            header.info3 |= info3::COMMIT_MASTER;
        }
        Self { key, header, send_key: policy.send_key, ops }
    }

    /// Operations on bins, in their order: reads among them give the values of then. Nothing but
    /// reads is a read, for which just the time-out of the policy counts.
    #[must_use]
    pub fn operate(
        key: &'a Key<'a>,
        policy: &WritePolicy,
        ops: &'a [(OpKind, &'a str, Particle<'a>)],
    ) -> Self {
        let mut command = Self::of_policy(key, policy, Ops::Of(ops));
        let mut reads = ops.iter().filter(|op| op.0 == OpKind::Read).peekable();
        if reads.peek().is_some() {
            command.header.info1 |= info1::READ;
        }
        if reads.any(|op| op.1.is_empty()) {
            command.header.info1 |= info1::GET_ALL;
        }
        if ops.iter().all(|op| op.0 == OpKind::Read) {
            let (info1, timeout_ms) = (command.header.info1, policy.timeout_ms);
            command.header = MessageHeader { info1, timeout_ms, ..MessageHeader::default() };
            command.send_key = false;
        }
        command
    }

    /// A read.
    #[must_use]
    pub fn get(key: &'a Key<'a>, wanted: Wanted<'a>, level: ReadLevel, timeout_ms: u32) -> Self {
        let (more, ops) = match wanted {
            Wanted::Existence => (info1::NO_BIN_DATA, Ops::Bins(&[])),
            Wanted::Header => (info1::NO_BIN_DATA, Ops::Bare(OpKind::Read)),
            Wanted::All => (info1::GET_ALL, Ops::Bins(&[])),
            Wanted::Bins(names) => (0, Ops::Bins(names)),
        };
        let level = if level == ReadLevel::All { info1::READ_ALL } else { 0 };
        let info1 = info1::READ | more | level;
        let header = MessageHeader { info1, timeout_ms, ..MessageHeader::default() };
        Self { key, header, send_key: false, ops }
    }

    /// Deletes the record.
    #[must_use]
    pub fn delete(key: &'a Key<'a>, policy: &WritePolicy) -> Self {
        let mut command = Self::of_policy(key, policy, Ops::Bins(&[]));
        command.header.info2 |= info2::DELETE;
        command.send_key = false;
        command
    }

    /// Renews the record's expiry.
    #[must_use]
    pub fn touch(key: &'a Key<'a>, policy: &WritePolicy) -> Self {
        Self::of_policy(key, policy, Ops::Bare(OpKind::Touch))
    }

    /// Appends the message, whole.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = begin(out);
        let has_set = !self.key.set.is_empty();
        let mut header = self.header;
        header.fields = 2 + u16::from(has_set) + u16::from(self.send_key);
        header.ops = self.ops.count() as u16;
        out.extend_from_slice(&header.encode());
        Field::put(out, FieldKind::NAMESPACE, self.key.namespace.as_bytes());
        if has_set {
            Field::put(out, FieldKind::SET, self.key.set.as_bytes());
        }
        Field::put(out, FieldKind::DIGEST, &self.key.digest);
        if self.send_key {
            self.put_key(out);
        }
        self.ops.put(out);
        finish(out, start, ProtoKind::Message);
    }

    pub(super) fn put_key(&self, out: &mut Vec<u8>) {
        let start = out.len();
        Field::put(out, FieldKind::KEY, &[]);
        self.key.user_key.put(out);
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }
}
