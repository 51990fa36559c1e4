//! Writes the seeds of the fuzz targets: small inputs of every kind, `fuzz/corpus/<target>/*`.
//!
//! Run it when a kind is added: `cargo run --manifest-path fuzz/Cargo.toml --example seeds`.

use record::hlog::HlogWriter;
use record::{Latency, Series, Tag};
use std::path::Path;
use units::Nanos;
use wire::aerospike::{
    Command, Key, OpKind, Particle, ReadLevel, UserKey, Wanted, WritePolicy, batch, compress, info,
    msgpack,
};
use wire::cql::framing::Outgoing;
use wire::cql::request::{Batch, BatchKind, BatchStatement, PreparedRef, QueryParameters, Request};
use wire::cql::response::{Column, Metadata, Prepared, put_error, put_prepared};
use wire::cql::{
    ColumnType, Compression, Consistency, ErrorCode, Header, Opcode, Protocol, Value, flags, put,
};
use wire::shards::keys;
use wire::tablets::{Tablet, encode_replicas};

fn main() -> std::io::Result<()> {
    for (target, seeds) in [
        ("aerospike", records()),
        ("frame", frames()),
        ("framing", framings()),
        ("hlog", logs()),
        ("profile", profiles()),
        ("session", sessions()),
        ("tablets", tablets()),
    ] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        std::fs::create_dir_all(&dir)?;
        for (name, bytes) in seeds {
            std::fs::write(dir.join(name), bytes)?;
        }
    }
    Ok(())
}

fn tablets() -> Vec<(&'static str, Vec<u8>)> {
    let tablet = |first, last| Tablet { first, last, replicas: vec![([7; 16], 3)] };
    let mut answer = Vec::new();
    let mut header = Header::response(1, Opcode::Result);
    header.flags = flags::CUSTOM_PAYLOAD;
    header.frame(&mut answer, |out| {
        tablet(i64::MIN, 0).put_payload(out);
        put::i32(out, 1);
    });
    let mut options = Vec::new();
    let values: [(&str, &[&str]); 5] = [
        (keys::SHARD, &["1"]),
        (keys::SHARDS, &["4"]),
        (keys::IGNORE_MSB, &["12"]),
        (keys::PORT, &["19042"]),
        (keys::TABLETS, &[""]),
    ];
    put::string_multimap(&mut options, &values);
    let mut many = tablet(0, 9).encode();
    many.extend(tablet(5, 20).encode());
    vec![
        ("tablet", tablet(-5, 5).encode()),
        ("replicas", encode_replicas(&[([1; 16], 0), ([2; 16], 7)])),
        ("answer", answer),
        ("supported", options),
        ("overlapping", many),
    ]
}

/// Connections of Aerospike's protocol.
fn records() -> Vec<(&'static str, Vec<u8>)> {
    let key = Key::new("test", "s", UserKey::Integer(7));
    let policy = WritePolicy { send_key: true, ..WritePolicy::default() };
    let mut list = Vec::new();
    msgpack::put_list(&mut list, 2);
    msgpack::put_integer(&mut list, 300);
    msgpack::put_string(&mut list, "text");
    let puts = [
        (OpKind::Write, "i", Particle::Integer(1)),
        (OpKind::Write, "s", Particle::String(b"text")),
        (OpKind::Write, "l", Particle::List(&list)),
    ];
    let changes = [
        (OpKind::Increment, "i", Particle::Integer(5)),
        (OpKind::Append, "s", Particle::String(b"!")),
        (OpKind::Read, "i", Particle::Null),
        (OpKind::Delete, "", Particle::Null),
    ];
    let put = Command::operate(&key, &policy, &puts);
    let get = Command::get(&key, Wanted::All, ReadLevel::One, 0);
    let change = Command::operate(&key, &policy, &changes);
    let touch = Command::touch(&key, &policy);
    let delete = Command::delete(&key, &policy);
    let mut seeds = Vec::new();
    let mut life = Vec::new();
    for command in [&put, &get, &touch, &change, &delete] {
        command.encode(&mut life);
    }
    let mut together = Vec::new();
    batch::encode(&[put, get, get, change, delete], 0, 0, &mut together);
    let mut asked = Vec::new();
    info::put_request(&["node", "replicas", "namespace/test", "statistics"], &mut asked);
    let mut packed = Vec::new();
    compress(&together, &mut packed);
    seeds.push(("life", life));
    seeds.push(("batch", together));
    seeds.push(("info", asked));
    seeds.push(("compressed", packed));
    seeds
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let parameters = || QueryParameters {
        values: vec![(None, Value::Bytes(b"user1")), (None, Value::Null), (None, Value::Unset)],
        page_size: Some(100),
        paging_state: Some(b"state"),
        timestamp_us: Some(1),
        serial_consistency: Some(Consistency::Serial),
        ..QueryParameters::plain(Consistency::One)
    };
    let requests = [
        ("startup", Request::Startup(vec![("CQL_VERSION", "3.0.0")])),
        ("auth-response", Request::AuthResponse(Some(b"\0a\0b"))),
        ("options", Request::Options),
        ("query", Request::Query("SELECT * FROM t", parameters())),
        ("prepare", Request::Prepare("SELECT * FROM t WHERE a = ?", None)),
        ("execute", Request::Execute(PreparedRef::v4(b"0123456789abcdef"), parameters())),
        ("batch", Request::Batch(batch())),
        ("register", Request::Register(vec!["SCHEMA_CHANGE", "STATUS_CHANGE"])),
    ];
    let mut frames = Vec::new();
    for (name, request) in requests {
        let mut frame = Vec::new();
        request.encode(1, &mut frame);
        frames.push((name, frame));
    }
    for (name, opcode, body) in responses() {
        let mut frame = Vec::new();
        Header::response(1, opcode).frame(&mut frame, |out| out.extend(body));
        frames.push((name, frame));
    }
    frames
}

/// Frames on the wire, behind the byte that says how; see the target.
fn framings() -> Vec<(&'static str, Vec<u8>)> {
    let mut frames = Vec::new();
    Request::Options.encode_at(5, 1, &mut frames);
    let text = "SELECT a, a, a, a, a, a, a, a, a, a, a, a FROM t";
    Request::Prepare(text, Some("k")).encode_at(5, 2, &mut frames);
    let protocols = [
        ("v4-lz4", 4, Compression::Lz4),
        ("v4-snappy", 4, Compression::Snappy),
        ("v5", 5, Compression::None),
        ("v5-lz4", 5, Compression::Lz4),
    ];
    let mut seeds = Vec::new();
    for (choice, (name, version, compression)) in protocols.into_iter().enumerate() {
        let mut wired = vec![choice as u8];
        let protocol = Protocol::new(version, compression).unwrap();
        Outgoing::new(protocol).encode(&frames, &mut wired);
        seeds.push((name, wired));
    }
    // Cut into two parts of the target's own.
    let (first, second) = frames[9..].split_at(20);
    let part = |part: &[u8]| [&[(part.len() << 1) as u8, 0], part].concat();
    seeds.push(("parts", [&[6][..], &part(first), &part(second)].concat()));
    seeds
}

/// A distribution of every kind, each before a profile or a table definition.
fn profiles() -> Vec<(&'static str, Vec<u8>)> {
    const TABLE: &str = "CREATE TABLE IF NOT EXISTS k.t (a text, \"B\" set<int>, c uuid, \
                         d frozen<list<text>>, PRIMARY KEY ((a), c)) WITH comment = 'x'";
    let profile = |rest: &str| {
        format!("specname: s\nkeyspace: k\ntable: t\ntable_definition: {TABLE}\n{rest}")
    };
    let columns = "columnspec:\n- {name: c, cluster: uniform(1..9), population: seq(1..5)}\n\
                   - {name: a, size: fixed(3)}\n";
    let rest = "insert: {select: fixed(1)/10, batchtype: LOGGED}\n\
                queries:\n  q: {cql: select 1, fields: samerow, consistencyLevel: ONE}\n\
                token_range_queries:\n  r: {columns: a, page_size: 5}\n";
    [
        ("fixed", "FIXED(5)", TABLE.to_owned()),
        ("uniform", "uniform(1..10M)", profile("")),
        ("gaussian", "~gaussian(1..10,5,2)/10", profile(columns)),
        ("extreme", "extreme(1..1k,2.5)", profile(rest)),
        ("qextreme", "qextreme(1..1k,2,10)", profile(&format!("{columns}{rest}"))),
        ("exp", "exp(1..100)", "queries:\n  q: [1, {a: *b}]".to_owned()),
        ("seq", "1..10", "a".to_owned()),
    ]
    .map(|(name, line, rest)| (name, format!("{line}\n{rest}").into_bytes()))
    .to_vec()
}

/// CQL of every kind, and a connection's first frames.
fn sessions() -> Vec<(&'static str, Vec<u8>)> {
    let texts = [
        (
            "rows",
            "INSERT INTO t (a, b, c) VALUES (1, 2, 'x') USING TTL 9 AND TIMESTAMP 5\n\
             UPDATE t SET l = l + [1], m['k'] = 2, s = s - {3} WHERE a = 1 AND b = 2\n\
             DELETE c, l[0] FROM t WHERE a = 1 AND b = 2\n\
             SELECT a, writetime(c), ttl(c) FROM t WHERE a = 1 AND b >= 2 AND b < 9 \
             ORDER BY b DESC LIMIT 3\n\
             SELECT COUNT(*) FROM t WHERE token(a) > -5 AND token(a) <= token(7)\n\
             SELECT DISTINCT a FROM t PER PARTITION LIMIT 1 ALLOW FILTERING",
        ),
        (
            "schema",
            "CREATE TABLE IF NOT EXISTS u (k text PRIMARY KEY, n counter) WITH comment = 'x'\n\
             UPDATE u SET n = n + 1 WHERE k = 'y'\nALTER TABLE t ADD d frozen<list<int>>\n\
             TRUNCATE t\nDROP TABLE IF EXISTS u\nSELECT * FROM system_schema.columns",
        ),
        (
            "batch",
            "BEGIN UNLOGGED BATCH INSERT INTO t (a, b) VALUES (0x1, 2); \
             DELETE FROM t WHERE a = 1 APPLY BATCH\nSELECT now(), * FROM t",
        ),
    ];
    let mut seeds: Vec<_> = texts.map(|(name, text)| (name, text.as_bytes().to_vec())).into();
    let mut raw = vec![0];
    Request::Options.encode(1, &mut raw);
    Request::Prepare("SELECT * FROM system.local", None).encode(2, &mut raw);
    seeds.push(("raw", raw));
    seeds
}

fn batch() -> Batch<'static> {
    Batch {
        kind: BatchKind::Unlogged,
        statements: vec![
            (BatchStatement::Text("INSERT INTO t (a) VALUES (?)"), vec![Value::Bytes(b"1")]),
            (BatchStatement::Id(b"0123456789abcdef"), vec![Value::Null]),
        ],
        consistency: Consistency::Quorum,
        serial_consistency: None,
        timestamp_us: Some(1),
        keyspace: None,
        now_s: None,
    }
}

fn metadata() -> Metadata {
    let column = |name: &str, kind| Column {
        keyspace: "k".into(),
        table: "t".into(),
        name: name.into(),
        kind,
    };
    let map = ColumnType::Map(Box::new(ColumnType::Varchar), Box::new(ColumnType::Bigint));
    let columns = vec![column("a", ColumnType::Varchar), column("b", map)];
    Metadata { column_count: 2, columns, paging_state: Some(b"more".to_vec()) }
}

fn responses() -> Vec<(&'static str, Opcode, Vec<u8>)> {
    let body = |fill: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        fill(&mut out);
        out
    };
    let prepared = Prepared {
        id: b"0123456789abcdef".to_vec(),
        metadata_id: b"fedcba9876543210".to_vec(),
        partition_key: vec![0],
        values: Metadata { paging_state: None, ..metadata() },
        rows: metadata(),
    };
    let rows = |skip: bool| {
        body(&|out| {
            put::i32(out, 2);
            metadata().encode(skip, out);
            put::i32(out, 1);
            put::bytes(out, Some(b"user1"));
            put::bytes(out, None);
        })
    };
    let write_timeout = body(&|out| {
        put_error(out, ErrorCode(0x1100), "too slow");
        put::u16(out, 1);
        put::i32(out, 0);
        put::i32(out, 1);
        put::string(out, "SIMPLE");
    });
    let event = body(&|out| {
        put::string(out, "STATUS_CHANGE");
        put::string(out, "UP");
        put::inet(out, std::net::Ipv4Addr::LOCALHOST.into(), 9042);
    });
    vec![
        ("error", Opcode::Error, write_timeout),
        ("ready", Opcode::Ready, vec![]),
        ("authenticate", Opcode::Authenticate, body(&|out| put::string(out, "PasswordAuth"))),
        ("supported", Opcode::Supported, body(&|o| put::string_multimap(o, &[("A", &["b"])]))),
        ("void", Opcode::Result, body(&|out| put::i32(out, 1))),
        ("rows", Opcode::Result, rows(false)),
        ("rows-bare", Opcode::Result, rows(true)),
        ("prepared", Opcode::Result, body(&|out| put_prepared(out, 4, &prepared))),
        ("event", Opcode::Event, event),
    ]
}

fn logs() -> Vec<(&'static str, Vec<u8>)> {
    let mut latency = Latency::new();
    (0..50u64).for_each(|n| latency.record(Nanos(1000 + n * n * n * 1000)));
    let mut coarse = Latency::coarse();
    coarse.record_n(Nanos::from_secs(3600), 7);
    // The first byte says that a file follows; see the target.
    let file = |latencies: &[&Latency]| {
        let mut log = HlogWriter::new(b"F".to_vec(), Nanos::from_secs(1)).unwrap();
        for latency in latencies {
            let tag = Tag { op: "read".into(), series: Series::Service };
            log.write(&tag, Nanos::ZERO, Nanos::from_secs(1), latency).unwrap();
        }
        log.finish().unwrap()
    };
    vec![
        ("log", file(&[&latency, &coarse])),
        ("log-empty", file(&[])),
        ("plain-3-digits", plain(3, &[0x02, 0x05, 0x04])),
        ("plain-2-digits", plain(2, &[0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x02])),
    ]
}

/// The bytes of a V2 histogram from 1 ns to 1 h, after the byte that says so.
fn plain(digits: u32, counts: &[u8]) -> Vec<u8> {
    let mut plain = b"H".to_vec();
    for word in [0x1c84_9313, counts.len() as u32, 0, digits] {
        plain.extend(word.to_be_bytes());
    }
    plain.extend(1u64.to_be_bytes());
    plain.extend(3_600_000_000_000u64.to_be_bytes());
    plain.extend(1.0f64.to_be_bytes());
    plain.extend(counts);
    plain
}
