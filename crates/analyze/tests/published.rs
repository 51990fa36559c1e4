//! Scaling as published: what the texts beside the project print, against what their own inputs
//! give. The figures are taken from the texts by value.

#![allow(clippy::unwrap_used)]

use analyze::scaling::{Level, Print, against_print, scaling};
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
