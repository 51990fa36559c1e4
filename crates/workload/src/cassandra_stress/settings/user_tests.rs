//! Profiles on command lines: what they mean, and errors with their place.

use super::*;
use crate::cassandra_stress::{Asked, Compat, parse};
use crate::plan::Plan;
use crate::{Distribution as Keys, Phase, Sampler, Touch};
use std::sync::Arc;

const POSTS: &str = "
keyspace: blog
keyspace_definition: \"CREATE KEYSPACE blog WITH replication = {'class': 'SimpleStrategy'};\"
table: posts
table_definition: |
  CREATE TABLE posts (site text, \"At\" timeuuid, tags set<text>, rest frozen<set<int>>,
    PRIMARY KEY (site, \"At\"));
extra_definitions:
  - CREATE INDEX ON posts (tags);
columnspec:
  - {name: At, cluster: uniform(1..40)}
insert: {partitions: fixed(3), select: fixed(1)/2, condition: IF rest = NULL}
queries:
  Latest: {cql: select * from posts where site = ? limit 10;, fields: samerow,
           consistencyLevel: quorum}
  both: {cql: select * from posts where site = ? and \"At\" = ?}
token_range_queries:
  all: {columns: site}
";
const KEYS: &str = "
keyspace: shop
specname: names
table: names
table_definition: CREATE TABLE names (name text, at int, PRIMARY KEY (name, at))
queries: {one: {cql: select * from names where name = ?}}
";

fn files(path: &str) -> Result<String, String> {
    match path {
        "posts.yaml" => Ok(POSTS.to_owned()),
        "keys.yaml" => Ok(KEYS.to_owned()),
        "bare.yaml" => Ok(KEYS.replace("table_definition", "#")),
        "wide.yaml" => Ok(POSTS.replace("uniform(1..40)", "fixed(50000)")),
        "dynamic.yaml" => Ok(POSTS.replace("= NULL", "= ?")),
        "level.yaml" => Ok(POSTS.replace("quorum", "some")),
        "broken.yaml" => Ok(POSTS.replace("uniform(1..40)", "uniform(1..")),
        _ => Err("no such file".to_owned()),
    }
}

fn asked(line: &str) -> Result<Settings, LineError> {
    match parse(&[line.to_owned()], Compat::Apache3, &files)? {
        Asked::Run(settings) => Ok(*settings),
        other => panic!("{line}: {other:?}"),
    }
}

fn plan(line: &str) -> Arc<Plan> {
    Arc::new(asked(line).unwrap().plan(8))
}

#[test]
fn statements_are_the_originals_with_their_keyspace() {
    let plan = plan("user profile=posts.yaml,keys.yaml ops(insert=1,latest=2,names.insert=1) n=9");
    let tables = plan.tables.as_ref().unwrap();
    let texts: Vec<_> = tables.statements.iter().map(|s| &s.text[..]).collect();
    assert_eq!(
        texts,
        [
            "UPDATE blog.posts SET rest = ?,tags = tags + ? WHERE site = ? AND \"At\" = ? IF rest \
             = NULL",
            "select * from blog.posts where site = ? limit 10",
            "INSERT INTO shop.names (name, at) values(?, ?)",
        ]
    );
    assert_eq!(tables.statements[1].consistency.as_deref(), Some("QUORUM"));
    let names: Vec<_> = plan.run.iter().map(|o| (&o.name[..], o.weight)).collect();
    assert_eq!(names, [("insert", 0.25), ("latest", 0.5), ("names.insert", 0.25)]);
    let Touch::Write(write) = &tables.statements[0].touch else { panic!("no write") };
    assert_eq!(write.rows_max(&tables.tables[0]), 120);
    assert_eq!(tables.tables[0].creation.extra, ["CREATE INDEX ON posts (tags)"]);
    assert!(plan.load.is_empty() && plan.runs.is_some());
}

#[test]
fn keys_come_in_turn_where_only_rows_are_written() {
    let seq = |line: &str| plan(line).keys.distribution.clone();
    assert_eq!(seq("user profile=keys.yaml ops(insert=1) n=50"), Keys::Sequential);
    assert!(matches!(seq("user profile=keys.yaml ops(insert=1,one=1) n=50"), Keys::Drawn(_)));
    assert!(matches!(seq("user profile=keys.yaml ops(one=1) n=50"), Keys::Drawn(_)));
}

#[test]
fn operations_of_several_partitions_take_as_many_keys() {
    let line = "user profile=posts.yaml ops(insert=1) -pop seq=1..100 no-wrap";
    let plan = plan(line);
    let mut seen = Vec::new();
    for worker in 0..2 {
        let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, worker, 2);
        while let Some(draw) = sampler.draw() {
            seen.extend((0..u64::from(draw.scan_length)).map(|place| draw.key + 2 * place));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).collect::<Vec<u64>>());
    let settings = asked("user profile=posts.yaml ops(insert=1,latest=1) n=1000").unwrap();
    assert!((settings.partitions_mean() - 2.0).abs() < 1e-9);
    let less = asked("user profile=posts.yaml ops(insert=1) n=9 -insert partitions=fixed(1)");
    assert!((less.unwrap().partitions_mean() - 1.0).abs() < 1e-9);
}

#[test]
fn the_line_goes_before_the_profile() {
    let line = "user profile=posts.yaml ops(insert=1) n=9 -insert batchtype=counter \
                row-population-ratio=fixed(1)/2 select-ratio=fixed(1)/1 -pop contents=sorted";
    let settings = asked(line).unwrap();
    let plan = settings.plan(1);
    let Touch::Write(write) = &plan.tables.as_ref().unwrap().statements[0].touch else {
        panic!("no write")
    };
    assert_eq!(write.batch, BatchType::Counter);
    assert!((write.row_population.max() - 0.5).abs() < 1e-9);
    assert!((write.select.max() - 1.0).abs() < 1e-9);
    let dump = settings.dump();
    for line in ["Command Ratios: {insert=1.0}", "Profile File: posts.yaml", "Order: SORTED"] {
        assert!(dump.contains(line), "{line} in {dump}");
    }
}

#[test]
fn errors_are_of_the_originals_kind_with_place_and_cure() {
    let posts = "user profile=posts.yaml";
    for (line, what, unbuilt) in [
        ("user ops(insert=1)".to_owned(), "Must specify a profile", false),
        (posts.to_owned(), "Must specify at least one command", false),
        (format!("{posts} ops(insert=0)"), "Must specify at least one command", false),
        (format!("{posts} ops(insert=x)"), "Invalid ops specification", false),
        (format!("{posts} ops(insert)"), "Invalid ops specification", false),
        (format!("{posts} ops(other=1)"), "No query defined with name other", false),
        (format!("{posts} ops(x.insert=1)"), "contains an invalid profile specname: x", false),
        (format!("{posts},posts.yaml ops(insert=1)"), "Must only specify a single YAML", false),
        (format!("{posts} ops(insert=1) -schema keyspace=x"), "-schema can only", false),
        (format!("{posts} ops(insert=1) -insert visits=fixed(2)"), "Several visits", true),
        (format!("{posts} ops(insert=1) -insert visits=fixed(20k)"), "at most 10000", false),
        (format!("{posts} ops(insert=1) -insert revisit=fixed(-1)"), "sample range", false),
        (
            format!("{posts} ops(insert=1,both=1) -pop seq=1..9 read-lookback=fixed(1)"),
            "read-lookback= together",
            true,
        ),
        ("user profile=none.yaml ops(insert=1)".to_owned(), "Cannot read the profile", false),
        ("user profile=bare.yaml ops(insert=1)".to_owned(), "has no table_definition", false),
        ("user profile=level.yaml ops(insert=1)".to_owned(), "no consistency level", false),
        ("user profile=broken.yaml ops(insert=1)".to_owned(), "Profile broken.yaml: ", false),
        ("user profile=wide.yaml ops(insert=1)".to_owned(), "more than 65k rows", false),
    ] {
        let error = asked(&line).unwrap_err();
        assert!(error.what.contains(what), "{line}: {error}");
        assert_eq!(error.unbuilt, unbuilt, "{line}: {error}");
    }
    let said = asked("user profile=posts.yaml ops(insert=1) n=9 -col n=fixed(3)").unwrap().notices;
    assert!(said.iter().any(|notice| notice.starts_with("-col has no effect")), "{said:?}");
}
