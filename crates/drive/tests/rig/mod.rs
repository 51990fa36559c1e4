//! What the tests of the data plane stand on: a reference target in this process, and plans
//! prepared on it.

#![allow(dead_code)] // each test program uses its part

use drive::{
    Access, Amount, Arrivals, Control, Drive, Driven, Encoder, Encoding, Interval, Load, Observer,
    RecordEncoder, RecordPlace, Roster, TableName, Wait, Witness, Writes, create_keyspace,
    create_table, statement_texts,
};
use record::hlog::Intervals;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use target::{Config, Handle, Server, Storage};
use units::{CpuId, Nanos};
use wire::aerospike::RecordExists;
use wire::cql::{Compression, Consistency, Protocol};
use workload::Plan;
use workload::ycsb::{self, Properties};

pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

pub(crate) fn serve(storage: Storage) -> Handle {
    let listen = "127.0.0.1:0".parse().unwrap();
    Server::bind(Config { storage, ..Config::new(listen) }).unwrap().start().unwrap()
}

/// One that serves records of a namespace `test`, as `config` is changed.
pub(crate) fn serve_records(change: impl FnOnce(&mut Config)) -> Handle {
    let listen = "127.0.0.1:0".parse().unwrap();
    let namespaces = vec!["test".to_owned()];
    let instances = target::Instances::default();
    let protocol = target::Protocol::Aerospike { namespaces, instances };
    let mut config = Config { protocol, ..Config::new(listen) };
    change(&mut config);
    Server::bind(config).unwrap().start().unwrap()
}

/// A plan's messages on records there; updates as `update` says.
pub(crate) fn records(plan: &Arc<Plan>, update: RecordExists) -> Arc<RecordEncoder> {
    let place = RecordPlace { namespace: "test".to_owned(), set: "usertable".to_owned() };
    let writes = Writes { insert: RecordExists::CreateOnly, update, server_timeout_ms: 0 };
    Arc::new(RecordEncoder::new(plan.clone(), place, writes).unwrap())
}

pub(crate) fn table() -> TableName {
    TableName { keyspace: "ycsb".into(), table: "usertable".into() }
}

pub(crate) fn plan(
    workload: &str,
    properties: &[&str],
    records: u64,
    ops: Option<u64>,
) -> Arc<Plan> {
    let files: [&str; 0] = [];
    let properties = Properties::load(&files, properties).unwrap();
    Arc::new(ycsb::plan(workload, &properties, Some(records), ops).unwrap().plan)
}

pub(crate) fn control(address: SocketAddr) -> Control {
    Control::connect(address, Nanos::from_secs(5)).unwrap()
}

/// Creates the plan's table and prepares its statements.
pub(crate) fn prepare(address: SocketAddr, plan: &Arc<Plan>) -> Arc<Encoder> {
    let mut control = control(address);
    control.query(&create_keyspace(&table(), "1")).unwrap();
    control.query(&create_table(plan, &table())).unwrap();
    let texts = statement_texts(plan, &table());
    let ids: Vec<_> = texts.iter().map(|text| control.prepare(text).unwrap().id).collect();
    Arc::new(Encoder::new(plan.clone(), &table(), &ids, Consistency::LocalOne))
}

pub(crate) fn speaking(version: u8, compression: Compression) -> Protocol {
    Protocol::new(version, compression).unwrap()
}

/// As [`prepare`], in this protocol.
pub(crate) fn prepare_in(
    protocol: Protocol,
    address: SocketAddr,
    plan: &Arc<Plan>,
) -> Arc<Encoder> {
    prepare_by(&Access::default(), protocol, address, plan)
}

/// As [`prepare_in`], on connections like these.
pub(crate) fn prepare_by(
    access: &Access,
    protocol: Protocol,
    address: SocketAddr,
    plan: &Arc<Plan>,
) -> Arc<Encoder> {
    let patience = Nanos::from_secs(5);
    let mut control =
        Control::speaking(protocol, address, patience, access, &Arc::default()).unwrap();
    control.query(&create_keyspace(&table(), "1")).unwrap();
    control.query(&create_table(plan, &table())).unwrap();
    let texts = statement_texts(plan, &table());
    let ids: Vec<_> = texts.iter().map(|text| control.prepare(text).unwrap().into()).collect();
    let level = Consistency::LocalOne;
    Arc::new(Encoder::speaking(protocol, plan.clone(), &table(), &ids, level))
}

pub(crate) fn closed(threads: usize, amount: Amount) -> Load {
    Load {
        arrivals: Arrivals::Closed { threads, throttle: None },
        amount,
        warm: Nanos::ZERO,
        limit: None,
    }
}

pub(crate) fn open(rate: &str, amount: Amount, in_flight_max: usize) -> Load {
    let rate = rate.parse().unwrap();
    let arrivals = Arrivals::Open { rate, poisson: false, in_flight_max };
    Load { arrivals, amount, warm: Nanos::ZERO, limit: None }
}

pub(crate) fn drive<E>(address: SocketAddr, encoder: &Arc<E>, workers: usize, load: Load) -> Drive
where
    Encoding: From<Arc<E>>,
{
    Drive {
        encoder: encoder.clone().into(),
        load_keys: matches!(load.amount, Amount::EveryKey),
        load,
        databases: vec![Arc::new(Roster::new(vec![address], None))],
        access: Access::default(),
        by_shard: true,
        connections: drive::connections(2, workers),
        cpus: vec![CpuId(0); workers],
        seed: 7,
        inserted: Vec::new(),
        intervals: Intervals::of(Nanos::from_millis(200)),
        timeout: Nanos::from_secs(5),
        retries: 0,
        retry_pause: drive::RetryPause::NONE,
        give_up: Nanos::from_secs(20),
        first_failure_ends: false,
        missing_is_fine: false,
        wait: Wait::Sleep,
        engine: engine(),
    }
}

/// Keeps nothing but the number of operations of each interval.
#[derive(Default)]
pub(crate) struct Counts(pub(crate) Vec<u64>);

impl Observer for Counts {
    fn interval(&mut self, interval: Interval<'_>) -> Result<(), io::Error> {
        assert!(interval.index as usize >= self.0.len(), "intervals come in order");
        // On a busy machine a turn of a worker may be longer than an interval.
        self.0.resize(interval.index as usize, 0);
        self.0.push(interval.record.ops.iter().map(record::OpRecord::ops).sum());
        Ok(())
    }
}

pub(crate) fn run<W: Witness + 'static>(
    drive: &Drive,
    witnesses: Vec<W>,
) -> (Driven, Vec<W>, Counts) {
    let mut counts = Counts::default();
    let stop = Arc::new(AtomicBool::new(false));
    let (driven, witnesses) = drive::run(drive, witnesses, &mut counts, &stop).unwrap();
    (driven, witnesses, counts)
}

/// Loads the plan's keys with so many workers.
pub(crate) fn load<E>(address: SocketAddr, encoder: &Arc<E>, workers: usize) -> Driven
where
    Encoding: From<Arc<E>>,
{
    let drive = drive(address, encoder, workers, Load::every_key(32));
    run(&drive, vec![drive::Unwitnessed; workers]).0
}

pub(crate) fn ok(driven: &Driven) -> u64 {
    driven.total.ops.iter().map(|op| op.count(record::Outcome::Ok)).sum()
}

pub(crate) fn ops(driven: &Driven) -> u64 {
    driven.total.ops.iter().map(record::OpRecord::ops).sum()
}

/// The suite runs these tests with each.
fn engine() -> drive::Engine {
    std::env::var("WIDELOAD_TEST_ENGINE")
        .map_or_else(|_| drive::Engine::Epoll, |e| e.parse().unwrap())
}
