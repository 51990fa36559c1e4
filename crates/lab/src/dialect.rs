//! Cures name flags of `wideload run`; here they get the words of the command line that was given.
//!
//! In: a text for people. Out: the same with each flag as that line has it; a flag that it has by
//! no name is said to be `wideload run`'s, so that nobody gives it there.

use crate::trial::Trial;
use record::Caveat;

/// Whose command line a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `wideload run` and what has its flags.
    Run,
    /// `wideload cassandra-stress`.
    CassandraStress,
    /// `wideload ycsb` over CQL.
    Ycsb,
    /// `wideload ycsb` over records.
    YcsbRecords,
    /// `wideload scale`.
    Scale,
}

/// What is said instead; longer texts come before those that they begin with.
type Words = &'static [(&'static str, &'static str)];

const CASSANDRA_STRESS: Words = &[
    ("--client-cpus and --target-cpus or taskset", "--client-cpus, the target with taskset"),
    (
        "--user NAME and --password-file FILE (or the environment variable WIDELOAD_PASSWORD)",
        "-mode user=NAME password=WORD",
    ),
    (
        "--user and the password in --password-file or WIDELOAD_PASSWORD",
        "user= and password= of -mode",
    ),
    ("--target HOST[:PORT]", "-node HOST -port native=PORT"),
    ("--protocol 4 --compression none", "-mode protocolVersion=4 compression=none"),
    ("--protocol", "-mode protocolVersion="),
    ("--compression", "-mode compression="),
    ("--in-flight-max (or --threads)", "-rate threads="),
    ("--in-flight-max", "-rate threads="),
    ("--threads", "-rate threads="),
    ("--rate", "-rate fixed="),
    ("--throttle", "-rate throttle="),
    ("--records", "n="),
    ("--ops", "n="),
    ("--duration", "duration="),
    ("--warm auto", "a run before it"),
    ("--warm-max", "a run before it"),
    ("--warm", "a run before it"),
    ("--connections", "-mode connectionsPerHost="),
    ("--timeout", "-mode requestTimeout="),
    ("--retries", "-errors retries="),
    ("(--give-up)", "(three timeouts, 30 s at least)"),
    ("--interval", "-log interval="),
    ("--target", "-node"),
    ("--fixed-hosts", "-node whitelist"),
    ("--datacenter", "-node datacenter="),
    ("--consistency", "cl="),
    ("--replication", "-schema replication()"),
    ("--keyspace", "-schema keyspace="),
    ("--wait spin", "cpus that no target is on"),
];

const YCSB: Words = &[
    ("--client-cpus and --target-cpus or taskset", "taskset"),
    (
        "--user NAME and --password-file FILE (or the environment variable WIDELOAD_PASSWORD)",
        "the binding's properties username and password with -p or -P",
    ),
    (
        "--user and the password in --password-file or WIDELOAD_PASSWORD",
        "the binding's properties username and password",
    ),
    ("--target HOST[:PORT]", "-p hosts=HOST -p port=PORT"),
    ("--in-flight-max (or --threads)", "-threads"),
    ("--in-flight-max", "-threads"),
    ("--threads", "-threads"),
    ("--rate", "-target"),
    ("--throttle", "-target"),
    ("--records", "-p recordcount="),
    ("--ops", "-p operationcount="),
    ("--duration", "-p maxexecutiontime="),
    ("--warm auto", "a run before it"),
    ("--warm-max", "a run before it"),
    ("--warm", "a run before it"),
    ("--connections", "-p cassandra.maxconnections="),
    ("--timeout", "-p cassandra.readtimeoutmillis="),
    ("--target", "-p hosts="),
    ("--keyspace", "-p cassandra.keyspace="),
    ("--table", "-p table="),
    ("--client-cpus", "taskset"),
    ("--wait spin", "-p spin.sleep=true"),
];

const YCSB_RECORDS: Words = &[
    ("--client-cpus and --target-cpus or taskset", "taskset"),
    ("--target HOST[:PORT]", "-p as.host=HOST -p as.port=PORT"),
    ("--in-flight-max (or --threads)", "-threads"),
    ("--in-flight-max", "-threads"),
    ("--threads", "-threads"),
    ("--rate", "-target"),
    ("--throttle", "-target"),
    ("--records", "-p recordcount="),
    ("--ops", "-p operationcount="),
    ("--duration", "-p maxexecutiontime="),
    ("--warm auto", "a run before it"),
    ("--warm-max", "a run before it"),
    ("--warm", "a run before it"),
    ("--connections", "-threads"),
    ("--timeout", "-p as.timeout="),
    ("--target", "-p as.host="),
    ("--namespace", "-p as.namespace="),
    ("--table", "-p table="),
    ("--client-cpus", "taskset"),
    ("--wait spin", "-p spin.sleep=true"),
];

const SCALE: Words = &[
    ("--duration or --ops", "--duration"),
    ("--in-flight-max (or --threads)", "--threads"),
    ("--in-flight-max", "--threads"),
    ("--client-cpus and --target-cpus or taskset", "--client-cpus"),
];

/// Flags of their own that `wideload run` has too.
const SHARED_WITH_STRESS: &[&str] = &["client-cpus", "seed", "out"];
const SHARED_WITH_YCSB: &[&str] = &["out"];
const SHARED_WITH_SCALE: &[&str] = &[
    "target",
    "numa-count",
    "records",
    "duration",
    "warm",
    "threads",
    "serial",
    "client-cpus",
    "seed",
    "out",
    "json",
];

impl Dialect {
    /// Of the command line that a trial came from.
    pub(crate) fn of(trial: &Trial) -> Self {
        match (&trial.scripted, &trial.foreign) {
            (Some(_), _) => Self::CassandraStress,
            (None, Some(_)) if trial.records.is_some() => Self::YcsbRecords,
            (None, Some(_)) => Self::Ycsb,
            (None, None) => Self::Run,
        }
    }

    /// What its lines have instead of flags of `wideload run`.
    fn words(self) -> Words {
        match self {
            Self::Run => &[],
            Self::CassandraStress => CASSANDRA_STRESS,
            Self::Ycsb => YCSB,
            Self::YcsbRecords => YCSB_RECORDS,
            Self::Scale => SCALE,
        }
    }

    /// Flags of `wideload run` that it has too, without their dashes.
    #[must_use]
    pub fn shared(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[],
            Self::CassandraStress => SHARED_WITH_STRESS,
            Self::Ycsb | Self::YcsbRecords => SHARED_WITH_YCSB,
            Self::Scale => SHARED_WITH_SCALE,
        }
    }

    /// A text with flags as this command line has them.
    #[must_use]
    pub fn told(self, text: &str) -> String {
        if self == Self::Run || !text.contains("--") {
            return text.to_owned();
        }
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            // A command of ours keeps its flags.
            if let Some(end) = rest.strip_prefix("`wideload ").and_then(|behind| behind.find('`')) {
                let (command, behind) = rest.split_at("`wideload ".len() + end + 1);
                told.push_str(command);
                rest = behind;
                continue;
            }
            let size = match self.words().iter().find(|(flag, _)| begins(rest, flag)) {
                Some((flag, word)) => {
                    told.push_str(word);
                    flag.len()
                }
                None => match flag_at(&told, rest) {
                    Some(flag) => {
                        told.push_str(flag);
                        if !self.keeps(&flag[2..]) {
                            told.push_str(" of `wideload run`");
                        }
                        flag.len()
                    }
                    None => {
                        told.push(c);
                        c.len_utf8()
                    }
                },
            };
            rest = &rest[size..];
        }
        told
    }

    /// Whether a flag may stand as it is.
    fn keeps(self, flag: &str) -> bool {
        const OWN: [&str; 4] = ["ddl", "compat", "create", "heap-total"];
        self.shared().contains(&flag) || OWN.contains(&flag)
    }

    /// A caveat in its words.
    pub(crate) fn caveat(self, caveat: Caveat) -> Caveat {
        Caveat {
            code: caveat.code,
            text: self.told(&caveat.text),
            evidence: self.told(&caveat.evidence),
            cure: self.told(&caveat.cure),
        }
    }
}

/// Whether a text begins with these words, as a whole.
fn begins(text: &str, words: &str) -> bool {
    let behind = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    text.strip_prefix(words).is_some_and(behind)
}

/// The flag at the start of a text; `before` stands before it.
fn flag_at<'t>(before: &str, text: &'t str) -> Option<&'t str> {
    let name = text.strip_prefix("--")?;
    let is_inside = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let size = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(name.len());
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    (starts && !is_inside).then(|| text[..size + 2].trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_as_the_line_has_them() {
        let cure = "Measure longer with --duration or --ops, or shorten --interval.";
        for (dialect, told) in [
            (Dialect::Run, cure),
            (
                Dialect::CassandraStress,
                "Measure longer with duration= or n=, or shorten -log interval=.",
            ),
            (
                Dialect::Ycsb,
                "Measure longer with -p maxexecutiontime= or -p operationcount=, or shorten \
                 --interval of `wideload run`.",
            ),
            (
                Dialect::Scale,
                "Measure longer with --duration, or shorten --interval of `wideload run`.",
            ),
        ] {
            assert_eq!(dialect.told(cure), told);
        }
        let stress = |text| Dialect::CassandraStress.told(text);
        assert_eq!(stress("give --target HOST[:PORT]"), "give -node HOST -port native=PORT");
        assert_eq!(stress("more --client-cpus"), "more --client-cpus");
        let odd = "its --engine, a -- b";
        assert_eq!(stress(odd), "its --engine of `wideload run`, a -- b");
        assert_eq!(stress("é --warm auto"), "é a run before it");
        let command = "(`wideload check --target h` says: --rate";
        assert_eq!(stress(command), "(`wideload check --target h` says: -rate fixed=");
    }
}
