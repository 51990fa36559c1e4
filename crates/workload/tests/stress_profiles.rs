//! cassandra-stress: profiles of the kinds that ship with it, and what is said of wrong ones.

// Clippy's exception for tests does not reach the functions that they share.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use workload::cassandra_stress::{
    BatchType, Distribution, NamedColumn, Profile, ProfileError, Ratio, Table,
};

const POSTS: &str = r#"
# Articles of web sites, newest first.
keyspace: sites
keyspace_definition: |
  CREATE KEYSPACE sites WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3};
table: posts
table_definition: |
  CREATE TABLE posts (
    site text, written timeuuid, address text, writer text, title text, body text, tags set<text>,
    PRIMARY KEY (site, written)
  ) WITH CLUSTERING ORDER BY (written DESC) AND compaction = {'class': 'LeveledCompactionStrategy'}
columnspec:
  - name: site
    size: gaussian(5..100)
    population: uniform(1..10M)
  - name: written
    cluster: fixed(1000)
  - {name: body, size: "gaussian(100..5000)"}
  - {Name: tags, SIZE: fixed(3)}
insert:
  partitions: fixed(1)
  select: fixed(1)/1000
  batchtype: UNLOGGED
queries:
  newest:
    cql: select * from posts where site = ? LIMIT 1
    fields: samerow
    consistencyLevel: LOCAL_QUORUM
  Timeline:
    cql: select address, title from posts where site = ? LIMIT 10
token_range_queries:
  everything: {columns: "*", page_size: 100}
"#;

const COUNTERS: &str = r"
specname: hits
keyspace: sites
table: hits
table_definition: CREATE TABLE hits (page text PRIMARY KEY, views counter)
columnspec:
  - name: page
    size: uniform(1..4)
  - name: views
    population: fixed(1)
insert: {batchtype: COUNTER}
queries:
  views: {cql: select * from hits where page = ?, fields: samerow}
";

const CONDITIONAL: &str = r#"
keyspace: bank
table: accounts
table_definition: |
  CREATE TABLE accounts (id blob PRIMARY KEY, "Balance" bigint, seen timestamp, log list<int>)
columnspec: [{name: Balance, population: "seq(1..1000)"}]
insert:
queries:
  pay:
    cql: update accounts set "Balance" = ? where id = ? IF "Balance" = ?
    serialConsistencyLevel: LOCAL_SERIAL
extra_definitions: [CREATE INDEX ON accounts (seen)]
"#;

const SERIES: &str = r"
keyspace: plant
table: samples
table_definition: |
  CREATE TABLE samples (machine uuid, day date, sensor int, at time, value double, state tinyint,
    PRIMARY KEY ((machine, day), sensor, at))
columnspec:
  - {name: sensor, cluster: uniform(1..20), population: uniform(0..19)}
  - {name: at, cluster: gaussian(10..100)}
insert: {visits: fixed(1)}
";

fn table(text: &str) -> Table {
    let profile = Profile::parse(text).unwrap();
    profile.table(profile.definition.as_ref().unwrap(), false).unwrap()
}

fn names(columns: &[NamedColumn]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn posts_are_read_whole() {
    let profile = Profile::parse(POSTS).unwrap();
    assert_eq!(profile.spec_name, "sites.posts");
    assert!(profile.keyspace_definition.unwrap().starts_with("CREATE KEYSPACE sites"));
    let insert = &profile.insert;
    assert_eq!(insert.partitions, Some(Distribution::fixed(1)));
    assert_eq!(insert.select, Some(Ratio::parse("fixed(1)/1000").unwrap()));
    assert_eq!((&insert.row_population, insert.batch_type), (&None, Some(BatchType::Unlogged)));
    let newest = &profile.queries["newest"];
    assert_eq!(newest.cql, "select * from posts where site = ? LIMIT 1");
    assert!(newest.same_row && !profile.queries["timeline"].same_row);
    assert_eq!(newest.consistency.as_deref(), Some("LOCAL_QUORUM"));
    assert_eq!(profile.token_range_queries["everything"].page_rows, 100);
    let table = table(POSTS);
    assert_eq!(names(&table.partition_key), ["site"]);
    assert_eq!(names(&table.clustering_key), ["written"]);
    assert_eq!(names(&table.values), ["address", "body", "tags", "title", "writer"]);
    assert_eq!(table.clustering_key[0].generator.cluster(), &Distribution::fixed(1_000));
    assert_eq!(table.partition_key[0].generator.room(), 104);
    assert!(table.values[2].is_added_to() && !table.values[1].is_added_to());
}

#[test]
fn counters_are_added_to() {
    let profile = Profile::parse(COUNTERS).unwrap();
    assert_eq!(profile.spec_name, "hits");
    assert_eq!(profile.insert.batch_type, Some(BatchType::Counter));
    assert!(table(COUNTERS).values[0].is_added_to());
}

#[test]
fn names_keep_their_case_and_unused_ones_are_told() {
    let profile = Profile::parse(CONDITIONAL).unwrap();
    assert_eq!(profile.extra_definitions, ["CREATE INDEX ON accounts (seen)"]);
    let serial = profile.queries["pay"].serial_consistency.as_deref();
    assert_eq!(serial, Some("LOCAL_SERIAL"));
    assert_eq!(names(&table(CONDITIONAL).values), ["Balance", "log", "seen"]);
    let text = CONDITIONAL.replace("name: Balance", "name: balanced");
    assert_eq!(table(&text).unused, ["balanced"]);
}

#[test]
fn an_option_of_the_command_line_is_none_of_a_profile() {
    let error = Profile::parse(SERIES).unwrap_err().to_string();
    assert!(error.starts_with("insert has no option 'visits'"), "{error}");
    let table = table(&SERIES.replace("insert: {visits: fixed(1)}", ""));
    assert_eq!(names(&table.partition_key), ["machine", "day"]);
    assert_eq!(names(&table.clustering_key), ["sensor", "at"]);
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = |from: &str, to: &str, part: &str| {
        let text = POSTS.replacen(from, to, 1);
        assert_ne!(text, POSTS, "{from}");
        let error = Profile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    wrong("keyspace: sites", "", "no 'keyspace'");
    wrong("table: posts", "tables: posts", "tables");
    wrong("  - name: site", "  - nom: site", "element 1 of columnspec has no 'name'");
    wrong(
        "population: uniform(1..10M)",
        "population: uniform(1..10Q)",
        "population of columnspec of 'site': distribution 'uniform(1..10Q)', character 12",
    );
    wrong("    size: gaussian(5..100)", "    sise: fixed(5)", "'site' has no option 'sise'");
    wrong("Name: tags, SIZE: fixed(3)", "name: a, NAME: b", "gives 'name' twice");
    wrong("select: fixed(1)/1000", "select: fixed(1)", "select of insert");
    wrong("UNLOGGED", "unlogged", "batchtype of insert is 'unlogged'");
    wrong("fields: samerow", "fields: same", "fields of query 'newest' is 'same'");
    wrong("Timeline:", "Insert:", "'Insert' has a name that is taken");
    wrong("everything:", "newest:", "'newest' has a name that is taken");
    wrong("table: posts", "table: post", "makes 'posts', and table is 'post'");
    wrong("site text,", "site,", "table_definition, line 2, character 7");
    wrong("queries:", "queries: [", "line");
    let error = Profile::parse(&" ".repeat(2 << 20)).unwrap_err();
    assert!(matches!(error, ProfileError::Size));
}

#[test]
fn types_without_values_are_named_or_skipped() {
    let text = POSTS.replace("tags set<text>", "tags map<text, int>");
    let profile = Profile::parse(&text).unwrap();
    let definition = profile.definition.clone().unwrap();
    let error = profile.table(&definition, false).unwrap_err().to_string();
    let wanted = "line 2, character 87: no values can be drawn for column 'tags' of type \
                  map<text,int>";
    assert!(error.contains(wanted), "{error}");
    let table = profile.table(&definition, true).unwrap();
    assert_eq!(table.skipped, ["tags"]);
    let key = POSTS.replace("site text", "site frozen<point>");
    let profile = Profile::parse(&key).unwrap();
    let definition = profile.definition.clone().unwrap();
    assert!(profile.table(&definition, true).is_err());
    let huge = Profile::parse(&POSTS.replace("gaussian(5..100)", "fixed(1b)")).unwrap();
    let error = huge.table(&definition, true).unwrap_err();
    assert!(error.to_string().contains("'site'"), "{error}");
}

#[test]
fn bombs_are_refused_before_they_grow() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(matches!(Profile::parse(&bomb), Err(ProfileError::Yaml(_))));
    let deep = format!("queries: {}", "[".repeat(10_000));
    assert!(matches!(Profile::parse(&deep), Err(ProfileError::Yaml(_))));
    let alias =
        format!("extra_definitions: [&a \"{}\"{}]", "x".repeat(1_000), ", *a".repeat(40_000));
    assert!(Profile::parse(&alias).is_err());
}

proptest! {
    #[test]
    fn no_profile_makes_it_panic(
        at in 0usize..POSTS.len(), cut in 0usize..40, put in "[-a-z0-9:(){}/.,~*&'\" \n]{0,12}",
    ) {
        let end = (at + cut).min(POSTS.len());
        let text = format!("{}{put}{}", &POSTS[..at], &POSTS[end..]);
        if let Ok(profile) = Profile::parse(&text)
            && let Some(definition) = &profile.definition
        {
            let _ = profile.table(definition, true);
        }
    }
}
