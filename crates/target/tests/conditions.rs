//! Lightweight transactions: what is applied, what is answered when it is not, what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Client, Row, Target, int};
use target::Storage;
use wire::cql::Value;
use wire::cql::request::{BatchKind, BatchStatement};

const TABLE: &str =
    "CREATE TABLE t (k int, c int, v int, w text, s int static, l list<int>, PRIMARY KEY (k, c))";

/// Both kinds of storage, each with the table.
fn clients() -> Vec<Client> {
    let targets = [Target::new(Storage::Memory), Target::on_disk()];
    let client = |target: &Target| {
        let mut client = target.client();
        client.ok(TABLE);
        client
    };
    targets.iter().map(client).collect()
}

fn applied(rows: &[Row]) -> bool {
    rows[0][0].as_deref() == Some(&[1])
}

/// What is there instead, as ints.
fn instead(rows: &[Row]) -> Vec<Option<i64>> {
    assert!(!applied(rows));
    rows[0][1..].iter().map(|cell| cell.as_deref().map(int)).collect()
}

#[test]
fn an_insert_goes_before_or_finds_what_is_there() {
    for mut c in clients() {
        let insert = "INSERT INTO t (k, c, v) VALUES (1, 2, 3) IF NOT EXISTS";
        let first = c.query(insert).unwrap();
        assert_eq!((first.columns, applied(&first.rows)), (vec!["[applied]".to_owned()], true));
        let second = c.query("INSERT INTO t (k, c, v) VALUES (1, 2, 9) IF NOT EXISTS").unwrap();
        assert_eq!(second.columns, ["[applied]", "k", "c", "s", "l", "v", "w"]);
        assert_eq!(
            instead(&second.rows),
            [Some(1), Some(2), None, None, Some(3), None],
            "the whole row"
        );
        assert_eq!(c.column("SELECT v FROM t"), [3]);
        c.ok("DELETE FROM t WHERE k = 1 AND c = 2");
        assert!(applied(&c.ok(insert)), "deleted is not there");
    }
}

#[test]
fn conditions_compare_what_is_there() {
    for mut c in clients() {
        c.ok("INSERT INTO t (k, c, v, w) VALUES (1, 1, 5, 'b')");
        for (condition, holds) in [
            ("v = 5", true),
            ("v = 6", false),
            ("v = NULL", false),
            ("l = NULL", true),
            ("v != 6", true),
            ("v != 5", false),
            ("v != NULL", true),
            ("v < 6 AND v >= 5 AND w > 'a'", true),
            ("v < 6 AND w > 'b'", false),
            ("v IN (1, 5)", true),
            ("v IN (1, 2)", false),
            ("s = NULL", true),
            ("s != 1", true),
            ("s < 1", false),
        ] {
            let update = format!("UPDATE t SET w = 'b' WHERE k = 1 AND c = 1 IF {condition}");
            assert_eq!(applied(&c.ok(&update)), holds, "{condition}");
        }
        let update = "UPDATE t SET v = 7 WHERE k = 1 AND c = 1 IF v = 6 AND s = 1";
        let answer = c.query(update).unwrap();
        assert_eq!(answer.columns, ["[applied]", "v", "s"]);
        assert_eq!(instead(&answer.rows), [Some(5), None]);
        // There is no row: an update with a condition on null makes it, another does not.
        let missing = c.query("UPDATE t SET v = 1 WHERE k = 9 AND c = 9 IF v = 1").unwrap();
        assert_eq!((missing.columns.len(), applied(&missing.rows)), (1, false));
        assert!(!applied(&c.ok("UPDATE t SET v = 1 WHERE k = 9 AND c = 9 IF EXISTS")));
        assert!(!applied(&c.ok("DELETE FROM t WHERE k = 9 AND c = 9 IF EXISTS")));
        assert!(applied(&c.ok("UPDATE t SET v = 1 WHERE k = 9 AND c = 9 IF v = NULL")));
        assert!(applied(&c.ok("DELETE v FROM t WHERE k = 9 AND c = 9 IF v = 1")));
        assert!(applied(&c.ok("DELETE FROM t WHERE k = 1 AND c = 1 IF EXISTS")));
        assert!(c.ok("SELECT * FROM t").is_empty());
        // Static columns alone.
        assert!(applied(&c.ok("UPDATE t SET s = 1 WHERE k = 3 IF s = NULL")));
        assert_eq!(instead(&c.ok("UPDATE t SET s = 2 WHERE k = 3 IF s = NULL")), [Some(1)]);
    }
}

#[test]
fn bound_values_and_tables_of_one_row() {
    for mut c in clients() {
        c.ok("CREATE TABLE o (k int PRIMARY KEY, v int)");
        let prepared = c.prepare("UPDATE o SET v = ? WHERE k = ? IF v = ?").unwrap();
        let names: Vec<_> = prepared.values.columns.iter().map(|c| c.name.clone()).collect();
        assert_eq!(
            (names, prepared.partition_key),
            (vec!["v".into(), "k".into(), "v".into()], vec![1])
        );
        let of = |n: i32| n.to_be_bytes();
        let (one, two) = (of(1), of(2));
        let mut run = |new: Value<'_>, old: Value<'_>| {
            let values = [new, Value::Bytes(&one), old];
            c.execute(&prepared.id, &values)
        };
        assert!(applied(&run(Value::Bytes(&one), Value::Null).unwrap().rows));
        assert_eq!(instead(&run(Value::Bytes(&two), Value::Null).unwrap().rows), [Some(1)]);
        assert!(applied(&run(Value::Bytes(&two), Value::Bytes(&one)).unwrap().rows));
        assert!(run(Value::Bytes(&two), Value::Unset).is_err());
        assert_eq!(c.column("SELECT v FROM o"), [2]);
        assert!(applied(&c.ok("DELETE FROM o WHERE k = 1 IF v = 2")));
        assert!(c.ok("SELECT * FROM o").is_empty());
    }
}

#[test]
fn a_batch_is_done_as_a_whole() {
    for mut c in clients() {
        c.ok("INSERT INTO t (k, c, v) VALUES (1, 1, 1)");
        c.ok("INSERT INTO t (k, c, v) VALUES (1, 2, 2)");
        let text = |second: i32| {
            format!(
                "BEGIN BATCH UPDATE t SET v = 9 WHERE k = 1 AND c = 1 IF v = 1; UPDATE t SET v = 8 \
                 WHERE k = 1 AND c = 2 IF v = {second}; INSERT INTO t (k, c, v) VALUES (1, 3, 3) \
                 APPLY BATCH"
            )
        };
        let failed = c.query(&text(7)).unwrap();
        assert_eq!(failed.columns, ["[applied]", "k", "c", "v"]);
        assert_eq!((failed.rows.len(), applied(&failed.rows)), (2, false));
        assert_eq!(c.column("SELECT v FROM t"), [1, 2]);
        assert!(applied(&c.ok(&text(2))));
        assert_eq!(c.column("SELECT v FROM t"), [9, 8, 3]);
        let insert = "INSERT INTO t (k, c, v) VALUES (?, ?, 1) IF NOT EXISTS";
        let id = c.prepare(insert).unwrap().id;
        let (one, two) = (1i32.to_be_bytes(), 2i32.to_be_bytes());
        let row = |k| (BatchStatement::Id(&id), vec![Value::Bytes(k), Value::Bytes(&two)]);
        let refused = c.batch(BatchKind::Unlogged, vec![row(&one), row(&two)]).unwrap_err();
        assert!(refused.1.contains("multiple partitions"), "{}", refused.1);
        assert!(!applied(&c.batch(BatchKind::Unlogged, vec![row(&one)]).unwrap().rows));
        assert!(applied(&c.batch(BatchKind::Unlogged, vec![row(&two)]).unwrap().rows));
    }
}

#[test]
fn what_has_no_condition_is_refused() {
    let mut c = Target::new(Storage::Memory).client();
    c.ok(TABLE);
    c.ok("CREATE TABLE n (k int PRIMARY KEY, v counter)");
    for (text, why) in [
        ("UPDATE n SET v = v + 1 WHERE k = 1 IF v = 1", "counter tables"),
        ("UPDATE t USING TIMESTAMP 5 SET v = 1 WHERE k = 1 AND c = 1 IF v = 1", "timestamp"),
        ("UPDATE t SET v = 1 WHERE k IN (1, 2) AND c = 1 IF v = 1", "IN on the partition key"),
        ("UPDATE t SET v = 1 WHERE k = 1 AND c IN (1, 2) IF v = 1", "IN on the clustering"),
        ("UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF c = 1", "cannot have IF conditions"),
        ("UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF x = 1", "Undefined column name x"),
        ("UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF v < NULL", "comparison with null"),
        ("UPDATE t SET v = 1 WHERE k = 1 AND c = 1 IF l = [1]", "null alone"),
        ("DELETE FROM t WHERE k = 1 IF EXISTS", "must restrict all PRIMARY KEY"),
        ("UPDATE t SET s = 1 WHERE k = 1 IF v = 1", "clustering keys are missing"),
    ] {
        assert!(c.refused(text).contains(why), "{text}: {}", c.refused(text));
    }
}

/// Of many who insert a row at once, one does.
#[test]
fn one_of_many_wins() {
    let target = Target::new(Storage::Memory);
    target.client().ok(TABLE);
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (mut client, won) = (target.client(), &won);
            scope.spawn(move || {
                for c in 0..500 {
                    let text =
                        format!("INSERT INTO t (k, c, v) VALUES (1, {c}, {thread}) IF NOT EXISTS");
                    won.fetch_add(usize::from(applied(&client.ok(&text))), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(won.load(Ordering::Relaxed), 500);
}
