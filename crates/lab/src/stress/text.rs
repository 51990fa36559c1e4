//! The lines of cassandra-stress: header, rows, results. Scripts read them, so their left parts,
//! widths and order are the original's. Source: `report/StressMetrics.java`.

use super::figures::{All, Counted, Printed};
use units::Nanos;
use workload::cassandra_stress::grouped;

/// Of all columns behind the first.
const HEAD: [(&str, usize); 18] = [
    ("total ops", 10),
    ("op/s", 8),
    ("pk/s", 8),
    ("row/s", 8),
    ("mean", 8),
    ("med", 8),
    (".95", 8),
    (".99", 8),
    (".999", 8),
    ("max", 8),
    ("time", 7),
    ("stderr", 9),
    ("errors", 7),
    ("gc: #", 7),
    ("max ms", 8),
    ("sum ms", 8),
    ("sdv ms", 8),
    ("mb", 8),
];

/// How lines are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Characters of the first column.
    pub(crate) width: usize,
    pub(crate) printed: Printed,
}

/// When a row was and how well the rate is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    /// Of the interval.
    pub(crate) length: Nanos,
    /// Since the start of the run.
    pub(crate) time: Nanos,
    pub(crate) uncertainty: f64,
}

/// A number as Java formats it.
fn decimal(value: f64, digits: usize) -> String {
    match value {
        v if v.is_nan() => "NaN".to_owned(),
        v if v.is_infinite() => if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        v => format!("{v:.digits$}"),
    }
}

/// With its digits in groups of three.
fn grouped_decimal(value: f64, digits: usize) -> String {
    let text = decimal(value, digits);
    let (whole, rest) = text.split_once('.').map_or((&text[..], None), |(w, r)| (w, Some(r)));
    let Ok(whole) = whole.parse::<u64>() else { return text };
    rest.map_or_else(|| grouped(whole), |rest| format!("{}.{rest}", grouped(whole)))
}

fn milliseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

fn per_second(count: u64, time: Nanos) -> f64 {
    count as f64 / time.as_secs_f64()
}

impl Layout {
    /// The line above the rows.
    pub(crate) fn header(&self) -> String {
        let mut line = format!("{:<width$}", "type", width = self.width);
        for (index, (name, width)) in HEAD.iter().enumerate() {
            let comma = if index + 1 < HEAD.len() { "," } else { "" };
            line += &format!("{name:>width$}{comma}");
        }
        line
    }

    /// A row of one interval. `ops` counts from the start of the run.
    pub(crate) fn row(&self, name: &str, ops: u64, counted: &Counted, at: &At) -> String {
        let latency = counted.latency(self.printed);
        let of_rank = |q: f64| decimal(milliseconds(latency.quantile(q)), 1);
        let rate = |count| decimal(per_second(count, at.length), 0);
        let cells = [
            ops.to_string(),
            rate(latency.count()),
            rate(counted.partitions),
            rate(counted.rows),
            decimal(latency.mean() / 1e6, 1),
            of_rank(0.5),
            of_rank(0.95),
            of_rank(0.99),
            of_rank(0.999),
            decimal(milliseconds(latency.max()), 1),
            decimal(at.time.as_secs_f64(), 1),
            decimal(at.uncertainty, 5),
            counted.errors.to_string(),
            // Of a JVM that is not asked.
            "0".to_owned(),
            "0".to_owned(),
            "0".to_owned(),
            "0".to_owned(),
            "0".to_owned(),
        ];
        let mut line = format!("{:<width$}", format!("{name},"), width = self.width);
        for (index, (cell, (_, width))) in cells.iter().zip(HEAD).enumerate() {
            let comma = if index + 1 < HEAD.len() { "," } else { "" };
            line += &format!("{cell:>width$}{comma}");
        }
        line
    }

    /// The results of a run that took so long.
    pub(crate) fn summary(&self, all: &All, time: Nanos) -> String {
        let each = |value: &dyn Fn(&Counted) -> String| {
            let of = all.kinds.iter().filter(|(_, counted)| counted.ops() > 0);
            let each = of.map(|(k, counted)| format!("{}: {}", k.name, value(counted)));
            format!("[{}]", each.collect::<Vec<_>>().join(", "))
        };
        let total = &all.total;
        let mut lines = vec![String::new(), String::new(), "Results:".to_owned()];
        type Count = fn(&Counted, Printed) -> u64;
        let rates: [(&str, &str, Count); 3] = [
            ("Op rate                   ", "op/s ", |c, p| c.latency(p).count()),
            ("Partition rate            ", "pk/s ", |c, _| c.partitions),
            ("Row rate                  ", "row/s", |c, _| c.rows),
        ];
        for (name, unit, count) in rates {
            let rate = |c: &Counted| grouped_decimal(per_second(count(c, self.printed), time), 0);
            let short = unit.trim_end();
            let each = each(&|c| format!("{} {short}", rate(c)));
            lines.push(format!("{name}: {:>8} {unit} {each}", rate(total)));
        }
        type Time = fn(&record::Latency) -> f64;
        let times: [(&str, Time); 6] = [
            ("Latency mean              ", |l| l.mean() / 1e6),
            ("Latency median            ", |l| milliseconds(l.quantile(0.5))),
            ("Latency 95th percentile   ", |l| milliseconds(l.quantile(0.95))),
            ("Latency 99th percentile   ", |l| milliseconds(l.quantile(0.99))),
            ("Latency 99.9th percentile ", |l| milliseconds(l.quantile(0.999))),
            ("Latency max               ", |l| milliseconds(l.max())),
        ];
        for (name, of) in times {
            let own = of(total.latency(self.printed));
            let each = each(&|c| format!("{} ms", grouped_decimal(of(c.latency(self.printed)), 1)));
            lines.push(format!("{name}: {:>6} ms {each}", decimal(own, 1)));
        }
        let each_partitions = each(&|c| grouped(c.partitions));
        let each_errors = each(&|c| grouped(c.errors));
        lines.push(format!(
            "Total partitions          : {:>10} {each_partitions}",
            grouped(total.partitions)
        ));
        lines.push(format!(
            "Total errors              : {:>10} {each_errors}",
            grouped(total.errors)
        ));
        lines.extend(
            [
                "Total GC count            : 0",
                "Total GC memory           : 0.000 KiB",
                "Total GC time             :    0.0 seconds",
                "Avg GC time               :    NaN ms",
                "StdDev GC time            :    0.0 ms",
            ]
            .map(str::to_owned),
        );
        let seconds = time.0 / 1_000_000_000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let clock = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
        lines.push(format!("Total operation time      : {clock}"));
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{OpRecord, Outcome};
    use workload::cassandra_stress::settings::OperationType;

    fn all() -> All {
        let mut op = OpRecord::new(0);
        for _ in 0..1_402_530 {
            op.record(Outcome::Ok, Nanos(4_300_000), Nanos(8_600_000), Nanos(0));
        }
        let mut record = record::IntervalRecord::new(&[0]);
        record.ops[0].merge(&op);
        let kind = OperationType { name: "WRITE".to_owned(), writes: true, counts_rows: false };
        All::of(&[kind], &record, false)
    }

    #[test]
    fn the_header_and_a_row_line_up() {
        let layout = Layout { width: 10, printed: Printed::Service };
        assert_eq!(
            layout.header(),
            "type       total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,\
             \x20   .999,     max,   time,   stderr, errors,  gc: #,  max ms,  sum ms,  sdv ms,\
             \x20     mb"
        );
        let at = At { length: Nanos::from_secs(30), time: Nanos::from_secs(30), uncertainty: 0.0 };
        let row = layout.row("total", 1_402_530, &all().total, &at);
        assert_eq!(row.len(), layout.header().len());
        assert!(
            row.starts_with("total,       1402530,   46751,   46751,   46751,     4.3,"),
            "{row}"
        );
        assert!(row.contains(",   30.0,  0.00000,      0,      0,       0,"), "{row}");
        let fixed = Layout { printed: Printed::Response, ..layout };
        assert!(fixed.row("total", 1, &all().total, &at).contains(",     8.6,"));
    }

    #[test]
    fn the_results_are_the_originals_to_the_character() {
        let layout = Layout { width: 10, printed: Printed::Service };
        let text = layout.summary(&all(), Nanos::from_secs(30));
        for line in [
            "Op rate                   :   46,751 op/s  [WRITE: 46,751 op/s]",
            "Partition rate            :   46,751 pk/s  [WRITE: 46,751 pk/s]",
            "Row rate                  :   46,751 row/s [WRITE: 46,751 row/s]",
            "Latency mean              :    4.3 ms [WRITE: 4.3 ms]",
            "Latency median            :    4.3 ms [WRITE: 4.3 ms]",
            "Latency 99.9th percentile :    4.3 ms [WRITE: 4.3 ms]",
            "Latency max               :    4.3 ms [WRITE: 4.3 ms]",
            "Total partitions          :  1,402,530 [WRITE: 1,402,530]",
            "Total errors              :          0 [WRITE: 0]",
            "Total GC count            : 0",
            "Avg GC time               :    NaN ms",
            "Total operation time      : 00:00:30",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.starts_with("\n\nResults:\nOp rate") && text.ends_with("00:00:30\n"));
    }

    #[test]
    fn numbers_are_grouped_as_java_groups_them() {
        for (value, digits, text) in
            [(1234.56, 1, "1,234.6"), (0.04, 1, "0.0"), (999.5, 0, "1,000"), (f64::NAN, 1, "NaN")]
        {
            assert_eq!(grouped_decimal(value, digits), text);
        }
        assert_eq!(decimal(f64::INFINITY, 0), "Infinity");
    }
}
