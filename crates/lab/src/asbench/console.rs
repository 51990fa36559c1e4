//! What asbench shows while it runs.
//!
//! In: what a trial tells while it goes on. Out: a line each second, and what of latencies was
//! asked for. Times are service times in a closed loop; of a schedule (`-g`) they count from when
//! an operation was due. Operations that timed out are among them at their real length.

use super::files::{HdrDir, Periods};
use super::text::{self, Counts};
use crate::live::{Live, LiveInterval, Total};
use crate::stress::Sink;
use drive::Window;
use record::{ColumnCounts, Columns, Latency};
use std::io::{self, Write as _};
use std::path::Path;
use units::{Nanos, clock, harmless};
use workload::Plan;
use workload::asbench::{LatencyShown, READ, Settings, WRITE};

/// What is known of writes, or of reads.
struct Side {
    name: &'static str,
    /// Operations of the plan that are.
    operations: Vec<usize>,
    /// Since the start.
    so_far: Latency,
    /// Since the last period of the file.
    period: Latency,
    /// Since the start, in the columns of the table.
    columns: Option<ColumnCounts>,
}

pub(super) struct Console<'a, 's> {
    settings: &'a Settings,
    sink: &'a mut Sink<'s>,
    begun: &'a mut dyn FnMut(&Path),
    pub(super) periods: Option<&'a mut Periods>,
    pub(super) hdr: Option<&'a mut HdrDir>,
    sides: Vec<Side>,
    columns: Option<Columns>,
    start: Option<Nanos>,
    period_start: Nanos,
    /// Latencies count from when operations were due.
    scheduled: bool,
}

impl<'a, 's> Console<'a, 's> {
    pub(super) fn new(
        settings: &'a Settings,
        plan: &Plan,
        sink: &'a mut Sink<'s>,
        begun: &'a mut dyn FnMut(&Path),
        scheduled: bool,
    ) -> Self {
        let columns = match &settings.latency {
            // What is no table was refused before.
            LatencyShown::Table(table) => text::columns(table).ok(),
            LatencyShown::Nothing | LatencyShown::Percentiles => None,
        };
        let operations = if plan.run.is_empty() { &plan.load } else { &plan.run };
        let of = |name: &'static str| {
            let all = operations.iter().enumerate();
            let named = all.filter(|(_, operation)| operation.name.starts_with(name));
            Side {
                name,
                operations: named.map(|(index, _)| index).collect(),
                so_far: Latency::new(),
                period: Latency::new(),
                columns: columns.as_ref().map(Columns::counts),
            }
        };
        let sides = [WRITE, READ].map(of).into_iter();
        Self {
            settings,
            sink,
            begun,
            periods: None,
            hdr: None,
            sides: sides.filter(|side| !side.operations.is_empty()).collect(),
            columns,
            start: None,
            period_start: Nanos::ZERO,
            scheduled,
        }
    }

    /// The rows of a table, from counts of each side.
    fn table(&mut self, of: impl Fn(usize) -> Option<ColumnCounts>) {
        let LatencyShown::Table(table) = self.settings.latency else { return };
        let Some(columns) = &self.columns else { return };
        self.sink.line(&text::heading(columns));
        for (index, side) in self.sides.iter().enumerate() {
            if let Some(counts) = of(index) {
                self.sink.line(&text::row(side.name, columns, &counts, table.decimals));
            }
        }
    }

    /// The file's lines, where a period has ended or nothing more comes.
    fn period(&mut self, end: Nanos, last: bool) {
        let Some(periods) = &mut self.periods else { return };
        // Intervals end some microseconds early or late.
        let seconds = end.since(self.period_start).as_secs_f64().round() as u64;
        if seconds < self.settings.output_period_s && !last {
            return;
        }
        for side in self.sides.iter_mut().filter(|side| !last || !side.period.is_empty()) {
            periods.write(side.name, seconds, &side.period, clock::wall());
            side.period.clear();
        }
        self.period_start = end;
    }
}

impl Live for Console<'_, '_> {
    fn stage(&mut self, _what: &str) {}

    fn begun(&mut self, run_dir: &Path) {
        (self.begun)(run_dir);
    }

    fn notice(&mut self, what: &str) {
        // A closed stderr is no reason to stop.
        let _ = writeln!(io::stderr(), "{}", harmless(what));
    }

    fn loading(&mut self, _done: u64, _total: u64) {}

    fn running(&mut self, _now: Nanos, _window: &Window) {}

    fn interval(&mut self, interval: &LiveInterval<'_>) {
        let record = interval.record;
        if self.start.is_none() {
            self.start = Some(record.start);
            self.period_start = record.start;
        }
        let elapsed = record.end.since(self.start.unwrap_or_default());
        let (mut counts, mut rows) = ([Counts::default(); 2], Vec::new());
        for side in &mut self.sides {
            let mut latency = Latency::new();
            let place = usize::from(side.name == READ);
            for op in side.operations.iter().filter_map(|index| record.ops.get(*index)) {
                counts[place].add(op);
                latency.merge(if self.scheduled { &op.response } else { &op.service });
            }
            side.so_far.merge(&latency);
            side.period.merge(&latency);
            let row = self.columns.as_ref().map(|columns| {
                let mut row = columns.counts();
                row.add(columns, &latency);
                row
            });
            if let (Some(all), Some(row)) = (&mut side.columns, &row) {
                all.merge(row);
            }
            rows.push(row);
        }
        let wall = clock::wall();
        let generation = self.settings.generation;
        let [write, read] = counts;
        self.sink.line(&text::second(generation, (write, read), interval.length, wall));
        self.table(|index| rows.get(index).cloned().flatten());
        if self.settings.latency == LatencyShown::Percentiles {
            for side in &self.sides {
                let percentiles = &self.settings.percentiles;
                let line = text::percentiles(side.name, &side.so_far, percentiles, (elapsed, wall));
                self.sink.line(&line);
            }
        }
        self.period(record.end, false);
    }

    fn total(&mut self, total: &Total<'_>) {
        self.period(total.driven.total.end, true);
        if let Some(hdr) = &mut self.hdr {
            for side in &self.sides {
                hdr.add(side.name, &side.so_far);
            }
        }
        // The Java tool ends with a table over all.
        if let LatencyShown::Table(table) = self.settings.latency
            && table.summary
        {
            self.sink.line("Latency Summary");
            let all: Vec<_> = self.sides.iter().map(|side| side.columns.clone()).collect();
            self.table(|index| all.get(index).cloned().flatten());
        }
    }
}
