//! YCSB's binding `basic`: operations are drawn and printed, and nothing is driven.
//!
//! In: a job. Out: lines on stdout, and what a database binding's measurement would hold. Every
//! client is a thread with a schedule of its own, as in the original; threads share one lock to
//! print and one to record. Measured: it costs some microseconds per operation, and is no data
//! plane. Limits: at most [`THREADS_MAX`] clients. Source: BasicDB and ClientThread of YCSB at
//! commit d9faaac.

use crate::driven::op_names;
use drive::OpDone;
use record::{IntervalRecord, OpNames, Outcome, Verdict};
use std::collections::HashSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{scope, sleep};
use std::time::Duration;
use thiserror::Error;
use units::{Nanos, clock};
use workload::ycsb::{BasicBinding, Command, Job};
use workload::{Action, Draw, Operation, Phase, Plan, Sampler, Statement, last_acknowledged};

/// Most clients: each is a thread.
pub const THREADS_MAX: u32 = 4096;
/// Length of the recorded intervals.
const INTERVAL: Nanos = Nanos::from_secs(1);
/// How often somebody looks whether all is done.
const LOOK: Duration = Duration::from_millis(10);

/// Why operations could not be printed.
#[derive(Debug, Error)]
pub enum BasicError {
    /// More clients than threads.
    #[error(
        "threadcount={threads}: the binding basic has a thread for each; give at most {THREADS_MAX}"
    )]
    Threads {
        /// As asked for.
        threads: u32,
    },
    /// stdout takes nothing more.
    #[error("cannot print operations to stdout: {0}")]
    Print(#[source] io::Error),
}

/// Sees what is recorded. All calls come from the thread that called [`run`].
pub trait Watcher {
    /// An interval is over.
    fn interval(&mut self, names: &[OpNames], record: &IntervalRecord);
    /// All is over: the first operation to the last, and from there to the end of the clients.
    fn total(&mut self, names: &[OpNames], over: &Over<'_>);
}

/// What was done.
#[derive(Debug)]
pub struct Over<'a> {
    /// All that was recorded.
    pub total: &'a IntervalRecord,
    /// First operation to the last.
    pub runtime: Nanos,
    /// From there to the end of the clients.
    pub cleanup: Nanos,
    /// Single operations, where they were to be kept.
    pub single: &'a [OpDone],
}

/// What all clients share.
struct Shared<'a> {
    job: &'a Job,
    basic: BasicBinding,
    operations: &'a [Operation],
    begin: Nanos,
    stop: &'a AtomicBool,
    recent: Mutex<IntervalRecord>,
    /// Each client's inserts that are done.
    inserted: Vec<AtomicU64>,
    /// Hashes of different operations, by [`Action`].
    different: Mutex<[HashSet<i32>; 4]>,
    /// Single operations, where they are wanted.
    single: Option<Mutex<Vec<OpDone>>>,
    failure: Mutex<Option<io::Error>>,
    last_done: AtomicU64,
    running: AtomicU64,
}

/// What a thread that died left is still good.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a job would do, in words.
#[must_use]
pub fn explain(job: &Job, basic: BasicBinding) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| text += &format!("{what:<12} {value}\n");
    let plan = &job.workload.plan;
    line("connect", "to nothing: the binding basic prints operations and drives none".to_owned());
    let operations = operations(plan, job.command);
    for operation in operations {
        line("operation", format!("{} {:.4} %", operation.name, operation.weight * 100.0));
    }
    let used = operations.iter().flat_map(|operation| &operation.steps);
    let mut statements: Vec<_> = used
        .flat_map(|step| step.first_statement..step.first_statement + step.choices)
        .filter_map(|index| plan.statements.get(index))
        .map(|statement| Text::form(plan, statement))
        .collect();
    statements.dedup();
    let what = if basic.verbose { "print" } else { "draw" };
    statements.into_iter().for_each(|form| line(what, form));
    if basic.delay_ms > 0 {
        let up_to = if basic.random_delay { "less than " } else { "" };
        line("wait", format!("{up_to}{} ms before each", basic.delay_ms));
    }
    let settings = &job.workload.settings;
    let rate = settings.rate_ops_s.map(|rate| format!(" at {rate}/s in all"));
    let most = settings.duration_s.map(|seconds| format!(", at most {seconds} s"));
    let amount = job.operations.map_or("operations without end".to_owned(), |operations| {
        format!("{operations} operations")
    });
    let (rate, most) = (rate.unwrap_or_default(), most.unwrap_or_default());
    line("drive", format!("{} threads{rate}, {amount}{most}", job.threads));
    text
}

/// Operations of a phase.
fn operations(plan: &Plan, command: Command) -> &[Operation] {
    match command {
        Command::Load => &plan.load,
        Command::Run => &plan.run,
    }
}

/// Draws and prints the operations of a job.
///
/// # Errors
/// [`BasicError`].
pub fn run(
    job: &Job,
    basic: BasicBinding,
    watcher: &mut dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Verdict, BasicError> {
    if job.threads > THREADS_MAX {
        return Err(BasicError::Threads { threads: job.threads });
    }
    let plan = Arc::new(job.workload.plan.clone());
    let operations = operations(&plan, job.command);
    let names = op_names(operations);
    let parts: Vec<_> = names.iter().map(|names| names.parts.len()).collect();
    let shared = Shared {
        job,
        basic,
        operations,
        begin: clock::now(),
        stop,
        recent: Mutex::new(IntervalRecord::new(&parts)),
        inserted: (0..job.threads).map(|_| AtomicU64::new(0)).collect(),
        different: Mutex::default(),
        single: job.measurement.keeps_operations().then(Mutex::default),
        failure: Mutex::default(),
        last_done: AtomicU64::new(0),
        running: AtomicU64::new(u64::from(job.threads)),
    };
    let mut total = IntervalRecord::new(&parts);
    scope(|threads| {
        for client in 0..job.threads {
            let (shared, plan) = (&shared, plan.clone());
            threads.spawn(move || {
                shared.client(plan, client);
                shared.running.fetch_sub(1, Ordering::Release);
            });
        }
        let mut start = shared.begin;
        loop {
            let over = shared.running.load(Ordering::Acquire) == 0;
            let now = clock::now();
            if over || now.since(start) >= INTERVAL {
                let mut record = locked(&shared.recent);
                (record.start, record.end) = (start, now);
                total.merge(&record);
                let taken = record.clone();
                record.clear();
                drop(record);
                watcher.interval(&names, &taken);
                start = now;
            }
            if over {
                break;
            }
            sleep(LOOK);
        }
    });
    if let Some(error) = locked(&shared.failure).take() {
        return Err(BasicError::Print(error));
    }
    shared.count().map_err(BasicError::Print)?;
    let last = Nanos(shared.last_done.load(Ordering::Relaxed)).max(shared.begin);
    let (runtime, cleanup) = (last.since(shared.begin), clock::now().since(last));
    let single = shared.single.as_ref().map(|single| locked(single).clone()).unwrap_or_default();
    watcher.total(&names, &Over { total: &total, runtime, cleanup, single: &single });
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(if interrupted { Verdict::Interrupted } else { Verdict::Ok })
}

impl Shared<'_> {
    /// The life of a client.
    fn client(&self, plan: Arc<Plan>, client: u32) {
        let failed = self.life(plan, client).err();
        if let Some(error) = failed {
            locked(&self.failure).get_or_insert(error);
        }
    }

    fn life(&self, plan: Arc<Plan>, client: u32) -> io::Result<()> {
        let job = self.job;
        if self.basic.verbose {
            self.print(&properties(job))?;
        }
        let phase = match job.command {
            Command::Load => Phase::Load,
            Command::Run => Phase::Run,
        };
        let (this, all) = (client as usize, job.threads as usize);
        let mut sampler = Sampler::new(plan.clone(), phase, 1, this, all);
        let mut delays = Sampler::new(plan.clone(), Phase::Warm, 2, this, all);
        // Shares of a load are those of the sampler.
        let own = match (job.command, job.operations) {
            (Command::Run, Some(operations)) => {
                let (all, this) = (u64::from(job.threads), u64::from(client));
                operations / all + u64::from(this < operations % all)
            }
            _ => u64::MAX,
        };
        let settings = &job.workload.settings;
        let limit = settings.duration_s.map(|s| self.begin + Nanos::from_secs(s));
        let tick_ns = settings.rate_ops_s.map(|rate| {
            // Cut to a whole number, as the original does.
            (1e9 / (rate as f64 / all as f64)) as u64
        });
        let mut key = vec![0; plan.key_size_max()];
        let mut value = vec![0; plan.value_room().max(plan.value_size_max())];
        for index in 0..own {
            let due = tick_ns.map(|tick_ns| self.begin + Nanos(tick_ns.saturating_mul(index)));
            if !self.waits(due, limit) || locked(&self.failure).is_some() {
                break;
            }
            let Some(draw) = sampler.draw() else { break };
            let size = plan.write_key(draw.key, &mut key);
            let mut text = Text { plan: &plan, key: &key[..size], value: &mut value };
            self.operation(&mut text, &draw, due, &mut delays)?;
            self.inserted[this].store(sampler.inserts(), Ordering::Relaxed);
            let done = self.inserted.iter().map(|n| n.load(Ordering::Relaxed));
            sampler.set_acknowledged(last_acknowledged(plan.keys.first_new_key(), done));
        }
        Ok(())
    }

    /// Sleeps until `due`; false when there is nothing more to do.
    fn waits(&self, due: Option<Nanos>, limit: Option<Nanos>) -> bool {
        loop {
            let now = clock::now();
            if self.stop.load(Ordering::Relaxed) || limit.is_some_and(|limit| now >= limit) {
                return false;
            }
            match due.filter(|due| *due > now) {
                Some(due) => sleep(due.since(now).to_duration().min(LOOK)),
                None => return true,
            }
        }
    }

    fn operation(
        &self,
        text: &mut Text<'_>,
        draw: &Draw,
        due: Option<Nanos>,
        delays: &mut Sampler,
    ) -> io::Result<()> {
        let Some(operation) = self.operations.get(usize::from(draw.operation)) else {
            return Ok(());
        };
        let start = clock::now();
        let mut parts = Vec::with_capacity(operation.steps.len());
        for step in &operation.steps {
            let begin = clock::now();
            self.step(text, draw, step.statement(draw), delays)?;
            parts.push(clock::now().since(begin));
        }
        let end = clock::now();
        self.last_done.fetch_max(end.0, Ordering::Relaxed);
        let mut recent = locked(&self.recent);
        if let Some(op) = recent.ops.get_mut(usize::from(draw.operation)) {
            let due = due.unwrap_or(start).min(start);
            op.record(Outcome::Ok, end.since(start), end.since(due), start.since(due));
            parts.iter().enumerate().for_each(|(step, time)| op.record_part(step, *time));
            if let Some(single) = &self.single {
                let (operation, key, outcome) = (draw.operation, draw.key, Outcome::Ok);
                let (sent, done) = (Some(start), end);
                locked(single).push(OpDone { operation, key, scheduled: due, sent, done, outcome });
            }
        }
        Ok(())
    }

    fn step(
        &self,
        text: &mut Text<'_>,
        draw: &Draw,
        statement: usize,
        delays: &mut Sampler,
    ) -> io::Result<()> {
        self.delay(delays);
        let Some(statement) = text.plan.statements.get(statement) else { return Ok(()) };
        let statement = statement.clone();
        let (line, counted) = text.of(&statement, draw, &self.job.workload.plan.schema.table);
        if self.basic.verbose {
            self.print(&line)?;
        }
        if self.basic.count {
            locked(&self.different)[place(statement.action)].insert(hash(&counted));
        }
        Ok(())
    }

    /// A whole number of milliseconds, below the one asked for where it is random.
    fn delay(&self, delays: &mut Sampler) {
        let ms = match (self.basic.delay_ms, self.basic.random_delay) {
            (0, _) => 0,
            (most, false) => u64::from(most),
            (most, true) => delays.draw().map_or(0, |draw| draw.value_seed) % u64::from(most),
        };
        let until = clock::now() + Nanos::from_millis(ms);
        while ms > 0 && clock::now() < until && !self.stop.load(Ordering::Relaxed) {
            sleep(until.since(clock::now()).to_duration().min(LOOK));
        }
    }

    fn print(&self, text: &str) -> io::Result<()> {
        io::stdout().lock().write_all(text.as_bytes())
    }

    fn count(&self) -> io::Result<()> {
        if !self.basic.count {
            return Ok(());
        }
        let different = locked(&self.different);
        for (what, action) in [
            ("READS", Action::Read),
            ("SCANS", Action::Scan),
            ("UPDATES", Action::Update),
            ("INSERTS", Action::Insert),
        ] {
            self.print(&format!("[{what}], Uniques, {}\n", different[place(action)].len()))?;
        }
        self.print("[DELETES], Uniques, 0\n")
    }
}

fn place(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Scan => 1,
        Action::Update => 2,
        Action::Insert => 3,
    }
}

/// Java's hash of a string, by which the original tells operations apart.
fn hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn properties(job: &Job) -> String {
    let line = |(name, value): &(String, String)| format!("\"{name}\"=\"{value}\"\n");
    let lines: String = job.properties.iter().map(line).collect();
    let begin = "***************** properties *****************";
    let end = "**********************************************";
    format!("{begin}\n{lines}{end}\n")
}

/// Writes operations down.
struct Text<'a> {
    plan: &'a Plan,
    key: &'a [u8],
    value: &'a mut [u8],
}

impl Text<'_> {
    /// Its lines without key and values.
    fn form(plan: &Plan, statement: &Statement) -> String {
        let table = &plan.schema.table;
        let columns = statement.columns.iter().map(|&i| &plan.schema.columns[i][..]);
        let names: String = columns.clone().map(|name| format!("{name} ")).collect();
        let values: String = columns.map(|name| format!("{name}=VALUE ")).collect();
        let read = if statement.by_name { &names[..] } else { "<all fields>" };
        match statement.action {
            Action::Read => format!("READ {table} KEY [ {read}]"),
            Action::Scan => format!("SCAN {table} KEY LENGTH [ {read}]"),
            Action::Update => format!("UPDATE {table} KEY [ {values}]"),
            Action::Insert => format!("INSERT {table} KEY [ {values}]"),
        }
    }

    /// The line of an operation, and what it is told apart by.
    fn of(&mut self, statement: &Statement, draw: &Draw, table: &str) -> (String, String) {
        let key = String::from_utf8_lossy(self.key).into_owned();
        let columns = &self.plan.schema.columns;
        let mut names: Vec<&str> = statement.columns.iter().map(|&i| columns[i].as_str()).collect();
        let reading = |what: &str, names: &mut Vec<&str>| {
            let listed: String = match statement.by_name {
                true => names.iter().map(|name| format!("{name} ")).collect(),
                false => "<all fields>".to_owned(),
            };
            names.sort_unstable();
            let apart = if statement.by_name { names.concat() } else { String::new() };
            (format!("{what} [ {listed}]\n"), format!("{table}{key}{apart}"))
        };
        match statement.action {
            Action::Read => reading(&format!("READ {table} {key}"), &mut names),
            Action::Scan => {
                reading(&format!("SCAN {table} {key} {}", draw.scan_length), &mut names)
            }
            Action::Update | Action::Insert => {
                let what = if statement.action == Action::Update { "UPDATE" } else { "INSERT" };
                let mut values = Vec::new();
                for &column in &statement.columns {
                    let size = self.plan.write_value(draw, self.key, column, self.value);
                    let value = String::from_utf8_lossy(&self.value[..size]).into_owned();
                    values.push((columns[column].as_str(), value));
                }
                let listed = values.iter().map(|(name, value)| format!("{name}={value} "));
                let line = format!("{what} {table} {key} [ {}]\n", listed.collect::<String>());
                values.sort_unstable();
                let apart = values.iter().map(|(name, value)| format!("{name}{value}"));
                (line, format!("{table}{key}{}", apart.collect::<String>()))
            }
        }
    }
}
