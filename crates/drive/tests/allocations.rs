//! After the ramp-up the data plane allocates nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unsafe_code)] // a global allocator cannot be had without

#[cfg(feature = "tls")]
#[path = "../../ring/tests/certs/mod.rs"]
mod certs;
mod rig;

#[cfg(feature = "tls")]
use drive::{Access, Drive};
use drive::{Amount, Encoder, Load, OpDone, TableName, Witness, statement_texts};
use record::Outcome;
use rig::{SECOND, closed, control, drive, load, open, plan, prepare_in, records, run};
use rig::{serve, serve_records, speaking};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use target::Storage;
use units::Nanos;
use wire::aerospike::RecordExists;
use wire::cql::{Compression, Consistency, Protocol};
use workload::cassandra_stress::{Asked, Compat, parse};

thread_local! {
    /// Constant initialiser and no destructor: using it allocates nothing itself.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches no memory
// of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is, from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations after which the ramp-up is over: every buffer has been used.
const RAMP_UP_OPS: u64 = 2000;

/// Counts this worker's allocations between two of its operations.
#[derive(Default)]
struct Allocations {
    ops: u64,
    at_start: u64,
    at_last: u64,
}

impl Witness for Allocations {
    fn op(&mut self, _: OpDone) {
        self.ops += 1;
        self.at_last = ALLOCATIONS.with(Cell::get);
        if self.ops == RAMP_UP_OPS {
            self.at_start = self.at_last;
        }
    }
}

#[test]
fn nothing_is_allocated_per_operation() {
    for workload in ["a", "d", "e", "f"] {
        no_allocations(Protocol::default(), workload);
    }
}

#[test]
fn nothing_is_allocated_where_frames_are_framed() {
    for (version, compression) in [
        (5, Compression::None),
        (5, Compression::Lz4),
        (4, Compression::Lz4),
        (4, Compression::Snappy),
    ] {
        no_allocations(speaking(version, compression), "a");
    }
}

fn no_allocations(protocol: Protocol, workload: &str) {
    let target = serve(Storage::Memory);
    let plan = plan(workload, &[], 2000, Some(20_000));
    let encoder = prepare_in(protocol, target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    for the_load in [
        Load { warm: Nanos::from_millis(100), ..closed(64, Amount::Ops(20_000)) },
        open("10k/s", Amount::Duration(SECOND), 4096),
    ] {
        let drive = drive(target.local_addr(), &encoder, 1, the_load);
        let (_, witnesses, _) = run(&drive, vec![Allocations::default()]);
        let Allocations { ops, at_start, at_last } = witnesses[0];
        assert!(ops > 2 * RAMP_UP_OPS, "{ops} operations are too few to tell");
        assert_eq!(
            at_last - at_start,
            0,
            "workload {workload}, {protocol}: allocations in {ops} operations"
        );
    }
}

/// The library that encrypts allocates for a record, of up to 16 KiB, whatever number of operations
/// it carries; we do not for any of them.
#[cfg(feature = "tls")]
#[test]
fn inside_tls_records_allocate_and_operations_do_not() {
    use ring::tls::{Client, ClientFiles, Identity, Server, ServerFiles};
    let dir = tempfile::tempdir().unwrap();
    let authority = certs::Authority::new(dir.path(), "ca");
    let (cert, key) = authority.sign("server", &["127.0.0.1"]);
    let identity = Identity { cert, key };
    let server = Server::new(&ServerFiles { identity, client_ca: None }).unwrap();
    let trusted =
        ClientFiles { ca: Some(authority.pem()), identity: None, name: None, verify: true };
    let access = Access { tls: Some(Client::new(&trusted).unwrap()), ..Access::default() };
    let config =
        target::Config { tls: Some(server), ..target::Config::new("127.0.0.1:0".parse().unwrap()) };
    let target = target::Server::bind(config).unwrap().start().unwrap();
    let plan = plan("a", &[], 2000, Some(20_000));
    let encoder = rig::prepare_by(&access, Protocol::default(), target.local_addr(), &plan);
    let load = closed(512, Amount::Ops(100_000));
    let drive = Drive { access, ..drive(target.local_addr(), &encoder, 1, load) };
    let (_, witnesses, _) = run(&drive, vec![Allocations::default()]);
    let Allocations { ops, at_start, at_last } = witnesses[0];
    let allocations = at_last - at_start;
    assert!(allocations * 4 < ops, "{allocations} allocations in {ops} operations");
}

#[test]
fn nothing_is_allocated_over_records() {
    let target = serve_records(|_| {});
    let plan = plan("f", &[], 2000, Some(20_000));
    let encoder = records(&plan, RecordExists::Update);
    load(target.local_addr(), &encoder, 1);
    // A connection for each operation, and too few of them.
    for (connections, the_load) in [
        (64, Load { warm: Nanos::from_millis(100), ..closed(64, Amount::Ops(20_000)) }),
        (8, open("10k/s", Amount::Duration(SECOND), 64)),
    ] {
        let mut drive = drive(target.local_addr(), &encoder, 1, the_load);
        drive.connections = connections;
        let (_, witnesses, _) = run(&drive, vec![Allocations::default()]);
        let Allocations { ops, at_start, at_last } = witnesses[0];
        assert!(ops > 2 * RAMP_UP_OPS, "{ops} operations are too few to tell");
        assert_eq!(at_last - at_start, 0, "{connections} connections, {ops} operations");
    }
}

/// Posts with clustering rows: a batch each, and a query whose values come from several rows.
const PROFILE: &str = "
keyspace: blog
keyspace_definition: \"CREATE KEYSPACE blog WITH replication = {'class': 'SimpleStrategy',
  'replication_factor': 1}\"
table: posts
table_definition: CREATE TABLE posts (
  site text, at timeuuid, part int, body text, tags set<text>, PRIMARY KEY (site, at, part))
columnspec: [{name: at, cluster: uniform(1..8)}, {name: part, cluster: fixed(2)}]
insert: {partitions: uniform(1..3), select: uniform(1..4)/4, batchtype: UNLOGGED}
queries: {some: {cql: \"select body from posts where site = ? and at = ? and part = ?\"}}
";

#[test]
fn nothing_is_allocated_for_the_rows_of_a_profile() {
    let line = "user profile=posts ops(insert=1,some=1) n=2000".to_owned();
    let asked = parse(&[line], Compat::default(), &|_: &str| Ok(PROFILE.to_owned())).unwrap();
    let Asked::Run(settings) = asked else { panic!("{asked:?}") };
    let plan = Arc::new(settings.plan(64));
    let target = serve(Storage::Memory);
    let mut control = control(target.local_addr());
    let creation = &plan.tables.as_ref().unwrap().tables[0].creation;
    for text in [creation.keyspace.as_deref(), Some("USE blog"), creation.table.as_deref()] {
        control.query(text.unwrap()).unwrap();
    }
    let table = TableName { keyspace: "blog".into(), table: "posts".into() };
    let texts = statement_texts(&plan, &table);
    let ids: Vec<_> = texts.iter().map(|text| control.prepare(text).unwrap().into()).collect();
    let level = Consistency::LocalOne;
    let encoder = Encoder::speaking(Protocol::default(), plan, &table, &ids, level);
    let load = closed(64, Amount::Ops(20_000));
    let drive = drive(target.local_addr(), &Arc::new(encoder), 1, load);
    let (driven, witnesses, _) = run(&drive, vec![Allocations::default()]);
    let Allocations { ops, at_start, at_last } = witnesses[0];
    assert!(ops > 2 * RAMP_UP_OPS, "{ops} operations are too few to tell");
    assert_eq!(at_last - at_start, 0, "allocations in {ops} operations");
    let [insert, some] = &driven.total.ops[..] else { panic!("two operations") };
    assert_eq!(insert.count(Outcome::Ok) + some.count(Outcome::Ok), 20_000);
    assert!(insert.rows > 4 * insert.partitions && insert.partitions > insert.ops());
    assert!(some.rows > 0 && some.rows == some.partitions);
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 1);
}
