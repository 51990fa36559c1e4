//! What statements do to rows: last write wins, deletions, TTL, slices, collections, counters,
//! static columns.

mod support;

use support::{START_S, Target, int, text};
use target::Storage;
use units::Bytes;
use wire::cql::Value;
use wire::cql::request::{BatchKind, BatchStatement};

fn target() -> (Target, support::Client) {
    // This file is a part of `semantics_on_disk` too.
    let target = match env!("CARGO_CRATE_NAME") {
        "semantics_on_disk" => Target::on_disk(),
        _ => Target::new(Storage::Memory),
    };
    let client = target.client();
    (target, client)
}

#[test]
fn last_write_wins_by_cell() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, a int, b int)");
    c.ok("INSERT INTO t (k, a, b) VALUES (1, 1, 1) USING TIMESTAMP 10");
    c.ok("UPDATE t USING TIMESTAMP 5 SET a = 9, b = 9 WHERE k = 1");
    c.ok("UPDATE t USING TIMESTAMP 20 SET b = 2 WHERE k = 1");
    assert_eq!(
        c.ints("SELECT a, b, writetime(a), writetime(b) FROM t WHERE k = 1"),
        [[Some(1), Some(2), Some(10), Some(20)]]
    );
    // Equal timestamps: the larger value, then the tombstone.
    c.ok("UPDATE t USING TIMESTAMP 20 SET b = 1 WHERE k = 1");
    assert_eq!(c.column("SELECT b FROM t WHERE k = 1"), [2]);
    c.ok("DELETE b FROM t USING TIMESTAMP 20 WHERE k = 1");
    assert_eq!(c.ints("SELECT a, b FROM t WHERE k = 1"), [[Some(1), None]]);
    // A deletion shadows what is older, and not what is newer.
    c.ok("DELETE FROM t USING TIMESTAMP 15 WHERE k = 1");
    assert!(c.ok("SELECT * FROM t WHERE k = 1").is_empty());
    c.ok("INSERT INTO t (k, a) VALUES (1, 7) USING TIMESTAMP 15");
    assert!(c.ok("SELECT * FROM t WHERE k = 1").is_empty());
    c.ok("INSERT INTO t (k, a) VALUES (1, 7) USING TIMESTAMP 16");
    assert_eq!(c.column("SELECT a FROM t WHERE k = 1"), [7]);
}

#[test]
fn a_row_lives_by_its_insert_or_by_a_cell() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, a int)");
    c.ok("INSERT INTO t (k) VALUES (1)");
    c.ok("UPDATE t SET a = 1 WHERE k = 2");
    assert_eq!(c.ok("SELECT * FROM t").len(), 2);
    c.ok("UPDATE t SET a = null WHERE k = 2");
    assert_eq!(c.column("SELECT k FROM t"), [1]);
}

#[test]
fn compact_storage_is_taken_with_a_warning() {
    let (_, mut c) = target();
    let made =
        c.query("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE");
    assert!(made.unwrap().warned);
    c.ok("INSERT INTO t (k, c, v) VALUES (1, 2, 3)");
    assert_eq!(c.column("SELECT v FROM t WHERE k = 1 AND c = 2"), [3]);
    for (columns, why) in [
        ("k int, c int, v int, w int, PRIMARY KEY (k, c)", "no more than one column"),
        ("k int PRIMARY KEY", "not part of the PRIMARY KEY"),
        ("k int PRIMARY KEY, l list<int>", "Non-frozen collections"),
    ] {
        let said = c.refused(&format!("CREATE TABLE u ({columns}) WITH COMPACT STORAGE"));
        assert!(said.contains(why), "{said}");
    }
}

/// In the manner of NoSQLBench's time series: options and comments that nothing follows from, names
/// in place of question marks, markers behind TIMESTAMP and LIMIT.
#[test]
fn a_time_series_is_defined_written_and_read_as_tools_do() {
    let (_, mut c) = target();
    c.ok("create table if not exists t (
            machine int,   // where it was measured
            at timestamp,  -- when
            value double,  //
            note text,     /* over
                              two lines */
            PRIMARY KEY ((machine, note), at)
          ) WITH CLUSTERING ORDER BY (at DESC)
            AND compression = { 'sstable_compression' : 'LZ4Compressor' }
            AND compaction = { 'class': 'TimeWindowCompactionStrategy',
              'compaction_window_size': 60, 'compaction_window_unit': 'MINUTES' };
         ");
    let write = "insert into t (machine, note, at, value) values (:m, :n, :at, :v)
                 using timestamp :written";
    let write = c.prepare(write).unwrap().id;
    let stamps = [10i64, 20, 30].map(i64::to_be_bytes);
    for at in &stamps {
        let (m, v) = (7i32.to_be_bytes(), 1.5f64.to_be_bytes());
        let values = [&m[..], b"a", at, &v, at].map(Value::Bytes);
        c.execute(&write, &values).unwrap();
    }
    let read =
        c.prepare("select at, writetime(value) from t where machine = ? and note = ? limit ?");
    let (m, two) = (7i32.to_be_bytes(), 2i32.to_be_bytes());
    let answer = c.execute(&read.unwrap().id, &[&m[..], b"a", &two].map(Value::Bytes)).unwrap();
    let newest: Vec<Vec<_>> = answer
        .rows
        .iter()
        .map(|row| row.iter().flatten().map(|cell| int(cell)).collect())
        .collect();
    assert_eq!(newest, [[30, 30], [20, 20]]);
    c.ok("truncate table t;");
    assert!(c.ok("select * from t").is_empty());
}

#[test]
fn values_expire() {
    let (target, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, a int, b int)");
    c.ok("INSERT INTO t (k, a) VALUES (1, 1) USING TTL 100");
    c.ok("UPDATE t SET b = 2 WHERE k = 1");
    target.advance_s(40);
    assert_eq!(c.ints("SELECT ttl(a), ttl(b), a FROM t"), [[Some(60), None, Some(1)]]);
    target.advance_s(60);
    assert_eq!(c.ints("SELECT a, b FROM t"), [[None, Some(2)]]);
    c.ok("DELETE b FROM t WHERE k = 1");
    assert!(c.ok("SELECT * FROM t").is_empty());
    c.ok("CREATE TABLE d (k int PRIMARY KEY, a int) WITH default_time_to_live = 10");
    c.ok("INSERT INTO d (k, a) VALUES (1, 1)");
    c.ok("INSERT INTO d (k, a) VALUES (2, 2) USING TTL 0");
    target.advance_s(10);
    assert_eq!(c.column("SELECT k FROM d"), [2]);
    assert!(
        c.refused("INSERT INTO d (k, a) VALUES (1, 1) USING TTL -1").contains("greater or equal")
    );
    assert!(
        c.refused("INSERT INTO d (k, a) VALUES (1, 1) USING TTL 999999999").contains("too large")
    );
}

#[test]
fn slices_in_both_orders() {
    let (_, mut c) = target();
    for (table, order) in [("asc", "ASC"), ("desc", "DESC")] {
        c.ok(&format!(
            "CREATE TABLE \"{table}\" (p int, c int, v int, PRIMARY KEY (p, c)) \
             WITH CLUSTERING ORDER BY (c {order})"
        ));
        for n in -3..=3 {
            c.ok(&format!("INSERT INTO \"{table}\" (p, c, v) VALUES (1, {n}, {n})"));
        }
        let mut check = |condition: &str, mut wanted: Vec<i64>| {
            if order == "DESC" {
                wanted.reverse();
            }
            let select = format!("SELECT c FROM \"{table}\" WHERE p = 1 {condition}");
            assert_eq!(c.column(&select), wanted, "{select}");
            let other = if order == "DESC" { "ASC" } else { "DESC" };
            wanted.reverse();
            assert_eq!(c.column(&format!("{select} ORDER BY c {other}")), wanted, "{select}");
        };
        check("", (-3..=3).collect());
        check("AND c = 2", vec![2]);
        check("AND c > -1", (0..=3).collect());
        check("AND c >= -1", (-1..=3).collect());
        check("AND c < 1", (-3..=0).collect());
        check("AND c <= 1 AND c > -2", (-1..=1).collect());
        check("AND c > 3", vec![]);
        check("AND c > 1 AND c < 0", vec![]);
        check("AND c IN (3, -2, 9, 3)", vec![-2, 3]);
        check("AND (c) >= (2)", vec![2, 3]);
    }
}

#[test]
fn composite_keys_and_tuples() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (a int, b text, c int, d text, v int, PRIMARY KEY ((a, b), c, d))");
    for (n, d) in [(1, "x"), (1, "y"), (2, "x"), (2, "y"), (3, "x")] {
        c.ok(&format!("INSERT INTO t (a, b, c, d, v) VALUES (1, 'p', {n}, '{d}', {n})"));
    }
    let select = |w: &str| format!("SELECT v FROM t WHERE a = 1 AND b = 'p' {w}");
    assert_eq!(c.column(&select("AND c = 1")), [1, 1]);
    assert_eq!(c.column(&select("AND c = 2 AND d >= 'y'")), [2]);
    assert_eq!(c.column(&select("AND (c, d) > (1, 'x')")), [1, 2, 2, 3]);
    assert_eq!(c.column(&select("AND (c, d) > (1, 'x') AND (c) < (3)")), [1, 2, 2]);
    assert_eq!(c.column(&select("AND c IN (1, 3) AND d = 'x'")), [1, 3]);
    assert_eq!(c.column(&select("AND c IN (1, 3) AND d > 'x'")), [1]);
    assert_eq!(c.column("SELECT v FROM t WHERE a = 1 AND b IN ('p', 'q') AND c = 3"), [3]);
    assert!(c.refused(&select("AND d = 'x'")).contains("cannot be restricted"));
    assert_eq!(c.column(&format!("{} ALLOW FILTERING", select("AND d = 'y'"))), [1, 2]);
    assert!(c.refused("SELECT v FROM t WHERE a = 1").contains("ALLOW FILTERING"));
    c.ok("DELETE FROM t WHERE a = 1 AND b = 'p' AND c = 2");
    assert_eq!(c.column(&select("")), [1, 1, 3]);
    c.ok("DELETE FROM t WHERE a = 1 AND b = 'p' AND c >= 1 AND c < 3");
    assert_eq!(c.column(&select("")), [3]);
    c.ok("DELETE FROM t WHERE a = 1 AND b = 'p'");
    assert!(c.ok(&select("")).is_empty());
    assert!(c.refused("UPDATE t SET v = 1 WHERE a = 1 AND b = 'p' AND c = 1").contains("d"));
}

#[test]
fn limits_counts_and_distinct() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c))");
    for p in 0..5 {
        for n in 0..4 {
            let v = if n == 0 { "null".to_owned() } else { n.to_string() };
            c.ok(&format!("INSERT INTO t (p, c, v) VALUES ({p}, {n}, {v})"));
        }
    }
    assert_eq!(c.ok("SELECT * FROM t LIMIT 7").len(), 7);
    assert_eq!(c.ok("SELECT * FROM t PER PARTITION LIMIT 2").len(), 10);
    assert_eq!(c.ok("SELECT * FROM t PER PARTITION LIMIT 2 LIMIT 3").len(), 3);
    assert_eq!(c.ok("SELECT DISTINCT p FROM t").len(), 5);
    assert_eq!(c.ints("SELECT COUNT(*), COUNT(v) FROM t"), [[Some(20), Some(15)]]);
    assert_eq!(c.column("SELECT COUNT(*) FROM t WHERE p = 3 AND c > 1"), [2]);
    assert!(c.refused("SELECT * FROM t LIMIT 0").contains("strictly positive"));
    assert!(c.refused("SELECT DISTINCT v FROM t").contains("DISTINCT"));
    for size in [1, 3, 4, 100] {
        assert_eq!(c.pages("SELECT * FROM t PER PARTITION LIMIT 3 LIMIT 11", size).len(), 11);
        assert_eq!(c.pages("SELECT DISTINCT p FROM t", size).len(), 5);
    }
}

#[test]
fn counters_add_up() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, a counter, b counter)");
    c.ok("UPDATE t SET a = a + 5 WHERE k = 1");
    c.ok("UPDATE t SET a = a - 2, b = b + 1 WHERE k = 1");
    assert_eq!(c.ints("SELECT a, b FROM t WHERE k = 1"), [[Some(3), Some(1)]]);
    c.query_with("UPDATE t SET a = a + ? WHERE k = 1", &[Value::Bytes(&7i64.to_be_bytes())])
        .unwrap();
    assert_eq!(c.column("SELECT a FROM t"), [10]);
    assert!(c.refused("INSERT INTO t (k, a) VALUES (1, 1)").contains("counter tables"));
    assert!(c.refused("UPDATE t SET a = 1 WHERE k = 1").contains("Cannot set the value"));
    assert!(c.refused("UPDATE t USING TTL 1 SET a = a + 1 WHERE k = 1").contains("TTL"));
    assert!(c.refused("CREATE TABLE x (k int PRIMARY KEY, a counter, b int)").contains("counter"));
    c.ok("DELETE a FROM t WHERE k = 1");
    assert_eq!(c.ints("SELECT a, b FROM t"), [[None, Some(1)]]);
}

fn list(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut cursor = wire::cql::Cursor::new(bytes);
    assert!(cursor.i32("count").is_ok());
    std::iter::from_fn(|| cursor.bytes("item").ok().flatten().map(<[u8]>::to_vec)).collect()
}

#[test]
fn collections_change_by_element() {
    let (target, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, \
          f frozen<list<int>>, u tuple<int, text>)");
    c.ok(
        "INSERT INTO t (k, l, s, m, f, u) VALUES (1, [3, 1], {'b', 'a'}, {'x': 1}, [9], (1, 'a'))",
    );
    c.ok("UPDATE t SET l = l + [7], l = [0] + l, s = s + {'c'}, m = m + {'y': 2}, m['z'] = 3 \
          WHERE k = 1");
    c.ok("UPDATE t SET l[1] = 30, s = s - {'a'}, m = m - {'x'} WHERE k = 1");
    let row = c.ok("SELECT l, s, m, f, u FROM t").remove(0);
    let items = |n: usize| list(row[n].as_deref().unwrap());
    assert_eq!(items(0).iter().map(|i| int(i)).collect::<Vec<_>>(), [0, 30, 1, 7]);
    assert_eq!(items(1), [b"b", b"c"]);
    assert_eq!(items(2), [b"y".to_vec(), vec![0, 0, 0, 2], b"z".to_vec(), vec![0, 0, 0, 3]]);
    assert_eq!(int(&items(3)[0]), 9);
    c.ok("DELETE l[0], m['y'] FROM t WHERE k = 1");
    c.ok("UPDATE t SET l = l - [1], s = {} WHERE k = 1");
    let row = c.ok("SELECT l, s, m FROM t").remove(0);
    let items = |n: usize| list(row[n].as_deref().unwrap());
    assert_eq!(items(0).iter().map(|i| int(i)).collect::<Vec<_>>(), [30, 7]);
    assert_eq!(row[1], None);
    assert_eq!(items(2).len(), 2);
    c.ok("UPDATE t USING TTL 10 SET s = s + {'soon'} WHERE k = 1");
    assert_eq!(c.ok("SELECT k FROM t WHERE s CONTAINS 'soon' ALLOW FILTERING").len(), 1);
    assert_eq!(c.ok("SELECT k FROM t WHERE m CONTAINS KEY 'z' ALLOW FILTERING").len(), 1);
    assert_eq!(c.ok("SELECT k FROM t WHERE m CONTAINS 3 ALLOW FILTERING").len(), 1);
    assert_eq!(c.ok("SELECT k FROM t WHERE m CONTAINS 4 ALLOW FILTERING").len(), 0);
    target.advance_s(11);
    assert_eq!(c.ok("SELECT s FROM t")[0][0], None);
    assert!(c.refused("INSERT INTO t (k, l) VALUES (1, [null])").contains("null"));
    assert!(
        c.refused("INSERT INTO t (k, l) VALUES (1, ['a'])").contains("Invalid STRING constant")
    );
}

#[test]
fn static_columns_belong_to_the_partition() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (p int, c int, s int static, v int, PRIMARY KEY (p, c))");
    c.ok("INSERT INTO t (p, s) VALUES (1, 10)");
    assert_eq!(c.ints("SELECT p, c, s, v FROM t"), [[Some(1), None, Some(10), None]]);
    c.ok("INSERT INTO t (p, c, v) VALUES (1, 1, 1)");
    c.ok("INSERT INTO t (p, c, v, s) VALUES (1, 2, 2, 20)");
    assert_eq!(
        c.ints("SELECT c, s FROM t WHERE p = 1"),
        [[Some(1), Some(20)], [Some(2), Some(20)]]
    );
    assert_eq!(c.ints("SELECT DISTINCT p, s FROM t"), [[Some(1), Some(20)]]);
    c.ok("DELETE FROM t WHERE p = 1 AND c = 1");
    c.ok("UPDATE t SET s = 30 WHERE p = 1");
    assert_eq!(c.ints("SELECT c, s FROM t WHERE p = 1"), [[Some(2), Some(30)]]);
    assert!(c.ok("SELECT * FROM t WHERE p = 1 AND c = 9").is_empty());
}

#[test]
fn filtering() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int, w text)");
    for n in 0..10 {
        c.ok(&format!("INSERT INTO t (k, v, w) VALUES ({n}, {n}, 'w{}')", n % 2));
    }
    assert!(c.refused("SELECT k FROM t WHERE v > 5").contains("ALLOW FILTERING"));
    let mut keys = c.column("SELECT k FROM t WHERE v > 5 AND w = 'w1' ALLOW FILTERING");
    keys.sort_unstable();
    assert_eq!(keys, [7, 9]);
    assert_eq!(c.pages("SELECT k FROM t WHERE w = 'w1' ALLOW FILTERING", 2).len(), 5);
}

#[test]
fn functions_stand_for_values() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k uuid PRIMARY KEY, a timeuuid, b timestamp, d date, e bigint)");
    c.ok(
        "INSERT INTO t (k, a, b, d, e) VALUES (uuid(), now(), toTimestamp(now()), currentDate(), \
          toUnixTimestamp(now()))",
    );
    let row = c.ok("SELECT b, d, e FROM t").remove(0);
    assert_eq!(int(row[0].as_deref().unwrap()), START_S * 1000);
    assert_eq!(row[1].as_deref().unwrap(), ((1u32 << 31) + 19_675).to_be_bytes());
    assert_eq!(int(row[2].as_deref().unwrap()), START_S * 1000);
    assert!(c.refused("INSERT INTO t (k) VALUES (now2())").contains("Unknown function"));
    assert!(c.refused("INSERT INTO t (k, b) VALUES (uuid(), now())").contains("cannot assign"));
}

#[test]
fn batches_are_refused_whole() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    c.ok("CREATE TABLE n (k int PRIMARY KEY, v counter)");
    c.ok("BEGIN BATCH USING TIMESTAMP 5 INSERT INTO t (k, v) VALUES (1, 1); \
          INSERT INTO t (k, v) VALUES (2, 2) APPLY BATCH");
    assert_eq!(c.column("SELECT writetime(v) FROM t"), [5, 5]);
    let insert = c.prepare("INSERT INTO t (k, v) VALUES (?, ?)").unwrap().id;
    let (three, bad) = (3i32.to_be_bytes(), [1u8]);
    let statement = |v| (BatchStatement::Id(&insert), vec![Value::Bytes(&three), Value::Bytes(v)]);
    let delete = || (BatchStatement::Text("DELETE FROM t WHERE k = 1"), vec![]);
    assert!(c.batch(BatchKind::Logged, vec![delete(), statement(&bad)]).is_err());
    assert_eq!(c.ok("SELECT * FROM t").len(), 2);
    c.batch(BatchKind::Logged, vec![delete(), statement(&three)]).unwrap();
    let mut keys = c.column("SELECT k FROM t");
    keys.sort_unstable();
    assert_eq!(keys, [2, 3]);
    let count = || (BatchStatement::Text("UPDATE n SET v = v + 1 WHERE k = 1"), vec![]);
    c.batch(BatchKind::Counter, vec![count(), count()]).unwrap();
    assert_eq!(c.column("SELECT v FROM n"), [2]);
    assert!(c.batch(BatchKind::Logged, vec![count()]).is_err());
    assert!(c.batch(BatchKind::Counter, vec![delete()]).is_err());
    let select = || (BatchStatement::Text("SELECT * FROM t"), vec![]);
    assert!(c.batch(BatchKind::Logged, vec![select()]).is_err());
}

#[test]
fn unset_is_not_null() {
    let (_, mut c) = target();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, a int, b int)");
    c.ok("INSERT INTO t (k, a, b) VALUES (1, 1, 1)");
    let one = 1i32.to_be_bytes();
    let insert = "INSERT INTO t (k, a, b) VALUES (?, ?, ?)";
    c.query_with(insert, &[Value::Bytes(&one), Value::Unset, Value::Null]).unwrap();
    assert_eq!(c.ints("SELECT a, b FROM t"), [[Some(1), None]]);
    let refusal = c.query_with(insert, &[Value::Unset, Value::Null, Value::Null]).unwrap_err();
    assert!(refusal.1.contains("unset value for column k"), "{refusal:?}");
    let refusal = c.query_with(insert, &[Value::Null, Value::Null, Value::Null]).unwrap_err();
    assert!(refusal.1.contains("null value in condition for column k"), "{refusal:?}");
    let refusal = c.query_with(insert, &[Value::Bytes(&one)]).unwrap_err();
    assert!(refusal.1.contains("Invalid amount of bind variables"), "{refusal:?}");
}

#[test]
fn memory_is_bounded() {
    let target = Target::with_memory(Storage::Memory, Bytes(1 << 20));
    let mut c = target.client();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v text)");
    let value = "x".repeat(10_000);
    let refusal = (0..1000)
        .find_map(|k| c.query(&format!("INSERT INTO t (k, v) VALUES ({k}, '{value}')")).err());
    let refusal = refusal.expect("a bound of 1 MiB");
    assert_eq!(refusal.0, wire::cql::ErrorCode::OVERLOADED);
    assert!(refusal.1.contains("--memory-max"));
    c.ok("DELETE FROM t WHERE k = 1");
    c.ok("TRUNCATE t");
    c.ok(&format!("INSERT INTO t (k, v) VALUES (1, '{value}')"));
    assert_eq!(text(&c.ok("SELECT v FROM t")[0][0]), value);
    let used = target.engine.memory_used();
    c.ok("DROP TABLE t");
    assert!(target.engine.memory_used() < used);
}

/// Deletes of what is not there leave tombstones, which are bounded too.
#[test]
fn tombstones_are_bounded() {
    let target = Target::with_memory(Storage::Memory, Bytes(200 << 10));
    let mut c = target.client();
    c.ok("CREATE TABLE t (k int PRIMARY KEY, v text)");
    let refusal = (0..10_000).find_map(|k| c.query(&format!("DELETE FROM t WHERE k = {k}")).err());
    assert_eq!(refusal.expect("a bound of 200 KiB").0, wire::cql::ErrorCode::OVERLOADED);
    c.ok("TRUNCATE t");
    c.ok("DELETE FROM t WHERE k = 1");
}
