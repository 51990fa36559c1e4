//! One connection, without its socket: bytes in, bytes out.
//!
//! [`Session::receive`] takes what has arrived, answers every whole frame in order into the send
//! buffer, and says how much it consumed. Behind the answer to STARTUP frames lie in segments (v5)
//! or have compressed bodies (v4), as the client has asked. An answer that fails half-way is cut
//! off and replaced by an ERROR frame.

use crate::counters::{Counter, Counters};
use crate::engine::{Engine, Storage};
use crate::error::CqlError;
use crate::execute::Answer;
use crate::faults::{Fate, Fates};
use crate::plan::{Compiled, PreparedId};
use crate::service::{After, Conversation, Received, SessionLimits};
use crate::shards::Seat;
use crate::system_tables::CQL_VERSION;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use wire::cql::framing::{FramingError, Incoming, Outgoing};
use wire::cql::request::Request;
use wire::cql::response::put_prepared;
use wire::cql::{
    BODY_SIZE_MAX, Compression, HEADER_SIZE, Header, Opcode, Protocol, RESPONSE, VERSION, flags,
    put,
};

/// Event types that REGISTER may name.
const EVENTS: [&str; 3] = ["SCHEMA_CHANGE", "STATUS_CHANGE", "TOPOLOGY_CHANGE"];

/// What SUPPORTED says of versions.
const VERSIONS: [&str; 2] = ["4/v4", "5/v5"];

/// Counts the answer to a request.
fn count_answer(done: &mut Received, header: &Header, after: After) {
    let opcode = Opcode::from_u8(header.opcode);
    let operation = matches!(opcode, Some(Opcode::Execute | Opcode::Query | Opcode::Batch));
    done.answered += 1;
    done.operations += usize::from(operation);
    done.after = after;
}

/// How frames lie on the wire behind the handshake.
#[derive(Debug)]
struct Framed {
    incoming: Incoming,
    outgoing: Outgoing,
    /// Whole frames that are framed together.
    answers: Vec<u8>,
}

/// Prepared ids are hashes already.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // The length that an array's hash begins with is shorter than the id and skipped.
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

/// The first number of a version.
fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// How requests are answered.
#[derive(Debug)]
pub(crate) enum Mode {
    Plain,
    /// Statements on a mock's tables are not looked at.
    Mock,
    /// Operations may meet a fault.
    Faulty(Box<Fates>),
    /// It may have come to the wrong shard.
    Sharded,
}

/// A connection's state.
#[derive(Debug)]
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    pub(crate) counters: Arc<Counters>,
    limits: SessionLimits,
    pub(crate) keyspace: Option<String>,
    /// That of its STARTUP.
    version: Option<u8>,
    /// None as long as frames stand on the wire as they are.
    framed: Option<Box<Framed>>,
    wants_schema_changes: bool,
    /// Statements executed here before, so that the engine's lock is not needed.
    known: HashMap<PreparedId, Arc<Compiled>, BuildHasherDefault<IdHasher>>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) mode: Mode,
    /// None of a target without shards.
    pub(crate) seat: Option<Box<Seat>>,
}

impl Session {
    /// A new connection; `counters` is its thread's block.
    #[must_use]
    pub fn new(engine: Arc<Engine>, counters: Arc<Counters>, limits: SessionLimits) -> Self {
        let seat = Seat::by_load(&engine);
        Self::seated(engine, counters, limits, seat)
    }

    pub(crate) fn seated(
        engine: Arc<Engine>,
        counters: Arc<Counters>,
        limits: SessionLimits,
        seat: Option<Box<Seat>>,
    ) -> Self {
        counters.add(Counter::Connections, 1);
        let mode = match (&engine.faults, &seat, &engine.config.storage) {
            (Some(plan), _, _) => Mode::Faulty(Box::new(Fates::new(plan))),
            (None, Some(_), _) => Mode::Sharded,
            (None, None, Storage::Null) => Mode::Mock,
            (None, None, Storage::Memory | Storage::Lsm(_)) => Mode::Plain,
        };
        Self {
            engine,
            counters,
            limits,
            keyspace: None,
            version: None,
            framed: None,
            wants_schema_changes: false,
            known: HashMap::default(),
            scratch: Vec::new(),
            mode,
            seat,
        }
    }

    /// Whether the client has registered for changes of the schema.
    #[must_use]
    pub fn wants_schema_changes(&self) -> bool {
        self.wants_schema_changes
    }

    /// Answers the whole frames at the start of `received`, at most `frames_max` of them, into
    /// `out`.
    ///
    /// Stops early when `out` has grown beyond the backlog: call again when it has been sent.
    pub fn receive(&mut self, received: &[u8], frames_max: usize, out: &mut Vec<u8>) -> Received {
        let start = out.len();
        let mut done = Received::default();
        while done.after == After::Continue
            && done.answered < frames_max
            && out.len() - start <= self.limits.backlog_max
        {
            let before = (done.consumed, done.answered);
            match self.framed.take() {
                Some(framed) => self.receive_framed(framed, received, frames_max, &mut done, out),
                None => self.receive_bare(received, &mut done, out),
            }
            if (done.consumed, done.answered) == before {
                break;
            }
        }
        self.counters.add(Counter::BytesReceived, done.consumed as u64);
        self.counters.add(Counter::BytesSent, (out.len() - start) as u64);
        done
    }

    /// Answers one frame as it stands on the wire.
    fn receive_bare(&mut self, received: &[u8], done: &mut Received, out: &mut Vec<u8>) {
        let rest = &received[done.consumed..];
        let Some(&version) = rest.first() else { return };
        let close =
            |done: &mut Received| (done.consumed, done.after) = (received.len(), After::Close);
        if !self.speaks(version) {
            self.refuse_version(version, rest, out);
            return close(done);
        }
        let (stream, size) = match Header::decode(rest) {
            Ok(None) => return,
            Ok(Some(header)) if header.body_size <= self.limits.frame_size_max => {
                let size = HEADER_SIZE + header.body_size;
                let Some(body) = rest.get(HEADER_SIZE..size) else { return };
                done.consumed += size;
                return count_answer(done, &header, self.handle(&header, body, out));
            }
            Ok(Some(header)) => (header.stream, header.body_size),
            Err(_) => (0, BODY_SIZE_MAX),
        };
        self.refuse_size(stream, size, out);
        close(done);
    }

    /// Answers frames that are framed, and frames their answers: together, as far as that goes.
    fn receive_framed(
        &mut self,
        mut framed: Box<Framed>,
        received: &[u8],
        frames_max: usize,
        done: &mut Received,
        out: &mut Vec<u8>,
    ) {
        framed.answers.clear();
        while done.after == After::Continue
            && done.answered < frames_max
            && framed.answers.len() <= self.limits.backlog_max
        {
            match framed.incoming.advance(&received[done.consumed..]) {
                Ok(consumed) => done.consumed += consumed,
                Err(error) => {
                    self.refuse_framing(&error, &mut framed.answers);
                    (done.consumed, done.after) = (received.len(), After::Close);
                    break;
                }
            }
            let frames = framed.incoming.frames(&received[done.consumed..]);
            let Ok(Some(header)) = Header::decode(frames) else { break };
            if !self.speaks(header.version) {
                self.refuse_version(header.version, frames, &mut framed.answers);
                (done.consumed, done.after) = (received.len(), After::Close);
                break;
            }
            let size = HEADER_SIZE + header.body_size;
            let Some(body) = frames.get(HEADER_SIZE..size) else { break };
            count_answer(done, &header, self.handle(&header, body, &mut framed.answers));
            done.consumed += framed.incoming.take(size);
        }
        framed.outgoing.encode(&framed.answers, out);
        if framed.answers.capacity() > self.limits.backlog_max {
            framed.answers = Vec::new();
        }
        self.framed = Some(framed);
    }

    /// Whether a frame of this version may come now: the first STARTUP decides.
    fn speaks(&self, version: u8) -> bool {
        match self.version {
            Some(chosen) => version == chosen,
            None => (VERSION..=self.engine.config.protocol_max).contains(&version),
        }
    }

    /// Answers one request.
    pub fn handle(&mut self, header: &Header, body: &[u8], out: &mut Vec<u8>) -> After {
        let start = out.len();
        let version = header.version & !RESPONSE;
        let mut response = Header::response(header.stream, Opcode::Result).at(version);
        out.extend_from_slice(&response.encode());
        let answered = match header.flags & flags::COMPRESSION {
            0 => self.answer(header, body, out),
            _ => Err(CqlError::Protocol(
                "a compressed frame on a connection without compression".to_owned(),
            )),
        };
        match answered {
            Ok(answer) => {
                response.opcode = answer.opcode as u8;
                response.flags |= answer.flags;
            }
            Err(error) => {
                out.truncate(start + HEADER_SIZE);
                error.encode(out);
                response.opcode = Opcode::Error as u8;
                self.counters.add(Counter::Errors, 1);
            }
        }
        response.body_size = out.len() - start - HEADER_SIZE;
        out[start..start + HEADER_SIZE].copy_from_slice(&response.encode());
        After::Continue
    }

    fn answer(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let opcode = Opcode::from_u8(header.opcode);
        self.count_request(opcode);
        if self.version.is_none() && !matches!(opcode, Some(Opcode::Startup | Opcode::Options)) {
            return Err(CqlError::Protocol(
                "Unexpected message, expecting STARTUP or OPTIONS".to_owned(),
            ));
        }
        match &self.mode {
            Mode::Plain => {}
            Mode::Mock => {
                if opcode == Some(Opcode::Execute)
                    && header.flags & flags::CUSTOM_PAYLOAD == 0
                    && let Some(answer) = self.execute_mock(header.is_v5(), body, out)?
                {
                    return Ok(answer);
                }
            }
            Mode::Faulty(_) => return self.meet_fate(header, body, out),
            Mode::Sharded => return self.answer_sharded(header, body, out),
        }
        self.carry_out(header, body, out)
    }

    /// Answers what a fault does not, on a mock perhaps.
    #[inline(never)]
    pub(crate) fn answer_faultless(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        if header.opcode == Opcode::Execute as u8
            && header.flags & flags::CUSTOM_PAYLOAD == 0
            && let Some(answer) = self.execute_mock(header.is_v5(), body, out)?
        {
            return Ok(answer);
        }
        self.carry_out(header, body, out)
    }

    // Without it the call costs 10 instructions per operation.
    #[inline(always)]
    fn carry_out(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        match Request::decode(header, body)? {
            Request::Options => Ok(self.options(out)),
            Request::Startup(options) => self.startup(header.version, &options),
            Request::Register(events) => self.register(&events),
            Request::Query(text, parameters) => self.query(text, parameters, out),
            Request::Prepare(text, keyspace) => {
                let keyspace = keyspace.or(self.keyspace.as_deref());
                let (id, compiled) = self.engine.prepare(text, keyspace)?;
                put_prepared(out, header.version, &compiled.describe(&id));
                self.know(id, compiled);
                Ok(Answer::of(Opcode::Result))
            }
            Request::Execute(prepared, parameters) => {
                let compiled = self.prepared(prepared.id)?;
                let metadata_id = header.is_v5().then_some(prepared.metadata_id);
                self.execute(&compiled, metadata_id, parameters, out)
            }
            Request::Batch(batch) => self.batch(&batch, out),
            Request::AuthResponse(_) => Err(CqlError::Protocol(
                "Unexpected message AUTH_RESPONSE: no authentication was asked for".to_owned(),
            )),
        }
    }

    fn options(&self, out: &mut Vec<u8>) -> Answer {
        let count = usize::from(self.engine.config.protocol_max.clamp(4, 5) - 3);
        let seat = self.seat.as_ref().map_or(Vec::new(), |seat| seat.supported());
        let seat: Vec<_> = seat.iter().map(|(key, value)| (*key, [value.as_str()])).collect();
        let mut options: Vec<(&str, &[&str])> = vec![
            ("CQL_VERSION", &[CQL_VERSION]),
            ("COMPRESSION", &["snappy", "lz4"]),
            ("PROTOCOL_VERSIONS", &VERSIONS[..count]),
        ];
        options.extend(seat.iter().map(|(key, value)| (*key, &value[..])));
        put::string_multimap(out, &options);
        Answer::of(Opcode::Supported)
    }

    fn count_request(&self, opcode: Option<Opcode>) {
        let counter = match opcode {
            Some(Opcode::Execute) => Counter::Execute,
            Some(Opcode::Query) => Counter::Query,
            Some(Opcode::Batch) => Counter::Batch,
            Some(Opcode::Prepare) => Counter::Prepare,
            Some(Opcode::Options) => Counter::Options,
            Some(Opcode::Startup) => Counter::Startup,
            Some(Opcode::Register) => Counter::Register,
            _ => Counter::Other,
        };
        self.counters.add(counter, 1);
    }

    fn startup(&mut self, version: u8, options: &[(&str, &str)]) -> Result<Answer, CqlError> {
        if self.version.is_some() {
            return Err(CqlError::Protocol(
                "Unexpected message STARTUP: the connection has begun already".to_owned(),
            ));
        }
        let option = |name: &str| options.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        match option("CQL_VERSION") {
            // Any from 3.0 on, as Cassandra has it: the scylla crate asks for 4.0.0.
            Some(version) if major(version).is_some_and(|major| major >= 3) => {}
            Some(version) => {
                return Err(CqlError::Protocol(format!(
                    "CQL version {version} is not supported by the binary protocol (supported \
                     versions are >= 3.0.0)"
                )));
            }
            None => {
                return Err(CqlError::Protocol(
                    "Missing value CQL_VERSION in STARTUP message".to_owned(),
                ));
            }
        }
        let algorithm = option("COMPRESSION").filter(|a| !a.is_empty());
        let compression = algorithm.map_or(Ok(Compression::None), str::parse);
        let compression = compression.map_err(|_| {
            CqlError::Protocol(format!(
                "Unknown compression algorithm: {}",
                algorithm.unwrap_or_default()
            ))
        })?;
        let protocol = Protocol::new(version, compression)
            .map_err(|error| CqlError::Protocol(error.to_string()))?;
        self.version = Some(version);
        self.seat.iter_mut().for_each(|seat| seat.startup(options));
        // What follows the answer to this is framed.
        self.framed = (!protocol.is_bare()).then(|| {
            Box::new(Framed {
                incoming: Incoming::new(protocol, self.limits.frame_size_max),
                outgoing: Outgoing::new(protocol),
                answers: Vec::new(),
            })
        });
        Ok(Answer::of(Opcode::Ready))
    }

    fn register(&mut self, events: &[&str]) -> Result<Answer, CqlError> {
        if let Some(unknown) = events.iter().find(|e| !EVENTS.contains(e)) {
            return Err(CqlError::Protocol(format!("Invalid value '{unknown}' for Type")));
        }
        self.wants_schema_changes |= events.contains(&"SCHEMA_CHANGE");
        Ok(Answer::of(Opcode::Ready))
    }

    /// The statement of a prepared id.
    pub(crate) fn prepared(&mut self, id: &[u8]) -> Result<Arc<Compiled>, CqlError> {
        let unknown = || CqlError::Unprepared(id.to_vec());
        let id: PreparedId = id.try_into().map_err(|_| unknown())?;
        if let Some(compiled) = self.known.get(&id) {
            if !compiled.is_out_of_date() {
                return Ok(Arc::clone(compiled));
            }
            self.known.remove(&id);
        }
        let compiled = self.engine.prepared(&id).ok_or_else(unknown)?;
        self.know(id, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn know(&mut self, id: PreparedId, compiled: Arc<Compiled>) {
        if self.known.len() >= self.engine.config.prepared_max {
            self.known.clear();
        }
        self.known.insert(id, compiled);
    }

    /// Drivers that begin with another version look for these words, and come back with a lower
    /// one.
    fn refuse_version(&self, version: u8, received: &[u8], out: &mut Vec<u8>) {
        let text = match version & RESPONSE {
            0 if self.version.is_none() => format!(
                "Invalid or unsupported protocol version ({version}); the lowest supported version \
                 is {VERSION} and the greatest is {}",
                self.engine.config.protocol_max
            ),
            0 => format!("a frame of protocol version {version} on a connection of another one"),
            _ => "Invalid frame: a response where a request was expected".to_owned(),
        };
        // Versions 1 and 2 have a stream id of one byte.
        let stream = match (version, received) {
            (1 | 2, [_, _, stream, ..]) => i16::from(*stream as i8),
            (_, [_, _, high, low, ..]) => i16::from_be_bytes([*high, *low]),
            _ => 0,
        };
        self.refuse(stream, text, out);
    }

    fn refuse_size(&self, stream: i16, size: usize, out: &mut Vec<u8>) {
        let max = self.limits.frame_size_max;
        let text = format!("a frame's body of {size} bytes is longer than the maximum of {max}");
        self.refuse(stream, text, out);
    }

    fn refuse_framing(&self, error: &FramingError, out: &mut Vec<u8>) {
        match *error {
            FramingError::TooLong { stream, size, .. } => self.refuse_size(stream, size, out),
            ref error => self.refuse(0, error.to_string(), out),
        }
    }

    fn refuse(&self, stream: i16, text: String, out: &mut Vec<u8>) {
        self.counters.add(Counter::Errors, 1);
        let error = CqlError::Protocol(text);
        let version = self.version.unwrap_or(self.engine.config.protocol_max);
        Header::response(stream, Opcode::Error).at(version).frame(out, |out| error.encode(out));
    }
}

impl Conversation for Session {
    // Without it a turn of the loop costs a call more.
    #[inline]
    fn receive(&mut self, received: &[u8], requests_max: usize, out: &mut Vec<u8>) -> Received {
        Session::receive(self, received, requests_max, out)
    }

    fn take_fate(&mut self) -> Fate {
        match &mut self.mode {
            Mode::Faulty(fates) => std::mem::take(&mut fates.last),
            Mode::Plain | Mode::Mock | Mode::Sharded => Fate::default(),
        }
    }

    fn wants_schema_changes(&self) -> bool {
        Session::wants_schema_changes(self)
    }

    // An event is a frame of v4.
    fn tell(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        match (&mut self.framed, self.version) {
            (Some(framed), Some(version)) => {
                framed.answers.clear();
                framed.answers.extend_from_slice(event);
                framed.answers[0] = RESPONSE | version;
                framed.outgoing.encode(&framed.answers, out);
            }
            _ => out.extend_from_slice(event),
        }
        self.counters.add(Counter::BytesSent, (out.len() - start) as u64);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.counters.add(Counter::Closed, 1);
    }
}
