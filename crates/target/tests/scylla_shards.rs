//! The `scylla` crate drives a target that is like a ScyllaDB host by its shards: none of its
//! requests comes to the wrong one, and it learns where tablets are.
// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use std::time::{Duration, Instant};
use target::{Config, Handle, Scylla, Server, Storage};
use units::Nanos;
use wire::shards::Sharding;

const SHARDS: u16 = 4;
const PATIENCE: Duration = Duration::from_secs(30);

fn serve(storage: Storage, move_every: Option<Nanos>) -> Handle {
    let mut config = Config::new("127.0.0.1:0".parse().unwrap());
    (config.storage, config.threads) = (storage, 2);
    let sharding = Sharding::new(SHARDS, 12).unwrap();
    config.scylla = Some(Scylla { sharding, port: 0, move_every });
    if let Ok(engine) = std::env::var("WIDELOAD_TEST_ENGINE") {
        config.io = engine.parse().unwrap();
    }
    Server::bind(config).unwrap().start().unwrap()
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Of each shard: connections, requests, misrouted ones.
async fn shards(session: &Session) -> Vec<(i64, i64, i64)> {
    let text = "SELECT shard, connections, requests, misrouted FROM system_wideload.shards";
    let result = session.query_unpaged(text, &[]).await.unwrap().into_rows_result().unwrap();
    let rows = result.rows::<(i32, i64, i64, i64)>().unwrap();
    let mut rows: Vec<_> = rows.map(Result::unwrap).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, a, b, c)| (a, b, c)).collect()
}

async fn sums(session: &Session) -> (i64, i64) {
    let shards = shards(session).await;
    (shards.iter().map(|s| s.1).sum(), shards.iter().map(|s| s.2).sum())
}

/// Connected to every shard, with a table in a keyspace of this replication.
async fn connect(target: &Handle, replication: &str) -> (Session, PreparedStatement) {
    let session = SessionBuilder::new().known_node_addr(target.local_addr()).build().await.unwrap();
    let begin = Instant::now();
    while shards(&session).await.iter().any(|shard| shard.0 == 0) {
        assert!(begin.elapsed() < PATIENCE, "{:?}", shards(&session).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let create = format!("CREATE KEYSPACE ks WITH replication = {replication}");
    session.query_unpaged(create, &[]).await.unwrap();
    session.query_unpaged("CREATE TABLE ks.t (k bigint PRIMARY KEY, v int)", &[]).await.unwrap();
    session.refresh_metadata().await.unwrap();
    let insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)").await.unwrap();
    assert!(insert.is_token_aware());
    (session, insert)
}

async fn write(session: &Session, insert: &PreparedStatement, keys: std::ops::Range<i64>) {
    for key in keys {
        session.execute_unpaged(insert, (key, 1)).await.unwrap();
    }
}

#[test]
fn every_request_comes_to_its_shard() {
    for storage in [Storage::Memory, Storage::Null] {
        let target = serve(storage, None);
        block_on(async {
            let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
            let (session, insert) = connect(&target, simple).await;
            write(&session, &insert, 0..800).await;
            let read = session.prepare("SELECT v FROM ks.t WHERE k = ?").await.unwrap();
            for key in 0..800i64 {
                session.execute_unpaged(&read, (key,)).await.unwrap();
            }
            let shards = shards(&session).await;
            assert_eq!(shards.len(), usize::from(SHARDS));
            assert_eq!(sums(&session).await, (1600, 0), "{shards:?}");
            // Of 1600 each has 400; a share below 300 has less than one chance in a million.
            assert!(shards.iter().all(|shard| shard.1 > 300), "{shards:?}");
        });
    }
}

#[test]
fn a_client_of_the_plain_port_is_counted() {
    let target = serve(Storage::Memory, None);
    block_on(async {
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let (_session, _) = connect(&target, simple).await;
        let blind = SessionBuilder::new()
            .known_node_addr(target.local_addr())
            .pool_size(scylla::client::PoolSize::PerHost(1.try_into().unwrap()))
            .build()
            .await
            .unwrap();
        let insert = blind.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)").await.unwrap();
        write(&blind, &insert, 0..800).await;
        let (requests, misrouted) = sums(&blind).await;
        assert_eq!(requests, 800);
        // Three of four shards are not the one that it is connected to.
        assert!((500..700).contains(&misrouted), "{misrouted}");
    });
}

const TOPOLOGY: &str = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1} \
                        AND tablets = {'initial': 16}";

#[test]
fn tablets_are_learnt_from_the_first_request_to_each() {
    let target = serve(Storage::Memory, None);
    block_on(async {
        let (session, insert) = connect(&target, TOPOLOGY).await;
        let text = "SELECT last_token, replicas FROM system.tablets WHERE table_id = ";
        let id = "SELECT id FROM system_schema.tables WHERE keyspace_name = 'ks' \
                  AND table_name = 't'";
        let id = session.query_unpaged(id, &[]).await.unwrap().into_rows_result().unwrap();
        let (CqlValue::Uuid(id),) = id.single_row::<(CqlValue,)>().unwrap() else {
            panic!("no uuid")
        };
        let rows = session.query_unpaged(format!("{text}{id}"), &[]).await.unwrap();
        let rows = rows.into_rows_result().unwrap();
        let rows = rows.rows::<(i64, Vec<(CqlValue, i32)>)>().unwrap();
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        assert_eq!(rows.len(), 16);
        assert_eq!(rows[15].0, i64::MAX);
        assert!(rows.iter().enumerate().all(|(i, (_, on))| on[0].1 == (i % 4) as i32), "{rows:?}");

        // What it knows nothing of it guesses: each tablet is told once, and then known.
        write(&session, &insert, 0..400).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (_, guessed) = sums(&session).await;
        assert!((1..200).contains(&guessed), "{guessed}");
        write(&session, &insert, 400..1200).await;
        assert_eq!(sums(&session).await, (1200, guessed));
    });
}

#[test]
fn tablets_that_move_are_learnt_anew() {
    let every = Nanos::from_millis(100);
    let target = serve(Storage::Memory, Some(every));
    block_on(async {
        let (session, insert) = connect(&target, TOPOLOGY).await;
        let (begin, mut key) = (Instant::now(), 0);
        while begin.elapsed() < Duration::from_secs(3) {
            write(&session, &insert, key..key + 100).await;
            key += 100;
        }
        let (requests, misrouted) = sums(&session).await;
        assert_eq!(requests, key);
        // Thirty moves and sixteen first looks, each found out by some requests of one client: the
        // driver takes what it is told a moment later.
        assert!(misrouted > 10 && misrouted * 4 < requests, "{misrouted} of {requests}");
    });
}

#[test]
fn what_scylla_has_is_refused_where_it_has_it_not() {
    let target = serve(Storage::Memory, None);
    block_on(async {
        let (session, _) = connect(&target, TOPOLOGY).await;
        for (text, why) in [
            (
                "CREATE KEYSPACE a WITH replication = {'class': 'SimpleStrategy', \
                 'replication_factor': 1} AND tablets = {'enabled': true}",
                "SimpleStrategy has no tablets",
            ),
            (
                "CREATE KEYSPACE a WITH replication = {'class': 'NetworkTopologyStrategy', \
                 'datacenter1': 1} AND tablets = {'initial': 99999}",
                "a number up to 16384",
            ),
            ("ALTER KEYSPACE ks WITH tablets = {'enabled': false}", "when it is created"),
        ] {
            let error = session.query_unpaged(text, &[]).await.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        session.query_unpaged("DROP TABLE ks.t", &[]).await.unwrap();
        let left = session.query_unpaged("SELECT last_token FROM system.tablets", &[]).await;
        let left = left.unwrap().into_rows_result().unwrap();
        assert_eq!(left.rows_num(), 0);
    });
    let cassandra = Server::bind(Config::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let cassandra = cassandra.start().unwrap();
    block_on(async {
        let builder = SessionBuilder::new().known_node_addr(cassandra.local_addr());
        let session = builder.build().await.unwrap();
        let text = format!("CREATE KEYSPACE ks WITH replication = {TOPOLOGY}");
        let error = session.query_unpaged(text, &[]).await.unwrap_err().to_string();
        assert!(error.contains("serve --scylla"), "{error}");
    });
}
