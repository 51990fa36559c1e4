//! One connection, without its socket: bytes in, bytes out.
//!
//! [`Session::receive`] takes what has arrived, answers every whole frame in order into the send
//! buffer, and says how much it consumed. An answer that fails half-way is cut off and replaced by
//! an ERROR frame.

use crate::counters::{Counter, Counters};
use crate::engine::{Engine, Storage};
use crate::error::CqlError;
use crate::execute::Answer;
use crate::plan::{Compiled, PreparedId};
use crate::system_tables::CQL_VERSION;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use wire::cql::request::Request;
use wire::cql::response::put_prepared;
use wire::cql::{BODY_SIZE_MAX, HEADER_SIZE, Header, Opcode, RESPONSE, VERSION, flags, put};

/// Event types that REGISTER may name.
const EVENTS: [&str; 3] = ["SCHEMA_CHANGE", "STATUS_CHANGE", "TOPOLOGY_CHANGE"];

/// Whether a connection lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// More frames may come.
    Continue,
    /// Send what was answered, then close.
    Close,
}

/// Bounds of a connection.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Greatest body that is read, bytes.
    pub frame_size_max: usize,
    /// Answers waiting to be sent, bytes: beyond, no further frame is taken.
    pub backlog_max: usize,
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

/// A connection's state.
#[derive(Debug)]
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    pub(crate) counters: Arc<Counters>,
    limits: SessionLimits,
    pub(crate) keyspace: Option<String>,
    started: bool,
    wants_schema_changes: bool,
    /// Statements executed here before, so that the engine's lock is not needed.
    known: HashMap<PreparedId, Arc<Compiled>, BuildHasherDefault<IdHasher>>,
    pub(crate) scratch: Vec<u8>,
}

impl Session {
    /// A new connection; `counters` is its thread's block.
    #[must_use]
    pub fn new(engine: Arc<Engine>, counters: Arc<Counters>, limits: SessionLimits) -> Self {
        counters.add(Counter::Connections, 1);
        Self {
            engine,
            counters,
            limits,
            keyspace: None,
            started: false,
            wants_schema_changes: false,
            known: HashMap::default(),
            scratch: Vec::new(),
        }
    }

    /// Whether the client has registered for changes of the schema.
    #[must_use]
    pub fn wants_schema_changes(&self) -> bool {
        self.wants_schema_changes
    }

    /// Answers the whole frames at the start of `received` into `out`; returns how many bytes were
    /// consumed.
    ///
    /// Stops early when `out` has grown beyond the backlog: call again when it has been sent.
    pub fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> (usize, After) {
        let mut consumed = 0;
        let start = out.len();
        let mut after = After::Continue;
        while after == After::Continue && out.len() - start <= self.limits.backlog_max {
            let rest = &received[consumed..];
            let Some(&version) = rest.first() else { break };
            if version != VERSION {
                self.refuse_version(version, rest, out);
                (consumed, after) = (received.len(), After::Close);
                break;
            }
            let header = match Header::decode(rest) {
                Ok(Some(header)) if header.body_size <= self.limits.frame_size_max => header,
                Ok(None) => break,
                Ok(Some(header)) => {
                    self.refuse_size(header.stream, header.body_size, out);
                    (consumed, after) = (received.len(), After::Close);
                    break;
                }
                Err(_) => {
                    self.refuse_size(0, BODY_SIZE_MAX, out);
                    (consumed, after) = (received.len(), After::Close);
                    break;
                }
            };
            let Some(body) = rest.get(HEADER_SIZE..HEADER_SIZE + header.body_size) else { break };
            consumed += HEADER_SIZE + header.body_size;
            after = self.handle(&header, body, out);
        }
        self.counters.add(Counter::BytesReceived, consumed as u64);
        self.counters.add(Counter::BytesSent, (out.len() - start) as u64);
        (consumed, after)
    }

    /// Answers one request.
    pub fn handle(&mut self, header: &Header, body: &[u8], out: &mut Vec<u8>) -> After {
        let start = out.len();
        let mut response = Header::response(header.stream, Opcode::Result);
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
                if answer.has_warnings {
                    response.flags |= flags::WARNING;
                }
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
        if !self.started && !matches!(opcode, Some(Opcode::Startup | Opcode::Options)) {
            return Err(CqlError::Protocol(
                "Unexpected message, expecting STARTUP or OPTIONS".to_owned(),
            ));
        }
        if self.engine.config.storage == Storage::Null
            && opcode == Some(Opcode::Execute)
            && header.flags & flags::CUSTOM_PAYLOAD == 0
            && let Some(answer) = self.execute_mock(body, out)?
        {
            return Ok(answer);
        }
        match Request::decode(header, body)? {
            Request::Options => {
                put::string_multimap(
                    out,
                    &[
                        ("CQL_VERSION", &[CQL_VERSION]),
                        ("COMPRESSION", &[]),
                        ("PROTOCOL_VERSIONS", &["4/v4"]),
                    ],
                );
                Ok(Answer::of(Opcode::Supported))
            }
            Request::Startup(options) => self.startup(&options),
            Request::Register(events) => self.register(&events),
            Request::Query(text, parameters) => self.query(text, parameters, out),
            Request::Prepare(text) => {
                let (id, compiled) = self.engine.prepare(text, self.keyspace.as_deref())?;
                put_prepared(out, &compiled.describe(&id));
                self.know(id, compiled);
                Ok(Answer::of(Opcode::Result))
            }
            Request::Execute(id, parameters) => {
                let compiled = self.prepared(id)?;
                self.execute(&compiled, parameters, out)
            }
            Request::Batch(batch) => self.batch(&batch, out),
            Request::AuthResponse(_) => Err(CqlError::Protocol(
                "Unexpected message AUTH_RESPONSE: no authentication was asked for".to_owned(),
            )),
        }
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

    fn startup(&mut self, options: &[(&str, &str)]) -> Result<Answer, CqlError> {
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
        if let Some(algorithm) = option("COMPRESSION").filter(|a| !a.is_empty()) {
            return Err(CqlError::Protocol(format!(
                "Unknown compression algorithm: {algorithm}; none is supported"
            )));
        }
        self.started = true;
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

    /// Drivers that begin with another version look for these words, and come back with v4.
    fn refuse_version(&self, version: u8, received: &[u8], out: &mut Vec<u8>) {
        let text = match version & RESPONSE {
            0 => format!(
                "Invalid or unsupported protocol version ({version}); the lowest supported version \
                 is {VERSION} and the greatest is {VERSION}"
            ),
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

    fn refuse(&self, stream: i16, text: String, out: &mut Vec<u8>) {
        self.counters.add(Counter::Errors, 1);
        let error = CqlError::Protocol(text);
        Header::response(stream, Opcode::Error).frame(out, |out| error.encode(out));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.counters.add(Counter::Closed, 1);
    }
}
