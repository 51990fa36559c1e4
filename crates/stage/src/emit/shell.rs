//! Shell scripts: an instance under numactl, and all of them.
//!
//! Input: a placement. Output: bash. Source: numactl(8): `--physcpubind` takes cpus as the kernel
//! numbers them, `--membind` fails an allocation rather than going elsewhere. Where the machine
//! shows no NUMA node, taskset(1) binds cpus alone.

use super::{File, file, name};
use machine::layout::{Layout, Placement};
use std::fmt::Write as _;
use std::path::PathBuf;

pub(super) const HEAD: &str = "#!/usr/bin/env bash\n";

/// A word that the shell reads as it is.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `numactl.sh`: binds the instance and runs it.
pub(super) fn bound(layout: &Layout, placement: &Placement, root: &str) -> File {
    let name = name(layout, placement);
    let run = quoted(&format!("{root}/{name}/run.sh"));
    let (cpus, numas) = (&placement.cpus, &placement.memory_numas);
    let command = match numas.is_empty() {
        true => format!("taskset --cpu-list {cpus} {run}"),
        false => format!("numactl --physcpubind={cpus} --membind={numas} -- {run}"),
    };
    let text = format!("{HEAD}# {name} in the foreground, bound.\nset -eu\nexec {command}\n");
    file(layout, placement, "numactl.sh", text)
}

/// `start.sh`: all instances until Ctrl-C.
pub(super) fn start(layout: &Layout, root: &str) -> File {
    let mut text = format!(
        "{HEAD}# All instances of layout {}, bound by numactl; Ctrl-C ends them.\nset -u\npids=()\n\
         trap 'kill \"${{pids[@]}}\" 2>/dev/null' INT TERM\n",
        layout.policy
    );
    for placement in &layout.placements {
        let path = quoted(&format!("{root}/{}/numactl.sh", name(layout, placement)));
        // Writing to a String cannot fail.
        let _ = write!(text, "{path} &\npids+=(\"$!\")\n");
    }
    // The first wait ends with the signal, the second with the instances.
    text.push_str("wait\nwait\n");
    File { path: PathBuf::from("start.sh"), text, executable: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        for (word, text) in
            [("a/b-c.d", "a/b-c.d"), ("", "''"), ("a b", "'a b'"), ("it's $x", "'it'\\''s $x'")]
        {
            assert_eq!(quoted(word), text);
        }
    }
}
