//! The groups of a command line: `-rate`, `-pop`, `-col` and all the others.

use super::shown::store_as_pem;
use super::{
    Columns, Command, Compat, Delay, DelayPolicy, Drawn, End, Errors, Graph, Hosts, Kind, Level,
    Log, Mode, Population, Rate, Reader, Schema, TokenRange, credentials, drawn, names_of, number,
};
use crate::cassandra_stress::line::{Line, LineError, Word};
use crate::cassandra_stress::options::{Chosen, Opt, parts, select};
use crate::cassandra_stress::profile::Insert;
use crate::cassandra_stress::rows::Order;
use crate::cassandra_stress::table;
use crate::revisits::Visits;

/// Clients beyond which memory would be asked for that no host has.
const THREADS_MAX: u32 = 10_000_000;
/// Threads of a command that writes a given number of rows and says nothing else.
const THREADS_WRITING: u32 = 200;
/// Seeds of a population whose size nothing tells.
const POPULATION: u64 = 1_000_000;
/// Where the classes of strategies live.
const LOCATOR: &str = "org.apache.cassandra.locator.";
/// Strategies that need no package before them.
const STRATEGIES: [&str; 5] = [
    "SimpleStrategy",
    "NetworkTopologyStrategy",
    "LocalStrategy",
    "OldNetworkTopologyStrategy",
    "EverywhereStrategy",
];

/// A group's words, where the line has the group.
fn chosen(
    line: &mut Line,
    name: &str,
    groupings: &[&'static [Opt]],
) -> Result<Option<Chosen>, LineError> {
    line.take(name).map(|group| select(&group, groupings)).transpose()
}

fn text_of(chosen: &Chosen, prefix: &str) -> Option<String> {
    chosen.get(prefix).map(|word| word.text.clone())
}

fn here(text: &str) -> Word {
    Word { text: text.to_owned(), column: 1 }
}

impl Reader {
    pub(super) fn send_to(&mut self, line: &mut Line) -> Result<(), LineError> {
        for name in ["-sendto", "-send-to"] {
            if let Some(group) = line.take(name) {
                let word = Word { text: group.name, column: group.column };
                let what = "-sendto needs a stress daemon, which is not built";
                return Err(LineError::unbuilt(&word, what, "Start the command on that host."));
            }
        }
        Ok(())
    }

    /// The port that is given, if one is.
    pub(super) fn port(&mut self, line: &mut Line) -> Result<Option<u16>, LineError> {
        let Some(chosen) = chosen(line, "-port", &table::PORT)? else { return Ok(None) };
        for prefix in ["thrift=", "jmx="] {
            if chosen.has(prefix) {
                self.ignored(&format!("-port {prefix}"), "neither Thrift nor JMX is spoken");
            }
        }
        chosen.get("native=").map(port).transpose()
    }

    pub(super) fn rate(
        &mut self,
        line: &mut Line,
        command: &Command,
        end: End,
    ) -> Result<Rate, LineError> {
        let Some(chosen) = chosen(line, "-rate", &table::RATE)? else {
            let counted = matches!(end, End::Count(n) if n > 0);
            let writes = matches!(command, Command::Single(kind) if kind.writes());
            return Ok(match counted && writes {
                true => Rate::Threads { threads: THREADS_WRITING, ops_per_s: 0, fixed: true },
                false => Rate::Stepped { auto: true, threads_min: 4, threads_max: 1000 },
            });
        };
        let threads = |prefix: &str, default: u32| match chosen.get(prefix) {
            Some(word) => match number::<u32>(word, prefix)? {
                n if (1..=THREADS_MAX).contains(&n) => Ok(n),
                n => {
                    let what = format!("Invalid value {n}; there are 1 to {THREADS_MAX} threads");
                    Err(LineError::at(word, what, "Write threads=64."))
                }
            },
            None => Ok(default),
        };
        if chosen.grouping == 0 {
            let auto = chosen.has("auto");
            let (threads_min, threads_max) =
                (threads("threads>=", 4)?, threads("threads<=", 1000)?);
            return Ok(Rate::Stepped { auto, threads_min, threads_max });
        }
        let per_s = |prefix: &str| match chosen.get(prefix) {
            Some(word) => {
                let digits = &word.text[..word.text.len() - 2];
                number::<i32>(&Word { text: digits.to_owned(), ..*word }, prefix)
                    .map(i32::cast_unsigned)
            }
            None => Ok(0),
        };
        let (throttle, fixed) = (per_s("throttle=")?, per_s("fixed=")?);
        if let (true, true, Some(word)) = (throttle != 0, fixed != 0, chosen.get("fixed=")) {
            let what = "can't have both fixed and throttle set, choose one.";
            return Err(LineError::at(word, what, "Leave one of them out."));
        }
        let ops_per_s = throttle.max(fixed);
        Ok(Rate::Threads { threads: threads("threads=", 1)?, ops_per_s, fixed: ops_per_s == fixed })
    }

    pub(super) fn population(
        &mut self,
        line: &mut Line,
        command: &Command,
        end: End,
    ) -> Result<(Population, Order), LineError> {
        let all = match end {
            End::Count(n) if n > 0 => n,
            _ => POPULATION,
        };
        let Some(chosen) = chosen(line, "-pop", &table::POP)? else {
            let population = match command.only_writes() {
                true => Population::Sequence { first: 1, last: all, wrap: true, lookback: None },
                false => Population::Drawn(drawn(&here(&format!("gaussian(1..{all})")))?),
            };
            return Ok((population, Order::Arbitrary));
        };
        let contents = text_of(&chosen, "contents=").map(|word| word.to_lowercase());
        let order = match contents.as_deref() {
            Some("sorted") => Order::Sorted,
            Some("shuffled") => Order::Shuffled,
            _ => Order::Arbitrary,
        };
        if contents.is_some() && !matches!(command, Command::User(_)) {
            self.ignored("contents=", "each partition of this table is one row");
        }
        let Some(word) = chosen.get("seq=") else {
            let default = here(&format!("gaussian(1..{all})"));
            let population = drawn(chosen.get("dist=").unwrap_or(&default))?;
            if population.distribution.min() < 0 {
                let word = chosen.get("dist=").unwrap_or(&default);
                let what = "Seeds below 0 are not visited here";
                return Err(LineError::unbuilt(word, what, "Write a range from 1 on."));
            }
            return Ok((Population::Drawn(population), order));
        };
        let (from, to) = word.text.split_once("..").unwrap_or((&word.text, ""));
        let to = to.trim_start_matches('.');
        let bound = |text: &str, at: usize| {
            let column = word.column + at;
            number::<u64>(&Word { text: text.to_owned(), column }, "seq=")
        };
        let (first, last) = (bound(from, 0)?, bound(to, word.text.len() - to.len())?);
        if last < first || last >= 1 << 62 {
            let what = format!("Invalid value {}; must be a range of seeds", word.text);
            return Err(LineError::at(word, what, "Write the lesser bound first: seq=1..1M."));
        }
        let lookback = chosen.get("read-lookback=").map(drawn).transpose()?;
        if let (Some(drawn), Some(word)) = (&lookback, chosen.get("read-lookback=")) {
            let furthest = drawn.distribution.max();
            if furthest < 0 || furthest as u64 > last + 1 {
                let what = format!("Invalid lookback distribution; max value is {furthest}");
                return Err(LineError::at(word, what, format!("The series has {last}.")));
            }
            if !command.mixes() {
                self.ignored("read-lookback=", "this command does not both read and write");
            }
        }
        let wrap = !chosen.has("no-wrap");
        Ok((Population::Sequence { first, last, wrap, lookback }, order))
    }

    pub(super) fn token_range(
        &mut self,
        line: &mut Line,
        command: &Command,
    ) -> Result<TokenRange, LineError> {
        let chosen = chosen(line, "-tokenrange", &table::TOKENRANGE)?.unwrap_or_default();
        let scans = match command {
            Command::User(user) => user.scans(),
            Command::Single(_) | Command::Mixed { .. } => false,
        };
        for (prefix, _) in chosen.written() {
            if !scans {
                let why = "no query over token ranges is among the operations";
                self.ignored(&format!("-tokenrange {prefix}"), why);
            } else if prefix == "savedata=" {
                self.ignored("-tokenrange savedata=", "rows are counted and not kept");
            }
        }
        let parts = match chosen.get("split-factor=") {
            Some(word) => number::<u32>(word, "split-factor=")?.max(1),
            None => 1,
        };
        Ok(TokenRange { wraps: chosen.has("wrap"), parts })
    }

    pub(super) fn insert(
        &mut self,
        line: &mut Line,
        is_user: bool,
    ) -> Result<(Insert, Option<Visits>), LineError> {
        let chosen = chosen(line, "-insert", &table::INSERT)?.unwrap_or_default();
        for (prefix, word) in chosen.written() {
            if ["revisit=", "visits=", "partitions="].contains(&prefix) {
                drawn(word)?;
            }
            if !is_user {
                self.ignored(
                    &format!("-insert {prefix}"),
                    "no profile is written, rows come one by one",
                );
            }
        }
        match is_user {
            true => Ok((self.insert_settings(&chosen)?, self.visits(&chosen)?)),
            false => Ok((Insert::default(), None)),
        }
    }

    pub(super) fn columns(
        &mut self,
        line: &mut Line,
        command: &Command,
    ) -> Result<Columns, LineError> {
        /// Beyond, a row would not fit into a frame.
        const SIZE_MAX: i64 = 16 << 20;
        let chosen = chosen(line, "-col", &table::COL)?.unwrap_or_default();
        let is_user = matches!(command, Command::User(_));
        if is_user && chosen.written().next().is_some() {
            self.ignored("-col", "the profile says which columns there are");
        }
        let (names, count) = names_of(&chosen)?;
        if let Some(Drawn { text, .. }) =
            count.as_ref().filter(|c| c.distribution.constant().is_none())
        {
            let why = "CQL statements name all columns; there are as many as it has at most";
            self.ignored(&format!("the distribution in -col n={text}"), why);
        }
        for prefix in ["super=", "comparator="] {
            if chosen.has(prefix) {
                self.ignored(&format!("-col {prefix}"), "that is Thrift's");
            }
        }
        let default = here("FIXED(34)");
        let word = chosen.get("size=").unwrap_or(&default);
        let size = drawn(word)?;
        if size.distribution.max() > SIZE_MAX / names.len() as i64 {
            let what = format!("Invalid value {}; a row is larger than 16 MiB", word.text);
            return Err(LineError::at(word, what, "Write size=FIXED(34)."));
        }
        if chosen.has("size=") && !is_user && command.kinds().all(Kind::counts) {
            self.ignored("-col size=", "counters have one size");
        }
        let timestamp_us = chosen.get("timestamp=").map(|w| number(w, "timestamp=")).transpose()?;
        let comparator = text_of(&chosen, "comparator=").unwrap_or_else(|| "AsciiType".to_owned());
        let slice = chosen.has("slice");
        Ok(Columns { names, count, size, slice, timestamp_us, comparator })
    }

    pub(super) fn errors(&mut self, line: &mut Line, is_user: bool) -> Result<Errors, LineError> {
        let chosen = chosen(line, "-errors", &table::ERRORS)?.unwrap_or_default();
        let retries = match chosen.get("retries=") {
            Some(word) => match number::<u32>(word, "retries=")? {
                n if n <= 1000 => n,
                n => {
                    let what = format!("Invalid value {n}; at most 1000 retries");
                    return Err(LineError::at(word, what, "Write retries=9."));
                }
            },
            None => 9,
        };
        for (prefix, why) in [
            ("fail-fast", "the first operation that fails ends the run in any case"),
            ("skip-unsupported-columns", "no profile is written"),
        ] {
            let used = is_user && prefix == "skip-unsupported-columns";
            if chosen.has(prefix) && !used {
                self.ignored(&format!("-errors {prefix}"), why);
            }
        }
        let delay = delay(&chosen)?;
        let (ignore, skip_validation) = (chosen.has("ignore"), chosen.has("skip-read-validation"));
        Ok(Errors { retries, ignore, skip_validation, delay })
    }

    pub(super) fn log(&mut self, line: &mut Line) -> Result<Log, LineError> {
        let chosen = chosen(line, "-log", &table::LOG)?.unwrap_or_default();
        let interval_ms = match chosen.get("interval=") {
            Some(word) => {
                let lower = word.text.to_lowercase();
                let (digits, factor) = match lower.strip_suffix("ms") {
                    Some(digits) => (digits, 1),
                    None => (lower.trim_end_matches('s'), 1000),
                };
                let given: u64 = number(&Word { text: digits.to_owned(), ..*word }, "interval=")?;
                let interval_ms = given.saturating_mul(factor);
                if !(10..=3_600_000).contains(&interval_ms) {
                    let what = format!("Invalid value {}; must be 10ms to an hour", word.text);
                    return Err(LineError::at(word, what, "Write interval=1s."));
                }
                interval_ms
            }
            None => 1000,
        };
        if chosen.has("print-statements-on-error") {
            let why = "the message names operation and key, explain shows the statements";
            self.ignored("-log print-statements-on-error", why);
        }
        let level = match text_of(&chosen, "level=").unwrap_or_default().to_lowercase().as_str() {
            "minimal" => Level::Minimal,
            "verbose" => Level::Verbose,
            _ => Level::Normal,
        };
        Ok(Log {
            interval_ms,
            file: text_of(&chosen, "file="),
            hdr_file: text_of(&chosen, "hdrfile="),
            level,
            summary: !chosen.has("no-summary"),
            settings: !chosen.has("no-settings"),
        })
    }

    pub(super) fn mode(&mut self, line: &mut Line, given: Option<u16>) -> Result<Mode, LineError> {
        let (there, chosen) = match chosen(line, "-mode", &table::MODE)? {
            Some(chosen) => (true, chosen),
            None => (false, Chosen::default()),
        };
        if let (table::THRIFT, Some(word)) = (chosen.grouping, chosen.get("thrift")) {
            let what = "Thrift, which Cassandra 4.0 has no more, is not spoken";
            return Err(LineError::unbuilt(word, what, "Write -mode native cql3."));
        }
        let (protocol_version, compression) = self.protocol(&chosen)?;
        for (prefix, why) in [
            ("auth-provider=", "user= and password= are what is asked for"),
            ("maxPending=", "a connection takes as many as its stream ids"),
        ] {
            if chosen.has(prefix) {
                self.ignored(&format!("-mode {prefix}"), why);
            }
        }
        if let Some(word) = chosen.get("password=").filter(|_| !chosen.has("user=")) {
            let what = "A password without a user";
            return Err(LineError::at(word, what, "Write user=NAME password=WORD."));
        }
        let simple = chosen.has("simplenative");
        let modern = there && self.compat == Compat::Apache5;
        let unprepared = chosen.has("unprepared") || (simple || modern) && !chosen.has("prepared");
        if modern {
            for word in ["native", "cql3"] {
                if chosen.has(word) {
                    self.notices.push(format!("Warning ignoring deprecated parameter: {word}"));
                }
            }
        }
        if unprepared {
            let text = "The original would not prepare its statements here; they are prepared.";
            self.notices.push(text.to_owned());
        }
        let connections = chosen.get("connectionsPerHost=");
        let connections_per_host = match connections.map(|w| (w, number::<u32>(w, "it"))) {
            None => 8,
            Some((_, Ok(n))) if (1..=16_384).contains(&n) => n,
            Some((word, _)) => {
                let what = format!("Invalid value {}; must be 1 to 16384", word.text);
                return Err(LineError::at(word, what, "Write connectionsPerHost=8."));
            }
        };
        let timeout_ms = match chosen.get("requestTimeout=") {
            Some(word) => number::<u64>(word, "requestTimeout=")?.clamp(1, 3_600_000),
            None => 12_000,
        };
        let port = match (given, chosen.get("port=")) {
            (Some(port), _) => port,
            (None, Some(word)) => port(word)?,
            (None, None) => 9042,
        };
        let credentials = credentials(&chosen);
        Ok(Mode {
            credentials,
            protocol_version,
            compression,
            connections_per_host,
            timeout_ms,
            port,
            unprepared,
        })
    }

    /// Version and compression of the native protocol.
    fn protocol(&mut self, chosen: &Chosen) -> Result<(u8, String), LineError> {
        let version = match chosen.get("protocolVersion=") {
            Some(word) if word.text == "5" => 5,
            Some(word) if word.text != "4" => {
                self.ignored(&format!("protocolVersion={}", word.text), "version 4 is spoken");
                4
            }
            _ => 4,
        };
        let Some(word) = chosen.get("compression=") else { return Ok((version, "none".into())) };
        if version == 5 && word.text.eq_ignore_ascii_case("snappy") {
            let what = "Version 5 of the native protocol has no snappy";
            return Err(LineError::at(word, what, "Write compression=lz4 or protocolVersion=4."));
        }
        Ok((version, word.text.to_lowercase()))
    }

    pub(super) fn hosts(&mut self, line: &mut Line) -> Result<Hosts, LineError> {
        let chosen = chosen(line, "-node", &table::HOSTS)?.unwrap_or_default();
        for (prefix, why) in [
            ("rack=", "an operation goes to a replica of its key"),
            ("loadbalance=", "an operation goes to a replica of its key"),
            ("remote-dc=", "hosts of one datacenter are driven"),
        ] {
            if chosen.has(prefix) {
                self.ignored(&format!("-node {prefix}"), why);
            }
        }
        let list = text_of(&chosen, "").unwrap_or_else(|| "localhost".to_owned());
        Ok(Hosts {
            listed: list.split(',').map(str::to_owned).collect(),
            file: text_of(&chosen, "file="),
            whitelist: chosen.has("whitelist"),
            datacenter: text_of(&chosen, "datacenter="),
        })
    }

    pub(super) fn schema(
        &mut self,
        line: &mut Line,
        command: &Command,
    ) -> Result<Schema, LineError> {
        let there = line.take("-schema");
        if let (Command::User(_), Some(group)) = (command, &there) {
            let word = Word { text: group.name.clone(), column: group.column };
            let what = "-schema can only be provided with predefined operations insert, read, \
                        etc.; the 'user' command requires a schema yaml instead";
            return Err(LineError::at(&word, what, "Leave -schema out."));
        }
        let chosen = there.as_ref().map(|group| select(group, &table::SCHEMA)).transpose()?;
        let chosen = chosen.unwrap_or_default();
        let creates = matches!(command, Command::Single(kind) if kind.writes());
        for prefix in ["replication", "storage", "compaction", "compression="] {
            if chosen.has(prefix) && !creates {
                let why = "this command creates nothing, only keyspace= counts";
                self.ignored(&format!("-schema {prefix}"), why);
            }
        }
        let several = |prefix, options: &'static [Opt]| match chosen.get(prefix) {
            Some(word) => parts(prefix, word, options, true).map(Option::unwrap_or_default),
            None => Ok(Vec::new()),
        };
        let mut replication = several("replication", table::REPLICATION)?;
        let default = match self.compat {
            Compat::Scylla => "NetworkTopologyStrategy",
            Compat::Apache3 | Compat::Apache5 => "SimpleStrategy",
        };
        let mut take = |name: &str| {
            let index = replication.iter().position(|(key, _)| key == name)?;
            Some(replication.remove(index).1)
        };
        let (named, factor) = (take("strategy"), take("factor"));
        let strategy = match named {
            None => format!("{LOCATOR}{default}"),
            Some(word) if word.text.contains('.') => word.text,
            Some(word) if STRATEGIES.contains(&&word.text[..]) => format!("{LOCATOR}{}", word.text),
            Some(word) => {
                let what = format!("Invalid replication strategy: {}", word.text);
                let cure = format!("Write one of {}, or a class.", STRATEGIES.join(", "));
                return Err(LineError::at(&word, what, cure));
            }
        };
        let mut strategy_options = pairs(replication);
        let factored = strategy_options.iter().any(|(name, _)| name == "replication_factor");
        if !factored && (factor.is_some() || strategy == format!("{LOCATOR}{default}")) {
            let factor = factor.map_or("1".to_owned(), |word| word.text);
            strategy_options.push(("replication_factor".to_owned(), factor));
        }
        let mut compaction_options = pairs(several("compaction", table::COMPACTION)?);
        let index = compaction_options.iter().position(|(name, _)| name == "strategy");
        let compaction = index.map(|index| compaction_options.remove(index).1);
        let mut storage = pairs(several("storage", table::STORAGE)?);
        storage.sort_by_key(|(name, _)| name != "type");
        let keyspace = text_of(&chosen, "keyspace=").filter(|name| !name.is_empty());
        Ok(Schema {
            keyspace: keyspace.unwrap_or_else(|| "keyspace1".to_owned()),
            strategy,
            strategy_options,
            storage,
            compaction,
            compaction_options,
            compression: text_of(&chosen, "compression="),
        })
    }

    pub(super) fn transport(&mut self, line: &mut Line) -> Result<(), LineError> {
        let Some(chosen) = chosen(line, "-transport", &table::TRANSPORT)? else { return Ok(()) };
        for (prefix, word) in chosen.written() {
            let Some(cure) = store_as_pem(prefix, &word.text) else {
                let why =
                    "the flags --tls.., which stand before the command, say how TLS is spoken";
                self.ignored(&format!("-transport {prefix}"), why);
                continue;
            };
            return Err(LineError::unbuilt(word, "Stores of Java's keys are not read", cure));
        }
        Ok(())
    }

    pub(super) fn graph(&mut self, line: &mut Line) -> Result<Option<Graph>, LineError> {
        let Some(chosen) = chosen(line, "-graph", &table::GRAPH)? else { return Ok(None) };
        let Some(word) = chosen.get("file=") else { return Ok(None) };
        if word.text.is_empty() {
            let what = "Invalid value ; must be the name of a file";
            return Err(LineError::at(word, what, "Write file=report.html."));
        }
        Ok(Some(Graph {
            file: word.text.clone(),
            revision: text_of(&chosen, "revision=").unwrap_or_else(|| "unknown".to_owned()),
            title: text_of(&chosen, "title="),
            operation: text_of(&chosen, "op="),
        }))
    }
}

/// Pauses before further attempts.
fn delay(chosen: &Chosen) -> Result<Delay, LineError> {
    /// An hour; beyond, nobody waits for an attempt.
    const MS_MAX: u64 = 3_600_000;
    let ms = |prefix: &str, default: u64| match chosen.get(prefix) {
        Some(word) => number::<u64>(word, prefix).and_then(|ms| match ms <= MS_MAX {
            true => Ok(ms),
            false => {
                let what = format!("Invalid value {ms}; a pause lasts an hour at most");
                Err(LineError::at(word, what, "Write min-delay-ms=20 max-delay-ms=20000."))
            }
        }),
        None => Ok(default),
    };
    let (least_ms, most_ms) = (ms("min-delay-ms=", 0)?, ms("max-delay-ms=", 20_000)?);
    let policy = match text_of(chosen, "delay-policy=").map(|name| name.to_lowercase()).as_deref() {
        Some("linear") => DelayPolicy::Linear,
        Some("exponential") => DelayPolicy::Exponential,
        _ => DelayPolicy::Constant,
    };
    let word = ["min-delay-ms=", "max-delay-ms=", "delay-policy="];
    let word = word.iter().find_map(|prefix| chosen.get(prefix));
    let refused = match policy {
        _ if least_ms > most_ms => "The least pause is longer than the greatest",
        DelayPolicy::Exponential if least_ms == 0 => "Twice a pause of 0 ms is none",
        _ => return Ok(Delay { policy, least_ms, most_ms }),
    };
    let cure = "Write delay-policy=exponential min-delay-ms=20 max-delay-ms=20000.";
    Err(word.map_or_else(
        || LineError::anywhere(refused, cure),
        |word| LineError::at(word, refused, cure),
    ))
}

fn port(word: &Word) -> Result<u16, LineError> {
    match number::<u16>(word, "a port") {
        Ok(port) if port > 0 => Ok(port),
        _ => {
            let what = format!("Invalid value {}; a port is 1 to 65535", word.text);
            Err(LineError::at(word, what, "Write native=9042."))
        }
    }
}

fn pairs(parts: Vec<(String, Word)>) -> Vec<(String, String)> {
    parts.into_iter().map(|(name, word)| (name, word.text)).collect()
}
