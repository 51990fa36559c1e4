//! Operations on the bins of one record.

use super::bins::{self, Bins};
use super::records::Record;
use wire::aerospike::{Expiry, Message, Op, OpKind, Particle, ResultCode, info1, info2, info3};

/// Bytes that an answer about a record may take: it may ask for the same bin again and again.
const ANSWER_SIZE_MAX: usize = 64 << 20;
/// Bytes that a record's bins may take.
const RECORD_SIZE_MAX: usize = 8 << 20;
/// Ten years: a record may live no longer, unless it lives for ever.
const TTL_S_MAX: u32 = 10 * 365 * 24 * 3600;
/// Bits that let a write begin with no bins.
const REPLACES: u8 = info3::CREATE_OR_REPLACE | info3::REPLACE_ONLY;

/// What a write begins with.
pub(super) struct Existing {
    /// Of the record before; 0 when there was none.
    pub(super) generation: u16,
    void_time_s: u32,
    set: u16,
    bins: Bins,
}

impl Existing {
    /// Of a record that may be there, in this set.
    pub(super) fn of(record: Option<&Record>, set: u16, message: &Message<'_>) -> Self {
        let replaces = message.header.info3 & REPLACES != 0;
        let bins = record.filter(|_| !replaces).map_or_else(Bins::default, |record| Bins {
            count: record.count,
            ops: record.ops.to_vec(),
        });
        let (generation, void_time_s) =
            record.map_or((0, 0), |record| (record.generation, record.void_time_s));
        Self { generation, void_time_s, set, bins }
    }
}

/// Operations of an answer.
struct Results<'a> {
    out: &'a mut Vec<u8>,
    /// Where they begin in that.
    start: usize,
    count: u16,
    /// One for each operation, also where there is nothing to tell.
    all: bool,
}

impl Results<'_> {
    fn add(&mut self, count: u16) -> Result<(), ResultCode> {
        if self.out.len() - self.start > ANSWER_SIZE_MAX {
            return Err(ResultCode::RECORD_TOO_BIG);
        }
        self.count = self.count.checked_add(count).ok_or(ResultCode::PARAMETER)?;
        Ok(())
    }

    fn nothing(&mut self, name: &[u8]) -> Result<(), ResultCode> {
        if self.all {
            self.add(1)?;
            bins::put(self.out, name, Particle::Null.kind(), &[]);
        }
        Ok(())
    }

    /// The value of a bin; of no name: of all.
    fn read(&mut self, ops: &[u8], count: u16, name: &[u8]) -> Result<(), ResultCode> {
        if name.is_empty() {
            self.add(count)?;
            self.out.extend_from_slice(ops);
            return Ok(());
        }
        match bins::find(ops, name) {
            Some(bin) => {
                self.add(1)?;
                self.out.extend_from_slice(bin.op);
                Ok(())
            }
            None => self.nothing(name),
        }
    }
}

/// Appends what a read asks for; how many operations that is.
pub(super) fn read(
    record: &Record,
    message: &Message<'_>,
    out: &mut Vec<u8>,
) -> Result<u16, ResultCode> {
    let header = &message.header;
    if header.info1 & info1::NO_BIN_DATA != 0 {
        return Ok(0);
    }
    if header.info1 & info1::GET_ALL != 0 {
        out.extend_from_slice(&record.ops);
        return Ok(record.count);
    }
    let all = header.info2 & info2::RESPOND_ALL != 0;
    let mut results = Results { start: out.len(), out, count: 0, all };
    for op in message.ops() {
        match op.kind() {
            Some(OpKind::Read) => results.read(&record.ops, record.count, op.name)?,
            Some(_) => return Err(ResultCode::PARAMETER),
            None => return Err(ResultCode::UNSUPPORTED),
        }
    }
    Ok(results.count)
}

/// Does what a write asks for, and appends what it asks back: the record as it is to be, None when
/// no bin is left, and how many operations were appended.
pub(super) fn write(
    existing: Existing,
    message: &Message<'_>,
    now_s: u32,
    out: &mut Vec<u8>,
) -> Result<(Option<Record>, u16), ResultCode> {
    let header = &message.header;
    let Existing { generation, void_time_s, set, mut bins } = existing;
    let void_time_s = void_time(Expiry::of(header.ttl_s), void_time_s, now_s)?;
    let replaces = header.info3 & REPLACES != 0;
    let all = header.info2 & info2::RESPOND_ALL != 0;
    let mut results = Results { start: out.len(), out, count: 0, all };
    let is_header = header.info1 & info1::NO_BIN_DATA != 0;
    for op in message.ops() {
        match op.kind() {
            Some(OpKind::Read) if op.name.is_empty() && is_header => {}
            Some(OpKind::Read) => results.read(&bins.ops, bins.count, op.name)?,
            Some(_) => {
                apply(&mut bins, &op, replaces)?;
                results.nothing(op.name)?;
            }
            None => return Err(ResultCode::UNSUPPORTED),
        }
    }
    let count = results.count;
    if bins.ops.len() > RECORD_SIZE_MAX {
        return Err(ResultCode::RECORD_TOO_BIG);
    }
    let generation = generation.checked_add(1).unwrap_or(1);
    let ops = bins.ops.into_boxed_slice();
    let record = Record { generation, void_time_s, set, count: bins.count, ops };
    Ok(((record.count > 0).then_some(record), count))
}

/// When a record ends, from what a write asks for and when it ended before.
fn void_time(expiry: Expiry, before_s: u32, now_s: u32) -> Result<u32, ResultCode> {
    match expiry {
        Expiry::Namespace | Expiry::Never => Ok(0),
        Expiry::Keep => Ok(before_s),
        Expiry::Seconds(seconds) if seconds <= TTL_S_MAX => Ok(now_s.saturating_add(seconds)),
        Expiry::Seconds(_) => Err(ResultCode::PARAMETER),
    }
}

/// Does one operation that is no read.
fn apply(bins: &mut Bins, op: &Op<'_>, replaces: bool) -> Result<(), ResultCode> {
    let value = op.particle().map_err(|_| ResultCode::PARAMETER)?;
    match op.kind() {
        Some(OpKind::Write) if value == Particle::Null => {
            bins.remove(op.name);
            Ok(())
        }
        Some(OpKind::Write) => set(bins.set(op)),
        Some(OpKind::Delete) => {
            *bins = Bins::default();
            Ok(())
        }
        Some(OpKind::Touch) => Ok(()),
        // What is replaced whole cannot be changed in part.
        _ if replaces => Err(ResultCode::PARAMETER),
        Some(OpKind::Increment) => increment(bins, op, value),
        Some(OpKind::Append) => extend(bins, op, value, false),
        Some(OpKind::Prepend) => extend(bins, op, value, true),
        Some(OpKind::Read) | None => Err(ResultCode::UNSUPPORTED),
    }
}

fn set(fits: bool) -> Result<(), ResultCode> {
    if fits { Ok(()) } else { Err(ResultCode::PARAMETER) }
}

/// Adds to a number; one that is not there begins at nothing.
fn increment(bins: &mut Bins, op: &Op<'_>, by: Particle<'_>) -> Result<(), ResultCode> {
    if !matches!(by, Particle::Integer(_) | Particle::Double(_)) {
        return Err(ResultCode::PARAMETER);
    }
    let Some(bin) = bins::find(&bins.ops, op.name) else { return set(bins.set(op)) };
    let sum = match (Particle::decode(bin.particle, bin.value), by) {
        (Ok(Particle::Integer(a)), Particle::Integer(b)) => Particle::Integer(a.wrapping_add(b)),
        (Ok(Particle::Double(a)), Particle::Double(b)) => Particle::Double(a + b),
        _ => return Err(ResultCode::BIN_TYPE),
    };
    let mut bytes = Vec::new();
    sum.put(&mut bytes);
    set(bins.set_parts(op.name, sum.kind(), &[&bytes]))
}

/// Adds bytes to text or a blob, at the end or the start; what is not there begins empty.
fn extend(
    bins: &mut Bins,
    op: &Op<'_>,
    value: Particle<'_>,
    at_start: bool,
) -> Result<(), ResultCode> {
    if !matches!(value, Particle::String(_) | Particle::Blob(_)) {
        return Err(ResultCode::PARAMETER);
    }
    let Some(bin) = bins::find(&bins.ops, op.name) else { return set(bins.set(op)) };
    if bin.particle != op.particle {
        return Err(ResultCode::BIN_TYPE);
    }
    let before = bin.value.to_vec();
    let parts = if at_start { [op.value, &before] } else { [&before, op.value] };
    set(bins.set_parts(op.name, op.particle, &parts))
}
