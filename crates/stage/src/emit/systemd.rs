//! A systemd unit for each instance.
//!
//! Input: a placement. Output: the text of a service. Source: systemd.exec(5): `CPUAffinity=`,
//! `NUMAPolicy=` and `NUMAMask=` (from 243 on), `Limit*=`; systemd.service(5) on `ExecStart=`.
//! What the instances find on the host, a directory of the database or a JVM, is read from one file
//! beside the scripts, `environment`, which is to be edited there. The limits are those that
//! Cassandra's and Aerospike's vendors recommend and `wideload check` looks at.

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
    // In front of a path of its own there is no shell: EnvironmentFile= takes no quotes.
    let environment = escaped(&format!("{root}/{ENVIRONMENT}"));
    let text = format!(
        "[Unit]\n\
         Description=wideload {name}, layout {}\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         # Without User= the instance runs as root; whoever is named there has to own\n\
         # the directory of the instance, where its data and logs go.\n\
         #User={}\n\
         EnvironmentFile={environment}\n\
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
        layout.database,
        quoted(&format!("{root}/{name}/run.sh")),
        placement.cpus,
    );
    let path = Path::new("systemd").join(format!("wideload-{name}.service"));
    File { path, text, executable: false }
}

/// The file that all units read.
const ENVIRONMENT: &str = "environment";

/// What the units' programs find where: to be edited on the host.
pub(super) fn environment(database: Database) -> File {
    let variables = match database {
        Database::Cassandra => {
            "# An unpacked Cassandra.\nCASSANDRA_HOME=/opt/cassandra\n\
             # A JVM for it; without it the java on systemd's PATH.\n\
             #JAVA_HOME=/usr/lib/jvm/default-java\n"
        }
        Database::Reference => {
            "# The program; without it the one on systemd's PATH.\n\
             #WIDELOAD=/usr/local/bin/wideload\n"
        }
        Database::Scylla => "# The server; without it the one on PATH.\n#SCYLLA=/usr/bin/scylla\n",
        Database::Aerospike => "# The server; without it the one on PATH.\n#ASD=/usr/bin/asd\n",
    };
    let text = format!(
        "# Read by the units in systemd/; the scripts take the same variables from the shell that\n\
         # starts them.\n{variables}"
    );
    File { path: ENVIRONMENT.into(), text, executable: false }
}

/// A word of a command line: specifiers and variables are not expanded.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", escaped(&word))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}
