//! A worker's pools of connections, one for each host, and what goes over them.
//!
//! An operation goes to the master of its partition and to nobody else. Where that host has no
//! connection that is idle, the operation waits for one, behind those that came before it; one that
//! has waited as long as the timeout without being sent is over. Idle connections are taken last in
//! first out, so that few of them stay warm where few are needed.

use super::encoder::RecordEncoder;
use super::link::RecordLink;
use super::masters::Masters;
use crate::connection::{Connection, State};
use crate::outcome;
use crate::protocol::{Failure, Introduction, Link, Protocol};
use crate::roster::Hosts;
use crate::run::Setup;
use crate::slots::Slot;
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::{BufferSizes, Ring};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use thiserror::Error;
use units::{Nanos, clock};
use wire::aerospike::{
    DecodeError, Digest, MESSAGE_HEADER_SIZE, Message, PROTO_SIZE, ProtoHeader, ProtoKind,
    ResultCode,
};
use workload::{Draw, Plan};

/// Bytes of an answer at most: records have 8 MiB at most, as servers are set.
const ANSWER_MAX: usize = 16 << 20;
/// Bytes of a connection's receive buffer before it grows: there may be thousands.
const RECEIVE: usize = 16 << 10;

/// An answer that makes no sense.
#[derive(Debug, Error)]
enum Nonsense {
    #[error("no answer of Aerospike's protocol: {0}")]
    Protocol(DecodeError),
    #[error("an answer that is no message on a record")]
    Kind,
    #[error("an answer whose header has another size")]
    Header,
    #[error("an answer to nothing that was asked")]
    Unasked,
    #[error("an answer whose bins cannot be read: {0}")]
    Bins(DecodeError),
}

/// The connections of a worker to a host.
#[derive(Debug, Default)]
struct Pool {
    /// Ready, with nothing under way.
    idle: Vec<u16>,
    /// Operations that wait for one of them, and since when.
    waiting: VecDeque<(Nanos, u32)>,
}

/// What a worker has of Aerospike.
#[derive(Debug)]
pub(crate) struct RecordLocal {
    /// Of the operation at hand.
    digest: Digest,
    /// None when there is one host.
    masters: Option<Arc<Masters>>,
    /// By host.
    pools: Vec<Pool>,
    in_flight_max: usize,
}

impl RecordLocal {
    fn host(&self) -> usize {
        self.masters.as_ref().map_or(0, |masters| usize::from(masters.host(&self.digest)))
    }

    fn follow(&mut self, hosts: &Hosts) {
        self.masters.clone_from(&hosts.masters);
        let room = self.in_flight_max;
        // At once, so that nothing is allocated per operation.
        let waiting = || Pool { idle: Vec::new(), waiting: VecDeque::with_capacity(room) };
        self.pools.resize_with(hosts.addresses.len(), waiting);
    }
}

/// What an answer means for the operation in `slot`.
#[inline]
fn judge(
    (setup, encoder): (&Setup, &RecordEncoder),
    slot: &Slot,
    (result, body): (ResultCode, &[u8]),
    key: &mut [u8],
) -> Outcome {
    match result {
        ResultCode::OK if !encoder.reads(usize::from(slot.statement)) => Outcome::Ok,
        ResultCode::OK => match Message::decode(body) {
            Ok(answer) => {
                let verified =
                    !encoder.plan().verifies() || encoder.verify(&slot.draw, &answer, key);
                if verified { Outcome::Ok } else { Outcome::Invalid }
            }
            Err(error) => {
                setup.first_error.get_or_init(|| Nonsense::Bins(error).to_string());
                Outcome::Invalid
            }
        },
        ResultCode::NOT_FOUND => Outcome::NotFound,
        result => {
            setup.first_error.get_or_init(|| result.to_string());
            outcome::of_result(result)
        }
    }
}

impl Protocol for RecordEncoder {
    type Link = RecordLink;
    type Local = RecordLocal;

    fn plan(&self) -> &Arc<Plan> {
        self.plan()
    }

    fn frame_size_max(&self) -> usize {
        self.frame_size_max()
    }

    fn buffer_sizes(&self, _: usize, _: usize) -> BufferSizes {
        let receive_max = PROTO_SIZE + ANSWER_MAX;
        BufferSizes { send: self.frame_size_max().max(256), receive: RECEIVE, receive_max }
    }

    fn link(_: &Hosts, _: usize, _: usize) -> RecordLink {
        RecordLink::default()
    }

    fn local(&self, hosts: &Hosts, _: usize, _: usize, in_flight_max: usize) -> RecordLocal {
        let (masters, pools) = (None, Vec::new());
        let mut local = RecordLocal { digest: Digest::default(), masters, pools, in_flight_max };
        local.follow(hosts);
        local
    }

    fn connections_per_host(_: &Hosts, _: usize) -> Option<usize> {
        None
    }

    #[inline]
    fn write_key(&self, draw: &Draw, out: &mut [u8]) -> usize {
        self.plan().write_key(draw.key, out)
    }

    #[inline]
    fn write(
        &self,
        slot: &mut Slot,
        key: &[u8],
        local: &mut RecordLocal,
        out: &mut [u8],
    ) -> Result<usize, String> {
        Ok(self.encode(usize::from(slot.statement), &slot.draw, key, &local.digest, out))
    }

    fn begin<R: Ring>(
        _: &Introduction<'_, Self>,
        _: &mut R,
        connection: &mut Connection<RecordLink>,
        _: Nanos,
    ) -> io::Result<()> {
        connection.ready();
        Ok(())
    }

    fn go_on<R: Ring>(
        _: &Introduction<'_, Self>,
        _: &mut R,
        _: &mut Connection<RecordLink>,
    ) -> Result<(), Failure> {
        Err(Failure::Broken(io::Error::other("it answers before it was asked")))
    }

    /// Any host that has one idle: whose it is turns out when the operation is drawn.
    #[inline]
    fn usable<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, _: u16) -> Option<u16> {
        worker.local.pools.iter().find_map(|pool| pool.idle.last().copied())
    }

    #[inline]
    fn send<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u32, _: u16) {
        let key_size = worker.find_record(index);
        let host = worker.local.host();
        match worker.local.pools[host].idle.pop() {
            Some(connection) => worker.encode(index, connection, key_size),
            None => worker.local.pools[host].waiting.push_back((clock::now(), index)),
        }
    }

    fn receive<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16, at: Nanos) {
        if matches!(
            worker.connections[usize::from(index)].state,
            State::Connecting(_) | State::Starting(_)
        ) {
            return worker.on_started(index, at);
        }
        match worker.take_answer(index, at) {
            Ok(true) => worker.is_idle(index),
            Ok(false) => {}
            Err(why) => {
                worker.setup.first_error.get_or_init(|| why.to_string());
                worker.lost(index, at);
            }
        }
    }

    fn changed<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16) {
        let host = usize::from(index / worker.connections_per_host);
        let idle = &mut worker.local.pools[host].idle;
        idle.retain(|&known| known != index);
        let connection = &worker.connections[usize::from(index)];
        if connection.state == State::Ready && connection.link.available() {
            worker.is_idle(index);
        }
    }

    /// What waits for a connection goes to whom the map now says.
    fn follow<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, hosts: &Hosts) {
        worker.local.follow(hosts);
        Self::unsent(worker);
    }

    /// What has waited too long for a connection is over.
    fn turn<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, now: Nanos) {
        let limit = now.since(worker.setup.timeout);
        for host in 0..worker.local.pools.len() {
            while let Some(&(since, index)) = worker.local.pools[host].waiting.front()
                && since <= limit
            {
                worker.local.pools[host].waiting.pop_front();
                worker.operations.finish(index, now, Outcome::NotSent);
            }
        }
    }

    fn unsent<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>) {
        for pool in &mut worker.local.pools {
            worker.operations.resend.extend(pool.waiting.drain(..).map(|(_, index)| index));
        }
    }
}

impl<R: Ring, W: Witness> Worker<R, W, RecordEncoder> {
    /// Makes the key and the digest of an operation; returns the size of the key's text, bytes.
    #[inline]
    fn find_record(&mut self, index: u32) -> usize {
        let draw = &self.operations.slots.get(index).draw;
        let key_size = Protocol::write_key(&*self.encoder, draw, &mut self.key);
        self.local.digest = self.encoder.digest(&self.key[..key_size]);
        key_size
    }

    /// A connection that is ready has nothing under way: the next operation that waits for its host
    /// goes out on it.
    #[inline]
    fn is_idle(&mut self, index: u16) {
        let host = usize::from(index / self.connections_per_host);
        match self.local.pools[host].waiting.pop_front() {
            Some((_, waiting)) => {
                let key_size = self.find_record(waiting);
                self.encode(waiting, index, key_size);
            }
            None => self.local.pools[host].idle.push(index),
        }
    }

    /// Takes the answer on a connection, if it is whole; whether the connection is free by that.
    #[inline]
    fn take_answer(&mut self, index: u16, at: Nanos) -> Result<bool, Nonsense> {
        let Self { setup, encoder, roster, ring, connections, operations, key, .. } = self;
        let Connection { id, state, link, .. } = &mut connections[usize::from(index)];
        let received = ring.received(*id);
        let header = match ProtoHeader::decode(received, ANSWER_MAX) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(false),
            Err(error) => return Err(Nonsense::Protocol(error)),
        };
        let size = PROTO_SIZE + header.size;
        let Some(body) = received.get(PROTO_SIZE..size) else { return Ok(false) };
        let head = body.first_chunk().filter(|_| header.kind == ProtoKind::Message);
        let Some(&[head_size, _, _, _, _, result]) = head else {
            return Err(Nonsense::Kind);
        };
        if usize::from(head_size) != MESSAGE_HEADER_SIZE || body.len() < MESSAGE_HEADER_SIZE {
            return Err(Nonsense::Header);
        }
        let Some(slot) = Some(link).filter(|_| received.len() == size).and_then(|l| l.answered())
        else {
            return Err(Nonsense::Unasked);
        };
        let answer = (ResultCode(result), body);
        let outcome = judge((setup, encoder), operations.slots.get(slot), answer, key);
        if outcome == Outcome::Unavailable {
            roster.cry();
        }
        operations.attempted(slot, at, outcome);
        ring.consume(*id, size);
        Ok(*state == State::Ready)
    }
}
