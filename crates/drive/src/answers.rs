//! The second half of an operation's way: receive -> header -> outcome -> histograms -> next.

use crate::connection::State;
use crate::outcome;
use crate::slots::Slot;
use crate::streams::Answered;
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::Ring;
use std::fmt::Write as _;
use std::sync::OnceLock;
use units::Nanos;
use wire::cql::request::Request;
use wire::cql::response::{Reply, Response, classify};
use wire::cql::{ErrorCode, HEADER_SIZE, Header};

/// Keeps the first error's text, for whoever has to find out why.
#[cold]
fn note_error(first: &OnceLock<String>, header: &Header, body: &[u8]) {
    first.get_or_init(|| match Response::decode(header, body) {
        Ok(Response::Error { code, message, .. }) => {
            let mut text: String = message.chars().take(200).collect();
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

impl<R: Ring, W: Witness> Worker<R, W> {
    /// Takes every whole frame that has arrived on a connection. `at` is the clock read behind the
    /// receive.
    pub(crate) fn receive(&mut self, index: u16, at: Nanos) {
        loop {
            let connection = &mut self.connections[usize::from(index)];
            let bytes = self.ring.received(connection.id);
            let header = match Header::decode(bytes) {
                Ok(Some(header)) if bytes.len() - HEADER_SIZE >= header.body_size => header,
                Ok(_) => return,
                Err(_) => return self.lost(index, at),
            };
            let frame_size = HEADER_SIZE + header.body_size;
            if connection.state != State::Ready {
                self.on_started(index, &header, at);
                continue;
            }
            match connection.streams.answered(header.stream) {
                Answered::Slot(slot) => {
                    let judgement = self.judge(slot, index, &header);
                    self.ring.consume(self.connections[usize::from(index)].id, frame_size);
                    match judgement {
                        Some(outcome) => self.attempted(slot, at, outcome),
                        None => self.prepare_again(slot, index, at),
                    }
                }
                Answered::Prepare(statement) => {
                    let same = self.is_prepared(statement, index, &header);
                    self.ring.consume(self.connections[usize::from(index)].id, frame_size);
                    self.tally.usage.prepares_failed += u64::from(!same);
                }
                Answered::Late => {
                    self.tally.usage.late += 1;
                    self.ring.consume(connection.id, frame_size);
                }
                // Events come on negative streams; none was asked for. Anything else is a broken
                // peer.
                Answered::Stray => return self.lost(index, at),
            }
        }
    }

    /// What the frame at the front of a connection's received bytes means for the operation in
    /// `slot`; None when the host has forgotten its statement.
    #[inline]
    fn judge(&mut self, slot: u32, index: u16, header: &Header) -> Option<Outcome> {
        let received = self.ring.received(self.connections[usize::from(index)].id);
        let body = &received[HEADER_SIZE..HEADER_SIZE + header.body_size];
        let slot = self.slots.get(slot);
        let operation = &self.setup.operations[usize::from(slot.draw.operation)];
        let statement = operation.steps[usize::from(slot.step)].statement(&slot.draw);
        let encoder = &self.setup.encoder;
        Some(match classify(header, body) {
            Ok(Reply::Error(ErrorCode::UNPREPARED)) => return None,
            Ok(Reply::Void) if encoder.reads(statement) => Outcome::Error,
            Ok(Reply::Void) => Outcome::Ok,
            // YCSB's bindings hold a scan without rows for a success.
            Ok(Reply::Rows { count: 0, .. }) if !encoder.scans(statement) => Outcome::NotFound,
            Ok(Reply::Rows { count, cells_offset, .. }) => {
                let valid = !encoder.plan().verifies()
                    || encoder.verify(
                        statement,
                        &slot.draw,
                        count,
                        &body[cells_offset..],
                        &mut self.key,
                    );
                if valid { Outcome::Ok } else { Outcome::Invalid }
            }
            Ok(Reply::Error(code)) => {
                note_error(&self.setup.first_error, header, body);
                outcome::of_error(code)
            }
            Err(error) => {
                self.setup.first_error.get_or_init(|| error.to_string());
                Outcome::Error
            }
        })
    }

    /// The host does not know the statement (any longer): it is prepared there again, and the
    /// operation goes out once more a moment later. Its service time runs on.
    #[cold]
    fn prepare_again(&mut self, index: u32, connection: u16, at: Nanos) {
        self.slots.unlist(index);
        let slot = self.slots.get_mut(index);
        let operation = &self.setup.operations[usize::from(slot.draw.operation)];
        let statement = operation.steps[usize::from(slot.step)].statement(&slot.draw);
        slot.unprepared += 1;
        if slot.unprepared > UNPREPARED_MAX {
            return self.attempted(index, at, Outcome::Error);
        }
        self.paused.push_back((at + PREPARE_PAUSE, index));
        let link = &mut self.connections[usize::from(connection)];
        // None: it is on its way already.
        if let Some(stream) = link.streams.take_for_prepare(statement) {
            let request = Request::Prepare(self.setup.encoder.text(statement));
            self.ring.filling(link.id).append(|out| request.encode(stream, out));
            self.tally.usage.prepares += 1;
            if !link.dirty {
                link.dirty = true;
                self.dirty.push(connection);
            }
        }
    }

    /// Whether the frame at the front says that a statement is prepared under the id that is used.
    #[cold]
    fn is_prepared(&self, statement: usize, index: u16, header: &Header) -> bool {
        let received = self.ring.received(self.connections[usize::from(index)].id);
        let body = &received[HEADER_SIZE..HEADER_SIZE + header.body_size];
        matches!(Response::decode(header, body), Ok(Response::Prepared(p))
            if self.setup.encoder.is_id(statement, &p.id))
    }

    /// One attempt at the current step of an operation has ended: next step, next attempt, or the
    /// end.
    #[inline]
    pub(crate) fn attempted(&mut self, index: u32, at: Nanos, outcome: Outcome) {
        self.slots.unlist(index);
        let slot = self.slots.get_mut(index);
        let operation = &self.setup.operations[usize::from(slot.draw.operation)];
        let steps = operation.steps.len();
        if steps > 1 && slot.measured && outcome == Outcome::Ok {
            let service = at.since(slot.sent);
            self.tally.part(slot.draw.operation, slot.step, service);
        }
        if outcome == Outcome::Ok && usize::from(slot.step) + 1 < steps {
            slot.step += 1;
            slot.failures = 0;
            self.resend.push_back(index);
        } else if u32::from(slot.failures) < self.setup.retries && outcome::worth_a_retry(outcome) {
            slot.failures += 1;
            match self.setup.retry_pause {
                Nanos::ZERO => self.resend.push_back(index),
                pause => self.paused.push_back((at + pause, index)),
            }
        } else {
            self.finish(index, at, outcome);
        }
    }

    /// The operation in a slot is over.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32, at: Nanos, outcome: Outcome) {
        let slot = *self.slots.get(index);
        self.conclude(&slot, at, outcome);
        self.source.done(at, slot.connection);
        self.slots.remove(index);
    }

    /// Counts an operation that is over.
    #[inline]
    pub(crate) fn conclude(&mut self, slot: &Slot, at: Nanos, outcome: Outcome) {
        if outcome == Outcome::Ok {
            self.tally.usage.last_ok = at;
        }
        if slot.measured {
            self.tally.op(slot, at, outcome, &mut self.witness);
        } else {
            self.tally.warm_op(slot, at, outcome);
        }
        if let Some(inserts) = &mut self.inserts
            && self.setup.inserts[usize::from(slot.draw.operation)]
            && !inserts.acknowledge(slot.draw.key)
        {
            self.tally.usage.acknowledgements_lost += 1;
        }
    }
}
