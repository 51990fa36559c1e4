//! Every single operation, as `measurementtype=raw` tells it.

use super::java;
use record::{OpNames, Outcome};
use std::io::{self, Write};
use units::Nanos;
use workload::ycsb::{From, Kind, Measurement};

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Single {
    /// Index of the operation.
    pub operation: u16,
    /// When it was done, since 1970.
    pub done: Nanos,
    /// From its sending to its end.
    pub service: Nanos,
    /// From when it was due to its end.
    pub response: Nanos,
    /// How it ended.
    pub outcome: Outcome,
}

/// Writes every operation, series by series; `scheduled`: they fell due by a schedule. A
/// read-modify-write is one line, without lines of its steps. What was never sent is left out.
///
/// # Errors
/// Those of `out`.
pub fn write_single(
    out: &mut dyn Write,
    measurement: &Measurement,
    scheduled: bool,
    names: &[OpNames],
    all: &[Single],
) -> io::Result<()> {
    let prefix = if measurement.kind == Kind::HdrAndRaw { "Raw" } else { "" };
    let (sent, due) = match measurement.from {
        From::Sent => (true, false),
        From::Due => (false, true),
        From::Both => (true, true),
    };
    for (wanted, due, intended) in [(sent, false, ""), (due, true, "Intended-")] {
        let intended = if sent { intended } else { "" };
        let mut series: Vec<(String, usize, bool)> = Vec::new();
        for (index, names) in names.iter().enumerate().filter(|_| wanted) {
            let name = names.name.to_uppercase();
            series.push((format!("{name}-FAILED"), index, false));
            series.push((name, index, true));
        }
        java::map_order(&mut series, |(name, _, _)| name);
        for (name, operation, good) in series {
            let mut of = all.iter().filter(|single| {
                usize::from(single.operation) == operation
                    && single.outcome != Outcome::NotSent
                    && matches!(single.outcome, Outcome::Ok | Outcome::Invalid) == good
            });
            let Some(first) = of.next() else { continue };
            let name = format!("{prefix}{intended}{name}");
            writeln!(out, "{name} latency raw data: op, timestamp(ms), latency(us)")?;
            for single in std::iter::once(first).chain(of) {
                let time = if due && scheduled { single.response } else { single.service };
                writeln!(out, "{name},{},{}", single.done.0 / 1_000_000, time.0 / 1000)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ycsb::{Job, Line};

    #[test]
    fn every_operation_is_a_line() {
        let words = "run basic -p workload=site.ycsb.workloads.CoreWorkload -p operationcount=9 \
                     -p measurementtype=hdrhistogram+raw -p measurement.interval=both";
        let line = Line::parse(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        let measurement = Job::read(&line).unwrap().measurement;
        let single = |operation, done_ms, outcome| Single {
            operation,
            done: Nanos::from_millis(done_ms),
            service: Nanos::from_micros(120),
            response: Nanos::from_micros(340),
            outcome,
        };
        let all = [
            single(0, 1000, Outcome::Ok),
            single(1, 1001, Outcome::Error),
            single(0, 1002, Outcome::NotSent),
            single(0, 1003, Outcome::Invalid),
        ];
        let names = [OpNames::single("read"), OpNames::single("update")];
        let mut out = Vec::new();
        write_single(&mut out, &measurement, true, &names, &all).unwrap();
        let head = "latency raw data: op, timestamp(ms), latency(us)";
        let wanted = [
            format!("RawUPDATE-FAILED {head}"),
            "RawUPDATE-FAILED,1001,120".to_owned(),
            format!("RawREAD {head}"),
            "RawREAD,1000,120".to_owned(),
            "RawREAD,1003,120".to_owned(),
            format!("RawIntended-UPDATE-FAILED {head}"),
            "RawIntended-UPDATE-FAILED,1001,340".to_owned(),
            format!("RawIntended-READ {head}"),
            "RawIntended-READ,1000,340".to_owned(),
            "RawIntended-READ,1003,340".to_owned(),
        ];
        let text = String::from_utf8(out).unwrap();
        let (mut lines, mut wanted) =
            (text.lines().map(str::to_owned).collect::<Vec<_>>(), wanted.to_vec());
        // What shares a bin of the map has no order of its own.
        lines.sort();
        wanted.sort();
        assert_eq!(lines, wanted);
    }
}
