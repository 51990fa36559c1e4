//! YCSB's own histogram logs: a file for each series, in microseconds.

use super::figures::in_us;
use super::series::Series;
use record::Latency;
use record::hlog::{HlogWriteError, PlainLog};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use thiserror::Error;
use units::Nanos;

/// Why a histogram log could not be written.
#[derive(Debug, Error)]
pub enum LogError {
    /// It could not be made.
    #[error(
        "cannot make the histogram log '{}': {source}; give hdrhistogram.output.path the path of a \
         directory with a slash, or the beginning of a file's name",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It could not be written.
    #[error("histogram log '{}': {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: HlogWriteError,
    },
}

/// The logs of a run.
pub(super) struct Logs {
    prefix: String,
    open: BTreeMap<String, (PathBuf, PlainLog<File>)>,
}

impl Logs {
    /// None yet; names of files begin with `prefix`.
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix, open: BTreeMap::new() }
    }

    /// Writes an interval of every series; `base` is the wall clock time of the begin of the run,
    /// `start` and `length` are counted from there.
    pub(super) fn write(
        &mut self,
        base: Nanos,
        start: Nanos,
        length: Nanos,
        series: &[Series],
    ) -> Result<(), LogError> {
        for series in series {
            let Some(latency) = &series.latency else { continue };
            self.one(base, start, length, &series.name, latency)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        base: Nanos,
        start: Nanos,
        length: Nanos,
        name: &str,
        latency: &Latency,
    ) -> Result<(), LogError> {
        if !self.open.contains_key(name) {
            let path = PathBuf::from(format!("{}{name}.hdr", self.prefix));
            let file = units::create_unwaiting(&path)
                .map_err(|source| LogError::Open { path: path.clone(), source })?;
            let log = PlainLog::new(file, &format!("Logging for: {name}"), base)
                .map_err(|source| LogError::Write { path: path.clone(), source })?;
            self.open.insert(name.to_owned(), (path, log));
        }
        match self.open.get_mut(name) {
            Some((path, log)) => log
                .write(start, length, &in_us(latency))
                .map_err(|source| LogError::Write { path: path.clone(), source }),
            None => Ok(()),
        }
    }
}
