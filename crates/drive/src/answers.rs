//! Answers: what was received -> header -> outcome, for the operation that they belong to.

use crate::connection::{Connection, State};
use crate::cql::Encoder;
use crate::cql_link::CqlLink;
use crate::exchange::WorkerUsage;
use crate::operations::Operations;
use crate::outcome;
use crate::protocol::Link;
use crate::roster::Roster;
use crate::run::Setup;
use crate::slots::Slot;
use crate::streams::{Answered, Streams};
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::Ring;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::OnceLock;
use units::{Nanos, harmless};
use wire::cql::request::Request;
use wire::cql::response::{Reply, Response, classify};
use wire::cql::{ErrorCode, HEADER_SIZE, Header, flags};
use wire::tablets::Tablet;

/// Keeps the first error's text, for whoever has to find out why.
#[cold]
fn note_error(first: &OnceLock<String>, header: &Header, body: &[u8]) {
    first.get_or_init(|| match Response::decode(header, body) {
        Ok(Response::Error { code, message, .. }) => {
            let said: String = message.chars().take(200).collect();
            // It goes to terminals, as a line.
            let mut text = harmless(&said.replace('\n', " "));
            // Writing to a string does not fail.
            let _ = write!(text, " (code {:#06x})", code.0);
            text
        }
        _ => "an error without a text".to_owned(),
    });
}

/// How long an operation waits for its statement to be prepared again before it is sent once more.
const PREPARE_PAUSE: Nanos = Nanos::from_millis(5);
/// So often an operation may find its statement unknown before that is its outcome.
const UNPREPARED_MAX: u8 = 20;

/// Why no more answers are taken for now.
enum Pause {
    /// No whole frame is left.
    Empty,
    /// The connection is not ready yet; the next frame is still to be taken.
    Starting,
    /// The host has forgotten the statement of the operation in this slot.
    Unprepared(u32),
    /// The peer breaks the protocol.
    Broken,
}

/// What an answer means for the operation in `slot`; None when the host has forgotten its
/// statement.
#[inline]
fn judge(
    (setup, encoder): (&Setup, &Encoder),
    roster: &Roster,
    slot: &mut Slot,
    header: &Header,
    body: &[u8],
    key: &mut [u8],
) -> Option<Outcome> {
    let statement = usize::from(slot.statement);
    Some(match classify(header, body) {
        Ok(Reply::Error(ErrorCode::UNPREPARED)) => return None,
        // Whatever a user's statement answers.
        Ok(Reply::Void) if encoder.has_tables() => Outcome::Ok,
        Ok(Reply::Rows { count, .. }) if encoder.has_tables() => {
            if encoder.reads(statement) {
                slot.rows = count.try_into().unwrap_or(u32::MAX);
            }
            Outcome::Ok
        }
        Ok(Reply::Void) if encoder.reads(statement) => Outcome::Error,
        Ok(Reply::Void) => Outcome::Ok,
        // YCSB's bindings hold a scan without rows for a success.
        Ok(Reply::Rows { count: 0, .. }) if !encoder.scans(statement) => Outcome::NotFound,
        Ok(Reply::Rows { count, cells_offset, .. }) => {
            let cells = &body[cells_offset..];
            let valid = !encoder.plan().verifies()
                || encoder.verify(statement, &slot.draw, count, cells, key);
            if valid { Outcome::Ok } else { Outcome::Invalid }
        }
        Ok(Reply::Error(code)) => {
            note_error(&setup.first_error, header, body);
            if code == ErrorCode::UNAVAILABLE {
                roster.cry();
            }
            outcome::of_error(code)
        }
        Err(error) => {
            setup.first_error.get_or_init(|| error.to_string());
            Outcome::Error
        }
    })
}

/// Whether an answer says that a statement is prepared under the id that is used. If not, the
/// operations that wait for it fail, and this is why.
#[cold]
fn is_prepared(
    (setup, encoder): (&Setup, &Encoder),
    statement: usize,
    header: &Header,
    body: &[u8],
) -> bool {
    match Response::decode(header, body) {
        Ok(Response::Prepared(prepared)) => {
            let same = encoder.is_id(statement, &prepared.id);
            if !same {
                let other = || "the target prepares a statement under another id".to_owned();
                setup.first_error.get_or_init(other);
            }
            same
        }
        _ => {
            note_error(&setup.first_error, header, body);
            false
        }
    }
}

/// An answer has a payload.
#[cold]
fn hear(
    table: usize,
    header: &Header,
    body: &[u8],
    told: &mut Vec<(usize, Tablet)>,
    usage: &mut WorkerUsage,
) {
    match Tablet::told_in(header, body) {
        Ok(tablet) => told.extend(tablet.map(|tablet| (table, tablet))),
        // The answer stands by itself.
        Err(_) => usage.tablets_unread += 1,
    }
}

/// What answers are taken with.
struct Taker<'a, W: Witness> {
    setup: &'a Setup,
    encoder: &'a Encoder,
    roster: &'a Roster,
    told: &'a mut Vec<(usize, Tablet)>,
    operations: &'a mut Operations<W>,
    key: &'a mut [u8],
    state: State,
    streams: &'a mut Streams,
}

impl<W: Witness> Taker<'_, W> {
    /// Touches what the answers that have arrived belong to. A target on the same cpu, or 10 ms of
    /// waiting, leave nothing of it in the caches; here the loads of many answers are under way at
    /// once, while [`Self::take`] would wait for each of them: 0.1 us per operation.
    #[inline]
    fn approach(&self, received: &[u8]) {
        let mut rest = received;
        while let Ok(Some(header)) = Header::decode(rest) {
            let Some(behind) = rest.get(HEADER_SIZE + header.body_size..) else { return };
            if let Some(slot) = self.streams.slot(header.stream) {
                self.operations.slots.touch(slot);
            }
            rest = behind;
        }
    }

    /// Takes the whole frames at the start of `received`; returns how many bytes they are, and why
    /// no more are taken.
    #[inline]
    fn take(&mut self, received: &[u8], at: Nanos) -> (usize, Pause) {
        self.approach(received);
        // Not by way of `self`: the loop needs all registers.
        let (setup, roster, state) = ((self.setup, self.encoder), self.roster, self.state);
        let operations = &mut *self.operations;
        let (key, streams) = (&mut *self.key, &mut *self.streams);
        let mut rest = received;
        let pause = loop {
            let header = match Header::decode(rest) {
                Ok(Some(header)) if rest.len() - HEADER_SIZE >= header.body_size => header,
                Ok(_) => break Pause::Empty,
                Err(_) => break Pause::Broken,
            };
            if matches!(state, State::Connecting(_) | State::Starting(_)) {
                break Pause::Starting;
            }
            let (frame, behind) = rest.split_at(HEADER_SIZE + header.body_size);
            let body = &frame[HEADER_SIZE..];
            rest = behind;
            match streams.answered(header.stream) {
                Answered::Slot(slot) => {
                    if header.flags & flags::CUSTOM_PAYLOAD != 0 {
                        let statement = operations.slots.get(slot).statement;
                        let table = self.encoder.table_of(usize::from(statement));
                        let usage = &mut operations.tally.usage;
                        hear(table, &header, body, self.told, usage);
                    }
                    let asked = operations.slots.get_mut(slot);
                    match judge(setup, roster, asked, &header, body, key) {
                        Some(outcome) => operations.attempted(slot, at, outcome),
                        None => break Pause::Unprepared(slot),
                    }
                }
                Answered::Prepare(statement) => {
                    let same = is_prepared(setup, statement, &header, body);
                    if !same {
                        operations.tally.usage.prepares_failed += 1;
                        roster.cry();
                    }
                }
                Answered::Late => operations.tally.usage.late += 1,
                // Events come on negative streams; none was asked for. Anything else is a broken
                // peer.
                Answered::Stray => break Pause::Broken,
            }
        };
        (received.len() - rest.len(), pause)
    }
}

impl<R: Ring, W: Witness> Worker<R, W, Encoder> {
    /// Takes every whole frame that has arrived on a connection. `at` is the clock read behind the
    /// receive.
    pub(crate) fn receive(&mut self, index: u16, at: Nanos) {
        loop {
            let pause = self.take_answers(index, at);
            if !self.local.told.is_empty() {
                self.learn_tablets();
            }
            match pause {
                Pause::Empty => return,
                Pause::Starting => self.on_started(index, at),
                Pause::Unprepared(slot) => self.prepare_again(slot, index, at),
                Pause::Broken => return self.lost(index, at),
            }
        }
    }

    /// Takes answers to operations as long as nothing else turns up.
    fn take_answers(&mut self, index: u16, at: Nanos) -> Pause {
        let Self { setup, encoder, roster, ring, connections, operations, key, local, .. } = self;
        let Connection { id, state, link, .. } = &mut connections[usize::from(index)];
        let CqlLink { streams, framed, .. } = link;
        let (state, told) = (*state, &mut local.told);
        let mut taker = Taker { setup, encoder, roster, told, operations, key, state, streams };
        let Some(framed) = framed else {
            let (taken, pause) = taker.take(ring.received(*id), at);
            ring.consume(*id, taken);
            return pause;
        };
        loop {
            let (taken, pause) = match framed.frames(ring, *id) {
                Ok([]) => return Pause::Empty,
                Ok(frames) => taker.take(frames, at),
                Err(error) => {
                    setup.first_error.get_or_init(|| error.to_string());
                    return Pause::Broken;
                }
            };
            framed.take(ring, *id, taken);
            if !matches!(pause, Pause::Empty) {
                return pause;
            }
        }
    }

    /// The host does not know the statement (any longer): it is prepared there again, and the
    /// operation goes out once more a moment later. Its service time runs on.
    #[cold]
    fn prepare_again(&mut self, index: u32, connection: u16, at: Nanos) {
        let slot = self.operations.slots.answered(index);
        let statement = usize::from(slot.statement);
        slot.unprepared += 1;
        if slot.unprepared > UNPREPARED_MAX {
            return self.operations.attempted(index, at, Outcome::Error);
        }
        self.operations.paused.push(Reverse((at + PREPARE_PAUSE, index)));
        let link = &mut self.connections[usize::from(connection)];
        // None: it is on its way already.
        if let Some(stream) = link.link.streams.take_for_prepare(statement) {
            let request = Request::Prepare(self.encoder.text(statement), None);
            let version = self.encoder.protocol().version();
            let filling = link.link.buffer(&mut self.ring, link.id);
            filling.append(|out| request.encode_at(version, stream, out));
            self.operations.tally.usage.prepares += 1;
            self.roster.cry();
            if !link.dirty {
                link.dirty = true;
                self.dirty.push(connection);
            }
        }
    }
}
