//! Draws: (plan, phase, seed, worker, workers) -> the sequence of operations of one worker.
//!
//! Each draw takes from the worker's stream, in this order: operation, key, column, scan length,
//! seed of the values; what an operation does not need is not taken. Keys of the load phase are a
//! contiguous share per worker and their values depend on (seed, key) alone, so the data set does
//! not depend on the number of workers. Keys inserted by the run phase are interleaved over the
//! workers: no counter is shared. Nothing allocates after `new`.

use crate::cassandra_stress::{self, DrawState};
use crate::chooser::KeyChooser;
use crate::keys::Distribution;
use crate::plan::{Action, Operation, Plan, Runs};
use crate::random::{GOLDEN, Stream, mix};
use crate::revisits::Revisits;
use std::sync::Arc;

/// Part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Writes the keys that the run expects; each once, then ends.
    Load,
    /// As `Run`, with other draws; not measured.
    Warm,
    /// The measured mix; ends only where each key is taken once.
    Run,
}

/// One operation to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Key number.
    pub key: u64,
    /// What the bytes of written values follow from.
    pub value_seed: u64,
    /// Records that a scan asks for, partitions that an operation on tables is about; 0 for others.
    pub scan_length: u32,
    /// Index into the plan's operations of the phase.
    pub operation: u16,
    /// The column, where a step has a choice; the number of the visit to a partition that is
    /// written in several.
    pub column: u16,
}

/// What an operation needs drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ExistingKey,
    NewKey,
    Scan,
    /// A range of tokens, which whoever reads it chooses.
    NoKey,
}

/// The runs of a worker's threads, which take turns: a draw of the next one each.
#[derive(Debug, Clone)]
struct Turns {
    lengths: cassandra_stress::Distribution,
    state: DrawState,
    /// By thread: the operation, and how many of it are left.
    threads: Vec<(u16, u64)>,
    turn: usize,
}

impl Turns {
    fn new(runs: &Runs, seed: u64, worker: usize, workers: usize) -> Self {
        Self {
            lengths: runs.lengths.clone(),
            state: DrawState::for_worker(mix(seed ^ RUNS_SALT), worker),
            threads: vec![(0, 0); runs.threads.div_ceil(workers).max(1)],
            turn: 0,
        }
    }

    #[inline]
    fn next(&mut self, operations: &[Operation], stream: &mut Stream) -> usize {
        let (operation, left) = &mut self.threads[self.turn];
        while *left == 0 {
            *left = self.lengths.sample(&mut self.state).max(0).cast_unsigned();
            *operation = choose(operations, stream.unit()) as u16;
        }
        *left -= 1;
        let drawn = usize::from(*operation);
        self.turn += 1;
        if self.turn == self.threads.len() {
            self.turn = 0;
        }
        drawn
    }
}

/// Keeps numbers of partitions apart from keys.
const GATHER_SALT: u64 = 0x47_41_54_48;
/// Keeps the choice of partitions that are not through apart from keys.
const VISITS_SALT: u64 = 0x56_49_53_49_54;
/// Keeps the lengths of runs apart from keys.
const RUNS_SALT: u64 = 0x52_55_4e_53;

/// The operations of one worker in one phase.
#[derive(Debug, Clone)]
pub struct Sampler {
    plan: Arc<Plan>,
    phase: Phase,
    stream: Stream,
    /// Keys drawn again because they do not exist yet.
    again: Stream,
    chooser: KeyChooser,
    runs: Option<Turns>,
    /// Behind it no new key is written.
    new_end: u64,
    kinds: Vec<Kind>,
    /// By operation: where it writes partitions in several visits; empty where none does.
    revisits: Vec<Option<Box<Revisits>>>,
    /// As [`gathering`].
    gathering: Vec<Option<cassandra_stress::Distribution>>,
    gathered: DrawState,
    load_seed: u64,
    /// Keys left to load.
    load_next: u64,
    load_end: u64,
    worker: u64,
    workers: u64,
    inserts: u64,
    acknowledged: u64,
}

impl Sampler {
    /// A sampler for worker `worker` of `workers` (at least 1) in one phase. Costs one generator
    /// jump per worker before this one.
    #[must_use]
    pub fn new(plan: Arc<Plan>, phase: Phase, seed: u64, worker: usize, workers: usize) -> Self {
        let workers = workers.max(1);
        let lane = |lane| Stream::new(seed, phase as usize, worker, lane);
        let share = plan.keys.load_share(worker, workers);
        Self {
            phase,
            stream: lane(0),
            again: lane(1),
            chooser: KeyChooser::new(&plan.keys, seed ^ phase as u64, worker, workers),
            runs: plan.runs.as_ref().map(|runs| Turns::new(runs, seed, worker, workers)),
            revisits: revisits(&plan, seed, (worker, workers)),
            gathering: gathering(&plan),
            gathered: DrawState::for_worker(mix(seed ^ GATHER_SALT), worker),
            new_end: match plan.keys.distribution {
                Distribution::Behind { wrap: false, .. } => plan.keys.start + plan.keys.loaded,
                _ => u64::MAX,
            },
            kinds: plan.run.iter().map(|operation| kind(&plan, operation)).collect(),
            load_seed: mix(seed.wrapping_add(GOLDEN)),
            load_next: share.start,
            load_end: share.end,
            worker: worker as u64,
            workers: workers as u64,
            inserts: 0,
            acknowledged: plan.keys.first_new_key().saturating_sub(1),
            plan,
        }
    }

    /// The next op. None once this worker's keys are done, in the load phase and where each key is
    /// taken once, and for a plan without operations; else Warm and Run never end.
    #[inline]
    pub fn draw(&mut self) -> Option<Draw> {
        match self.phase {
            Phase::Load => self.draw_load(),
            Phase::Warm | Phase::Run => self.draw_run(),
        }
    }

    /// Tells the newest key (inclusive) up to which all keys exist; see
    /// [`crate::last_acknowledged`]. Starts at the last record of the table; never goes back.
    #[inline]
    pub fn set_acknowledged(&mut self, last_key: u64) {
        self.acknowledged = self.acknowledged.max(last_key);
    }

    /// Inserts that this worker has drawn in Warm or Run so far.
    #[must_use]
    pub fn inserts(&self) -> u64 {
        self.inserts
    }

    /// Goes on behind `inserts` own inserts of an earlier phase (its [`Sampler::inserts`]), so that
    /// Run does not insert again what Warm inserted. The [`crate::InsertWindow`] is kept as well.
    pub fn skip_inserts(&mut self, inserts: u64) {
        self.inserts = inserts;
    }

    fn draw_load(&mut self) -> Option<Draw> {
        let key = self.load_next;
        (key < self.load_end).then(|| {
            self.load_next += 1;
            let value_seed = mix(self.load_seed ^ mix(key.wrapping_add(GOLDEN)));
            Draw { key, value_seed, scan_length: 0, operation: 0, column: 0 }
        })
    }

    #[inline]
    fn draw_run(&mut self) -> Option<Draw> {
        // A copy stays in registers from word to word.
        let mut stream = self.stream.clone();
        let operation = match &mut self.runs {
            None => choose(&self.plan.run, stream.unit()),
            Some(runs) => runs.next(&self.plan.run, &mut stream),
        };
        let kind = *self.kinds.get(operation)?;
        let visited = match self.revisits.get_mut(operation) {
            Some(Some(revisits)) => {
                let (chooser, again) = (&mut self.chooser, &mut self.again);
                let new = || chooser.draw(&mut stream, again, u64::MAX);
                Some(revisits.pick(|key| self.plan.keys.seed_of(key), new)?)
            }
            _ => None,
        };
        let key = if let Some((key, _)) = visited {
            key
        } else if kind == Kind::NewKey {
            let own = self.worker + self.inserts * self.workers;
            let key = self.plan.keys.first_new_key() + own;
            if key >= self.new_end {
                return None;
            }
            self.inserts += 1;
            key
        } else if kind == Kind::NoKey {
            0
        } else {
            self.chooser.draw(&mut stream, &mut self.again, self.acknowledged)?
        };
        let mut column = stream.below(self.plan.schema.columns.len() as u64) as u16;
        if let Some((_, visit)) = visited {
            column = visit;
        }
        let scan_length = match kind {
            Kind::Scan => self.plan.scan_lengths.at(stream.word()),
            Kind::ExistingKey | Kind::NewKey | Kind::NoKey => 0,
        };
        let value_seed = stream.word();
        self.stream = stream;
        let mut draw = Draw { key, value_seed, scan_length, operation: operation as u16, column };
        if !self.gathering.is_empty() {
            self.gather(&mut draw, kind);
        }
        Some(draw)
    }

    /// Draws how many partitions an operation on tables is about, and takes those behind the first
    /// where keys come in turn; others follow from [`Draw::value_seed`].
    fn gather(&mut self, draw: &mut Draw, kind: Kind) {
        draw.scan_length = 1;
        let Some(Some(count)) = self.gathering.get(usize::from(draw.operation)) else { return };
        let wanted = count.sample(&mut self.gathered).clamp(1, i64::from(u16::MAX)) as u32;
        let drawn = matches!(self.plan.keys.distribution, Distribution::Drawn(_));
        for _ in 1..wanted {
            let mut stream = self.stream.clone();
            let some = drawn
                || kind != Kind::NewKey
                    && self.chooser.draw(&mut stream, &mut self.again, u64::MAX).is_some();
            if !some {
                return;
            }
            draw.scan_length += 1;
        }
    }
}

/// By operation, which of the partitions that are not through it visits; empty for plans where each
/// is written at once.
fn revisits(plan: &Plan, seed: u64, worker: (usize, usize)) -> Vec<Option<Box<Revisits>>> {
    let Some(tables) = &plan.tables else { return Vec::new() };
    let of = |operation: &Operation| {
        let (visits, table) = tables.visits_of(operation.steps.first()?.first_statement)?;
        let state = DrawState::for_worker(mix(seed ^ VISITS_SALT), worker.0);
        Some(Box::new(Revisits::new(visits, &table.generator, state, worker.1)))
    };
    let all: Vec<_> = plan.run.iter().map(of).collect();
    if all.iter().any(Option::is_some) { all } else { Vec::new() }
}

/// By operation, how many partitions it writes, where that may be others than one; empty for plans
/// without tables.
fn gathering(plan: &Plan) -> Vec<Option<cassandra_stress::Distribution>> {
    let Some(tables) = &plan.tables else { return Vec::new() };
    let of = |operation: &Operation| {
        let count = tables.partitions_of(operation.steps.first()?.first_statement)?;
        (count.constant() != Some(1)).then(|| count.clone())
    };
    plan.run.iter().map(of).collect()
}

/// The operation at `left` in [0, 1) of the running total of the weights.
#[inline]
fn choose(operations: &[Operation], mut left: f64) -> usize {
    for (index, operation) in operations.iter().enumerate() {
        if left < operation.weight {
            return index;
        }
        left -= operation.weight;
    }
    // Rounding of the weights: the remainder belongs to the last.
    operations.len().saturating_sub(1)
}

fn kind(plan: &Plan, operation: &Operation) -> Kind {
    let first = operation.steps.first().map(|step| step.first_statement);
    let ranged = plan.tables.as_ref().zip(first).is_some_and(|(t, s)| t.scan_of(s).is_some());
    let first = first.and_then(|statement| plan.statements.get(statement));
    match first.map(|statement| statement.action) {
        _ if ranged => Kind::NoKey,
        _ if plan.inserts(operation) => Kind::NewKey,
        Some(Action::Scan) => Kind::Scan,
        _ => Kind::ExistingKey,
    }
}
