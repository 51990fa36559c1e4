//! A systemd unit for each instance.
//!
//! Input: a placement. Output: the text of a service. Source: systemd.exec(5): `CPUAffinity=`,
//! `NUMAPolicy=` and `NUMAMask=` (from 243 on), `Limit*=`; systemd.service(5) on `ExecStart=`.
//! The limits are those that Cassandra's and Aerospike's vendors recommend and `wideload check`
//! looks at.

use super::{File, name};
use machine::layout::{Database, Layout, Placement};
use std::path::Path;

/// `wideload-cassandra-1.service`.
pub(super) fn unit(layout: &Layout, placement: &Placement, root: &str) -> File {
    let name = name(layout, placement);
    let numa = match placement.memory_numas.is_empty() {
        true => String::new(),
        false => format!("NUMAPolicy=bind\nNUMAMask={}\n", placement.memory_numas),
    };
    // A JVM that is told to end ends with 128 + 15.
    let ends = match layout.database {
        Database::Cassandra => "SuccessExitStatus=143\n",
        _ => "",
    };
    let text = format!(
        "[Unit]\n\
         Description=wideload {name}, layout {}\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={}\n\
         CPUAffinity={}\n\
         {numa}\
         LimitNOFILE=1048576\n\
         LimitMEMLOCK=infinity\n\
         LimitNPROC=32768\n\
         LimitAS=infinity\n\
         TimeoutStopSec=120\n\
         {ends}\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        escaped(&layout.policy),
        quoted(&format!("{root}/{name}/run.sh")),
        placement.cpus,
    );
    let path = Path::new("systemd").join(format!("wideload-{name}.service"));
    File { path, text, executable: false }
}

/// A word of a command line: specifiers and variables are not expanded.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", escaped(&word))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}
