//! The `scylla` crate uses the target unmodified: schema, statements, pages, batches, token ranges,
//! metadata, routing.
// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::PagingState;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{Counter, CqlTimestamp, CqlTimeuuid};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use target::{Config, Handle, Server, Storage};

fn serve(storage: Storage, threads: usize) -> Handle {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap());
    (config.storage, config.threads) = (storage, threads);
    // The suite runs these tests with each engine.
    if let Ok(engine) = std::env::var("WIDELOAD_TEST_ENGINE") {
        config.io = engine.parse().unwrap();
    }
    Server::bind(config).unwrap().start().unwrap()
}

async fn connect(target: &Handle) -> Session {
    let session = SessionBuilder::new().known_node_addr(target.local_addr()).build().await.unwrap();
    let create = "CREATE KEYSPACE ks WITH replication = \
                  {'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.query_unpaged(create, &[]).await.unwrap();
    session.use_keyspace("ks", false).await.unwrap();
    session
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn ddl(session: &Session, text: &str) {
    session.query_unpaged(text, &[]).await.unwrap();
}

/// The rows of an unprepared SELECT.
macro_rules! rows {
    ($session:expr, $text:expr, $row:ty) => {{
        let result = $session.query_unpaged($text, &[]).await.unwrap().into_rows_result().unwrap();
        result.rows::<$row>().unwrap().map(Result::unwrap).collect::<Vec<$row>>()
    }};
}

#[test]
fn prepared_statements_and_pages() {
    let target = serve(Storage::Memory, 2);
    block_on(async {
        let session = connect(&target).await;
        ddl(&session, "CREATE TABLE t (p int, c bigint, v text, PRIMARY KEY (p, c))").await;
        let insert = session.prepare("INSERT INTO t (p, c, v) VALUES (?, ?, ?)").await.unwrap();
        assert!(insert.is_token_aware());
        for p in 0..20i32 {
            for c in 0..10i64 {
                session.execute_unpaged(&insert, (p, c, format!("{p}/{c}"))).await.unwrap();
            }
        }
        let one = session.prepare("SELECT v FROM t WHERE p = ? AND c = ?").await.unwrap();
        let result = session.execute_unpaged(&one, (7, 3i64)).await.unwrap();
        let (v,) = result.into_rows_result().unwrap().single_row::<(String,)>().unwrap();
        assert_eq!(v, "7/3");
        let slice = "SELECT c FROM t WHERE p = 5 AND c > 6 ORDER BY c DESC";
        assert_eq!(rows!(session, slice, (i64,)), [(9,), (8,), (7,)]);
        for page_size in [1, 7, 64, 1000] {
            let mut all = session.prepare("SELECT p, c FROM t").await.unwrap();
            all.set_page_size(page_size);
            let (mut seen, mut state) = (BTreeSet::new(), PagingState::start());
            loop {
                let (page, next) = session.execute_single_page(&all, &[], state).await.unwrap();
                let page = page.into_rows_result().unwrap();
                for row in page.rows::<(i32, i64)>().unwrap() {
                    assert!(seen.insert(row.unwrap()), "twice at page size {page_size}");
                }
                match next.into_paging_control_flow() {
                    ControlFlow::Break(()) => break,
                    ControlFlow::Continue(next) => state = next,
                }
            }
            assert_eq!(seen.len(), 200);
        }
    });
    target.join().unwrap();
}

#[test]
fn batches_counters_collections_and_times() {
    let target = serve(Storage::Memory, 1);
    block_on(async {
        let session = connect(&target).await;
        ddl(
            &session,
            "CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>, s set<text>, \
                       m map<text, bigint>, u tuple<int, text>, at timestamp, id timeuuid)",
        )
        .await;
        let mut batch = Batch::new(BatchType::Logged);
        batch.append_statement("INSERT INTO t (k, v) VALUES (?, ?)");
        batch.append_statement(session.prepare("UPDATE t SET v = ? WHERE k = ?").await.unwrap());
        session.batch(&batch, ((1, 10), (20, 2))).await.unwrap();
        let mut values = rows!(session, "SELECT k, v FROM t", (i32, i32));
        values.sort_unstable();
        assert_eq!(values, [(1, 10), (2, 20)]);

        ddl(&session, "CREATE TABLE n (k int PRIMARY KEY, c counter)").await;
        let add = session.prepare("UPDATE n SET c = c + ? WHERE k = ?").await.unwrap();
        for _ in 0..3 {
            session.execute_unpaged(&add, (Counter(4), 1)).await.unwrap();
        }
        assert_eq!(rows!(session, "SELECT c FROM n", (Counter,)), [(Counter(12),)]);

        let text = "INSERT INTO t (k, l, s, m, u, at, id) VALUES (3, ?, ?, ?, ?, ?, now())";
        let (list, set) = (vec![3, 1], BTreeSet::from(["a", "b"]));
        let map = BTreeMap::from([("x", 1i64)]);
        let tuple = (7, "seven");
        let at = CqlTimestamp(1_234_567);
        session.query_unpaged(text, (&list, &set, &map, tuple, at)).await.unwrap();
        ddl(&session, "UPDATE t SET l = l + [9], s = s - {'a'}, m['y'] = 2 WHERE k = 3").await;
        type Row = (
            Vec<i32>,
            BTreeSet<String>,
            BTreeMap<String, i64>,
            (i32, String),
            CqlTimestamp,
            CqlTimeuuid,
        );
        let row = rows!(session, "SELECT l, s, m, u, at, id FROM t WHERE k = 3", Row).remove(0);
        assert_eq!(row.0, [3, 1, 9]);
        assert_eq!(row.1, BTreeSet::from(["b".to_owned()]));
        assert_eq!(row.2.len(), 2);
        assert_eq!((row.3, row.4), ((7, "seven".to_owned()), at));

        let text = "INSERT INTO t (k, v) VALUES (9, 9) USING TIMESTAMP 1000 AND TTL 5000";
        ddl(&session, text).await;
        let text = "SELECT writetime(v), ttl(v) FROM t WHERE k = 9";
        let (written, left) = rows!(session, text, (i64, i32)).remove(0);
        assert_eq!(written, 1000);
        assert!((4990..=5000).contains(&left), "{left}");
        let mut newer = Statement::new("UPDATE t SET v = 10 WHERE k = 9");
        newer.set_timestamp(Some(999));
        session.query_unpaged(newer, &[]).await.unwrap();
        assert_eq!(rows!(session, "SELECT v FROM t WHERE k = 9", (i32,)), [(9,)]);
    });
}

#[test]
fn metadata_routing_and_token_ranges() {
    let target = serve(Storage::Memory, 1);
    block_on(async {
        let session = connect(&target).await;
        ddl(&session, "CREATE TABLE t (a int, b text, c int, v blob, PRIMARY KEY ((a, b), c))")
            .await;
        session.await_schema_agreement().await.unwrap();
        session.refresh_metadata().await.unwrap();
        let state = session.get_cluster_state();
        assert_eq!(state.cluster_name(), "wideload reference target");
        let table = &state.get_keyspace("ks").unwrap().tables["t"];
        assert_eq!(
            (&table.partition_key[..], &table.clustering_key[..]),
            (&["a".to_owned(), "b".to_owned()][..], &["c".to_owned()][..])
        );
        assert_eq!(table.columns.len(), 4);
        let insert = session.prepare("INSERT INTO t (a, b, c) VALUES (?, ?, 1)").await.unwrap();
        for a in 0..50 {
            session.execute_unpaged(&insert, (a, "é")).await.unwrap();
            // The driver computes the token that the target has.
            let token = insert.calculate_token(&(a, "é")).unwrap().unwrap().value();
            let text = format!("SELECT a FROM t WHERE token(a, b) = {token}");
            assert_eq!(rows!(session, text, (i32,)), [(a,)]);
        }
        let below = rows!(session, "SELECT a FROM t WHERE token(a, b) <= 0", (i32,));
        let above = rows!(session, "SELECT a FROM t WHERE token(a, b) > 0", (i32,));
        assert_eq!(below.len() + above.len(), 50);
        ddl(&session, "ALTER TABLE t ADD w double").await;
        // Prepared before: the driver notices, prepares again and goes on.
        session.execute_unpaged(&insert, (99, "z")).await.unwrap();
        let mut two = Statement::new("SELECT * FROM t");
        two.set_consistency(Consistency::Two);
        assert!(session.query_unpaged(two, &[]).await.is_err());
    });
}

#[test]
fn the_mock_looks_like_a_target() {
    let target = serve(Storage::Null, 1);
    block_on(async {
        let session = connect(&target).await;
        ddl(&session, "CREATE TABLE t (k text PRIMARY KEY, v text)").await;
        let insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)").await.unwrap();
        session.execute_unpaged(&insert, ("k", "v")).await.unwrap();
        let select = session.prepare("SELECT v FROM t WHERE k = ?").await.unwrap();
        let result = session.execute_unpaged(&select, ("k",)).await.unwrap();
        let (v,) = result.into_rows_result().unwrap().single_row::<(String,)>().unwrap();
        assert_eq!(v, "x".repeat(100));
    });
}
