//! One connection, without its socket: bytes in, bytes out.
//!
//! What is no message of the protocol ends the connection; a message that makes no sense is
//! answered so.

use super::info;
use super::records::{Outcome, Records};
use crate::counters::{Counter, Counters};
use crate::events::EventLog;
use crate::faults::{self, Access, Fate, Fates, Fault, FaultPlan};
use crate::service::{After, Conversation, Received, Service, SessionLimits};
use crate::store::Disk;
use std::net::SocketAddr;
use std::sync::Arc;
use wire::aerospike::{
    Answer, Digest, FieldKind, MESSAGE_HEADER_SIZE, Message, MessageHeader, PROTO_SIZE,
    ProtoHeader, ProtoKind, ResultCode, batch, begin, compress, decompress, finish,
    info as info_text, info1, info2,
};

/// Bytes of an answer to a batch after which another message begins.
const BATCH_PART: usize = 1 << 20;
/// Bytes that an answer to a batch may take; it ends with an error there.
const BATCH_MAX: usize = 128 << 20;

/// A connection's state.
#[derive(Debug)]
pub struct RecordSession {
    records: Arc<Records>,
    /// The server that it is of.
    member: usize,
    counters: Arc<Counters>,
    limits: SessionLimits,
    /// None when nothing goes wrong on purpose.
    fates: Option<Box<Fates>>,
    /// A message that came compressed.
    inflated: Vec<u8>,
    /// An answer that is to go compressed.
    plain: Vec<u8>,
}

/// The error that a fault is answered with.
fn code(fault: Fault) -> Option<ResultCode> {
    match fault {
        Fault::Error => Some(ResultCode::SERVER_ERROR),
        Fault::Overloaded => Some(ResultCode::DEVICE_OVERLOAD),
        Fault::Unavailable => Some(ResultCode::UNAVAILABLE),
        Fault::ReadTimeout | Fault::WriteTimeout => Some(ResultCode::TIMEOUT),
        Fault::Drop | Fault::Late(_) => None,
    }
}

impl RecordSession {
    /// A new connection.
    #[must_use]
    pub fn new(records: Arc<Records>, limits: SessionLimits) -> Self {
        let counters = records.counters.block();
        Self::counted(records, 0, counters, limits)
    }

    /// A new connection; `counters` is its thread's block.
    fn counted(
        records: Arc<Records>,
        member: usize,
        counters: Arc<Counters>,
        limits: SessionLimits,
    ) -> Self {
        counters.add(Counter::Connections, 1);
        let fates = records.faults.as_ref().map(|plan| Box::new(Fates::new(plan)));
        Self { records, member, counters, limits, fates, inflated: Vec::new(), plain: Vec::new() }
    }

    /// Answers the whole requests at the start of `received`, at most `requests_max` of them, into
    /// `out`.
    ///
    /// Stops early when `out` has grown beyond the backlog: call again when it has been sent.
    pub fn receive(&mut self, received: &[u8], requests_max: usize, out: &mut Vec<u8>) -> Received {
        let start = out.len();
        let mut done = Received::default();
        while done.after == After::Continue
            && done.answered < requests_max
            && out.len() - start <= self.limits.backlog_max
        {
            let rest = &received[done.consumed..];
            let header = match ProtoHeader::decode(rest, self.limits.frame_size_max) {
                Ok(Some(header)) => header,
                Ok(None) => break,
                Err(_) => {
                    (done.consumed, done.after) = (received.len(), After::Close);
                    break;
                }
            };
            let Some(body) = rest.get(PROTO_SIZE..PROTO_SIZE + header.size) else { break };
            done.consumed += PROTO_SIZE + header.size;
            done.answered += 1;
            let is_operation = matches!(header.kind, ProtoKind::Message | ProtoKind::Compressed);
            done.operations += usize::from(is_operation);
            let before = out.len();
            done.after = self.answer(header.kind, body, out);
            if done.after == After::Close {
                out.truncate(before);
            }
        }
        self.counters.add(Counter::BytesReceived, done.consumed as u64);
        self.counters.add(Counter::BytesSent, (out.len() - start) as u64);
        done
    }

    /// Answers one body; whether the connection lives on.
    fn answer(&mut self, kind: ProtoKind, body: &[u8], out: &mut Vec<u8>) -> After {
        if self.records.members.is_away(self.member) {
            return After::Close;
        }
        match kind {
            ProtoKind::Info => self.answer_info(body, out),
            ProtoKind::Admin => {
                // Scheme, result, command, fields, and twelve bytes of nothing.
                let start = begin(out);
                out.extend_from_slice(&[0, ResultCode::SECURITY_NOT_SUPPORTED.0, 0, 0]);
                out.extend_from_slice(&[0; 12]);
                finish(out, start, ProtoKind::Admin);
                After::Continue
            }
            ProtoKind::Message => {
                self.answer_message(body, out);
                After::Continue
            }
            ProtoKind::Compressed => {
                let mut inflated = std::mem::take(&mut self.inflated);
                let size_max = self.limits.frame_size_max;
                let after = match decompress(body, size_max, &mut inflated) {
                    Ok(()) => {
                        self.answer_message(&inflated[PROTO_SIZE..], out);
                        After::Continue
                    }
                    Err(_) => After::Close,
                };
                self.inflated = inflated;
                after
            }
        }
    }

    fn answer_info(&mut self, body: &[u8], out: &mut Vec<u8>) -> After {
        self.counters.add(Counter::Info, 1);
        let Ok(names) = info_text::names(body) else { return After::Close };
        let start = begin(out);
        for name in names {
            info_text::put_line(out, name, &info::value(&self.records, self.member, name));
            // Names may be asked for again and again.
            if out.len() - start > self.limits.frame_size_max {
                return After::Close;
            }
        }
        finish(out, start, ProtoKind::Info);
        After::Continue
    }

    fn answer_message(&mut self, body: &[u8], out: &mut Vec<u8>) {
        self.counters.add(Counter::Message, 1);
        let Ok(message) = Message::decode(body) else {
            return self.refuse(ResultCode::PARAMETER, out);
        };
        if message.header.info1 & info1::COMPRESS_ANSWER == 0 {
            return self.meet_fate(&message, out);
        }
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        self.meet_fate(&message, &mut plain);
        compress_all(&plain, out);
        self.plain = plain;
    }

    fn refuse(&self, result: ResultCode, out: &mut Vec<u8>) {
        self.counters.add(Counter::Errors, 1);
        Answer::of(result).encode(out);
    }

    /// Answers a message as its fate has it; without faults, as it is.
    fn meet_fate(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        let Some(fates) = &mut self.fates else { return self.carry_out(message, out) };
        let writes = message.header.info2 & info2::WRITE != 0
            || message.fields().any(|f| f.kind == FieldKind::BATCH && batch_writes(f.bytes));
        let fate = fates.next(if writes { Access::Write } else { Access::Read });
        let Some(fault) = fate.fault else { return self.carry_out(message, out) };
        self.counters.add(faults::counter(fault), 1);
        let Some(code) = code(fault) else { return self.carry_out(message, out) };
        if fault == Fault::WriteTimeout && fate.is_done {
            let start = out.len();
            self.carry_out(message, out);
            out.truncate(start);
        }
        match message.header.info1 & info1::BATCH {
            0 => self.refuse(code, out),
            _ => self.end_batch(code, out),
        }
    }

    fn carry_out(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        if message.header.info1 & info1::BATCH != 0 {
            return self.answer_batch(message, out);
        }
        let start = begin(out);
        self.answer_record(message, None, 0, out);
        finish(out, start, ProtoKind::Message);
    }

    /// Appends the answer about one record, without the eight bytes before it.
    fn answer_record(
        &self,
        message: &Message<'_>,
        digest: Option<&Digest>,
        index: u32,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; MESSAGE_HEADER_SIZE]);
        let done = self.records.carry_out(message, (self.member, digest), &self.counters, out);
        let (result, outcome) = match done {
            Ok(outcome) => (ResultCode::OK, outcome),
            Err(result) => {
                out.truncate(start + MESSAGE_HEADER_SIZE);
                if result != ResultCode::NOT_FOUND {
                    self.counters.add(Counter::Errors, 1);
                }
                (result, Outcome::default())
            }
        };
        let header = MessageHeader {
            result: result.0,
            generation: u32::from(outcome.generation),
            ttl_s: outcome.void_time_s,
            timeout_ms: index,
            ops: outcome.count,
            ..MessageHeader::default()
        };
        out[start..start + MESSAGE_HEADER_SIZE].copy_from_slice(&header.encode());
    }

    fn answer_batch(&self, message: &Message<'_>, out: &mut Vec<u8>) {
        let mut field = None;
        for other in message.fields() {
            match other.kind {
                FieldKind::BATCH => field = Some(other.bytes),
                _ => return self.end_batch(ResultCode::UNSUPPORTED, out),
            }
        }
        let Some(Ok(rows)) = field.map(batch::Rows::decode) else {
            return self.end_batch(ResultCode::PARAMETER, out);
        };
        let first = out.len();
        let mut start = begin(out);
        let mut result = ResultCode::OK;
        for row in rows {
            let Ok(row) = row else {
                result = ResultCode::PARAMETER;
                break;
            };
            self.answer_record(&row.message, Some(&row.digest), row.index, out);
            if out.len() - first > BATCH_MAX {
                result = ResultCode::RECORD_TOO_BIG;
                break;
            }
            if out.len() - start > BATCH_PART {
                finish(out, start, ProtoKind::Message);
                start = begin(out);
            }
        }
        batch::put_last(result, out);
        finish(out, start, ProtoKind::Message);
    }

    fn end_batch(&self, result: ResultCode, out: &mut Vec<u8>) {
        self.counters.add(Counter::Errors, 1);
        let start = begin(out);
        batch::put_last(result, out);
        finish(out, start, ProtoKind::Message);
    }
}

/// Whether a batch writes any record.
fn batch_writes(field: &[u8]) -> bool {
    let rows = batch::Rows::decode(field).into_iter().flatten().flatten();
    rows.into_iter().any(|row| row.message.header.info2 & info2::WRITE != 0)
}

/// Appends whole messages, each compressed.
fn compress_all(mut messages: &[u8], out: &mut Vec<u8>) {
    while let Ok(Some(header)) = ProtoHeader::decode(messages, usize::MAX >> 1)
        && let Some((message, rest)) = messages.split_at_checked(PROTO_SIZE + header.size)
    {
        compress(message, out);
        messages = rest;
    }
}

impl Conversation for RecordSession {
    fn receive(&mut self, received: &[u8], requests_max: usize, out: &mut Vec<u8>) -> Received {
        RecordSession::receive(self, received, requests_max, out)
    }

    fn take_fate(&mut self) -> Fate {
        self.fates.as_mut().map_or_else(Fate::default, |fates| std::mem::take(&mut fates.last))
    }

    fn wants_schema_changes(&self) -> bool {
        false
    }

    fn tell(&mut self, _: &[u8], _: &mut Vec<u8>) {}
}

impl Drop for RecordSession {
    fn drop(&mut self) {
        self.counters.add(Counter::Closed, 1);
    }
}

impl Service for Records {
    type Session = RecordSession;

    fn session(
        self: &Arc<Self>,
        counters: &Arc<Counters>,
        limits: SessionLimits,
        _: SocketAddr,
        port: u16,
    ) -> RecordSession {
        let member = self.members.at(port);
        RecordSession::counted(Arc::clone(self), member, Arc::clone(counters), limits)
    }

    fn counters(&self) -> Arc<Counters> {
        self.counters.block()
    }

    fn receive_max(frame_size_max: usize) -> usize {
        PROTO_SIZE + frame_size_max
    }

    fn faults(&self) -> Option<&FaultPlan> {
        self.faults.as_deref()
    }

    fn disk(&self) -> Option<&Disk> {
        None
    }

    fn after_a_turn(&self) {
        self.members.tick();
    }

    fn events(&self) -> Option<&EventLog> {
        None
    }
}
