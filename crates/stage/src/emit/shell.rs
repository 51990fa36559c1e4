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

/// What binds the instances: where memory is bound numactl, else taskset.
pub(super) fn binder(layout: &Layout) -> &'static str {
    match layout.placements.iter().all(|placement| placement.memory_numas.is_empty()) {
        true => "taskset",
        false => "numactl",
    }
}

/// Of `start.sh`. A signal ends a `wait` early: then it is waited again, for the status of the
/// instance itself. 143 and 130 are the ends of a program that was told to end.
const FUNCTIONS: &str = r#"
await() { # PID: waits until it has ended, whatever signals come; its status
    local before code
    while :; do
        before=$signals
        wait "$1"
        code=$?
        if [ "$signals" = "$before" ]; then return "$code"; fi
    done
}

instance() { # NAME PROGRAM: runs it, and says when it ends unasked
    local child code
    signals=0
    trap 'signals=$((signals + 1)); kill "$child" 2>/dev/null' TERM
    "$2" &
    child=$!
    await "$child"
    code=$?
    if [ "$signals" -gt 0 ]; then
        case $code in 0 | 130 | 143) exit 0 ;; esac
    fi
    echo "start.sh: $1 has ended, with status $code" >&2
    exit "$code"
}

"#;

/// `start.sh`: all instances until Ctrl-C; its status is the first that is not 0.
pub(super) fn start(layout: &Layout, root: &str) -> File {
    let binder = binder(layout);
    let mut text = format!(
        "{HEAD}# All instances of layout {}, bound by {binder}; Ctrl-C ends them. An instance that \
         ends by\n# itself is told, and the others go on; the exit status is then not 0.\nset -u\n\
         if ! command -v {binder} >/dev/null; then\n    \
         echo 'start.sh: {binder} is not on PATH: install it' >&2\n    exit 127\nfi\n\
         signals=0\npids=()\n{FUNCTIONS}\
         trap 'signals=$((signals + 1)); kill \"${{pids[@]}}\" 2>/dev/null' INT TERM HUP\n",
        layout.policy
    );
    for placement in &layout.placements {
        let name = name(layout, placement);
        let path = quoted(&format!("{root}/{name}/numactl.sh"));
        // Writing to a String cannot fail.
        let _ = write!(text, "instance {name} {path} &\npids+=(\"$!\")\n");
    }
    text.push_str(
        "status=0\nfor pid in \"${pids[@]}\"; do\n    await \"$pid\"\n    code=$?\n    \
         if [ \"$status\" = 0 ]; then status=$code; fi\ndone\nexit \"$status\"\n",
    );
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
