//! A stage -> a plan: keys that are integers, bins as columns, reads and writes of all of them or
//! of the first.
//!
//! Source: the original's `transaction.c`, `linear.c`. Its die has 24 bits; here shares are those
//! of a double. Keys of random stages are uniform; those of `I` are divided over the workers, each
//! once.

use super::settings::{Settings, bin_name};
use super::stages::Stage;
use super::workload::Kind;
use crate::keys::{Distribution, KeyOrder, KeySpace};
use crate::lengths::Lengths;
use crate::plan::{Action, Cells, Operation, Plan, Schema, Statement, Step};
use crate::values::{Content, Values};

impl Settings {
    /// The plan of a stage.
    #[must_use]
    pub fn plan(&self, stage: &Stage) -> Plan {
        let workload = stage.workload;
        let bins = stage.objects.len();
        let mut parts = Parts { bins, statements: Vec::new(), run: Vec::new() };
        let first = |bins: &[usize]| bins.iter().take(1).copied().collect::<Vec<_>>();
        let write = parts.statement(Action::Update, &stage.write_bins);
        let (read, update) = (workload.read / 100.0, 1.0 - workload.read / 100.0);
        let (read_all, write_all) = (workload.read_all / 100.0, workload.write_all / 100.0);
        if workload.kind != Kind::Insert {
            let all = parts.statement(Action::Read, &stage.read_bins);
            let one = parts.statement(Action::Read, &first(&stage.read_bins));
            let write_one = parts.statement(Action::Update, &first(&stage.write_bins));
            parts.operation(READ, all, read * read_all);
            parts.operation("read_first", one, read * (1.0 - read_all));
            parts.operation(WRITE, write, update * write_all);
            parts.operation("write_first", write_one, update * (1.0 - write_all));
        }
        let columns = (0..stage.objects.len()).map(|bin| bin_name(&self.bin, bin)).collect();
        let keys = match workload.kind {
            Kind::Insert => stage.inserted(),
            Kind::ReadUpdate | Kind::ReadReplace => stage.keys,
        };
        Plan {
            workload: format!("asbench:{workload}"),
            schema: Schema {
                table: self.set.clone(),
                key_column: "key".to_owned(),
                columns,
                cells: Cells::Objects,
                timestamp_us: None,
            },
            load: vec![operation(WRITE, write, 1.0)],
            run: parts.run,
            statements: parts.statements,
            keys: KeySpace {
                start: stage.key_start,
                loaded: keys,
                records: stage.key_start + keys,
                expected_new: 0,
                order: KeyOrder::Integer,
                zero_padding: 0,
                distribution: Distribution::Uniform,
            },
            values: Values {
                content: Content::Objects { values: stage.objects.clone(), fixed: !stage.random },
            },
            counters: None,
            scan_lengths: Lengths::Constant(0),
            runs: None,
            tables: None,
        }
    }
}

/// Names of operations; those of the first bin alone begin with them.
pub const READ: &str = "read";
/// See [`READ`].
pub const WRITE: &str = "write";

struct Parts {
    /// Of a record.
    bins: usize,
    statements: Vec<Statement>,
    run: Vec<Operation>,
}

impl Parts {
    /// The index of a statement. A read of all bins names none, as the original's.
    fn statement(&mut self, action: Action, bins: &[usize]) -> usize {
        let by_name = action != Action::Read || bins.len() < self.bins;
        let wanted = Statement { action, columns: bins.to_vec(), by_name, counts: false };
        let known = self.statements.iter().position(|statement| *statement == wanted);
        known.unwrap_or_else(|| {
            self.statements.push(wanted);
            self.statements.len() - 1
        })
    }

    fn operation(&mut self, name: &'static str, statement: usize, weight: f64) {
        if weight > 0.0 {
            self.run.push(operation(name, statement, weight));
        }
    }
}

fn operation(name: &'static str, statement: usize, weight: f64) -> Operation {
    let name_of_step = if name.starts_with(READ) { READ } else { WRITE };
    let step = Step {
        first_statement: statement,
        choices: 1,
        name: name_of_step,
        column_apart: false,
        last_choices: 1,
    };
    Operation { name: name.into(), weight, steps: vec![step] }
}
