//! Tests of jobs: command lines in, what is driven and told out.

use super::*;
use crate::ycsb::{Exporter, From, Kind};
use proptest::prelude::*;

const CORE: &str = "workload=site.ycsb.workloads.CoreWorkload";

fn job(words: &str) -> Result<Job, JobError> {
    let words: Vec<_> = words.split(' ').chain(["-p", CORE]).collect();
    Job::read(&Line::parse(&words)?)
}

fn read(words: &str) -> Job {
    job(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn refused(words: &str) -> String {
    job(words).map(|job| format!("{job:?}")).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_original() {
    let job = read("run basic");
    assert_eq!((job.threads, job.operations, job.spin), (1, None, false));
    assert_eq!(job.workload.plan.keys.records, 2_147_483_647);
    let names: Vec<_> = job.workload.plan.run.iter().map(|o| (&o.name[..], o.weight)).collect();
    assert_eq!(names, [("read", 0.95), ("update", 0.05)]);
    let m = &job.measurement;
    assert_eq!((m.kind, m.from, m.exporter), (Kind::Hdr, From::Sent, Exporter::Text));
    assert_eq!((m.percentiles.as_slice(), m.status_s), ([50.0, 95.0, 99.0].as_slice(), None));
    assert!(matches!(job.binding, Binding::Basic(basic) if basic.verbose && !basic.count));
    assert!(job.notices.is_empty() && job.warnings.is_empty(), "{:?}", job.notices);
    let Binding::Cql(cql) = read("run cassandra-cql -p hosts=a,b").binding else { panic!() };
    assert_eq!(cql.hosts, ["a:9042", "b:9042"]);
    assert_eq!((cql.read_level.as_str(), cql.write_level.as_str()), ("QUORUM", "QUORUM"));
    assert_eq!((cql.keyspace.as_str(), cql.timeout_ms, cql.connections), ("ycsb", 12_000, 1));
}

#[test]
fn the_load_counts_its_keys_as_the_original_does() {
    let keys = |words: &str| {
        let job = read(words);
        let keys = &job.workload.plan.keys;
        (job.command, keys.start, keys.loaded, job.operations)
    };
    let load = Command::Load;
    assert_eq!(keys("load basic -p recordcount=1000"), (load, 0, 1000, Some(1000)));
    let part = "load basic -p recordcount=1000 -p insertstart=200 -p insertcount=300";
    assert_eq!(keys(part), (load, 200, 300, Some(300)));
    // Without insertcount the original goes on beyond recordcount.
    let beyond = "load basic -p recordcount=1000 -p insertstart=200";
    assert_eq!(keys(beyond), (load, 200, 1000, Some(1000)));
    assert_eq!(keys("-load -db basic -p recordcount=0").2, 2_147_483_647);
}

#[test]
fn more_threads_than_operations_are_cut_with_the_words_of_the_original() {
    let job = read("run basic -threads 9 -p operationcount=4");
    assert_eq!((job.threads, job.warnings.len()), (4, 1));
    assert_eq!(read("run basic -threads 9").threads, 9);
}

#[test]
fn java_reads_booleans_its_own_way() {
    let columns = |value: &str| {
        let job = read(&format!("run basic -p readallfields={value}"));
        job.workload.plan.run[0].steps[0].choices
    };
    assert_eq!((columns("TRUE"), columns("yes"), columns("")), (1, 10, 10));
    let job = read("run basic -p insertorder=random -p hotspotdatafraction=7");
    assert_eq!(job.workload.plan.keys.order, crate::KeyOrder::Ordered);
    assert!(job.notices.iter().any(|n| n.contains("hotspotdatafraction=7")), "{:?}", job.notices);
}

#[test]
fn what_has_no_effect_is_told_in_a_line() {
    let job = read("run basic -p htrace.x=1 -p nosuch=1 -p other=2 -p hosts=a -jvm-args -Xmx1g");
    let told = job.notices.join("\n");
    for part in ["htrace.x has no effect", "nosuch, other", "hosts", "-jvm-args -Xmx1g"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let unknown = read("run basic -p exporter=x.Y -p hdrhistogram.percentiles=1,many").notices;
    assert!(unknown.iter().any(|n| n.contains("exporter x.Y")), "{unknown:?}");
    assert!(unknown.iter().any(|n| n.contains("50,95,99")), "{unknown:?}");
}

#[test]
fn bindings_and_what_they_lack() {
    for (line, told) in [
        ("run mongodb", "binding 'mongodb' is not driven here"),
        ("run cassandra-cql", "hosts=HOST"),
        ("run scylla -p hosts=a", "scylla.hosts=HOST"),
        ("run cassandra-cql -p hosts=a -p cassandra.useSSL=true", "no TLS"),
        ("run cassandra-cql -p hosts=a -p cassandra.tracing=true", "not traced"),
        ("run scylla -p scylla.hosts=a -p scylla.lwt=true", "IF"),
        ("run cassandra-cql -p hosts=a -p port=0", "port='0'"),
        ("-db basic", "begin it with load or run"),
        ("run -s", "names no binding"),
        ("run basic -p workload=x.TimeSeriesWorkload -P /nowhere", "/nowhere"),
        ("run basic -p measurementtype=raw", "operationcount"),
        ("run basic -p measurementtype=none", "measurementtype='none'"),
        (
            "run basic -p recordcount=5 -p insertstart=4 -p insertcount=3",
            "recordcount of at least 7",
        ),
    ] {
        assert!(refused(line).contains(told), "{line}: {}", refused(line));
    }
    let near = read("run scylla -p scylla.hosts=::1 -p scylla.local_dc=x -p scylla.port=9");
    let Binding::Cql(cql) = near.binding else { panic!() };
    assert_eq!((cql.read_level.as_str(), cql.hosts[0].as_str()), ("LOCAL_QUORUM", "[::1]:9"));
    assert_eq!(cql.datacenter.as_deref(), Some("x"));
}

#[test]
fn passwords_are_used_and_not_shown() {
    let job =
        read("run cassandra-cql -p hosts=a -p cassandra.username=u -p cassandra.password=pw7");
    let Binding::Cql(cql) = &job.binding else { panic!() };
    assert_eq!(cql.credentials, Some(("u".to_owned(), "pw7".to_owned())));
    assert!(job.password && !format!("{:?}", job.properties).contains("pw7"));
    assert!(!read("run basic").password);
}

#[test]
fn a_workload_class_is_required() {
    let line = Line::parse(&["run", "basic"]).unwrap();
    assert!(Job::read(&line).unwrap_err().to_string().starts_with("Missing property: workload"));
    let other = "-p workload=site.ycsb.workloads.TimeSeriesWorkload";
    let words: Vec<_> = "run basic".split(' ').chain(other.split(' ')).collect();
    let error = Job::read(&Line::parse(&words).unwrap()).unwrap_err().to_string();
    assert!(error.contains("CoreWorkload"), "{error}");
}

proptest! {
    #[test]
    fn no_property_panics(
        pairs in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "recordcount", "operationcount", "insertstart", "insertcount", "threadcount",
                    "target", "fieldlength", "requestdistribution", "hotspotdatafraction",
                    "measurementtype", "hdrhistogram.percentiles", "status.interval", "exporter",
                    "hosts", "port", "cassandra.readtimeoutmillis", "basicdb.simulatedelay",
                    "dotransactions", "insertproportion", "zeropadding", "maxscanlength",
                ]),
                prop_oneof!["[0-9]{0,20}", "-?[0-9.e]{0,8}", "\\PC{0,6}", "true|latest|raw"],
            ),
            0..8,
        ),
        basic: bool,
    ) {
        let binding = if basic { "basic" } else { "cassandra-cql" };
        let mut words = vec!["run".to_owned(), binding.to_owned()];
        for (name, value) in pairs {
            words.extend(["-p".to_owned(), format!("{name}={value}")]);
        }
        words.extend(["-p".to_owned(), CORE.to_owned()]);
        if let Ok(line) = Line::parse(&words) {
            let _ = Job::read(&line);
        }
    }
}
