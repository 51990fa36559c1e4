//! Scylla: its command line.
//!
//! Input: a layout and flags. Output: `run.sh` for each instance, with a shard on each of its cpus
//! (`--smp`, `--cpuset`) and its memory (`--memory`). With `--smt one` that is one shard per core.
//! Source: Scylla's and Seastar's `--help`, the command line of "Scylla on IBM POWER9". Limits:
//! configurations and commands only; flags are not checked against a release.

use super::shell::{HEAD, quoted};
use super::{Asked, EmitError, Emitted, Set, file, name};
use machine::layout::{Layout, Placement, Reason};

pub(super) fn files(layout: &Layout, asked: &Asked, root: &str) -> Result<Emitted, EmitError> {
    let mut emitted = Emitted::default();
    for placement in &layout.placements {
        let mut flags = flags(layout, placement, asked.ring, root)?;
        for set in &asked.settings {
            let Set::Scylla(flag, value) = set else { continue };
            let advised = put(&mut flags, flag, value.clone());
            let text = match advised {
                Some(advised) => format!("{set}, as asked, where {advised} is advised"),
                None => format!("{set}, as asked, instead of what is usual"),
            };
            emitted.notes.push(Reason::caution("setting", text));
        }
        let mut text = format!(
            "{HEAD}# {} in the foreground; it pins its shards itself.\nset -euo pipefail\n\
             mkdir -p {}\nexec \"${{SCYLLA:-scylla}}\"",
            name(layout, placement),
            quoted(&format!("{root}/{}/data", name(layout, placement)))
        );
        for (flag, value) in &flags {
            let value = value.as_ref().map_or(String::new(), |value| format!(" {}", quoted(value)));
            text.push_str(&format!(" \\\n    --{flag}{value}"));
        }
        text.push('\n');
        emitted.files.push(file(layout, placement, "run.sh", text));
    }
    Ok(emitted)
}

type Flag = (String, Option<String>);

fn flags(
    layout: &Layout,
    placement: &Placement,
    ring: bool,
    root: &str,
) -> Result<Vec<Flag>, EmitError> {
    let memory = placement.memory_bytes.ok_or(EmitError::NoMemory)?;
    let address = placement.address.to_string();
    let port = |name| placement.port(name).unwrap_or_default().to_string();
    let first = if ring { &layout.placements[0] } else { placement };
    let cluster = match ring {
        true => "wideload".to_owned(),
        false => format!("wideload-{}", placement.instance),
    };
    let flags = [
        ("smp", placement.cpus.len().to_string()),
        ("cpuset", placement.cpus.to_string()),
        ("memory", format!("{}M", memory >> 20)),
        ("workdir", format!("{root}/{}/data", name(layout, placement))),
        ("cluster-name", cluster),
        ("listen-address", address.clone()),
        ("rpc-address", address.clone()),
        ("api-address", address.clone()),
        ("prometheus-address", address),
        ("native-transport-port", port("cql")),
        ("native-shard-aware-transport-port", port("shard-aware")),
        ("storage-port", port("storage")),
        ("api-port", port("api")),
        ("prometheus-port", port("prometheus")),
        ("seed-provider-parameters", format!("seeds={}", first.address)),
        ("developer-mode", "0".to_owned()),
    ];
    Ok(flags.map(|(flag, value)| (flag.to_owned(), Some(value))).into())
}

/// Sets a flag; what was advised for it before, as one would write it.
fn put(flags: &mut Vec<Flag>, flag: &str, value: Option<String>) -> Option<String> {
    match flags.iter_mut().find(|(known, _)| known == flag) {
        Some((_, old)) => {
            let advised = std::mem::replace(old, value);
            Some(format!("--{flag} {}", advised.unwrap_or_default()))
        }
        None => {
            flags.push((flag.to_owned(), value));
            None
        }
    }
}
