//! Command lines -> settings, and the errors of lines that mean nothing.

use super::*;
use crate::cassandra_stress::help::help;
use proptest::prelude::*;

fn no_file(_: &str) -> Result<String, String> {
    Err("no file".to_owned())
}

fn asked(text: &str) -> Result<Asked, LineError> {
    let arguments: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    parse(&arguments, Compat::Apache3, &no_file)
}

fn settings(text: &str) -> Settings {
    match asked(text) {
        Ok(Asked::Run(settings)) => *settings,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn the_published_lines_mean_what_they_meant() {
    let write = settings(
        "write no-warmup duration=300s cl=one -rate threads=1000 -schema replication(factor=3) \
         -pop seq=1..100000000 no-wrap -node a,b,c -log interval=1",
    );
    assert!(matches!(write.command, Command::Single(Kind::Write)));
    assert_eq!(write.end, End::Time { amount: 300, unit: TimeUnit::Seconds });
    assert_eq!(write.rate, Rate::Threads { threads: 1000, ops_per_s: 0, fixed: true });
    assert_eq!((write.warm_up, &write.consistency[..]), (false, "ONE"));
    let population =
        Population::Sequence { first: 1, last: 100_000_000, wrap: false, lookback: None };
    assert_eq!((write.population, write.log.interval_ms), (population, 1000));
    assert_eq!(write.hosts.listed, ["a", "b", "c"]);
    assert_eq!(write.schema.strategy, "org.apache.cassandra.locator.SimpleStrategy");
    assert_eq!(write.schema.strategy_options, [("replication_factor".into(), "3".into())]);
    assert!(write.notices.is_empty(), "{:?}", write.notices);

    let mixed = settings(
        "mixed ratio(write=2,read=8) no-warmup n=9000000 -node h -rate threads=400 -mode native \
         cql3 -pop dist=gaussian(1..9000000,4500000,10000) -schema keyspace=ks1 \
         replication(strategy=NetworkTopologyStrategy, datacenter1=1)",
    );
    let Command::Mixed { ratios, clustering } = &mixed.command else { panic!() };
    assert_eq!(ratios[..], [(Kind::Read, 8.0), (Kind::Write, 2.0)]);
    assert_eq!(clustering.text, "GAUSSIAN(1..10)");
    assert_eq!(mixed.schema.keyspace, "ks1");
    assert_eq!(mixed.schema.strategy_options, [("datacenter1".into(), "1".into())]);
    assert_eq!(mixed.command.running(), "[READ, WRITE]");
    // What creates nothing says so.
    assert!(mixed.notices.iter().any(|n| n.starts_with("-schema replication")), "{mixed:?}");
}

#[test]
fn defaults_are_the_originals() {
    let write = settings("write n=5k");
    assert_eq!(write.rate, Rate::Threads { threads: 200, ops_per_s: 0, fixed: true });
    let all = Population::Sequence { first: 1, last: 5000, wrap: true, lookback: None };
    assert_eq!((write.population, write.end), (all, End::Count(5000)));
    assert_eq!(write.columns.names, ["C0", "C1", "C2", "C3", "C4"]);
    assert_eq!((write.key_size, write.errors.retries, write.warm_up), (10, 9, true));
    assert_eq!(write.mode.connections_per_host, 8);
    let read = settings("read");
    assert_eq!(read.rate, Rate::Stepped { auto: true, threads_min: 4, threads_max: 1000 });
    let Population::Drawn(drawn) = &read.population else { panic!() };
    assert_eq!(drawn.text, "gaussian(1..1000000)");
    let End::Uncertainty { target, intervals_min, intervals_max } = read.end else { panic!() };
    assert_eq!((target, intervals_min, intervals_max), (0.02, 30, 200));
    assert_eq!(read.hosts.listed, ["localhost"]);
}

#[test]
fn later_generations_differ_where_they_do() {
    let line = |compat| {
        let words = ["write", "n=1", "-mode", "native", "cql3"].map(str::to_owned);
        match parse(&words, compat, &no_file) {
            Ok(Asked::Run(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    };
    assert!(line(Compat::Scylla).schema.strategy.ends_with("NetworkTopologyStrategy"));
    let apache = line(Compat::Apache5);
    assert!(apache.mode.unprepared);
    assert_eq!(apache.notices[0], "Warning ignoring deprecated parameter: native");
    assert!(!line(Compat::Apache3).mode.unprepared);
}

#[test]
fn errors_are_of_the_originals_kind_with_place_and_cure() {
    // The text that stands where the error is.
    for (line, what, there) in [
        ("write -rate threads=4 fixed=5/s throttle=6/s", "can't have both fixed and", "5/s"),
        ("write n=1 -pop dist=gauss(1..x)", "Invalid parameter list for distribution", "x)"),
        ("write n=1 -pop dist=foo(1..2)", "Illegal distribution type: foo", "foo"),
        ("write n=1 -pop dist=gauss", "Illegal distribution specification: gauss", "gauss"),
        ("write n=1 -col size=weibull(1..2,3)", "Illegal distribution type: weibull", "weibull"),
        ("write n=x", "Invalid value x; must match pattern", "x"),
        ("write n=1 duration=5s", "Invalid write options provided", "write"),
        ("write m=1", "Invalid parameter m=1", "m=1"),
        ("rite n=1", "Invalid command rite", "rite"),
        ("-rate threads=5", "No command specified", "-rate"),
        ("write n=1 -schema replication(strategy=Odd)", "Invalid replication strategy", "Odd"),
        ("write n=1 -schema replication(abc)", "Invalid replication specification: abc", "abc"),
        ("mixed n=1 ratio(read=0,write=0)", "Must specify at least one command", "(read"),
        ("mixed n=1 ratio(reads=1)", "Invalid ratio specification: reads=1", "reads"),
        ("write n=1 -foo bar", "Error processing command line arguments. The following", "-foo"),
        ("write n=1 -pop seq=9..1", "Invalid value 9..1", "9..1"),
        ("write n=99999999999999999999", "For input string", "999"),
        ("write keysize=0 n=1", "Invalid value 0; a key has", "0"),
        ("write n=1 -port native=70000", "Invalid value 70000; a port", "70000"),
        ("write n=1 -mode native", "Invalid -mode options provided", "-mode"),
        ("write n=1 -graph title=x", "Invalid -graph options provided", "-graph"),
    ] {
        let error = match asked(line) {
            Err(error) => error,
            Ok(asked) => panic!("{line}: {asked:?}"),
        };
        assert!(error.what.starts_with(what), "{line}: {}", error.what);
        assert_eq!(error.column, line.find(there).map(|at| at + 1), "{line}: {error}");
        assert!(!error.cure.is_empty() && !error.unbuilt, "{line}");
    }
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for (line, what) in [
        ("user profile=https://x/y.yaml ops(insert=1)", "not fetched by https"),
        ("write n=1 -mode thrift", "Thrift"),
        ("write n=1 -sendto host", "-sendto"),
        ("write n=1 -transport truststore=x", "Java's keys"),
        ("legacy -o insert", "before 2.1"),
    ] {
        let error = asked(line).unwrap_err();
        assert!(error.unbuilt && error.what.contains(what), "{line}: {error}");
    }
}

#[test]
fn the_protocol_is_what_was_asked_for() {
    for (words, version, compression) in [
        ("", 4, "none"),
        ("native cql3 protocolVersion=5", 5, "none"),
        ("native cql3 compression=SNAPPY", 4, "snappy"),
        ("native cql3 protocolVersion=5 compression=lz4", 5, "lz4"),
    ] {
        let mode = if words.is_empty() { String::new() } else { format!("-mode {words}") };
        let mode = settings(&format!("write n=1 {mode}")).mode;
        assert_eq!((mode.protocol_version, mode.compression.as_str()), (version, compression));
    }
    let line = "write n=1 -mode native cql3 protocolVersion=5 compression=snappy";
    let error = asked(line).unwrap_err();
    assert!(error.what.contains("no snappy"), "{error}");
    assert_eq!(error.column, line.find("snappy").map(|at| at + 1));
}

#[test]
fn what_has_no_effect_is_said() {
    for (words, said) in [
        ("-mode native cql3 maxPending=5", "maxPending="),
        ("-node a rack=r1", "-node rack="),
        ("-tokenrange split-factor=2", "split-factor="),
        ("-col super=1", "-col super="),
        ("-insert partitions=fixed(1)", "-insert partitions="),
        ("-port native=9042 jmx=7199", "jmx="),
        ("-pop seq=1..5 contents=sorted", "contents="),
        ("-errors fail-fast", "fail-fast"),
        ("-col n=uniform(1..5)", "-col n=uniform"),
    ] {
        let notices = settings(&format!("write n=1 {words}")).notices;
        assert!(notices.iter().any(|n| n.contains(said)), "{words}: {notices:?}");
    }
}

#[test]
fn help_knows_every_command_and_group() {
    let names = table::COMMANDS.iter().map(|(name, ..)| *name);
    for topic in names.chain(table::GROUPS.iter().map(|(name, ..)| *name)) {
        assert!(help(Some(topic)).is_some_and(|text| !text.is_empty()), "{topic}");
    }
    assert!(help(Some("rate")).unwrap().contains("threads=?"));
    assert!(help(Some("nonsense")).is_none());
    assert!(matches!(asked("help -rate"), Ok(Asked::Help(Some(topic))) if topic == "-rate"));
    assert!(matches!(asked("help"), Ok(Asked::Help(None))));
    assert!(asked("help a b").is_err());
    assert!(matches!(asked("print dist=uniform(1..10)"), Ok(Asked::Print(_))));
    assert!(matches!(asked("version"), Ok(Asked::Version)));
}

#[test]
fn the_dump_tells_settings_and_no_password() {
    let text = settings("write n=100k -mode native cql3 user=me password=hunter2").dump();
    for line in [
        "******************** Stress Settings ********************",
        "  Type: write",
        "  Count: 100,000",
        "  Thread Count: 200",
        "  Sequence: 1..100000",
        "  Size Distribution: Fixed:  key=34",
        "  Password: *suppressed*",
        "  Keyspace: keyspace1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
    assert!(!text.contains("hunter2"));
    assert!(
        !format!("{:?}", settings("write n=1 -mode native cql3 user=a password=hunter2"))
            .contains("hunter2")
    );
}

#[test]
fn pauses_before_further_attempts() {
    let line = "write n=1 -errors delay-policy=exponential min-delay-ms=20 max-delay-ms=300";
    let read = settings(line);
    let delay = Delay { policy: DelayPolicy::Exponential, least_ms: 20, most_ms: 300 };
    assert_eq!((read.errors.delay, &read.notices[..]), (delay, &[][..]));
    assert!(read.dump().contains("  RetryPolicy: exponential\n  Minimum Delay: 20 MILLISECONDS\n"));
    for wrong in ["delay-policy=exponential", "min-delay-ms=9 max-delay-ms=8", "min-delay-ms=1b"] {
        assert!(asked(&format!("write n=1 -errors {wrong}")).is_err(), "{wrong}");
    }
}

/// Lines that the original prints of its 3.11, in their order.
#[test]
fn the_dump_has_the_groups_of_the_original() {
    let line = "write n=0 no-warmup -rate threads=2 -node 127.0.0.1 -insert \
                select-ratio=fixed(1)/2 -port native=9043 -tokenrange wrap split-factor=3";
    let text = settings(line).dump();
    let wanted = "Insert:
  Revisits: Uniform:  min=1,max=1000000
  Visits: Fixed:  key=1
  Select Ratio: Ratio: divisor=2.000000;delegate=Fixed:  key=1
  Row Population Ratio: Ratio: divisor=1.000000;delegate=Fixed:  key=1
  Batch Type: not batching
Columns:
";
    assert!(text.contains(wanted), "{text}");
    let wanted = "  Protocol Version: V4
  Username: null
  Password: null
  Auth Provide Class: null
  Max Pending Per Connection: 128
  Connections Per Host: 8
  Compression: NONE
Node:
";
    assert!(text.contains(wanted), "{text}");
    let wanted = "ssl-ciphers=TLS_RSA_WITH_AES_128_CBC_SHA,TLS_RSA_WITH_AES_256_CBC_SHA; 
Port:
  Native Port: 9043
  Thrift Port: 9160
  JMX Port: 7199
Send To Daemon:
  *not set*
Graph:
  File: null
  Revision: unknown
  Title: null
  Operation: WRITE
TokenRange:
  Wrap: true
  Split Factor: 3
";
    assert!(text.contains(wanted), "{text}");
}

/// Words of real lines, to be put together at random.
fn word() -> impl Strategy<Value = String> {
    let known: Vec<String> = table::GROUPS
        .iter()
        .flat_map(|(name, groupings, _)| {
            let options = groupings.iter().flat_map(|options| options.iter());
            std::iter::once((*name).to_owned()).chain(options.map(|o| o.prefix.to_owned()))
        })
        .chain(table::COMMANDS.iter().map(|(name, ..)| (*name).to_owned()))
        .chain(table::MIXED.iter().flat_map(|o| o.iter()).map(|o| o.prefix.to_owned()))
        .collect();
    let values = "(|[0-9]{1,20}|[0-9]{1,3}[bmks]|1\\.\\.9|fixed\\(1\\)|gauss\\(1\\.\\.9\\)|\
                  \\(a=b,factor=3\\)|5/s|native|cql3|é|.{0,6})";
    (prop::sample::select(known), values).prop_map(|(name, value)| name + &value)
}

proptest! {
    #[test]
    fn no_command_line_panics(
        command in prop::sample::select(vec!["write", "read", "mixed", "counter_write", "help"]),
        words in prop::collection::vec(word(), 0..9),
        noise in prop::collection::vec(".{0,12}", 0..3),
    ) {
        let arguments: Vec<_> =
            std::iter::once(command.to_owned()).chain(words).chain(noise).collect();
        for compat in [Compat::Apache3, Compat::Apache5, Compat::Scylla] {
            match parse(&arguments, compat, &no_file) {
                Ok(Asked::Run(settings)) => {
                    prop_assert!(!settings.dump().is_empty());
                }
                Ok(_) => {}
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
