//! Frames: the handshake, versions, prepared statements and their metadata, errors, events, hostile
//! bytes, paging, the mock.

mod support;

use proptest::prelude::*;
use support::{Answer, Refusal, Target, decode, int, text};
use target::{After, Storage};
use wire::cql::request::{PreparedRef, QueryParameters, Request};
use wire::cql::response::Response;
use wire::cql::{Consistency, ErrorCode, HEADER_SIZE, Header, Opcode, Value, put};

fn target() -> (Target, support::Client) {
    let target = Target::new(Storage::Memory);
    let client = target.client();
    (target, client)
}

#[test]
fn handshake() {
    let target = Target::new(Storage::Memory);
    let mut c = target.raw_client();
    let early = c.request(&Request::Query("SELECT * FROM system.local", plain())).unwrap_err();
    assert_eq!(early.0, ErrorCode::PROTOCOL);
    let frame = c.send(&Request::Options);
    let Response::Supported(options) = decode(&frame) else { panic!("not SUPPORTED") };
    let option = |n: &str| options.iter().find(|(name, _)| *name == n).map(|(_, v)| v.clone());
    assert_eq!(option("COMPRESSION"), Some(vec!["snappy", "lz4"]));
    assert_eq!(option("PROTOCOL_VERSIONS"), Some(vec!["4/v4", "5/v5"]));
    assert!(option("CQL_VERSION").unwrap()[0].starts_with("3.4"));
    for options in [
        vec![],
        vec![("CQL_VERSION", "2.0.0")],
        vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "zstd")],
    ] {
        let refusal = c.request(&Request::Startup(options)).unwrap_err();
        assert_eq!(refusal.0, ErrorCode::PROTOCOL, "{refusal:?}");
    }
    c.start();
    let events = vec!["SCHEMA_CHANGE", "STATUS_CHANGE", "TOPOLOGY_CHANGE"];
    assert!(matches!(decode(&c.send(&Request::Register(events))), Response::Ready));
    assert!(c.session.wants_schema_changes());
    let refusal = c.request(&Request::Register(vec!["WEATHER"])).unwrap_err();
    assert_eq!(refusal.0, ErrorCode::PROTOCOL);
}

fn plain() -> QueryParameters<'static> {
    QueryParameters::plain(Consistency::One)
}

#[test]
fn other_versions_are_told_which_there_is() {
    for (version, max) in [(1u8, 5), (2, 5), (3, 5), (6, 5), (0x42, 5), (5, 4), (3, 4), (0x42, 4)] {
        let target = Target::speaking(max);
        let mut session = target.raw_client().session;
        let mut out = Vec::new();
        let bytes = [version, 0, 0, 9, 5, 0, 0, 0, 0];
        let done = session.receive(&bytes, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.after), (9, After::Close));
        let header = Header::decode(&out).unwrap().unwrap();
        assert_eq!((header.version, header.opcode), (0x80 | max, Opcode::Error as u8));
        let Response::Error { code, message, .. } = decode(&out) else { panic!("not an error") };
        assert_eq!(code, ErrorCode::PROTOCOL);
        assert!(message.contains("unsupported protocol version"), "{message}");
    }
}

#[test]
fn a_frame_beyond_the_limit_is_refused() {
    let target = Target::new(Storage::Memory);
    for size in [(1u32 << 20) + 1, u32::MAX] {
        let mut session = target.raw_client().session;
        let mut frame = vec![4, 0, 0, 1, 7];
        frame.extend(size.to_be_bytes());
        let mut out = Vec::new();
        let done = session.receive(&frame, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.after), (9, After::Close));
        assert!(matches!(decode(&out), Response::Error { code: ErrorCode::PROTOCOL, .. }));
    }
}

#[test]
fn frames_may_come_in_pieces() {
    let target = Target::new(Storage::Memory);
    let mut session = target.raw_client().session;
    let mut frames = Vec::new();
    Request::Startup(vec![("CQL_VERSION", "3.0.0")]).encode(0, &mut frames);
    Request::Query("SELECT key FROM system.local", plain()).encode(1, &mut frames);
    Request::Options.encode(2, &mut frames);
    let (mut out, mut pending) = (Vec::new(), Vec::new());
    for byte in frames {
        pending.push(byte);
        let done = session.receive(&pending, usize::MAX, &mut out);
        pending.drain(..done.consumed);
    }
    let mut streams = Vec::new();
    let mut rest = &out[..];
    while let Some(header) = Header::decode(rest).unwrap() {
        streams.push((header.stream, header.opcode));
        rest = &rest[HEADER_SIZE + header.body_size..];
    }
    assert_eq!(streams, [(0, 2), (1, 8), (2, 6)]);
}

#[test]
fn prepared_statements_describe_themselves() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (a int, b text, c timeuuid, v list<int>, PRIMARY KEY ((a, b), c))");
    let insert =
        c.prepare("INSERT INTO t (v, b, a, c) VALUES (?, :bee, ?, now()) USING TTL ?").unwrap();
    let names: Vec<_> = insert.values.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["v", "bee", "a", "[ttl]"]);
    assert_eq!(insert.partition_key, [2, 1]);
    assert_eq!(insert.rows.column_count, 0);
    let select =
        c.prepare("SELECT b, v AS vv FROM t WHERE a = 1 AND b = ? AND c IN ? LIMIT ?").unwrap();
    assert!(select.partition_key.is_empty());
    let names: Vec<_> = select.rows.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["b", "vv"]);
    assert_eq!(select.values.columns[1].name, "in(c)");
    // The same text in the same keyspace has the same id.
    assert_eq!(
        c.prepare("SELECT b, v AS vv FROM t WHERE a = 1 AND b = ? AND c IN ? LIMIT ?").unwrap().id,
        select.id
    );
    assert_ne!(insert.id, select.id);
}

#[test]
fn named_values_and_skipped_metadata() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    let (one, two) = (1i32.to_be_bytes(), 2i32.to_be_bytes());
    let mut parameters = plain();
    parameters.values =
        vec![(Some("value"), Value::Bytes(&two)), (Some("key"), Value::Bytes(&one))];
    let insert = "INSERT INTO t (k, v) VALUES (:key, :value)";
    c.request(&Request::Query(insert, parameters.clone())).unwrap();
    assert_eq!(c.ints("SELECT k, v FROM t"), [[Some(1), Some(2)]]);
    parameters.values.pop();
    assert!(c.request(&Request::Query(insert, parameters)).is_err());
    let mut parameters = plain();
    parameters.skip_metadata = true;
    let answer = c.request(&Request::Query("SELECT k FROM t", parameters)).unwrap();
    assert_eq!((answer.columns.len(), answer.rows.len()), (0, 1));
}

#[test]
fn a_changed_table_unprepares() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    let key = 1i32.to_be_bytes();
    let values = [Value::Bytes(&key)];
    let select = c.prepare("SELECT * FROM t WHERE k = ?").unwrap().id;
    c.ok("INSERT INTO t (k, v) VALUES (1, 1)");
    assert_eq!(c.execute(&select, &values).unwrap().rows.len(), 1);
    c.ok("ALTER TABLE t ADD w text");
    let frame = c.send(&Request::Execute(PreparedRef::v4(&select), plain()));
    let Response::Error { code, mut details, .. } = decode(&frame) else { panic!("no error") };
    assert_eq!(code, ErrorCode::UNPREPARED);
    assert_eq!(details.short_bytes("id").unwrap(), &select[..]);
    assert_eq!(c.prepare("SELECT * FROM t WHERE k = ?").unwrap().id, select);
    let row = &c.execute(&select, &values).unwrap().rows[0];
    assert_eq!((row.len(), row[2].as_deref()), (3, None));
    c.ok("DROP TABLE t");
    assert_eq!(c.execute(&select, &values).unwrap_err().0, ErrorCode::UNPREPARED);
    assert_eq!(c.execute(b"short", &values).unwrap_err().0, ErrorCode::UNPREPARED);
}

#[test]
fn old_prepared_statements_are_forgotten() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    let first = c.prepare("SELECT v FROM t WHERE k = 0").unwrap().id;
    // The tests' engine keeps 100.
    for n in 1..=100 {
        c.prepare(&format!("SELECT v FROM t WHERE k = {n}")).unwrap();
    }
    assert_eq!(c.execute(&first, &[]).unwrap_err().0, ErrorCode::UNPREPARED);
}

#[test]
fn errors_have_the_protocols_codes() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    for (statement, code) in [
        ("SELEC", ErrorCode::SYNTAX),
        ("SELECT * FROM nowhere", ErrorCode::INVALID),
        ("SELECT nothing FROM t", ErrorCode::INVALID),
        ("CREATE INDEX i ON t (v)", ErrorCode::INVALID),
        ("CREATE TABLE t (k int PRIMARY KEY)", ErrorCode::ALREADY_EXISTS),
        ("CREATE TABLE u (k int)", ErrorCode::INVALID),
        ("CREATE TABLE u (k int PRIMARY KEY) WITH colour = 'red'", ErrorCode::SYNTAX),
        ("CREATE KEYSPACE k WITH replication = {'class': 'None'}", ErrorCode::CONFIG),
        ("DROP TABLE system.local", ErrorCode::UNAUTHORIZED),
        ("INSERT INTO system.local (key) VALUES ('x')", ErrorCode::UNAUTHORIZED),
        ("INSERT INTO t (k, v) VALUES (1, 'x')", ErrorCode::INVALID),
        ("USE nowhere", ErrorCode::INVALID),
    ] {
        assert_eq!(c.query(statement).expect_err(statement).0, code, "{statement}");
    }
    for (level, code) in [
        (Consistency::Two, Some(ErrorCode::UNAVAILABLE)),
        (Consistency::Any, Some(ErrorCode::INVALID)),
        (Consistency::Quorum, None),
        (Consistency::LocalOne, None),
        (Consistency::All, None),
    ] {
        let request = Request::Query("SELECT * FROM t", QueryParameters::plain(level));
        assert_eq!(c.request(&request).err().map(|e| e.0), code, "{level:?}");
    }
    let Refusal(_, message) =
        c.query_with("SELECT * FROM t WHERE k = ?", &[Value::Bytes(&[1])]).unwrap_err();
    assert_eq!(message, "Expected 4 or 0 byte int (1)");
}

#[test]
fn more_replicas_than_one_are_taken_with_a_warning() {
    let (_, mut c) = target();
    let create = |name: &str, n: u8| {
        format!(
            "CREATE KEYSPACE {name} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'datacenter1': {n}}}"
        )
    };
    assert!(!c.query(&create("one", 1)).unwrap().warned);
    assert!(c.query(&create("three", 3)).unwrap().warned);
}

#[test]
fn schema_tables_follow_the_schema() {
    let (_, mut c) = target();
    let version = |c: &mut support::Client| c.ok("SELECT schema_version FROM system.local");
    let before = version(&mut c);
    c.ok("CREATE TABLE t (a int, b text, c bigint, s set<text> static, PRIMARY KEY ((a), b, c)) \
          WITH CLUSTERING ORDER BY (b DESC, c ASC) AND comment = 'x''y' AND gc_grace_seconds = 5");
    assert_ne!(version(&mut c), before);
    let columns = "SELECT column_name, kind, position, clustering_order, type FROM \
                   system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't'";
    let found: Vec<String> = c
        .ok(columns)
        .iter()
        .map(|r| {
            let position = int(r[2].as_deref().unwrap());
            format!("{} {} {position} {} {}", text(&r[0]), text(&r[1]), text(&r[3]), text(&r[4]))
        })
        .collect();
    assert_eq!(
        found,
        [
            "a partition_key 0 none int",
            "b clustering 0 desc text",
            "c clustering 1 asc bigint",
            "s static -1 none set<text>",
        ]
    );
    let options = c.ok("SELECT comment, gc_grace_seconds FROM system_schema.tables WHERE \
                        keyspace_name = 'ks' AND table_name = 't'");
    assert_eq!((text(&options[0][0]), int(options[0][1].as_deref().unwrap())), ("x'y", 5));
    c.ok("ALTER TABLE t ADD z double");
    assert_eq!(c.ok(columns).len(), 5);
    c.ok("DROP TABLE t");
    assert!(c.ok(columns).is_empty());
    c.ok("DROP KEYSPACE ks");
    assert!(c.ok("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'ks'").is_empty());
    for table in
        ["types", "functions", "aggregates", "indexes", "triggers", "views", "dropped_columns"]
    {
        assert!(c.ok(&format!("SELECT * FROM system_schema.{table}")).is_empty());
    }
    for table in ["system.peers", "system.peers_v2", "system_virtual_schema.tables"] {
        assert!(c.ok(&format!("SELECT * FROM {table}")).is_empty());
    }
}

#[test]
fn what_is_described_can_be_made_again() {
    let (_, mut c) = target();
    let create = "CREATE TABLE \"Odd\" (k int, c text, s int static, v frozen<list<int>>, \
                  PRIMARY KEY ((k), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s'";
    c.ok(create);
    let texts = |answer: Result<Answer, Refusal>| -> Vec<Vec<String>> {
        let text = |cell: Option<Vec<u8>>| String::from_utf8(cell.unwrap()).unwrap();
        answer.unwrap().rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
    };
    let answer = c.query("DESCRIBE TABLE \"Odd\"");
    assert_eq!(
        answer.as_ref().unwrap().columns,
        ["keyspace_name", "type", "name", "create_statement"]
    );
    let described = texts(answer).remove(0);
    assert_eq!(described[..3], ["ks", "table", "\"Odd\""]);
    c.ok("DROP TABLE \"Odd\"");
    c.ok(&described[3]);
    assert_eq!(texts(c.query("DESC ks.\"Odd\" WITH INTERNALS")).remove(0), described);
    let whole = texts(c.query("DESCRIBE KEYSPACE"));
    assert_eq!((whole[0][1].as_str(), &whole[1]), ("keyspace", &described));
    assert_eq!(texts(c.query("DESCRIBE ONLY KEYSPACE ks")), whole[..1]);
    assert_eq!(texts(c.query("DESCRIBE ks")), whole);
    assert_eq!(texts(c.query("DESCRIBE SCHEMA")), whole);
    assert!(texts(c.query("DESCRIBE FULL SCHEMA")).len() > whole.len());
    assert_eq!(texts(c.query("DESCRIBE TABLES")), [["ks", "table", "\"Odd\""]]);
    assert!(texts(c.query("DESCRIBE KEYSPACES")).contains(&vec![
        "ks".to_owned(),
        "keyspace".to_owned(),
        "ks".to_owned()
    ]));
    assert!(c.ok("DESCRIBE TYPES").is_empty());
    assert_eq!(texts(c.query("DESCRIBE CLUSTER"))[0][0], "wideload reference target");
    for (text, part) in [
        ("DESCRIBE TABLE nothing", "Table 'nothing' not found in keyspace 'ks'"),
        ("DESCRIBE KEYSPACE nothing", "'nothing' not found in keyspaces"),
        ("DESCRIBE nothing.more", "'nothing' not found in keyspaces"),
        ("DESCRIBE", "expected a name"),
        ("DESCRIBE FULL TABLES", "expected SCHEMA"),
    ] {
        assert!(c.refused(text).contains(part), "{text}: {}", c.refused(text));
    }
}

#[test]
fn the_target_counts() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    let before = c.counters();
    for k in 0..5 {
        c.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, 1)"));
    }
    c.ok("UPDATE t SET v = 2 WHERE k = 1");
    c.ok("DELETE FROM t WHERE k = 2");
    c.ok("BEGIN BATCH INSERT INTO t (k) VALUES (7) APPLY BATCH");
    assert_eq!(c.ok("SELECT * FROM t").len(), 5);
    let after = c.counters();
    let grown = |name: &str| after[name] - before[name];
    assert_eq!(grown("statements.insert"), 6);
    assert_eq!(grown("statements.update"), 1);
    assert_eq!(grown("statements.delete"), 1);
    assert_eq!(grown("statements.batch"), 1);
    // The read of the counters before is one of them, and its rows are.
    assert_eq!(grown("statements.select"), 2);
    assert_eq!(grown("rows.sent"), 5 + before.len() as i64);
    assert_eq!(grown("requests.query"), 10);
    assert!(grown("bytes.received") > 0 && grown("bytes.sent") > 0);
}

#[test]
fn the_mock_answers_without_storing() {
    let target = Target::new(Storage::Null);
    let mut c = target.client();
    c.ok("CREATE TABLE t (k text PRIMARY KEY, a text, b bigint, m map<text, int>)");
    let used = target.engine.memory_used();
    let insert = c.prepare("INSERT INTO t (k, a) VALUES (?, ?)").unwrap().id;
    let select = c.prepare("SELECT * FROM t WHERE k = ?").unwrap();
    assert_eq!(select.rows.column_count, 4);
    for _ in 0..3 {
        assert!(c.execute(&insert, &[Value::Bytes(b"k"), Value::Null]).unwrap().rows.is_empty());
        let rows = c.execute(&select.id, &[Value::Bytes(b"k")]).unwrap().rows;
        assert_eq!(rows, [[Some(vec![b'x'; 100]), Some(vec![b'x'; 100]), Some(vec![0; 8]), None]]);
    }
    assert_eq!(c.column("SELECT COUNT(*) FROM t"), [1]);
    assert_eq!(target.engine.memory_used(), used);
    let counters = c.counters();
    assert_eq!((counters["statements.insert"], counters["statements.select"]), (3, 4));
    // System tables are real.
    assert_eq!(c.ok("SELECT * FROM system.local").len(), 1);
    c.ok("ALTER TABLE t ADD z int");
    assert_eq!(c.execute(&insert, &[]).unwrap_err().0, ErrorCode::UNPREPARED);
}

#[test]
fn a_paging_state_is_checked() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    for k in 0..10 {
        c.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, {k})"));
    }
    let mut parameters = plain();
    parameters.page_size = Some(3);
    let state =
        c.request(&Request::Query("SELECT * FROM t", parameters.clone())).unwrap().paging_state;
    let mut forged = state.unwrap();
    forged[3] ^= 1;
    parameters.paging_state = Some(&forged);
    let refusal = c.request(&Request::Query("SELECT * FROM t", parameters)).unwrap_err();
    assert_eq!(refusal.0, ErrorCode::PROTOCOL);
}

#[test]
fn token_ranges_cover_all_partitions_once() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    for k in 0..200 {
        c.ok(&format!("INSERT INTO t (k, v) VALUES ({k}, {k})"));
    }
    let mut seen = Vec::new();
    let parts = 7i128;
    let edge = |n: i128| (i128::from(i64::MIN) + (n << 64) / parts) as i64;
    for n in 0..parts {
        let end =
            if n + 1 == parts { String::new() } else { format!("AND token(k) <= {}", edge(n + 1)) };
        seen.extend(
            c.column(&format!("SELECT k, token(k) FROM t WHERE token(k) > {} {end}", edge(n))),
        );
    }
    assert_eq!(seen, c.column("SELECT k FROM t"));
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..200));
    assert_eq!(c.column("SELECT k FROM t WHERE token(k) = token(17)"), [17]);
    assert!(c.ok("SELECT k FROM t WHERE token(k) > 5 AND token(k) < 5").is_empty());
    assert!(c.refused("SELECT k FROM t WHERE token(v) > 5").contains("token"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pages of any size put together are the whole answer, each row once, in the same order.
    #[test]
    fn pages_of_any_size_are_the_whole(
        rows in proptest::collection::btree_set((0i32..8, -10i32..10), 0..60),
        page_size in 1i32..20,
        descending: bool,
    ) {
        let (_, mut c) = target();
        let order = if descending { "DESC" } else { "ASC" };
        c.ok(&format!(
            "CREATE TABLE t (p int, c int, s int static, PRIMARY KEY (p, c)) \
             WITH CLUSTERING ORDER BY (c {order})"
        ));
        for (p, n) in &rows {
            c.ok(&format!("INSERT INTO t (p, c) VALUES ({p}, {n})"));
        }
        // A partition of which only the static row is left is a row too.
        c.ok("INSERT INTO t (p, s) VALUES (99, 1)");
        for select in [
            "SELECT p, c FROM t",
            "SELECT p, c FROM t WHERE p IN (0, 3, 5, 99)",
            "SELECT p, c FROM t WHERE p = 3 ORDER BY c ASC",
            "SELECT p, c FROM t WHERE p = 3 AND c > -5 ORDER BY c DESC",
            "SELECT p, c FROM t WHERE token(p) > 0 LIMIT 13",
        ] {
            let whole = c.ok(select);
            prop_assert_eq!(c.pages(select, page_size), whole, "{}", select);
        }
        prop_assert_eq!(c.ok("SELECT p, c FROM t").len(), rows.len() + 1);
    }

    /// Bytes of any kind are answered or waited on, never a panic; the connection works on.
    #[test]
    fn hostile_bodies_are_refused(
        opcode in prop::sample::select(vec![1u8, 5, 7, 9, 10, 11, 13, 15, 0, 2, 99]),
        flags in 0u8..32,
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let (_, mut c) = target();
        let header = Header { version: 4, flags, stream: 3, opcode, body_size: body.len() };
        let mut frame = header.encode().to_vec();
        frame.extend(&body);
        let mut out = Vec::new();
        let done = c.session.receive(&frame, usize::MAX, &mut out);
        prop_assert_eq!((done.consumed, done.after), (frame.len(), After::Continue));
        decode(&out);
        prop_assert_eq!(c.ok("SELECT key FROM system.local").len(), 1);
    }

    /// Well-formed EXECUTEs with hostile values: each is refused or carried out.
    #[test]
    fn hostile_values_are_refused_or_kept(
        values in proptest::collection::vec(proptest::option::of(any::<Vec<u8>>()), 8),
    ) {
        let (_, mut c) = target();
        c.ok("CREATE TABLE t (a varint, b text, c timeuuid, d inet, e list<text>, \
              f map<text, frozen<list<int>>>, g tuple<int, text>, h decimal, \
              PRIMARY KEY ((a, b), c, d))");
        let id = c.prepare("INSERT INTO t (a, b, c, d, e, f, g, h) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
            .unwrap().id;
        let values: Vec<_> =
            values.iter().map(|v| v.as_deref().map_or(Value::Null, Value::Bytes)).collect();
        let kept = c.execute(&id, &values).is_ok();
        prop_assert_eq!(c.ok("SELECT * FROM t").len(), usize::from(kept));
    }

    /// Any bytes at all, in any pieces.
    #[test]
    fn hostile_streams_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let target = Target::new(Storage::Memory);
        let mut session = target.raw_client().session;
        let mut out = Vec::new();
        let done = session.receive(&bytes, usize::MAX, &mut out);
        prop_assert!(done.consumed <= bytes.len());
    }
}

#[test]
fn a_hostile_count_allocates_nothing() {
    let (_, mut c) = target();
    let mut body = Vec::new();
    put::long_string(&mut body, "SELECT key FROM system.local");
    put::consistency(&mut body, Consistency::One);
    body.extend([1, 0xff, 0xff]);
    let header = Header { body_size: body.len(), ..Header::request(1, Opcode::Query) };
    let mut out = Vec::new();
    assert_eq!(c.session.handle(&header, &body, &mut out), After::Continue);
    assert!(matches!(decode(&out), Response::Error { code: ErrorCode::PROTOCOL, .. }));
}
