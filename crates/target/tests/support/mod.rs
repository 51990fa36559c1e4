//! A client without a socket: requests are encoded into frames, handed to a [`Session`], and its
//! answers decoded.
// Each test binary uses its part; clippy takes these functions for library code.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use target::{
    After, Clock, Engine, EngineConfig, EngineError, LsmOptions, Session, SessionLimits, Storage,
};
use units::Bytes;
use wire::cql::request::{Batch, BatchKind, BatchStatement, PreparedRef, QueryParameters, Request};
use wire::cql::response::{Prepared, Response};
use wire::cql::{Consistency, ErrorCode, HEADER_SIZE, Header, Value};

pub type Row = Vec<Option<Vec<u8>>>;

/// A refusal: code and message.
#[derive(Debug, PartialEq)]
pub struct Refusal(pub ErrorCode, pub String);

#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub rows: Vec<Row>,
    pub columns: Vec<String>,
    pub paging_state: Option<Vec<u8>>,
    pub warned: bool,
}

pub struct Target {
    pub engine: Arc<Engine>,
    pub now_us: Arc<AtomicI64>,
    /// Of a target on disk, for as long as it is needed.
    pub dir: Option<Arc<tempfile::TempDir>>,
}

pub struct Client {
    pub session: Session,
    /// That of its target, which may be gone.
    dir: Option<Arc<tempfile::TempDir>>,
}

/// Seconds since 1970 at which the tests' clock begins.
pub const START_S: i64 = 1_700_000_000;

impl Target {
    pub fn new(storage: Storage) -> Self {
        Self::with_memory(storage, Bytes(1 << 30))
    }

    pub fn with_memory(storage: Storage, memory_max: Bytes) -> Self {
        Self::with(storage, memory_max, 5)
    }

    /// Of versions up to this one.
    pub fn speaking(protocol_max: u8) -> Self {
        Self::with(Storage::Memory, Bytes(1 << 30), protocol_max)
    }

    /// On disk, in a directory of its own.
    pub fn on_disk() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let target = Self::at(dir.path()).unwrap();
        Self { dir: Some(Arc::new(dir)), ..target }
    }

    /// On disk, in this directory.
    pub fn at(dir: &Path) -> Result<Self, EngineError> {
        let (dir, shards, cache) = (dir.to_owned(), 3, Bytes(16 << 20));
        let storage = Storage::Lsm(LsmOptions { dir, fsync: false, shards, cache });
        Self::try_with(storage, Bytes(1 << 30), 5)
    }

    fn with(storage: Storage, memory_max: Bytes, protocol_max: u8) -> Self {
        Self::try_with(storage, memory_max, protocol_max).unwrap()
    }

    fn try_with(
        storage: Storage,
        memory_max: Bytes,
        protocol_max: u8,
    ) -> Result<Self, EngineError> {
        let now_us = Arc::new(AtomicI64::new(START_S * 1_000_000));
        let engine = Engine::new(EngineConfig {
            storage,
            memory_max,
            prepared_max: 100,
            clock: Clock::Manual(Arc::clone(&now_us)),
            address: "127.0.0.1:9042".parse().unwrap(),
            protocol_max,
            faults: target::Faults::default(),
            is_tls: false,
            scylla: None,
        })?;
        Ok(Self { engine: Arc::new(engine), now_us, dir: None })
    }

    pub fn advance_s(&self, seconds: i64) {
        self.now_us.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    pub fn raw_client(&self) -> Client {
        let limits = SessionLimits { frame_size_max: 1 << 20, backlog_max: 1 << 20 };
        let session = Session::new(Arc::clone(&self.engine), self.engine.counters(), limits);
        Client { session, dir: self.dir.clone() }
    }

    /// A client that is past the handshake, in a keyspace `ks`.
    pub fn client(&self) -> Client {
        let mut client = self.raw_client();
        client.start();
        client
            .ok("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', \
             'replication_factor': 1}");
        client.ok("USE ks");
        client
    }
}

impl Client {
    pub fn start(&mut self) {
        let frame = self.send(&Request::Startup(vec![("CQL_VERSION", "3.0.0")]));
        assert!(matches!(decode(&frame), Response::Ready));
    }

    /// The one frame that answers a request.
    pub fn send(&mut self, request: &Request<'_>) -> Vec<u8> {
        let (mut frame, mut out) = (Vec::new(), Vec::new());
        request.encode(7, &mut frame);
        let done = self.session.receive(&frame, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.after), (frame.len(), After::Continue));
        let header = Header::decode(&out).unwrap().unwrap();
        assert_eq!((header.version, header.stream), (0x84, 7));
        assert_eq!(out.len(), HEADER_SIZE + header.body_size);
        out
    }

    pub fn request(&mut self, request: &Request<'_>) -> Result<Answer, Refusal> {
        let frame = self.send(request);
        let warned = Header::decode(&frame).unwrap().unwrap().flags & 0x08 != 0;
        match decode(&frame) {
            Response::Error { code, message, .. } => Err(Refusal(code, message.to_owned())),
            Response::Rows(rows) => {
                let columns = rows.metadata.columns.iter().map(|c| c.name.clone()).collect();
                let paging_state = rows.metadata.paging_state.clone();
                let rows = rows.collect().unwrap();
                let own = |row: Vec<Option<&[u8]>>| {
                    row.into_iter().map(|cell| cell.map(<[u8]>::to_vec)).collect()
                };
                let rows = rows.into_iter().map(own).collect();
                Ok(Answer { rows, columns, paging_state, warned })
            }
            Response::Void | Response::SetKeyspace(_) | Response::SchemaChange => {
                Ok(Answer { warned, ..Answer::default() })
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    pub fn query(&mut self, text: &str) -> Result<Answer, Refusal> {
        self.query_with(text, &[])
    }

    pub fn query_with(&mut self, text: &str, values: &[Value<'_>]) -> Result<Answer, Refusal> {
        let mut parameters = QueryParameters::plain(Consistency::One);
        parameters.values = values.iter().map(|v| (None, *v)).collect();
        self.request(&Request::Query(text, parameters))
    }

    pub fn ok(&mut self, text: &str) -> Vec<Row> {
        self.query(text).unwrap_or_else(|e| panic!("{text}: {e:?}")).rows
    }

    /// The message of a refusal.
    pub fn refused(&mut self, text: &str) -> String {
        self.query(text).expect_err(text).1
    }

    /// Rows of ints; null is `None`.
    pub fn ints(&mut self, text: &str) -> Vec<Vec<Option<i64>>> {
        self.ok(text)
            .iter()
            .map(|row| row.iter().map(|c| c.as_deref().map(int)).collect())
            .collect()
    }

    /// The first column of each row as an int.
    pub fn column(&mut self, text: &str) -> Vec<i64> {
        self.ints(text).iter().map(|row| row[0].unwrap()).collect()
    }

    pub fn prepare(&mut self, text: &str) -> Result<Prepared, Refusal> {
        let frame = self.send(&Request::Prepare(text, None));
        match decode(&frame) {
            Response::Prepared(prepared) => Ok(prepared),
            Response::Error { code, message, .. } => Err(Refusal(code, message.to_owned())),
            other => panic!("unexpected {other:?}"),
        }
    }

    pub fn execute(&mut self, id: &[u8], values: &[Value<'_>]) -> Result<Answer, Refusal> {
        let mut parameters = QueryParameters::plain(Consistency::One);
        parameters.values = values.iter().map(|v| (None, *v)).collect();
        self.request(&Request::Execute(PreparedRef::v4(id), parameters))
    }

    pub fn batch(
        &mut self,
        kind: BatchKind,
        statements: Vec<(BatchStatement<'_>, Vec<Value<'_>>)>,
    ) -> Result<Answer, Refusal> {
        self.request(&Request::Batch(Batch {
            kind,
            statements,
            consistency: Consistency::One,
            serial_consistency: None,
            timestamp_us: None,
            keyspace: None,
            now_s: None,
        }))
    }

    /// All rows, in pages.
    pub fn pages(&mut self, text: &str, page_size: i32) -> Vec<Row> {
        let (mut rows, mut state) = (Vec::new(), None);
        loop {
            let mut parameters = QueryParameters::plain(Consistency::One);
            parameters.page_size = Some(page_size);
            let given: Option<Vec<u8>> = state.take();
            parameters.paging_state = given.as_deref();
            let answer = self.request(&Request::Query(text, parameters)).unwrap();
            assert!(answer.rows.len() <= page_size as usize);
            assert!(answer.paging_state.is_none() || answer.rows.len() == page_size as usize);
            rows.extend(answer.rows);
            match answer.paging_state {
                Some(next) => state = Some(next),
                None => return rows,
            }
        }
    }

    pub fn counters(&mut self) -> HashMap<String, i64> {
        let rows = self.ok("SELECT name, value FROM system_wideload.counters");
        let text = |c: &Option<Vec<u8>>| String::from_utf8(c.clone().unwrap()).unwrap();
        rows.iter().map(|r| (text(&r[0]), int(r[1].as_deref().unwrap()))).collect()
    }
}

pub fn decode(frame: &[u8]) -> Response<'_> {
    let header = Header::decode(frame).unwrap().unwrap();
    Response::decode(&header, &frame[HEADER_SIZE..]).unwrap()
}

/// A big-endian integer of any size.
pub fn int(bytes: &[u8]) -> i64 {
    let first = bytes.first().map_or(0, |b| i64::from(*b as i8));
    bytes.iter().skip(1).fold(first, |n, b| n << 8 | i64::from(*b))
}

pub fn text(cell: &Option<Vec<u8>>) -> &str {
    std::str::from_utf8(cell.as_deref().unwrap()).unwrap()
}
