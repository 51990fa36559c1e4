//! The options of every group: prefixes, patterns, defaults, groupings.
//!
//! Those of the generations 3.11 and 5 of Apache Cassandra and of ScyllaDB's fork together: what
//! one of them takes is taken. Source: cassandra-stress, `settings/Settings*.java`.

use super::options::{Opt, Pattern, opt, required};

/// Consistency levels that a line may name.
pub(crate) const CONSISTENCIES: &[&str] = &[
    "ONE",
    "QUORUM",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "ALL",
    "ANY",
    "TWO",
    "THREE",
    "LOCAL_ONE",
    "SERIAL",
    "LOCAL_SERIAL",
];
const SERIAL: &[&str] = &["SERIAL", "LOCAL_SERIAL"];

const N: Opt =
    required("n=", Pattern::Count, "Operations to do; k, m, b stand for 10^3, 10^6, 10^9");
const DURATION: Opt = required("duration=", Pattern::Time, "Time to run, in s, m or h");
const ERR: Opt = opt(
    "err<",
    Pattern::Fraction,
    Some("0.02"),
    "Run until the standard error of the mean rate is below this share of it",
);
const N_MIN: Opt =
    opt("n>", Pattern::Digits, Some("30"), "Intervals that are measured at least until then");
const N_MAX: Opt =
    opt("n<", Pattern::Digits, Some("200"), "Intervals after which the run ends anyway");
const NO_WARMUP: Opt = opt("no-warmup", Pattern::Nothing, None, "Measure at once");
const TRUNCATE: Opt = opt(
    "truncate=",
    Pattern::Choice(&["never", "once", "always"]),
    Some("never"),
    "Empty the table: never, before the run, or before each part of it",
);
const CL: Opt = opt("cl=", Pattern::Choice(CONSISTENCIES), Some("LOCAL_ONE"), "Consistency level");
const SERIAL_CL: Opt =
    opt("serial-cl=", Pattern::Choice(SERIAL), Some("SERIAL"), "Serial consistency level");
const ADD: Opt = opt("add=", Pattern::Distribution, Some("fixed(1)"), "What counters grow by");
const KEYSIZE: Opt = opt("keysize=", Pattern::Digits, Some("10"), "Bytes of a key");

/// Words of `write`, `read` and the counters, by how their end is given.
pub(crate) const COMMAND: [&[Opt]; 3] = [
    &[ERR, N_MIN, N_MAX, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
    &[N, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
    &[DURATION, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
];

/// What `ratio(...)` may hold.
pub(crate) const RATIOS: &[Opt] = &[
    opt("read=", Pattern::Ratio, Some("1"), "Weight of reads"),
    opt("write=", Pattern::Ratio, Some("1"), "Weight of writes"),
    opt("counter_write=", Pattern::Ratio, None, "Weight of additions to counters"),
    opt("counter_read=", Pattern::Ratio, None, "Weight of reads of counters"),
];
const RATIO: Opt = opt(
    "ratio",
    Pattern::Several(RATIOS, false),
    None,
    "How often each operation is done: ratio(read=2,write=1)",
);
const CLUSTERING: Opt = opt(
    "clustering=",
    Pattern::Distribution,
    Some("GAUSSIAN(1..10)"),
    "How many of a kind follow each other on a thread",
);

/// Words of `mixed`.
pub(crate) const MIXED: [&[Opt]; 3] = [
    &[CLUSTERING, RATIO, ERR, N_MIN, N_MAX, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
    &[CLUSTERING, RATIO, N, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
    &[CLUSTERING, RATIO, DURATION, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
];

const PROFILE: Opt = opt("profile=", Pattern::Anything, None, "Files of profiles, with commas");
const OPS: Opt = opt(
    "ops",
    Pattern::Several(&[], true),
    None,
    "How often each operation is done: ops(insert=2,validate=1,QUERY=1), of several profiles \
     SPEC.insert",
);

/// Words of `user`.
pub(crate) const PROFILES: [&[Opt]; 3] = [
    &[
        OPS, CLUSTERING, PROFILE, ERR, N_MIN, N_MAX, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD,
        KEYSIZE,
    ],
    &[OPS, CLUSTERING, PROFILE, N, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
    &[OPS, CLUSTERING, PROFILE, DURATION, NO_WARMUP, TRUNCATE, CL, SERIAL_CL, ADD, KEYSIZE],
];

/// Words of `-rate`: by itself, or so many threads.
pub(crate) const RATE: [&[Opt]; 2] = [
    &[
        opt("threads>=", Pattern::Digits, Some("4"), "Begin with so many threads"),
        opt("threads<=", Pattern::Digits, Some("1000"), "End at so many threads"),
        opt("auto", Pattern::Nothing, None, "End when more threads do no more"),
    ],
    &[
        required("threads=", Pattern::Digits, "So many threads, each with one operation"),
        opt("throttle=", Pattern::PerSecond, Some("0/s"), "At most so many; service time is shown"),
        opt("fixed=", Pattern::PerSecond, Some("0/s"), "A schedule; response time is shown"),
    ],
];

const CONTENTS: Opt = opt(
    "contents=",
    Pattern::Choice(&["sorted", "shuffled"]),
    None,
    "Order of the rows of a partition",
);

/// Words of `-pop`: a sequence, or a distribution.
pub(crate) const POP: [&[Opt]; 2] = [
    &[
        required("seq=", Pattern::Range, "Each seed of a range in turn"),
        opt("no-wrap", Pattern::Nothing, None, "End when each was taken once"),
        opt("read-lookback=", Pattern::Distribution, None, "Read so far behind the writes"),
        CONTENTS,
    ],
    &[
        opt("dist=", Pattern::Distribution, Some("gaussian(1..N)"), "Seeds are drawn from it"),
        CONTENTS,
    ],
];

const SLICE: Opt = opt("slice", Pattern::Nothing, None, "Read all columns instead of naming them");
const SUPER: Opt = opt("super=", Pattern::Digits, Some("0"), "Super columns; of no effect in CQL");
const COMPARATOR: Opt = opt(
    "comparator=",
    Pattern::Choice(&["TimeUUIDType", "AsciiType", "UTF8Type"]),
    Some("AsciiType"),
    "Order of the columns' names; of no effect in CQL",
);
const TIMESTAMP: Opt = opt("timestamp=", Pattern::Digits, None, "Write with this timestamp");
const SIZE: Opt = opt("size=", Pattern::Distribution, Some("FIXED(34)"), "Bytes of a column");

/// Words of `-col`: names, or a number.
pub(crate) const COL: [&[Opt]; 2] = [
    &[
        required("names=", Pattern::Anything, "Names of the columns"),
        SLICE,
        SUPER,
        COMPARATOR,
        TIMESTAMP,
        SIZE,
    ],
    &[
        opt("n=", Pattern::Distribution, Some("FIXED(5)"), "Columns"),
        SLICE,
        SUPER,
        COMPARATOR,
        TIMESTAMP,
        SIZE,
    ],
];

/// What `replication(...)` may hold besides options of the strategy.
pub(crate) const REPLICATION: &[Opt] = &[
    opt("strategy=", Pattern::Something, None, "Strategy"),
    opt("factor=", Pattern::Digits, Some("1"), "Replicas"),
];
/// What `compaction(...)` may hold besides options of the strategy.
pub(crate) const COMPACTION: &[Opt] = &[opt("strategy=", Pattern::Something, None, "Strategy")];
/// What `storage(...)` may hold besides options of the storage.
pub(crate) const STORAGE: &[Opt] = &[opt("type=", Pattern::Something, None, "Kind of storage")];

/// Words of `-schema`.
pub(crate) const SCHEMA: [&[Opt]; 1] = [&[
    opt("replication", Pattern::Several(REPLICATION, true), None, "Of the keyspace"),
    opt("storage", Pattern::Several(STORAGE, true), None, "Of the keyspace"),
    opt("keyspace=", Pattern::Anything, Some("keyspace1"), "Its name"),
    opt("compaction", Pattern::Several(COMPACTION, true), None, "Of the table"),
    opt("compression=", Pattern::Anything, None, "Of the table; none by default"),
]];

/// Words of `-node`.
pub(crate) const HOSTS: [&[Opt]; 1] = [&[
    opt("datacenter=", Pattern::Anything, None, "Use the hosts of this datacenter"),
    opt("rack=", Pattern::Anything, None, "Prefer the hosts of this rack"),
    opt("whitelist", Pattern::Nothing, None, "Use the listed hosts alone"),
    opt("file=", Pattern::Anything, None, "A file of hosts, one a line"),
    opt("loadbalance=", Pattern::Anything, None, "round-robin, dc-aware or rack-aware"),
    opt("remote-dc=", Pattern::Positive, None, "Hosts of other datacenters to fall back on"),
    opt("", Pattern::List, Some("localhost"), "Hosts, with commas"),
]];

const CQL3: Opt = required("cql3", Pattern::Nothing, "CQL 3");
const PREPARED: Opt = opt("prepared", Pattern::Nothing, None, "Prepare statements");
const UNPREPARED: Opt = opt("unprepared", Pattern::Nothing, None, "Do not prepare statements");
const VERSION: Opt = opt("protocolVersion=", Pattern::Versions, Some("4"), "Of the protocol");
const WIRE: Opt =
    opt("compression=", Pattern::Choice(&["none", "lz4", "snappy"]), Some("none"), "Of frames");
const PORT_OPT: Opt = opt("port=", Pattern::Digits, Some("9042"), "Of the native protocol");
const USER: Opt = opt("user=", Pattern::Something, None, "Who logs in");
const PASSWORD: Opt = opt("password=", Pattern::Something, None, "And with what");
const AUTH: Opt = opt("auth-provider=", Pattern::Anything, None, "A Java class");
const PENDING: Opt = opt("maxPending=", Pattern::Digits, None, "In flight on a connection");
const PER_HOST: Opt = opt("connectionsPerHost=", Pattern::Digits, Some("8"), "Connections");
const TIMEOUT: Opt =
    opt("requestTimeout=", Pattern::Digits, Some("12000"), "Of an attempt, milliseconds");

/// Words of `-mode`. The third form is that of later generations, which need no word for what is
/// the only way there.
pub(crate) const MODE: [&[Opt]; 5] = [
    &[
        required("native", Pattern::Nothing, "The native protocol"),
        CQL3,
        UNPREPARED,
        PREPARED,
        WIRE,
        PORT_OPT,
        USER,
        PASSWORD,
        AUTH,
        PENDING,
        PER_HOST,
        VERSION,
        TIMEOUT,
    ],
    &[
        required("simplenative", Pattern::Nothing, "The native protocol, a client of its own"),
        CQL3,
        PREPARED,
        PORT_OPT,
    ],
    &[
        UNPREPARED,
        PREPARED,
        WIRE,
        PORT_OPT,
        USER,
        PASSWORD,
        AUTH,
        PENDING,
        PER_HOST,
        VERSION,
        TIMEOUT,
        opt("cql3", Pattern::Nothing, None, "CQL 3"),
    ],
    &[
        required("4x", Pattern::Nothing, "The native protocol, by another driver"),
        CQL3,
        UNPREPARED,
        WIRE,
        PORT_OPT,
        USER,
        PASSWORD,
        AUTH,
        PENDING,
        PER_HOST,
        VERSION,
        TIMEOUT,
    ],
    &[
        required("thrift", Pattern::Nothing, "The protocol before CQL"),
        opt("smart", Pattern::Nothing, None, "Send to replicas"),
        USER,
        PASSWORD,
    ],
];
/// The grouping of [`MODE`] that is Thrift.
pub(crate) const THRIFT: usize = 4;

/// Words of `-errors`.
pub(crate) const ERRORS: [&[Opt]; 1] = [&[
    opt("retries=", Pattern::Digits, Some("9"), "Further attempts at an operation that failed"),
    opt("ignore", Pattern::Nothing, None, "Go on when operations fail"),
    opt("fail-fast", Pattern::Nothing, None, "End at the first failure of a duration= run"),
    opt("skip-read-validation", Pattern::Nothing, None, "Do not look at what is read"),
    opt("skip-unsupported-columns", Pattern::Nothing, None, "Of a profile"),
    opt(
        "delay-policy=",
        Pattern::Choice(&["constant", "linear", "exponential"]),
        Some("constant"),
        "How the pause before a further attempt grows",
    ),
    opt("min-delay-ms=", Pattern::Digits, Some("0"), "Its least length"),
    opt("max-delay-ms=", Pattern::Digits, Some("20000"), "Its greatest length"),
]];

/// Words of `-log`.
pub(crate) const LOG: [&[Opt]; 1] = [&[
    opt(
        "level=",
        Pattern::Choice(&["minimal", "normal", "verbose"]),
        Some("normal"),
        "How much is said of failures",
    ),
    opt("no-summary", Pattern::Nothing, None, "No results at the end"),
    opt("file=", Pattern::Anything, None, "Write there instead of to the terminal"),
    opt("hdrfile=", Pattern::Anything, None, "Histograms of each interval"),
    opt("interval=", Pattern::Interval, Some("1s"), "Length of an interval"),
    opt("no-settings", Pattern::Nothing, None, "No settings at the start"),
    opt("print-statements-on-error", Pattern::Nothing, None, "Show the CQL of what failed"),
]];

/// Words of `-insert`.
pub(crate) const INSERT: [&[Opt]; 1] = [&[
    opt("revisit=", Pattern::Distribution, Some("uniform(1..1M)"), "Partitions come back"),
    opt("visits=", Pattern::Distribution, Some("fixed(1)"), "Parts a partition is written in"),
    opt("partitions=", Pattern::Distribution, None, "Partitions in a batch"),
    opt(
        "batchtype=",
        Pattern::Choice(&["unlogged", "logged", "counter"]),
        None,
        "Kind of the batch",
    ),
    opt("select-ratio=", Pattern::Anything, None, "Share of the rows that is written"),
    opt("row-population-ratio=", Pattern::Anything, None, "Share of the columns that is written"),
    opt("cl=", Pattern::Choice(CONSISTENCIES), None, "Consistency level"),
    opt("serial-cl=", Pattern::Choice(SERIAL), None, "Serial consistency level"),
]];

/// Words of `-port`.
pub(crate) const PORT: [&[Opt]; 1] = [&[
    opt("native=", Pattern::Digits, Some("9042"), "Of the native protocol"),
    opt("thrift=", Pattern::Digits, Some("9160"), "Of Thrift"),
    opt("jmx=", Pattern::Digits, Some("7199"), "Of JMX"),
]];

/// Words of `-transport`.
pub(crate) const TRANSPORT: [&[Opt]; 1] = [&[
    opt("factory=", Pattern::Anything, None, "A Java class"),
    opt("truststore=", Pattern::Anything, None, "TLS: a file"),
    opt("truststore-password=", Pattern::Anything, None, "TLS: its password"),
    opt("keystore=", Pattern::Anything, None, "TLS: a file"),
    opt("keystore-password=", Pattern::Anything, None, "TLS: its password"),
    opt("ssl-protocol=", Pattern::Anything, Some("TLS"), "TLS: protocol"),
    opt("ssl-alg=", Pattern::Anything, None, "TLS: algorithm"),
    opt("store-type=", Pattern::Anything, Some("JKS"), "TLS: kind of the files"),
    opt("ssl-ciphers=", Pattern::Anything, None, "TLS: ciphers"),
    opt("hostname-verification=", Pattern::Anything, Some("false"), "TLS: check names"),
]];

/// Words of `-graph`.
pub(crate) const GRAPH: [&[Opt]; 1] = [&[
    required("file=", Pattern::Anything, "Where the report goes"),
    opt("revision=", Pattern::Anything, Some("unknown"), "Name of this configuration"),
    opt("title=", Pattern::Anything, None, "Title of the report"),
    opt("op=", Pattern::Anything, None, "Name of the operation"),
]];

/// Words of `-tokenrange`.
pub(crate) const TOKENRANGE: [&[Opt]; 1] = [&[
    opt("wrap", Pattern::Nothing, None, "Begin again behind the last range"),
    opt("split-factor=", Pattern::Count, Some("1"), "Parts of a range"),
    opt("savedata=", Pattern::Anything, None, "A file for what is read"),
]];

/// Groups with their groupings and what they are about, in the order of help.
pub(crate) const GROUPS: [(&str, &[&[Opt]], &str); 14] = [
    ("-pop", &POP, "Which partitions are visited, and in which order"),
    ("-insert", &INSERT, "How profiles write"),
    ("-col", &COL, "Columns of the table"),
    ("-rate", &RATE, "How many threads, and how fast"),
    ("-mode", &MODE, "How it connects"),
    ("-errors", &ERRORS, "What happens when an operation fails"),
    ("-schema", &SCHEMA, "The keyspace and the table"),
    ("-node", &HOSTS, "The hosts"),
    ("-log", &LOG, "What is shown and written, and how often"),
    ("-transport", &TRANSPORT, "TLS"),
    ("-port", &PORT, "Ports"),
    ("-graph", &GRAPH, "A report"),
    ("-tokenrange", &TOKENRANGE, "How profiles read token ranges"),
    ("-sendto", &[], "A daemon that runs the command"),
];

/// Commands, their other names, and what they do.
pub(crate) const COMMANDS: [(&str, &[&str], &str); 10] = [
    ("read", &[], "Reads of rows that a write has left, each compared with what was written"),
    ("write", &["insert"], "Writes of whole rows"),
    ("mixed", &[], "Reads and writes in given shares"),
    ("counter_write", &["counterwrite", "counter_add", "counteradd"], "Additions to counters"),
    ("counter_read", &["counterread", "counter_get", "counterget"], "Reads of counters"),
    ("user", &[], "Statements of a profile"),
    ("help", &["-?"], "Help on a command or an option"),
    ("print", &[], "What a distribution yields"),
    ("legacy", &[], "The command line before 2.1"),
    ("version", &[], "The version"),
];
