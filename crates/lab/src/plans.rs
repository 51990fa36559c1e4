//! Layouts of a database on a machine, for `wideload plan`: planned, explained, written as files.
//!
//! In: [`PlanAsked`]. Out: a [`Plan`] for each budget. Nothing is started; only the directory that
//! was asked for is written.

use machine::layout::{Devices, Layout, LayoutError, Reason, Request, Reserve, plan};
use machine::{Machine, ReadError, SyntheticError};
use stage::emit::{self, EmitError, Emitted, Set, WriteError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The machine to plan for.
#[derive(Debug, Clone)]
pub enum MachineSource {
    /// `/`, or a recorded directory or archive.
    Recorded(PathBuf),
    /// One line of text.
    Synthetic(String),
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct PlanAsked {
    /// For every budget; its devices are those of the machine.
    pub request: Request,
    /// Sizes of the budget in NUMA nodes, one layout for each; empty for the whole machine.
    pub numa_counts: Vec<u32>,
    /// Where files go; several budgets have a directory each in it.
    pub emit: Option<PathBuf>,
    /// The release of the database.
    pub version: Option<String>,
    /// The major version of the JVM.
    pub java: Option<u32>,
    /// Keys and flags of the database.
    pub settings: Vec<Set>,
    /// Flags of the JVM.
    pub jvm: Vec<String>,
    /// One ring of all instances.
    pub ring: bool,
    /// What was assumed of the machine, as [`assumed_of`] says it.
    pub assumed: Option<String>,
}

/// A layout and its files.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where instances go, and why.
    pub layout: Layout,
    /// What is advised to the database, and what the user changed.
    pub notes: Vec<Reason>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// The directory that they are below.
    pub root: PathBuf,
}

/// Why there is no plan.
#[derive(Debug, Error)]
#[allow(missing_docs)] // what is wrong stands in each
pub enum PlanError {
    #[error(transparent)]
    Machine(#[from] ReadError),
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Emit(#[from] EmitError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot tell where {} is: {cause}; give an absolute path to --emit", path.display())]
    Place { path: PathBuf, cause: io::Error },
}

impl PlanError {
    /// Whether the host is at fault, and not the command line.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        let unwritten = matches!(self, Self::Write(WriteError::Io { .. }));
        unwritten || matches!(self, Self::Machine(_) | Self::Place { .. })
    }
}

/// The machine that is meant.
///
/// # Errors
/// When it cannot be read.
pub fn machine_of(source: &MachineSource) -> Result<Machine, PlanError> {
    Ok(match source {
        MachineSource::Recorded(root) => Machine::read(root)?,
        MachineSource::Synthetic(text) => Machine::synthetic(text)?,
    })
}

/// What a description leaves open and [`machine_of`] assumes.
#[must_use]
pub fn assumed_of(source: &MachineSource) -> Option<String> {
    match source {
        MachineSource::Recorded(_) => None,
        MachineSource::Synthetic(text) => Machine::assumed_of(text),
    }
}

/// Plans for every budget, then writes the files: all, or none where one cannot be.
///
/// # Errors
/// [`PlanError`], naming the thing and the cure.
pub fn plans(machine: &Machine, asked: &PlanAsked) -> Result<Vec<Plan>, PlanError> {
    let mut counts: Vec<Option<u32>> = asked.numa_counts.iter().copied().map(Some).collect();
    if counts.is_empty() {
        counts.push(None);
    }
    let several = counts.len() > 1;
    let mut planned = Vec::new();
    for count in counts {
        let mut request = asked.request.clone();
        request.budget.numa_count = count;
        request.devices = Devices::of(machine);
        let layout = plan(machine, &request)?;
        // Also without --emit, so that what a release refuses is told.
        let dir = asked.emit.clone().unwrap_or_default();
        let dir = match (several, count) {
            (true, Some(count)) => dir.join(format!("numa-{count}")),
            _ => dir,
        };
        let root = absolute(&dir)?;
        let mut emitted = emit::files(&layout, &to_emit(asked, &root))?;
        emitted.notes.extend(notes(asked));
        planned.push((layout, emitted, root));
    }
    if let Some(dir) = &asked.emit {
        let top = absolute(dir)?;
        let below = |(_, emitted, root): &(_, Emitted, PathBuf)| {
            let of_budget = root.strip_prefix(&top).map(Path::to_owned).unwrap_or_default();
            let file = move |file: &emit::File| emit::File {
                path: of_budget.join(&file.path),
                ..file.clone()
            };
            emitted.files.iter().map(file).collect::<Vec<_>>()
        };
        let files = planned.iter().flat_map(below).collect();
        Emitted { files, notes: Vec::new() }.write(&top)?;
    }
    let done = |(layout, emitted, root): (Layout, Emitted, PathBuf)| {
        let files = emitted.files.iter().filter(|_| asked.emit.is_some());
        let files = files.map(|file| root.join(&file.path)).collect();
        Plan { layout, notes: emitted.notes, files, root }
    };
    Ok(planned.into_iter().map(done).collect())
}

/// What holds for every budget, and is not the layout's to know.
fn notes(asked: &PlanAsked) -> Vec<Reason> {
    let assumed = asked.assumed.iter().map(|text| Reason::caution("memory", text));
    let mut notes: Vec<Reason> = assumed.collect();
    if asked.request.reserve == Reserve::default() {
        let text = "no core is kept for the operating system, interrupts or a client: instances \
                    have all of them; --reserve-os, --reserve-irq and --reserve-client keep some";
        notes.push(Reason::new("reserve", text));
    }
    notes
}

fn absolute(dir: &Path) -> Result<PathBuf, PlanError> {
    // The empty path is that of a plan without files.
    let place = |cause| PlanError::Place { path: dir.to_owned(), cause };
    match dir.as_os_str().is_empty() {
        true => Ok(PathBuf::from("/")),
        false => std::path::absolute(dir).map_err(place),
    }
}

fn to_emit(asked: &PlanAsked, root: &Path) -> emit::Asked {
    emit::Asked {
        root: root.to_owned(),
        version: asked.version.clone(),
        java: asked.java,
        settings: asked.settings.clone(),
        jvm: asked.jvm.clone(),
        ring: asked.ring,
    }
}
