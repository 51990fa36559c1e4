//! Where the instructions of one operation go, from callgrind.
//!
//! Input: wideload and a target with canned answers. Output: a table of instructions per operation
//! by part. Two runs of different length are subtracted, so that start, load and report fall out.
//! Inlined code counts for the source file that it was written in; what the compiler took from
//! Rust's standard library cannot be told apart by part, and is a row of its own.

use super::target::Target;
use super::{CASES, CONNECTIONS, RECORDS, properties};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const OPS: u64 = 100_000;
const THREADS: u32 = 256;

/// Longer than a run. Callgrind makes a run some fifty times as long, and with the usual interval
/// the recorder's work, once per interval, would be counted fifty times too often.
const INTERVAL: &str = "10m";

/// Parts by the end or the middle of a source file's path, the first that fits.
const PARTS: [(&str, &[&str]); 6] = [
    (
        "encode",
        &[
            "drive/src/cql.rs",
            "wire/src/cql/template.rs",
            "workload/src/values.rs",
            "workload/src/keys.rs",
            "workload/src/digits.rs",
        ],
    ),
    (
        "generate",
        &[
            "crates/workload/",
            "rand_xoshiro",
            "e_pow.c",
            "w_pow",
            "drive/src/source.rs",
            "drive/src/pacer.rs",
        ],
    ),
    ("send and receive", &["crates/ring/", "rustix", "send.c", "recv.c"]),
    (
        "match",
        &[
            "drive/src/answers.rs",
            "drive/src/operations.rs",
            "drive/src/streams.rs",
            "drive/src/slots.rs",
            "crates/wire/",
        ],
    ),
    ("record", &["crates/record/", "drive/src/tally.rs"]),
    ("drive the loop", &["crates/drive/", "crates/units/"]),
];

pub(super) fn table(root: &Path, wideload: &Path, target: &Target) -> Result<String> {
    let (Some(once), Some(twice)) = (
        instructions(root, wideload, target, OPS)?,
        instructions(root, wideload, target, 2 * OPS)?,
    ) else {
        return Ok(
            "Instructions by part were not counted: valgrind is not installed.\n\n".to_owned()
        );
    };
    let mut text = format!(
        "Instructions of the client per operation by part (callgrind; {}, {THREADS} in \
         flight):\n\n| part | instructions/op |\n|---|---|\n",
        CASES[0].name
    );
    let mut total = 0.0;
    for (part, count) in &twice {
        let each = (*count as f64 - *once.get(part).unwrap_or(&0) as f64) / OPS as f64;
        total += each;
        let _ = writeln!(text, "| {part} | {each:.0} |");
    }
    let _ = writeln!(text, "| **all, user space** | {total:.0} |\n");
    Ok(text)
}

/// Instructions by part of one run; None without valgrind.
fn instructions(
    root: &Path,
    wideload: &Path,
    target: &Target,
    ops: u64,
) -> Result<Option<BTreeMap<&'static str, u64>>> {
    let dir = tempfile::tempdir()?;
    let profile = dir.path().join("callgrind.out");
    let properties: Vec<String> =
        properties(target, &CASES[0]).flat_map(|p| ["-p".to_owned(), p]).collect();
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(wideload)
        .args(["run", "ycsb:a", "--skip-load", "--warm", "0s", "--target", &target.address()])
        .args(["--records", &RECORDS.to_string(), "--ops", &ops.to_string(), "--timeout", "60s"])
        .args(["--interval", INTERVAL])
        .args(["--threads", &THREADS.to_string(), "--connections", &CONNECTIONS.to_string()])
        .args(["--client-cpus", &target.client_cpu(), "--out"])
        .arg(dir.path().join("run"))
        .args(properties)
        .current_dir(root)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else { return Ok(None) };
    if !output.status.success() {
        bail!("under callgrind: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(&profile).context("callgrind wrote no profile")?;
    Ok(Some(by_part(&text)))
}

/// Sums a profile's self costs by part. Format: valgrind manual, "Callgrind Format Specification":
/// `fl=`, `fi=` and `fe=` name the file of the lines that follow, by number once it was named;
/// `calls=` is followed by one line of inclusive cost, which is not self cost.
fn by_part(profile: &str) -> BTreeMap<&'static str, u64> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut sums = BTreeMap::new();
    let (mut file, mut skip) = ("", false);
    for line in profile.lines() {
        if let Some(named) =
            ["fl=", "fi=", "fe="].iter().find_map(|prefix| line.strip_prefix(prefix))
        {
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            file = names.get(id).copied().unwrap_or(named);
        } else if let Some(named) = line.strip_prefix("cfi=").or(line.strip_prefix("cfl=")) {
            if let Some((id, name)) = named.split_once(' ') {
                names.insert(id, name);
            }
        } else if line.starts_with("calls=") {
            skip = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c))
            && !std::mem::take(&mut skip)
        {
            let cost = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
            *sums.entry(part_of(file)).or_default() += cost.unwrap_or(0);
        }
    }
    sums
}

fn part_of(file: &str) -> &'static str {
    let fits = |(_, ends): &&(&'static str, &[&str])| ends.iter().any(|end| file.contains(end));
    match PARTS.iter().find(fits) {
        Some((part, _)) => part,
        None if file.contains("/library/") => "standard library, inlined above",
        None => "C library and others",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_costs_are_summed_by_file_and_calls_are_not() {
        let profile = "version: 1\nevents: Ir\nfl=(1) /x/crates/record/src/latency.rs\nfn=(1) \
                       f\n10 5\n+1 7\ncfi=(2) /x/crates/ring/src/epoll.rs\ncfn=(2) g\ncalls=3 \
                       4\n* 1000\nfi=(2)\n7 11\nfe=(1)\n8 1\nfl=(3) \
                       /rustc/abc/library/core/src/mem.rs\n1 2\n";
        let sums = by_part(profile);
        assert_eq!(sums["record"], 13);
        assert_eq!(sums["send and receive"], 11);
        assert_eq!(sums["standard library, inlined above"], 2);
        assert_eq!(sums.len(), 3);
    }
}
