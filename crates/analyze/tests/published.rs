//! Scaling and latency tables as published: what the texts beside the project print, against what
//! their own inputs give. The figures are taken from the texts by value.

#![allow(clippy::unwrap_used)]

use analyze::scaling::{Level, Print, against_print, scaling};
use analyze::weighted::{Weighted, disagreements, weighted};
use record::Columns;
use std::path::Path;

/// The text of a publication; None where it does not lie beside the project.
fn published(prefix: &str) -> Option<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/published");
    let found = std::fs::read_dir(&dir).ok().and_then(|entries| {
        let mut entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        entries.find(|p| p.file_name().unwrap().to_string_lossy().starts_with(prefix))
    });
    match found {
        Some(path) => Some(std::fs::read_to_string(path).unwrap()),
        None => {
            println!("SKIP: no {prefix}* under {}", dir.display());
            None
        }
    }
}

/// The number between `before` and `after`, where the text has them as a sentence.
fn number(text: &str, before: &str, after: &str) -> f64 {
    let start = text.find(before).unwrap() + before.len();
    let end = start + text[start..].find(after).unwrap();
    text[start..end].trim().parse().unwrap()
}

#[test]
fn factors_of_instances_on_numa_domains_give_more_than_is_printed() {
    let Some(text) = published("002_") else { return };
    let four = "the 1 die case within a socket is ";
    let eight = "With 8 dies, the throughput gain on average is ";
    let best = "workload A gains ";
    let efficiency = "efficiency of ";
    let cases = [
        (number(&text, four, "x"), 4, number(&text, "in-socket scaling efficiency of ", "%")),
        (number(&text, eight, "X"), 8, number(&text, "system-wide scaling efficiency of ", "%")),
        (number(&text, best, "x"), 8, number(&text, &format!("scaling {efficiency}"), "%")),
    ];
    let expected = [(98.75, 98.0), (91.25, 90.0), (95.0, 94.0)];
    for ((factor, dies, printed), (computed, as_printed)) in cases.into_iter().zip(expected) {
        let (one, many) = ([Some(1.0)], [Some(factor)]);
        let (base, level) =
            (Level { budget: 1, values: &one }, Level { budget: dies, values: &many });
        let percent = scaling(base, &[level])[0].efficiency.unwrap().value * 100.0;
        assert!((percent - computed).abs() < 1e-9, "{factor} of {dies}: {percent} %");
        assert!((printed - as_printed).abs() < 1e-9, "{printed} % is printed");
        let sentence = against_print(percent, printed, 0).sentence(percent, printed, "%");
        println!("{factor} of {dies}: {}", sentence.unwrap());
    }
    assert_eq!(against_print(98.75, 98.0, 0), Print::Cut);
    assert_eq!(against_print(91.25, 90.0, 0), Print::Differs { by: 1.25 });
    assert_eq!(against_print(95.0, 94.0, 0), Print::Differs { by: 1.0 });
}

/// A row of the table of servers: budget, what it is, operations per second, scaling.
fn rows(text: &str) -> Vec<(u32, String, f64, f64)> {
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        let [servers, _, _, memory, adq, tps, scaling] = cells[..] else { return None };
        let tps = tps.replace(',', "").parse().ok()?;
        Some((servers.parse().ok()?, format!("{memory} {adq}"), tps, scaling.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn operations_on_one_two_and_three_servers_give_the_printed_scaling() {
    let Some(text) = published("004_") else { return };
    let rows = rows(&text);
    assert_eq!(rows.len(), 12, "{rows:?}");
    for servers in rows.chunks(3) {
        let values: Vec<_> = servers.iter().map(|row| [Some(row.2)]).collect();
        let level = |(row, values): (&(u32, _, _, _), _)| Level { budget: row.0, values };
        let levels: Vec<_> = servers.iter().zip(values.iter().map(|v| &v[..])).map(level).collect();
        for (step, (budget, arm, _, printed)) in scaling(levels[0], &levels).iter().zip(servers) {
            assert_eq!(step.budget, *budget);
            let computed = step.speedup.unwrap().value;
            let print = against_print(computed, *printed, 2);
            println!("{arm} {budget}: {computed:.4}, printed {printed}: {print:?}");
            // 2.8643 is printed as 2.86, and 39,671,664 / 13,850,155 rounds to it.
            assert_eq!(print, Print::Rounded, "{arm} on {budget}");
        }
    }
    assert_eq!((rows[1].3, rows[2].3), (1.94, 2.87));
}

/// Decimals of the table of latencies, as a step in percent.
const STEP: f64 = 0.1;

/// A table of latencies: what is above each limit and the shares of the columns, of two arms, and
/// what is printed below: both averages, and by how much the first is less.
#[derive(Debug, Default)]
struct LatencyTable {
    above: [Vec<f64>; 2],
    shares: [Vec<f64>; 2],
    averages: Vec<f64>,
    less: f64,
}

/// The tables of latencies of a text: each comes in two parts, of which a row's name stands before
/// its first arm.
fn latency_tables(text: &str) -> Vec<LatencyTable> {
    let mut tables: Vec<LatencyTable> = Vec::new();
    let mut row = "";
    let mut arm = 0;
    for line in text.lines() {
        if line.starts_with("Weighted average latency calculations") {
            tables.push(LatencyTable::default());
        }
        let Some(table) = tables.last_mut() else { continue };
        let mut cells = line.split('\t');
        let name = cells.next().unwrap_or_default();
        if !name.is_empty() {
            (row, arm) = (name, 0);
        }
        let values: Vec<f64> = cells.filter_map(|cell| cell.trim().parse().ok()).collect();
        if values.is_empty() {
            continue;
        }
        match row {
            "Cumulative bucket percentages" => table.above[arm].extend(&values),
            "Percentage of total samples per bucket" => table.shares[arm].extend(&values),
            "Weighted average latency (P50)" => table.averages.extend(&values),
            "Percent lower weighted average latency with ADQ" => table.less = values[0],
            _ => continue,
        }
        arm += 1;
        // Nothing behind the last figure belongs to a table.
        if table.less > 0.0 {
            row = "";
        }
    }
    tables
}

fn inside(printed: f64, found: Weighted) -> bool {
    (found.least_us..=found.most_us).contains(&printed)
}

#[test]
fn latency_tables_give_the_printed_averages_within_their_rounding() {
    let Some(text) = published("004_") else { return };
    let columns: Columns = "21,40us".parse().unwrap();
    let middles = columns.middles_us();
    let tables = latency_tables(&text);
    let expected = [([149.8, 220.6], 32.1), ([163.4, 230.2], 29.0)];
    assert_eq!(tables.len(), expected.len(), "{tables:?}");
    for (table, (averages, less)) in tables.iter().zip(expected) {
        // The first of the columns, above 0 us, is all.
        let found = table.above.each_ref().map(|above| {
            assert_eq!((above.len(), above[0]), (columns.len(), 100.0));
            weighted(&middles, &above[1..], STEP)
        });
        for (arm, computed) in averages.into_iter().enumerate() {
            let (weighted, printed) = (found[arm], table.averages[arm]);
            println!("{weighted:.2?}, printed {printed}");
            assert!((weighted.mean_us - computed).abs() < 0.05, "{weighted:?}");
            assert!(inside(printed, weighted), "{printed} is outside {weighted:?}");
            assert!(weighted.most_us - weighted.least_us < 1.0, "{weighted:?}");
        }
        let (least, middle, most) = found[0].percent_less_than(found[1]);
        println!("{middle:.2} % less, {least:.2} to {most:.2}, printed {}", table.less);
        assert!((middle - less).abs() < 0.05, "{middle}");
        assert!((least..=most).contains(&table.less), "{}: {least} to {most}", table.less);
    }
    let printed: Vec<_> = tables.iter().map(|t| (t.averages[0], t.averages[1], t.less)).collect();
    assert_eq!(printed, [(149.9, 220.6, 32.0), (163.2, 230.3, 29.1)]);
}

#[test]
fn two_rows_of_one_latency_table_disagree_above_320_us() {
    let Some(text) = published("004_") else { return };
    let columns: Columns = "21,40us".parse().unwrap();
    let mut found = Vec::new();
    for (table, number) in latency_tables(&text).iter().zip(2..) {
        for (above, shares) in table.above.iter().zip(&table.shares) {
            for differs in disagreements(&above[1..], shares, STEP) {
                let limit_us = columns.limits()[differs.limit].0 / 1000;
                println!("table {number}: above {limit_us} us {differs:?}");
                found.push((number, limit_us, differs.cumulative, differs.shares));
            }
        }
    }
    assert_eq!(found, [(3, 320, 0.9, 0.0)]);
}

#[test]
fn device_queues_gain_what_the_table_of_servers_gives() {
    let Some(text) = published("004_") else { return };
    let rows = rows(&text);
    let of =
        |arm: &str| rows.iter().filter(|row| row.1 == arm).map(|row| row.2).collect::<Vec<_>>();
    let gains = |memory: &str| {
        let (on, off) = (of(&format!("{memory} ADQ-on")), of(&format!("{memory} ADQ-off")));
        on.iter().zip(&off).map(|(on, off)| ((on / off - 1.0) * 100.0).round()).collect::<Vec<_>>()
    };
    assert_eq!(gains("Memory-only"), [47.0, 62.0, 65.0]);
    assert_eq!(gains("PMem"), [41.0, 53.0, 53.0]);
}
