//! What a client machine can drive at most: measured once, kept, and asked before a run.
//!
//! Input: a [`Calibration`] as `wideload calibrate` makes it. Output: one file per machine,
//! `calibration/KEY.json` in the user's state directory, and the caveat of a run that asks for more
//! than half of it. A machine is known by its cpu model, kernel, cpus and this program's version;
//! when one of them changes, the file is not found any more.
//! Limits: files of at most [`FILE_SIZE_MAX`]; what cannot be read is no calibration.

use machine::Machine;
use record::Caveat;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;
use units::{Bytes, read_plain};

/// The version of the keys.
pub const SCHEMA: u32 = 1;
/// No calibration is longer.
const FILE_SIZE_MAX: Bytes = Bytes(64 << 10);
/// A client whose ceiling is below this many times the rate may be what limits the result.
const HEADROOM_MIN: f64 = 2.0;

/// What a calibration holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// As the vendor calls it.
    pub cpu_model: String,
    /// `uname -r`.
    pub kernel: String,
    /// Cpus that are online.
    pub cpus: String,
    /// Version of this program.
    pub version: String,
}

impl Identity {
    /// Of this program on `machine`.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let settings = &machine.settings;
        Self {
            cpu_model: settings.cpu_model.clone().unwrap_or_default(),
            kernel: settings.kernel_release.clone().unwrap_or_default(),
            cpus: machine.online.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Name of its file: FNV-1a of all fields, which is the same for ever.
    fn key(&self) -> String {
        let fields = [&self.cpu_model, &self.kernel, &self.cpus, &self.version];
        let bytes = fields.iter().flat_map(|field| field.bytes().chain([0]));
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// A distribution in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Half lie below.
    pub p50: f64,
    /// 99 of 100 lie below.
    pub p99: f64,
    /// 999 of 1000 lie below.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

/// What ended the rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The client's threads had no time left: the throughput is its own.
    Client,
    /// The target had none left: the client can do more than was seen.
    Target,
}

/// What a client machine can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What it holds for.
    pub identity: Identity,
    /// When it was made, UTC, RFC 3339.
    pub made: String,
    /// What was driven, where: `null-mock on cpus 0`.
    pub target: String,
    /// The workload that was driven.
    pub workload: String,
    /// Cpus of the client, one worker on each.
    pub client_cpus: String,
    /// Its workers.
    pub workers: usize,
    /// Whether client and target shared cpus.
    pub shared_cpus: bool,
    /// Operations in flight while the ceiling was measured.
    pub in_flight: usize,
    /// Operations per second of cpu time of the client: what one core can drive at most.
    pub ops_per_cpu_s: f64,
    /// Operations per second that were driven.
    pub ops_s: f64,
    /// Share of the time that the busiest worker worked.
    pub client_busy: f64,
    /// What ended the rise.
    pub limit: Limit,
    /// Service time of one operation in flight, in microseconds.
    pub floor_us: Spread,
    /// How late a thread wakes from a timer, in microseconds.
    pub sleep_late_us: Spread,
    /// How late a polling thread is, in microseconds.
    pub poll_late_us: Spread,
    /// Reasons to trust it less.
    pub caveats: Vec<Caveat>,
}

impl Calibration {
    /// What `workers` workers can drive at most, in operations per second.
    #[must_use]
    pub fn ceiling_ops_s(&self, workers: usize) -> f64 {
        self.ops_per_cpu_s * workers as f64
    }

    /// The caveat of a run at `rate_ops_s` over `workers` workers, when this client has less than
    /// twice that to give.
    #[must_use]
    pub fn beyond(&self, rate_ops_s: f64, workers: usize) -> Option<Caveat> {
        let ceiling = self.ceiling_ops_s(workers);
        if ceiling >= HEADROOM_MIN * rate_ops_s {
            return None;
        }
        let text = match ceiling < rate_ops_s {
            true => {
                "The rate is more than this client can drive: it will be missed, or its lag will \
                 be in every response time."
            }
            false => {
                "The rate is more than half of what this client can drive: its own queueing may \
                 be in the response times."
            }
        };
        let evidence = format!(
            "asked are {rate_ops_s:.0} op/s; the calibration of {} found {:.0} op/s per client cpu \
             at the {}, so {ceiling:.0} op/s with {workers} of them",
            self.made, self.ops_per_cpu_s, self.target
        );
        let cure = format!(
            "Give --client-cpus with more cores, or a --rate of at most {:.0}/s; after a change of \
             this machine run `wideload calibrate` again.",
            (ceiling / HEADROOM_MIN).floor()
        );
        Some(Caveat::new("beyond-calibration", text).evidence(evidence).cure(cure))
    }

    /// Whether its numbers can be such a thing's.
    fn is_sane(&self) -> bool {
        let spreads = [self.floor_us, self.sleep_late_us, self.poll_late_us];
        let times = spreads.iter().flat_map(|s| [s.p50, s.p99, s.p999, s.max]);
        let rates = [self.ops_per_cpu_s, self.ops_s];
        times.chain([self.client_busy]).all(|v| v.is_finite() && v >= 0.0)
            && rates.iter().all(|v| v.is_finite() && *v > 0.0)
            && self.workers > 0
    }
}

/// Why a calibration is not kept or not known. Each text names the file and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum CalibrationError {
    #[error(
        "{} is no calibration ({reason}) and is ignored: `wideload calibrate` replaces it",
        path.display()
    )]
    Unreadable { path: PathBuf, reason: String },
    #[error("cannot write {}: {source}; free space, or set XDG_STATE_HOME to a writable place",
        path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

/// The calibrations of a user.
#[derive(Debug, Clone)]
pub struct Calibrations {
    dir: PathBuf,
}

impl Calibrations {
    /// Those below the user's state directory.
    #[must_use]
    pub fn below(state: &Path) -> Self {
        Self { dir: state.join("calibration") }
    }

    /// Where that of this machine is kept.
    #[must_use]
    pub fn path(&self, identity: &Identity) -> PathBuf {
        self.dir.join(format!("{}.json", identity.key()))
    }

    /// That of this machine, if there is one.
    ///
    /// # Errors
    /// When there is a file that is none.
    pub fn of(&self, identity: &Identity) -> Result<Option<Calibration>, CalibrationError> {
        let path = self.path(identity);
        let unreadable =
            |reason: String| CalibrationError::Unreadable { path: path.clone(), reason };
        let text = match read_plain(&path, FILE_SIZE_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let found: Calibration =
            serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        if found.schema != SCHEMA {
            let reason = format!("it is of schema {}, this program knows {SCHEMA}", found.schema);
            return Err(unreadable(reason));
        }
        if found.identity != *identity {
            return Err(unreadable("it is of another machine".to_owned()));
        }
        match found.is_sane() {
            true => Ok(Some(found)),
            false => Err(unreadable("its numbers cannot be".to_owned())),
        }
    }

    /// Keeps one: readers see the old or the new file, never half of one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, calibration: &Calibration) -> Result<PathBuf, CalibrationError> {
        let path = self.path(&calibration.identity);
        let beside = path.with_extension(format!("part-{}", std::process::id()));
        let written = fs::create_dir_all(&self.dir)
            .and_then(|()| fill(&beside, calibration))
            .and_then(|()| fs::rename(&beside, &path));
        match written {
            Ok(()) => Ok(path),
            Err(source) => {
                // It may not be there.
                let _ = fs::remove_file(&beside);
                Err(CalibrationError::Unwritable { path, source })
            }
        }
    }
}

fn fill(path: &Path, calibration: &Calibration) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&serde_json::to_vec_pretty(calibration)?)?;
    file.sync_all()
}
