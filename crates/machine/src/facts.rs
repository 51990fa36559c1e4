//! What decides what a result on a host is worth, beside the machine itself.
//!
//! Input: the text of sysfs and procfs below a root, as for [`Machine`]. Output: [`Facts`], for
//! `wideload check`; nothing is judged here. Limits: one moment; what a tree does not hold is
//! `None` or an empty list.

use crate::kernel::{self, Sysctls};
use crate::parse::field;
use crate::power::{self, Power};
use crate::processes::Limits;
use crate::tasks::{self, Tasks};
use crate::{Machine, ReadError};
use std::path::Path;

/// One host, as its kernel shows it at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Its cpus, memory, devices and settings.
    pub machine: Machine,
    /// Idle states and energy preferences.
    pub power: Power,
    /// Numbers below `/proc/sys`.
    pub sysctls: Sysctls,
    /// What runs there.
    pub tasks: Tasks,
    /// Limits of the process that read them, which its children inherit; `None` in a recorded
    /// tree without `proc/self`.
    pub limits: Option<Limits>,
    /// Revision of the cpu's microcode.
    pub microcode: Option<String>,
    /// Swap that is in use, in bytes.
    pub swap_used_bytes: Option<u64>,
}

impl Facts {
    /// Reads the host below `root`: `/` for this one, else a recorded tree or an archive of one.
    ///
    /// # Errors
    /// As [`Machine::read`]. Single missing files are no error.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        let source = crate::open(root)?;
        let machine = Machine::of(&source, root)?;
        let cpuinfo = source.text("proc/cpuinfo").unwrap_or_default();
        Ok(Self {
            power: power::read(&source, &machine.online),
            sysctls: kernel::read(&source),
            tasks: tasks::read(&source),
            limits: source.text("proc/self/limits").map(|text| Limits::parse(&text)),
            microcode: field(&cpuinfo, &["microcode"]).map(str::to_owned),
            swap_used_bytes: kernel::swap_used(&source),
            machine,
        })
    }
}
