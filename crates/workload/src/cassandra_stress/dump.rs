//! The settings as the original prints them before a run, group by group.

use super::distribution::Distribution;
use super::rows::Order;
use super::settings::{
    Columns, Command, Compat, Delay, DelayPolicy, Drawn, End, Kind, Level, Population, Rate,
    Settings, Shown, Spec, TimeUnit, UserOperation,
};
use std::fmt::Write as _;

/// Digits in groups of three.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// As Java prints a map of strings.
fn map(pairs: &[(String, String)]) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn or_null(value: Option<&str>) -> &str {
    value.unwrap_or("null")
}

/// A distribution by its kind and bounds.
fn described(drawn: &Drawn) -> String {
    let Drawn { text, distribution } = drawn;
    let name = text.trim_start_matches('~').split('(').next().unwrap_or_default().to_lowercase();
    let inverted = if text.starts_with('~') { "Inverse: " } else { "" };
    let (min, max) = (distribution.min(), distribution.max());
    let body = match (&name[..], distribution.constant()) {
        (_, Some(value)) => format!("Fixed:  key={value}"),
        ("gaussian" | "gauss" | "normal" | "norm", _) => {
            let (mean, deviation) = moments(text, min, max);
            format!("Gaussian:  min={min},max={max},mean={mean:.6},stdev={deviation:.6}")
        }
        ("uniform", _) => format!("Uniform:  min={min},max={max}"),
        ("seq", _) => format!("Sequence:  start={min},end={max}"),
        _ => text.clone(),
    };
    format!("{inverted}{body}")
}

/// As [`described`], of a text; of one that is no distribution the text.
fn described_text(spec: &str) -> String {
    match Distribution::parse(spec) {
        Ok(distribution) => described(&Drawn { text: spec.to_owned(), distribution }),
        Err(_) => spec.to_owned(),
    }
}

/// Mean and standard deviation of a gaussian as written.
fn moments(text: &str, min: i64, max: i64) -> (f64, f64) {
    let inner = text.split_once('(').map_or("", |(_, inner)| inner.trim_end_matches(')'));
    let given: Vec<f64> = inner.split(',').skip(1).filter_map(|n| n.trim().parse().ok()).collect();
    let (mean, half) = ((min + max) as f64 / 2.0, (max - min) as f64 / 2.0);
    match given[..] {
        [mean, deviation] => (mean, deviation),
        [edges] => (mean, half / edges),
        _ => (mean, half / 3.0),
    }
}

impl Settings {
    /// The settings as text. Passwords are left out.
    #[must_use]
    pub fn dump(&self) -> String {
        let mut text = "******************** Stress Settings ********************\n".to_owned();
        // Writing to a string does not fail.
        let _ = self.dump_load(&mut text).and_then(|()| self.dump_rest(&mut text));
        text.push('\n');
        text
    }

    fn dump_load(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "Command:\n  Type: {}", self.command.name().to_lowercase())?;
        match self.end {
            End::Count(n) => writeln!(text, "  Count: {}", grouped(n))?,
            End::Time { .. } | End::Uncertainty { .. } => writeln!(text, "  Count: -1")?,
        }
        if let End::Time { amount, unit } = self.end {
            writeln!(text, "  Duration: {} {}", grouped(amount), TimeUnit::name(unit))?;
        }
        writeln!(text, "  No Warmup: {}", !self.warm_up)?;
        writeln!(text, "  Consistency Level: {}", self.consistency)?;
        if self.compat != Compat::Apache3 {
            writeln!(text, "  Serial Consistency Level: {}", self.serial_consistency)?;
        }
        match self.end {
            End::Uncertainty { target, intervals_min, intervals_max } => {
                writeln!(text, "  Target Uncertainty: {target:.3}")?;
                writeln!(text, "  Minimum Uncertainty Measurements: {}", grouped(intervals_min))?;
                writeln!(text, "  Maximum Uncertainty Measurements: {}", grouped(intervals_max))?;
            }
            _ => writeln!(text, "  Target Uncertainty: not applicable")?,
        }
        if self.user().is_none() {
            writeln!(text, "  Key Size (bytes): {}", self.key_size)?;
            writeln!(text, "  Counter Increment Distibution: add={}", self.add.text)?;
        }
        if let Command::Mixed { ratios, clustering } = &self.command {
            let ratio = |(kind, weight): &(Kind, f64)| format!("{}={weight:?}", kind.name());
            let ratios: Vec<_> = ratios.iter().map(ratio).collect();
            writeln!(text, "  Command Ratios: {{{}}}", ratios.join(", "))?;
            writeln!(text, "  Command Clustering Distribution: clustering={}", clustering.text)?;
        }
        self.dump_user(text)?;
        text.push_str("Rate:\n");
        match self.rate {
            Rate::Threads { threads, ops_per_s, .. } => {
                writeln!(text, "  Auto: false\n  Thread Count: {threads}")?;
                writeln!(text, "  OpsPer Sec: {ops_per_s}")?;
            }
            Rate::Stepped { auto, threads_min, threads_max } => {
                writeln!(text, "  Auto: {auto}\n  Min Threads: {threads_min}")?;
                writeln!(text, "  Max Threads: {threads_max}")?;
            }
        }
        text.push_str("Population:\n");
        let mut wraps = false;
        match &self.population {
            Population::Sequence { first, last, wrap, lookback } => {
                wraps = *wrap;
                writeln!(text, "  Sequence: {first}..{last}")?;
                if let Some(lookback) = lookback {
                    writeln!(text, "  Read Look Back: {}", described(lookback))?;
                }
            }
            Population::Drawn(drawn) => writeln!(text, "  Distribution: {}", described(drawn))?,
        }
        let order = match self.order {
            Order::Arbitrary => "ARBITRARY",
            Order::Sorted => "SORTED",
            Order::Shuffled => "SHUFFLED",
        };
        writeln!(text, "  Order: {order}\n  Wrap: {wraps}")
    }

    fn dump_user(&self, text: &mut String) -> std::fmt::Result {
        let Some(user) = self.user() else { return Ok(()) };
        let ratio =
            |operation: &UserOperation| format!("{}={:?}", operation.name, operation.weight);
        let ratios: Vec<_> = user.operations.iter().map(ratio).collect();
        writeln!(text, "  Command Ratios: {{{}}}", ratios.join(", "))?;
        let clustering = &user.clustering.text;
        writeln!(text, "  Command Clustering Distribution: clustering={clustering}")?;
        let several = if self.compat == Compat::Apache3 { "" } else { "(s)" };
        writeln!(text, "  Profile File{several}: {}", user.files)
    }

    /// What profiles make and ask.
    fn dump_profiles(&self, text: &mut String) -> std::fmt::Result {
        for spec @ Spec { profile, .. } in self.user().iter().flat_map(|user| &user.specs) {
            writeln!(text, "\n******************** Profile ********************")?;
            writeln!(text, "  Keyspace Name: {}", profile.keyspace)?;
            let cql = |cql: &Option<String>| or_null(cql.as_deref()).to_owned();
            let keyspace = cql(&profile.keyspace_definition);
            writeln!(text, "  Keyspace CQL: \n***\n{keyspace}***\n")?;
            writeln!(text, "  Table Name: {}", profile.table)?;
            writeln!(text, "  Table CQL: \n***\n{}***\n", cql(&profile.table_definition))?;
            let extra = match &profile.extra_definitions[..] {
                [] => "null".to_owned(),
                all => format!("[{}]", all.join(", ")),
            };
            writeln!(text, "  Extra Schema Definitions: {extra}\n  Generator Configs:")?;
            for (name, written) in &profile.written.columns {
                let named = ["Clustering", "Size", "Identity"].iter().zip(written);
                let each = named.filter_map(|(what, spec)| {
                    spec.as_ref().map(|spec| format!("{what}: {};", described_text(spec)))
                });
                writeln!(text, "    {name}: {}", each.collect::<String>())?;
            }
            writeln!(text, "  Query Definitions:")?;
            let lists = [
                ("", &profile.written.queries),
                ("  Token Range Queries:\n", &profile.written.token_range_queries),
                ("  Insert Settings:\n", &profile.written.insert),
            ];
            for (head, pairs) in lists {
                text.push_str(head);
                for (name, value) in pairs {
                    writeln!(text, "    {name}: {value}")?;
                }
            }
            self.dump_batches(spec, text)?;
        }
        Ok(())
    }

    /// How large the operations that write are.
    fn dump_batches(&self, spec: &Spec, text: &mut String) -> std::fmt::Result {
        let write = self.write_of(&spec.profile);
        let visits = self.visits.as_ref().map(|visits| &visits.visits);
        let (fewest, most) = visits.map_or((1, 1), |visits| (visits.min(), visits.max()));
        let clusters = || spec.table.clustering_key.iter().map(|c| c.generator.cluster());
        let least: f64 = clusters().map(|cluster| cluster.min() as f64).product();
        let greatest: f64 = clusters().map(|cluster| cluster.max() as f64).product();
        let (few, many) = (write.partitions.min(), write.partitions.max());
        let total = (few as f64 * least, many as f64 * greatest);
        let rows = (
            write.select.min() * total.0 / most as f64,
            write.select.max() * total.1 / fewest as f64,
        );
        writeln!(
            text,
            "Generating batches with [{few}..{many}] partitions and [{:.0}..{:.0}] rows (of \
             [{:.0}..{:.0}] total rows in the partitions)",
            rows.0.round(),
            rows.1.round(),
            total.0,
            total.1
        )
    }

    fn dump_insert(&self, text: &mut String) -> std::fmt::Result {
        let Shown { revisit, visits, partitions, select, row_population, batch_type, .. } =
            &self.shown;
        let drawn = described_text;
        let ratio = |spec: &str| match spec.rsplit_once('/') {
            Some((delegate, divisor)) => {
                let divisor: f64 = divisor.parse().unwrap_or(1.0);
                format!("Ratio: divisor={divisor:.6};delegate={}", drawn(delegate))
            }
            None => spec.to_owned(),
        };
        writeln!(text, "Insert:\n  Revisits: {}\n  Visits: {}", drawn(revisit), drawn(visits))?;
        if let Some(partitions) = partitions {
            writeln!(text, "  Batchsize: {}", drawn(partitions))?;
        }
        if let Some(select) = select {
            writeln!(text, "  Select Ratio: {}", ratio(select))?;
        }
        writeln!(text, "  Row Population Ratio: {}", ratio(row_population))?;
        writeln!(text, "  Batch Type: {}", batch_type.as_deref().unwrap_or("not batching"))
    }

    fn dump_mode(&self, text: &mut String) -> std::fmt::Result {
        let (mode, shown) = (&self.mode, &self.shown);
        let api = if shown.simple { "SIMPLE_NATIVE" } else { "JAVA_DRIVER_NATIVE" };
        let style = if mode.unprepared { "CQL" } else { "CQL_PREPARED" };
        writeln!(text, "Mode:\n  API: {api}\n  Connection Style: {style}")?;
        if self.compat != Compat::Apache5 {
            writeln!(text, "  CQL Version: CQL3")?;
        }
        writeln!(text, "  Protocol Version: V{}", mode.protocol_version)?;
        let user = mode.credentials.as_ref().map(|who| &who.user[..]);
        let password = user.map(|_| "*suppressed*");
        writeln!(text, "  Username: {}\n  Password: {}", or_null(user), or_null(password))?;
        writeln!(text, "  Auth Provide Class: {}", or_null(shown.auth_provider.as_deref()))?;
        writeln!(text, "  Max Pending Per Connection: {}", shown.max_pending)?;
        writeln!(text, "  Connections Per Host: {}", mode.connections_per_host)?;
        if self.compat == Compat::Scylla {
            writeln!(text, "  Request Timeout: {} ms", mode.timeout_ms)?;
        }
        writeln!(text, "  Compression: {}", mode.compression.to_uppercase())
    }

    /// What stands behind the schema.
    fn dump_last(&self, text: &mut String) -> std::fmt::Result {
        let shown = &self.shown;
        let option = |(name, value): &(&str, Option<String>)| {
            format!("{name}={}; ", or_null(value.as_deref()))
        };
        let thrift = self.compat == Compat::Apache3;
        let options = shown.transport.iter().filter(|(name, _)| thrift || *name != "factory");
        writeln!(text, "Transport:\n  {}", options.map(option).collect::<String>())?;
        writeln!(text, "Port:\n  Native Port: {}", self.mode.port)?;
        if thrift {
            writeln!(text, "  Thrift Port: {}", shown.thrift_port)?;
        }
        writeln!(text, "  JMX Port: {}", shown.jmx_port)?;
        writeln!(text, "Send To Daemon:\n  *not set*")?;
        let graph = self.graph.as_ref();
        writeln!(text, "Graph:\n  File: {}", or_null(graph.map(|g| &g.file[..])))?;
        writeln!(text, "  Revision: {}", graph.map_or("unknown", |g| &g.revision))?;
        writeln!(text, "  Title: {}", or_null(graph.and_then(|g| g.title.as_deref())))?;
        let operation = graph.and_then(|g| g.operation.as_deref());
        writeln!(text, "  Operation: {}", operation.unwrap_or(self.command.name()))?;
        writeln!(text, "TokenRange:\n  Wrap: {}", shown.wrap)?;
        writeln!(text, "  Split Factor: {}", shown.split_factor)?;
        self.dump_profiles(text)
    }

    fn dump_columns(&self, text: &mut String) -> std::fmt::Result {
        let Columns { names, count, size, slice, timestamp_us, comparator } = &self.columns;
        writeln!(text, "Columns:\n  Max Columns Per Key: {}", names.len())?;
        writeln!(text, "  Column Names: [{}]\n  Comparator: {comparator}", names.join(", "))?;
        let timestamp = timestamp_us.map(|time| time.to_string());
        writeln!(text, "  Timestamp: {}", or_null(timestamp.as_deref()))?;
        let varies = count.as_ref().is_some_and(|c| c.distribution.constant().is_none());
        writeln!(text, "  Variable Column Count: {varies}\n  Slice: {slice}")?;
        writeln!(text, "  Size Distribution: {}", described(size))?;
        let fixed = |n: usize| Drawn {
            text: format!("FIXED({n})"),
            distribution: Distribution::fixed(n as i64),
        };
        let counted = count.clone().unwrap_or_else(|| fixed(names.len()));
        writeln!(text, "  Count Distribution: {}", described(&counted))
    }

    fn dump_rest(&self, text: &mut String) -> std::fmt::Result {
        self.dump_insert(text)?;
        if self.user().is_none() {
            self.dump_columns(text)?;
        }
        writeln!(text, "Errors:\n  Ignore: {}", self.errors.ignore)?;
        writeln!(text, "  Tries: {}", self.errors.retries + 1)?;
        let Delay { policy, least_ms, most_ms } = self.errors.delay;
        if policy != DelayPolicy::Constant || least_ms > 0 {
            let name = format!("{policy:?}").to_lowercase();
            writeln!(text, "  RetryPolicy: {name}")?;
            writeln!(text, "  Minimum Delay: {} MILLISECONDS", grouped(least_ms))?;
        }
        if policy != DelayPolicy::Constant {
            writeln!(text, "  Maximum Delay: {} MILLISECONDS", grouped(most_ms))?;
        }
        let log = &self.log;
        writeln!(text, "Log:\n  No Summary: {}\n  No Settings: {}", !log.summary, !log.settings)?;
        writeln!(text, "  File: {}", or_null(log.file.as_deref()))?;
        let level = match log.level {
            Level::Minimal => "MINIMAL",
            Level::Normal => "NORMAL",
            Level::Verbose => "VERBOSE",
        };
        writeln!(text, "  Interval Millis: {}\n  Level: {level}", log.interval_ms)?;
        self.dump_mode(text)?;
        writeln!(text, "Node:\n  Nodes: [{}]", self.hosts.listed.join(", "))?;
        writeln!(text, "  Is White List: {}", self.hosts.whitelist)?;
        writeln!(text, "  Datacenter: {}", or_null(self.hosts.datacenter.as_deref()))?;
        let schema = &self.schema;
        let profile = self.user().and_then(|user| user.specs.first()).map(|spec| &spec.profile);
        let keyspace = profile.map_or(&schema.keyspace, |profile| &profile.keyspace);
        writeln!(text, "Schema:\n  Keyspace: {keyspace}")?;
        writeln!(text, "  Replication Strategy: {}", schema.strategy)?;
        let misspelt = if self.compat == Compat::Scylla { "Options" } else { "Pptions" };
        writeln!(text, "  Replication Strategy {misspelt}: {}", map(&schema.strategy_options))?;
        writeln!(text, "  Table Compression: {}", or_null(schema.compression.as_deref()))?;
        writeln!(text, "  Table Compaction Strategy: {}", or_null(schema.compaction.as_deref()))?;
        let options = map(&schema.compaction_options);
        writeln!(text, "  Table Compaction Strategy Options: {options}")?;
        self.dump_last(text)
    }
}
