//! Profiles of cassandra-stress against the reference target: posts with clustering rows and
//! queries, counters, time series with batches, every type of column; and what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::Ended;
use rig::stress::{Stress, result};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

const POSTS: &str = r#"
keyspace: Diary
keyspace_definition: |
  CREATE KEYSPACE Diary WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: entries
table_definition: |
  CREATE TABLE entries (
    writer text, written timeuuid, part int, title text, body text, length bigint,
    PRIMARY KEY (writer, written, part)
  ) WITH CLUSTERING ORDER BY (written DESC, part ASC);
columnspec:
  - {name: writer, size: gaussian(8..20)}
  - {name: written, cluster: fixed(5)}
  - {name: part, cluster: uniform(1..3), population: uniform(1..1M)}
  - {name: body, size: gaussian(50..400)}
insert: {batchtype: UNLOGGED}
queries:
  latest:
    cql: select title, written from entries where writer = ? limit 3
    fields: samerow
  Whole:
    cql: select * from entries where writer = ? and written = ? and part = ?;
    fields: samerow
  between:
    cql: select title from entries where writer = ? and written >= ?
"#;

/// The table of the posts, in their profile.
const BODY: &str = "  CREATE TABLE entries (
    writer text, written timeuuid, part int, title text, body text, length bigint,
    PRIMARY KEY (writer, written, part)
  ) WITH CLUSTERING ORDER BY (written DESC, part ASC);
";

const COUNTS: &str = r#"
keyspace: tally
specname: hits
keyspace_definition: "CREATE KEYSPACE tally WITH replication = {'class': 'SimpleStrategy',
  'replication_factor': 1}"
table: hits
table_definition: CREATE TABLE hits (page int, hour int, seen counter, PRIMARY KEY (page, hour))
columnspec:
  - {name: hour, population: uniform(1..1M), cluster: fixed(4)}
  - {name: seen, population: fixed(3)}
insert: {batchtype: COUNTER, partitions: fixed(2)}
queries: {page: {cql: select * from hits where page = ?, fields: samerow}}
token_range_queries:
  everything: {columns: "*", page_size: 70}
  seen: {columns: seen}
"#;

const TYPES: &str = r#"
keyspace: kinds
keyspace_definition: "CREATE KEYSPACE kinds WITH replication = {'class': 'SimpleStrategy',
  'replication_factor': 1}"
table: kinds
table_definition: |
  CREATE TABLE kinds (
    k1 blob, k2 uuid, c1 inet, c2 date, c3 varint,
    v1 ascii, v2 bigint, v3 blob, v4 boolean, v5 date, v6 decimal, v7 double, v8 float, v9 inet,
    w1 int, w2 smallint, w3 text, w4 time, w5 timestamp, w6 timeuuid, w7 tinyint, w8 uuid,
    w9 varint, x1 list<int>, x2 set<text>, x3 frozen<list<uuid>>, x4 frozen<set<blob>>,
    PRIMARY KEY ((k1, k2, c3), c1, c2)
  );
columnspec:
  - {name: w4, population: uniform(1..86400000000000)}
  - {name: c2, cluster: fixed(2)}
insert: {partitions: uniform(1..4), select: uniform(5..10)/10, row-population: fixed(1)/2}
queries:
  row:
    cql: select * from kinds where k1 = ? and k2 = ? and c1 = ? and c2 = ? and c3 = ?
    fields: samerow
"#;

const CLAIMS: &str = r#"
keyspace: claims
keyspace_definition: "CREATE KEYSPACE claims WITH replication = {'class': 'SimpleStrategy',
  'replication_factor': 1}"
table: seats
table_definition: |
  CREATE TABLE seats (hall text, seat int, owner text, price int, PRIMARY KEY (hall, seat))
    WITH CLUSTERING ORDER BY (seat DESC);
columnspec:
  - {name: hall, size: gaussian(5..20)}
  - {name: seat, cluster: fixed(3), population: uniform(1..1M)}
insert: {partitions: fixed(1), select: fixed(1)/1, batchtype: UNLOGGED, condition: IF owner = NULL}
queries:
  once:
    cql: insert into seats (hall, seat, owner) values (?, ?, ?) if not exists
    fields: samerow
  swap:
    cql: update seats set price = ? where hall = ? and seat = ? if owner = ?
    fields: samerow
  drop:
    cql: delete from seats where hall = ? and seat = ? if exists
    fields: samerow
"#;

/// A target, and the profiles beside it.
fn profiles() -> Stress {
    let rig = Stress::new();
    for (name, text) in [("posts", POSTS), ("counts", COUNTS), ("types", TYPES), ("claims", CLAIMS)]
    {
        fs::write(rig.home.at(&format!("{name}.yaml")), text).unwrap();
    }
    rig
}

/// A line that ends well, without an error.
fn good(rig: &Stress, line: &str) -> Ended {
    let ended = rig.good(line);
    assert_eq!(result(&ended, "Total errors"), 0.0, "{line}: {ended:?}");
    ended
}

/// Operations of a type, from the last of its rows.
fn ops_of(ended: &Ended, name: &str) -> f64 {
    let mut rows = ended.stdout.lines().filter(|line| line.starts_with(&format!("{name},")));
    let ops = rows.next_back().map(|line| line.split(',').nth(1).unwrap().trim().parse().unwrap());
    ops.unwrap_or(f64::NAN)
}

/// Operations and partitions of a type, from the last of its rows and of the results.
fn of_type(ended: &Ended, name: &str) -> (f64, f64) {
    let partitions = ended.stdout.lines().find(|line| line.starts_with("Total partitions"));
    let (_, each) = partitions.unwrap().split_once('[').unwrap();
    let each = each.trim_end_matches(']').split(", ").find_map(|part| part.strip_prefix(name));
    let partitions = each.unwrap().trim_start_matches(": ").replace(',', "").parse().unwrap();
    (ops_of(ended, name), partitions)
}

#[test]
fn posts_are_written_whole_and_found_by_their_queries() {
    let rig = profiles();
    let hdr = rig.home.at("user.hdr");
    let wrote = good(
        &rig,
        &format!(
            "user profile=posts.yaml ops(insert=1) n=400 no-warmup -rate threads=16 -log \
             hdrfile={}",
            hdr.display()
        ),
    );
    let order = [
        "  Type: user",
        "  Command Ratios: {insert=1.0}",
        "  Profile File: posts.yaml",
        "Created schema.",
        "Running [insert] with 16 threads for 400 iteration",
        "type       total ops,",
        "total,",
        "Results:",
        "Total partitions          :        400 [insert: 400]",
        "END",
    ];
    let mut lines = wrote.stdout.lines();
    for begin in order {
        assert!(lines.any(|line| line.starts_with(begin)), "{begin} in {wrote:?}");
    }
    // Each seed has a partition of its own, of five dates with one to three parts.
    let there = rig.count("diary.entries");
    assert!((2000..=6000).contains(&there), "{there}");
    let hdr = fs::read_to_string(hdr).unwrap();
    assert!(hdr.contains("Tag=insert-st,"), "{hdr}");
    // What a seed gives is there: a row is found by all of its key, and by the key alone.
    let ask = |ops: &str, seeds: &str| {
        good(
            &rig,
            &format!(
                "user profile=posts.yaml ops({ops}) no-warmup n=900 -rate threads=16 -pop \
                 seq={seeds}"
            ),
        )
    };
    let read = ask("whole=1,latest=1,between=1", "1..400");
    for name in ["whole", "latest", "between"] {
        let (ops, partitions) = of_type(&read, name);
        assert!(ops > 100.0 && ops == partitions, "{name}: each finds some: {read:?}");
    }
    // Seeds that were not written are not found, and that is no error.
    let other = ask("whole=1", "5001..5400");
    assert_eq!(result(&other, "Total partitions"), 0.0, "{other:?}");
    // Once more is the same rows.
    good(&rig, "user profile=posts.yaml ops(insert=1) n=400 no-warmup -rate threads=4");
    assert_eq!(rig.count("diary.entries"), there);
    let cut = rig
        .good("user profile=posts.yaml ops(insert=1) n=10 no-warmup truncate=once -rate threads=1");
    assert!(cut.stdout.contains("Truncated Diary.entries."), "{cut:?}");
    assert!((50..=150).contains(&rig.count("diary.entries")));
}

/// Where a profile has no table, the cluster has it; its text comes over the network as well.
#[test]
fn a_table_that_is_there_need_not_be_defined() {
    let rig = profiles();
    good(&rig, "user profile=posts.yaml ops(insert=1) n=100 no-warmup -rate threads=4");
    let there = rig.count("diary.entries");
    let bare = POSTS.replace("table_definition", "# was: ").replace(BODY, "");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 1024];
        assert!(stream.read(&mut asked).unwrap() > 0);
        write!(stream, "HTTP/1.0 200 OK\r\n\r\n{bare}").unwrap();
    });
    let line = format!(
        "user profile=http://{address}/bare.yaml ops(insert=1,whole=1) n=400 no-warmup -rate \
         threads=4 -pop seq=1..100"
    );
    let both = good(&rig, &line);
    server.join().unwrap();
    assert!(of_type(&both, "whole").1 > 50.0, "{both:?}");
    assert_eq!(rig.count("diary.entries"), there, "the same rows");
}

#[test]
fn counters_of_several_partitions_are_added_to_in_one_batch() {
    let rig = profiles();
    let wrote =
        good(&rig, "user profile=counts.yaml ops(insert=1) n=200 no-warmup -rate threads=8");
    // Two partitions in an operation, four rows in each.
    assert_eq!(result(&wrote, "Total partitions"), 200.0, "{wrote:?}");
    assert!(wrote.stderr.contains("n= and rates count partitions"), "{wrote:?}");
    let seen = rig.cells("SELECT seen FROM tally.hits");
    let seen: Vec<i64> = seen
        .iter()
        .map(|row| i64::from_be_bytes(row[0].clone().unwrap()[..].try_into().unwrap()))
        .collect();
    assert_eq!((seen.len(), seen.iter().sum::<i64>()), (800, 2400), "each row once, by three");
    let both = good(
        &rig,
        "user profile=counts.yaml,posts.yaml ops(hits.page=1,Diary.entries.insert=1,insert=1) \
         n=400 no-warmup -rate threads=8 -pop seq=1..200",
    );
    assert!(both.stdout.contains("Diary.entries.insert,"), "{both:?}");
    assert!(of_type(&both, "hits.page").1 > 0.0, "{both:?}");
}

#[test]
fn writes_with_conditions_are_done_once() {
    let rig = profiles();
    let run = |ops: &str, seeds: &str| {
        good(
            &rig,
            &format!(
                "user profile=claims.yaml ops({ops}) n=100 no-warmup -rate threads=8 -pop \
                 seq={seeds}"
            ),
        )
    };
    let stamps = || rig.cells("SELECT seat, writetime(owner), writetime(price) FROM claims.seats");
    run("insert=1", "1..100");
    let first = stamps();
    assert!((290..=300).contains(&first.len()), "{}", first.len());
    run("insert=1,once=1", "1..100");
    assert_eq!(stamps(), first, "each seat has its owner");
    // What a row has been written with is what its condition is bound to.
    run("swap=1", "1..100");
    let changed = stamps();
    let pairs = || changed.iter().zip(&first);
    assert!(pairs().all(|(new, old)| new[1] == old[1]), "owners stay");
    let moved = pairs().filter(|(new, old)| new[2] != old[2]).count();
    assert!((80..=100).contains(&moved), "{moved}");
    run("drop=1", "1..100");
    let left = stamps().len();
    assert!((190..=220).contains(&left), "{left}");
}

/// Each row and each part of a partition is compared; what is missing, more or other is found.
#[test]
fn what_was_written_is_validated_row_by_row() {
    let rig = profiles();
    let line = |profile: &str, ops: &str, rest: &str| {
        format!(
            "user profile={profile}.yaml ops({ops}=1) no-warmup -rate threads=8 -insert \
             partitions=fixed(1) select-ratio=fixed(1)/1 {rest}"
        )
    };
    let validate = |profile: &str, seeds: &str| {
        rig.stress(&line(profile, "validate", &format!("-pop seq={seeds}")).replacen(
            " no-warmup",
            " n=4000 no-warmup",
            1,
        ))
    };
    let fails = |profile: &str, seeds: &str| {
        let ended = validate(profile, seeds);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("]: Data returned was not validated"), "{ended:?}");
    };
    for profile in ["types", "claims"] {
        let insert = line(profile, "insert", "-pop seq=1..100 no-wrap");
        good(&rig, &insert.replacen(" no-warmup", " n=100 no-warmup", 1));
        let right = validate(profile, "1..100");
        assert_eq!(right.status, Some(0), "{right:?}");
        assert!(result(&right, "Row rate") > 0.0, "{right:?}");
        fails(profile, "1..101");
    }
    // Values follow from the first value of a level; the original expects the least there.
    let sorted = line("types", "insert", "-pop seq=1..100 no-wrap contents=sorted");
    good(&rig, &sorted.replacen(" no-warmup", " n=100 truncate=once no-warmup", 1));
    assert_eq!(validate("types", "1..100").status, Some(0));

    let cell = |column: &str| rig.cells(&format!("SELECT {column} FROM claims.seats LIMIT 1"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace('\'', "''");
    let hall = text(cell("hall")[0][0].as_ref().unwrap());
    let seat = i32::from_be_bytes(cell("seat")[0][0].clone().unwrap().try_into().unwrap());
    let owner = text(cell("owner")[0][0].as_ref().unwrap());
    let row = format!("WHERE hall = '{hall}' AND seat = {seat}");
    for (wrong, right) in [
        (
            format!("UPDATE claims.seats SET owner = 'nobody' {row}"),
            format!("UPDATE claims.seats SET owner = '{owner}' {row}"),
        ),
        (
            format!("INSERT INTO claims.seats (hall, seat) VALUES ('{hall}', -5)"),
            format!("DELETE FROM claims.seats WHERE hall = '{hall}' AND seat = -5"),
        ),
        (format!("DELETE FROM claims.seats {row}"), String::new()),
    ] {
        rig.cells(&wrong);
        fails("claims", "1..100");
        if !right.is_empty() {
            rig.cells(&right);
            assert_eq!(validate("claims", "1..100").status, Some(0), "{right}");
        }
    }
}

#[test]
fn ranges_of_tokens_are_read_page_by_page() {
    let rig = profiles();
    good(
        &rig,
        "user profile=counts.yaml ops(insert=1) n=200 no-warmup -rate threads=8 -insert \
         partitions=fixed(1)",
    );
    // Four rows in a partition, 70 in a page: partitions begin on one page and end on the next.
    for (name, rest) in [
        ("everything", "n=500 no-warmup -rate threads=8"),
        ("everything", "n=500 -rate threads=8 -tokenrange split-factor=7"),
        ("everything", "n=500 no-warmup -rate threads=3 fixed=2000/s"),
        ("seen", "n=500 no-warmup -rate threads=1 -mode native cql3 protocolVersion=5"),
    ] {
        let read = good(&rig, &format!("user profile=counts.yaml ops({name}=1) {rest}"));
        assert_eq!(result(&read, "Total partitions"), 200.0, "{name} {rest}: {read:?}");
        let ops = ops_of(&read, "total");
        let pages = if name == "seen" { 1.0..=4.0 } else { 11.0..=30.0 };
        assert!(pages.contains(&ops), "{name} {rest}: {ops} pages of {read:?}");
    }
    let wrapped = good(
        &rig,
        "user profile=counts.yaml ops(everything=1) n=300 no-warmup -rate threads=8 -tokenrange \
         wrap",
    );
    assert!(result(&wrapped, "Total partitions") > 2000.0, "{wrapped:?}");
    let both = good(
        &rig,
        "user profile=counts.yaml ops(everything=1,insert=1) n=300 no-warmup -rate threads=8 \
         -tokenrange wrap -insert partitions=fixed(1)",
    );
    assert!(ops_of(&both, "everything") > 50.0, "{both:?}");
}

/// Every row of a counter is added to once, whatever visit it belongs to.
#[test]
fn partitions_are_written_in_visits() {
    let rig = profiles();
    let wrote = good(
        &rig,
        "user profile=counts.yaml ops(insert=1) n=1000 no-warmup -rate threads=8 -pop seq=1..200 \
         no-wrap -insert partitions=fixed(1) visits=fixed(4) revisit=uniform(1..10)",
    );
    let ops = result(&wrote, "Total partitions");
    assert!((740.0..=800.0).contains(&ops), "{wrote:?}");
    let seen = rig.cells("SELECT seen FROM tally.hits");
    assert_eq!(seen.len() as f64, ops, "a row in each visit");
    assert!(seen.iter().all(|row| row[0] == Some(3i64.to_be_bytes().to_vec())), "each once");
}

/// The generation of Apache Cassandra 5 reads what a condition is about, and binds that.
#[test]
fn conditions_may_be_bound_to_what_is_there() {
    let rig = profiles();
    good(&rig, "user profile=claims.yaml ops(insert=1) n=20 no-warmup -rate threads=4");
    let other = "UPDATE claims.seats SET owner = 'somebody' WHERE hall = '";
    for row in rig.cells("SELECT hall, seat FROM claims.seats") {
        let hall = String::from_utf8(row[0].clone().unwrap()).unwrap().replace('\'', "''");
        let seat = i32::from_be_bytes(row[1].clone().unwrap().try_into().unwrap());
        rig.cells(&format!("{other}{hall}' AND seat = {seat}"));
    }
    let stamps = || rig.cells("SELECT seat, writetime(price) FROM claims.seats");
    let before = stamps();
    let swap = "user profile=claims.yaml ops(swap=1) n=500 no-warmup -rate threads=8 -pop \
                seq=1..20";
    good(&rig, swap);
    assert_eq!(stamps(), before, "no row has the owner that was generated");
    good(&rig, &format!("--compat apache-5 {swap}"));
    let changed = stamps().iter().zip(&before).filter(|(new, old)| new != old).count();
    assert!(changed > before.len() * 9 / 10, "{changed} of {}", before.len());
    // Where there is no row, nothing is what the condition asks for.
    good(&rig, &format!("--compat apache-5 {}", swap.replace("1..20", "21..40")));
    assert!(stamps().len() > before.len() + 20);
    let explained = rig.home.run(&[
        "explain",
        "--compat",
        "apache-5",
        "cassandra-stress",
        "user",
        "profile=claims.yaml",
        "ops(swap=1)",
        "n=5",
    ]);
    let look = "SELECT owner FROM claims.seats WHERE hall = ? AND seat = ?";
    assert!(explained.stdout.contains(look), "{explained:?}");
}

#[test]
fn every_type_of_column_is_written_and_found_again() {
    let rig = profiles();
    for mode in ["", " -mode native cql3 protocolVersion=5"] {
        good(
            &rig,
            &format!("user profile=types.yaml ops(insert=1) n=200 no-warmup -rate threads=8{mode}"),
        );
        let read = good(
            &rig,
            &format!(
                "user profile=types.yaml ops(row=1) n=200 no-warmup -rate threads=8 -pop \
                 seq=1..200 \
             -insert select-ratio=fixed(1)/1{mode}"
            ),
        );
        // Half of the rows or more were selected.
        assert!(result(&read, "Total partitions") > 90.0, "{read:?}");
    }
    let row = &rig.cells("SELECT v1, w9, x4 FROM kinds.kinds LIMIT 1")[0];
    assert!(row[0].is_some() && row[2].is_none(), "the first half of the columns: {row:?}");
}

#[test]
fn a_warm_up_and_a_rate_are_as_of_other_commands() {
    let rig = profiles();
    let ended = good(
        &rig,
        "user profile=posts.yaml ops(insert=1,latest=2) duration=2s -rate threads=32 fixed=500/s \
         -pop seq=1..1000",
    );
    assert!(ended.stdout.contains("Warming up insert with 50000 iterations..."), "{ended:?}");
    let rate = result(&ended, "Op rate");
    assert!((400.0..=520.0).contains(&rate), "{ended:?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let rig = profiles();
    let odd = POSTS.replace("limit 3", "limit ?").replace("Diary", "odd");
    fs::write(rig.home.at("limit.yaml"), odd).unwrap();
    let bare = POSTS.replace("table_definition", "# was: ").replace(BODY, "");
    fs::write(rig.home.at("bare.yaml"), bare).unwrap();
    fs::write(rig.home.at("multi.yaml"), CLAIMS.replace("fields: samerow", "")).unwrap();
    fs::write(rig.home.at("no.yaml"), POSTS.replace("size: gaussian(8..20)", "width: 4")).unwrap();
    for (line, status, said) in [
        ("user profile=none.yaml ops(insert=1)", 1, "Cannot read the profile none.yaml"),
        ("user profile=no.yaml ops(insert=1)", 1, "has no option 'width'"),
        ("user profile=posts.yaml ops(inset=1)", 1, "No query defined with name inset"),
        (
            "user profile=posts.yaml ops(insert=1) -insert visits=fixed(2) partitions=fixed(2)",
            2,
            "Several visits",
        ),
        (
            "write n=100 no-warmup -rate threads=1 -log hdrfile=/dev/full",
            3,
            "cannot write the histograms into '/dev/full'",
        ),
        ("--compat apache-5 user profile=multi.yaml ops(swap=1)", 1, "only for type 'samerow'"),
        ("user profile=https://host/posts.yaml ops(insert=1)", 2, "not fetched by https"),
        ("user profile=bare.yaml ops(insert=1)", 1, "the cluster has no table diary.entries"),
        ("user profile=limit.yaml ops(latest=1) n=5 no-warmup -rate threads=1", 2, "[limit]"),
    ] {
        let ended = rig.stress(line);
        assert_eq!(ended.status, Some(status), "{line}: {ended:?}");
        assert!((ended.stdout.clone() + &ended.stderr).contains(said), "{line}: {ended:?}");
    }
    let explained = rig.home.run(&[
        "explain",
        "cassandra-stress",
        "user",
        "profile=posts.yaml",
        "ops(insert=1,between=1)",
        "n=100",
    ]);
    for text in
        ["CREATE TABLE entries (", "UPDATE Diary.entries SET body = ?", "from Diary.entries"]
    {
        assert!(explained.stdout.contains(text), "{text} in {explained:?}");
    }
}

#[test]
fn a_profile_runs_as_our_own_workload() {
    let rig = profiles();
    let workload = "cassandra-stress:user profile=posts.yaml ops(insert=1,latest=3)";
    let load = ["--records", "1k", "--ops", "3k", "--warm", "0s", "--threads", "8"];
    let own = rig.home.summary(&[&["run", workload], &load[..]].concat());
    assert_eq!((&own.workload[..], own.ops, own.errors), ("cassandra-stress:user", 3000, 0));
    let names: Vec<_> = own.latency_us.keys().map(String::as_str).collect();
    assert_eq!(names, ["insert", "latest"]);
    let target = rig.serve.target();
    let line = [&["run", workload, "--target", &target], &load[..]].concat();
    assert_eq!(rig.home.summary(&line).errors, 0);
    // Its table is there now, and is not wideload's.
    let again = rig.home.run(&line);
    assert_eq!(again.status, Some(2), "{again:?}");
    assert!(again.stderr.contains("--write-into-existing"), "{again:?}");
    let line = [&line[..], &["--write-into-existing"]].concat();
    assert_eq!(rig.home.summary(&line).errors, 0);
}
