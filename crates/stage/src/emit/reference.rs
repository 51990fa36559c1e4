//! The reference target: its command line.
//!
//! Input: a layout. Output: `run.sh` for each instance.

use super::shell::HEAD;
use super::{Asked, EmitError, Emitted, file, name};
use machine::layout::{Layout, Reason};

pub(super) fn files(layout: &Layout, asked: &Asked) -> Result<Emitted, EmitError> {
    if asked.ring {
        return Err(EmitError::NoRing);
    }
    let text = "the reference target is no database: what it gives says nothing about Cassandra";
    let mut emitted = Emitted { files: Vec::new(), notes: vec![Reason::caution("database", text)] };
    for placement in &layout.placements {
        let memory = placement.memory_bytes.ok_or(EmitError::NoMemory)?;
        let port = placement.port("cql").unwrap_or_default();
        let listen = std::net::SocketAddr::new(placement.address, port);
        let text = format!(
            "{HEAD}# {} in the foreground.\nset -eu\nexec \"${{WIDELOAD:-wideload}}\" serve \
             --listen {listen} --cpus {} --memory-max {}MiB\n",
            name(layout, placement),
            placement.cpus,
            memory >> 20,
        );
        emitted.files.push(file(layout, placement, "run.sh", text));
    }
    Ok(emitted)
}
