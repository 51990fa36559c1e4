//! Cassandra: `cassandra.yaml`, the options of the JVM, the start.
//!
//! Input: a layout, settings and flags. Output: `cassandra.yaml`, `jvm.options`, `logback.xml` and
//! `run.sh` for each instance. The JVM is started directly: `bin/cassandra` would wrap it in
//! `numactl --interleave=all`, which undoes every binding.

use super::shell::{HEAD, quoted};
use super::{Asked, EmitError, Emitted, Set, file, name, numa_flag};
use crate::cassandra::emitted::{self, Files, Member, Setting, Version};
use machine::layout::{Layout, Placement, Reason};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::Path;
use units::{Bytes, Nanos};

/// The release when none is given.
const VERSION: &str = "5.0.5";
/// Threads for reads and for writes, of each instance, unless set.
const CONCURRENT: usize = 32;
/// How long an instance of a ring listens for others before it joins.
const RING_DELAY: Nanos = Nanos::from_secs(5);

pub(super) fn files(layout: &Layout, asked: &Asked, root: &str) -> Result<Emitted, EmitError> {
    let version: Version = asked.version.as_deref().unwrap_or(VERSION).parse()?;
    let java = java(&version, asked.java)?;
    let settings: Vec<Setting> = asked
        .settings
        .iter()
        .filter_map(|set| match set {
            Set::Cassandra(setting) => Some(setting.clone()),
            _ => None,
        })
        .collect();
    let mut notes = vec![Reason::new("database", format!("Cassandra {version} on Java {java}"))];
    let old = emitted::keys(&settings, &version)?.into_iter();
    let unknown = emitted::unknown_keys(&settings, &version)?;
    let flags = emitted::flags_of_jvm(&asked.jvm, java)?;
    notes.extend(old.chain(unknown).chain(flags).map(|text| Reason::caution("setting", text)));
    for setting in &settings {
        let text = format!("{setting}, as asked, instead of what is usual");
        notes.push(Reason::caution("setting", text));
    }
    notes.extend(numa_flag::notes(layout, java, &asked.jvm));
    notes.extend(asked.jvm.iter().filter(|flag| !numa_flag::is_it(flag)).map(|flag| {
        Reason::caution("setting", format!("--jvm {flag}, as asked, after all other flags"))
    }));
    concurrency(layout, &settings, &mut notes);
    let mut emitted = Emitted { files: Vec::new(), notes };
    for (index, placement) in layout.placements.iter().enumerate() {
        let member = member(layout, index, asked.ring)?;
        let cluster = match asked.ring {
            true => "wideload".to_owned(),
            false => format!("wideload-{}", placement.instance),
        };
        let yaml = emitted::yaml(&cluster, &member, &settings)?;
        let files = own_files(layout, placement, root);
        let options = options(placement, java, asked, &files)?;
        emitted.files.push(file(layout, placement, "cassandra.yaml", yaml));
        emitted.files.push(file(layout, placement, "jvm.options", options));
        emitted.files.push(file(layout, placement, "logback.xml", emitted::logback(&files)));
        emitted.files.push(file(layout, placement, "run.sh", run(layout, placement, root)));
    }
    Ok(emitted)
}

fn java(version: &Version, asked: Option<u32>) -> Result<u32, EmitError> {
    let newest = version.jdks().last().copied().unwrap_or_default();
    match asked {
        Some(java) if !version.jdks().contains(&java) => {
            let made_for: Vec<_> = version.jdks().iter().map(ToString::to_string).collect();
            let version = version.to_string();
            Err(EmitError::Java { version, made_for: made_for.join(" or "), java })
        }
        Some(java) => Ok(java),
        None => Ok(newest),
    }
}

/// Threads are not divided: more instances have more of them.
fn concurrency(layout: &Layout, settings: &[Setting], notes: &mut Vec<Reason>) {
    let instances = layout.placements.len();
    let keys = ["concurrent_reads", "concurrent_writes"];
    let unset: Vec<_> =
        keys.iter().filter(|key| settings.iter().all(|s| s.key() != **key)).collect();
    if instances > 1 && !unset.is_empty() {
        let unset: Vec<_> = unset.iter().map(ToString::to_string).collect();
        let text = format!(
            "{} stay at {CONCURRENT} for each instance, {} in all; set them where arms are to have \
             equally many",
            unset.join(" and "),
            CONCURRENT * instances
        );
        notes.push(Reason::new("threads", text));
    }
}

fn member(layout: &Layout, index: usize, ring: bool) -> Result<Member, EmitError> {
    let address = |placement: &Placement| match placement.address {
        IpAddr::V4(address) => Ok(address),
        address => Err(EmitError::Address { address }),
    };
    let storage = |placement: &Placement| -> Result<SocketAddrV4, EmitError> {
        Ok(SocketAddrV4::new(address(placement)?, placement.port("storage").unwrap_or_default()))
    };
    let placement = &layout.placements[index];
    let own: Ipv4Addr = address(placement)?;
    let seeds = match ring {
        true => layout.placements.iter().map(storage).collect::<Result<Vec<_>, _>>()?,
        false => vec![storage(placement)?],
    };
    Ok(Member {
        address: own,
        cql_port: placement.port("cql").unwrap_or_default(),
        storage_port: placement.port("storage").unwrap_or_default(),
        seeds,
        index: if ring { index } else { 0 },
        instances: layout.placements.len(),
    })
}

fn own_files(layout: &Layout, placement: &Placement, root: &str) -> Files {
    let name = name(layout, placement);
    let dir = Path::new(root).join(&name);
    Files {
        yaml: dir.join("cassandra.yaml"),
        logback: dir.join("logback.xml"),
        storage: dir.join("data"),
        logs: dir,
        name,
    }
}

/// One flag a line, as they are handed to the JVM.
fn options(
    placement: &Placement,
    java: u32,
    asked: &Asked,
    files: &Files,
) -> Result<String, EmitError> {
    let mut usual = emitted::usual_flags(java);
    usual.retain(|flag| !numa_flag::is_it(flag));
    if numa_flag::advise(java, &asked.jvm, placement).on {
        usual.push("-XX:+UseNUMA".to_owned());
    }
    emitted::leave_the_collector_to(&asked.jvm, &mut usual);
    let delay = if asked.ring { RING_DELAY } else { Nanos::ZERO };
    let heap = Bytes(placement.heap_bytes.ok_or(EmitError::NoHeap)?);
    let flags = emitted::flags(usual, java, heap, delay, files);
    let mut text = String::new();
    for flag in &flags {
        text.push_str(&flag.to_string_lossy());
        text.push('\n');
    }
    if let Some(port) = placement.port("jmx") {
        text.push_str(&emitted::jmx_flag(port));
        text.push('\n');
    }
    for flag in &asked.jvm {
        text.push_str(flag);
        text.push('\n');
    }
    Ok(text)
}

fn run(layout: &Layout, placement: &Placement, root: &str) -> String {
    let dir = format!("{root}/{}", name(layout, placement));
    format!(
        "{HEAD}# {} in the foreground, not bound: numactl.sh and the unit bind it.\n\
         # The JVM is started directly: bin/cassandra would wrap it in numactl --interleave=all.\n\
         set -euo pipefail\n\
         home=${{CASSANDRA_HOME:-/opt/cassandra}}\n\
         java=java\n\
         if [ -n \"${{JAVA_HOME:-}}\" ]; then java=$JAVA_HOME/bin/java; fi\n\
         mapfile -t options < {}\n\
         jamm=(\"$home\"/lib/jamm-*.jar)\n\
         mkdir -p {}\n\
         exec \"$java\" \"${{options[@]}}\" \"-javaagent:${{jamm[0]}}\" -cp \"$home/lib/*\" {}\n",
        name(layout, placement),
        quoted(&format!("{dir}/jvm.options")),
        quoted(&format!("{dir}/data/tmp")),
        emitted::MAIN,
    )
}
