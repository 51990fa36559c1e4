//! The run directory: where it is, how its files come into being.
//!
//! A run gets `runs/<utc>-<name>/`, or the directory given by `--out`, which must be absent or
//! empty. Whole files appear at once (`whole_file`); series are appended to. `runs/latest` points
//! at the newest run under `./runs`. Nothing is written into a directory that has taken the place
//! of the run's own.

use crate::manifest::Verdict;
use crate::utc;
use crate::whole_file::{turn, write_manifest, write_whole};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use units::Nanos;

/// The directory of runs, under the current one.
pub const RUNS: &str = "runs";
/// Manifest of a run or a trial.
pub const MANIFEST: &str = "manifest.json";
/// Summary of a trial, as printed by `--json`.
pub const SUMMARY: &str = "summary.json";
/// One histogram per tag over the measured window.
pub const TOTAL_HLOG: &str = "total.hlog";
/// One histogram per tag and interval.
pub const LATENCY_HLOG: &str = "latency.hlog";
/// Series over time.
pub const COUNTERS_CSV: &str = "counters.csv";
/// What was done over time, in blocks, warm-up included.
pub const BLOCKS_CSV: &str = "blocks.csv";
/// What happened to the target meanwhile, where something did.
pub const EVENTS_CSV: &str = "events.csv";
/// A row per trial.
pub const TRIALS_CSV: &str = "trials.csv";
/// What an experiment was asked for.
pub const EXPERIMENT_TOML: &str = "experiment.toml";
/// The figures of an experiment's trials together.
pub const OUTCOME_JSON: &str = "outcome.json";
/// Raw text of sources and logs, in a trial.
pub const RAW: &str = "raw";
/// The report.
pub const REPORT_HTML: &str = "report.html";

/// Characters of a run's name that are kept.
const NAME_CHARS_MAX: usize = 80;
/// Runs of one name in one second.
const COLLISIONS_MAX: u32 = 1000;

/// Why the run directory could not be made or written. Each text names the path and the cure.
#[derive(Debug, Error)]
pub enum RunDirError {
    /// `--out` names something that is in use.
    #[error("'{}' is not empty: give --out a new or an empty directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A file where a directory should be.
    #[error(
        "'{}' is not a directory: give --out another path, or move the file away",
        path.display()
    )]
    NotDirectory {
        /// The file.
        path: PathBuf,
    },
    /// No permission, or a read-only file system.
    #[error("cannot write '{}': {source}; choose a writable place with --out DIR", path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No space left, or a quota.
    #[error(
        "cannot write '{}': {source}; free space, or choose another disk with --out DIR",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// `RLIMIT_FSIZE`, or the file system's own bound.
    #[error(
        "cannot write '{}': {source}; raise the limit on the size of files (`ulimit -f`), or \
         choose another disk with --out DIR",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not the directory any more that was made for the run.
    #[error(
        "the run directory '{}' was deleted, moved or replaced while the run went on, and what it \
         recorded with it: run again, and leave the directory alone until the run has ended",
        path.display()
    )]
    Gone {
        /// The directory.
        path: PathBuf,
    },
    /// `runs/latest` is something of the user's.
    #[error(
        "'{}' is not a symlink: move it away, it is to point at the newest run",
        path.display()
    )]
    LatestInTheWay {
        /// The path of `latest`.
        path: PathBuf,
    },
    /// Anything else that the system refuses.
    #[error(
        "cannot write '{}': {source}; check the path, or choose another with --out DIR",
        path.display()
    )]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A value that cannot be JSON, like a map with keys that are no text.
    #[error("cannot write '{}' as JSON: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the serializer says.
        source: serde_json::Error,
    },
}

/// What the system says of a write to `path`, with the cure.
pub fn write_failed(path: &Path) -> impl FnOnce(io::Error) -> RunDirError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            RunDirError::Unwritable { path, source }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            RunDirError::Full { path, source }
        }
        io::ErrorKind::FileTooLarge => RunDirError::TooLarge { path, source },
        io::ErrorKind::NotADirectory => RunDirError::NotDirectory { path },
        _ => RunDirError::Io { path, source },
    }
}

/// The directory of one run.
#[derive(Debug, Clone)]
pub struct RunDir(Place);

/// The directory of one trial.
#[derive(Debug, Clone)]
pub struct TrialDir(Place);

/// A directory by its path, and the directory that was there at first. It is held open, so that
/// the kernel cannot give its number to another one.
#[derive(Debug, Clone)]
struct Place {
    path: PathBuf,
    first: Arc<File>,
}

impl Place {
    fn of(path: PathBuf) -> Result<Self, RunDirError> {
        let first = Arc::new(File::open(&path).map_err(write_failed(&path))?);
        Ok(Self { path, first })
    }

    fn check(&self) -> Result<(), RunDirError> {
        let same = |now: &fs::Metadata| {
            self.first.metadata().is_ok_and(|first| {
                (first.dev(), first.ino()) == (now.dev(), now.ino()) && first.nlink() > 0
            })
        };
        match fs::metadata(&self.path) {
            Ok(now) if same(&now) => Ok(()),
            _ => Err(RunDirError::Gone { path: self.path.clone() }),
        }
    }

    /// The path of a file in it, which is still the run's own directory.
    fn file(&self, name: &str) -> Result<PathBuf, RunDirError> {
        self.check()?;
        Ok(self.path.join(name))
    }

    /// Makes a directory in it.
    fn directory(&self, name: &str) -> Result<PathBuf, RunDirError> {
        let path = self.file(name)?;
        fs::create_dir_all(&path).map_err(write_failed(&path))?;
        Ok(path)
    }
}

impl RunDir {
    /// Makes the directory of a run that starts now: `out` when given, which must be absent or
    /// empty, else `runs/<utc>-<name>` with `runs/latest` pointing at it.
    pub fn create(out: Option<&Path>, name: &str) -> Result<Self, RunDirError> {
        match out {
            Some(out) => Self::create_at(out),
            None => Self::create_under(Path::new(RUNS), name, units::clock::wall()),
        }
    }

    fn create_at(out: &Path) -> Result<Self, RunDirError> {
        if let Ok(found) = fs::symlink_metadata(out) {
            if !found.is_dir() && !out.is_dir() {
                return Err(RunDirError::NotDirectory { path: out.to_owned() });
            }
            let mut entries = fs::read_dir(out).map_err(write_failed(out))?;
            if entries.next().is_some() {
                return Err(RunDirError::NotEmpty { path: out.to_owned() });
            }
        }
        fs::create_dir_all(out).map_err(write_failed(out))?;
        // An empty directory may still be one that we must not write to; say so before the load.
        let probe = out.join(".probe");
        let _turn = turn();
        fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(write_failed(out))?;
        Ok(Self(Place::of(out.to_owned())?))
    }

    fn create_under(runs: &Path, name: &str, wall: Nanos) -> Result<Self, RunDirError> {
        if runs.exists() && !runs.is_dir() {
            return Err(RunDirError::NotDirectory { path: runs.to_owned() });
        }
        let latest = latest_of(runs)?;
        fs::create_dir_all(runs).map_err(write_failed(runs))?;
        let stem = format!("{}-{}", utc::compact(wall.0 / 1_000_000_000), plain_name(name));
        let mut number = 1;
        let path = loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = runs.join(format!("{stem}{suffix}"));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < COLLISIONS_MAX => {
                    number += 1;
                }
                Err(e) => return Err(write_failed(&path)(e)),
            }
        };
        if let Err(error) = point_latest(&latest, &path) {
            // Nothing is in it yet: an empty run would only puzzle.
            let _ = fs::remove_dir(&path);
            return Err(error);
        }
        Ok(Self(Place::of(path)?))
    }

    /// Opens the directory of a run that goes on.
    ///
    /// # Errors
    /// [`RunDirError`] when it is no directory or cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, RunDirError> {
        match path.is_dir() {
            true => Ok(Self(Place::of(path.to_owned())?)),
            false => Err(RunDirError::NotDirectory { path: path.to_owned() }),
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether it is still the directory that was made.
    ///
    /// # Errors
    /// [`RunDirError::Gone`] when it is not.
    pub fn check(&self) -> Result<(), RunDirError> {
        self.0.check()
    }

    /// Makes the directory of trial `number` (from 1): `trial-0001`.
    pub fn trial(&self, number: u32) -> Result<TrialDir, RunDirError> {
        Ok(TrialDir(Place::of(self.0.directory(&trial_dir_name(number))?)?))
    }

    /// Writes a whole file, at once for any reader.
    pub fn write(&self, file: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        write_whole(&self.0.file(file)?, bytes)
    }

    /// Writes a value as indented JSON, at once for any reader.
    pub fn write_json(&self, file: &str, value: &impl Serialize) -> Result<(), RunDirError> {
        write_json(&self.0.file(file)?, value)
    }

    /// Starts a file that grows.
    pub fn append(&self, file: &str) -> Result<File, RunDirError> {
        start(&self.0.file(file)?)
    }
}

impl TrialDir {
    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// As [`RunDir::check`].
    ///
    /// # Errors
    /// As there.
    pub fn check(&self) -> Result<(), RunDirError> {
        self.0.check()
    }

    /// The directory of raw texts, made when first asked for.
    pub fn raw(&self) -> Result<PathBuf, RunDirError> {
        self.0.directory(RAW)
    }

    /// Writes a whole file, at once for any reader.
    pub fn write(&self, file: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        write_whole(&self.0.file(file)?, bytes)
    }

    /// Writes a value as indented JSON, at once for any reader.
    pub fn write_json(&self, file: &str, value: &impl Serialize) -> Result<(), RunDirError> {
        write_json(&self.0.file(file)?, value)
    }

    /// Starts a file that grows.
    pub fn append(&self, file: &str) -> Result<File, RunDirError> {
        start(&self.0.file(file)?)
    }
}

/// The name of the directory of trial `number` (from 1): `trial-0001`.
#[must_use]
pub fn trial_dir_name(number: u32) -> String {
    format!("trial-{number:04}")
}

/// The trials of a run directory: number and path, in the order of their numbers.
pub fn trials(run: &Path) -> Result<Vec<(u32, PathBuf)>, RunDirError> {
    let mut trials = Vec::new();
    for entry in fs::read_dir(run).map_err(write_failed(run))? {
        let entry = entry.map_err(write_failed(run))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix("trial-")).map(str::parse);
        if let Some(Ok(number)) = number {
            trials.push((number, entry.path()));
        }
    }
    trials.sort();
    Ok(trials)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunDirError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| RunDirError::Json { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    if !path.ends_with(MANIFEST) {
        return write_whole(path, &bytes);
    }
    let verdict = serde_json::to_value(value).ok().and_then(|value| value.get("verdict").cloned());
    write_manifest(path, bytes, verdict == Some(Verdict::Running.name().into()))
}

fn start(path: &Path) -> Result<File, RunDirError> {
    File::create(path).map_err(write_failed(path))
}

/// The place of `runs/latest`, which must be free or a symlink.
fn latest_of(runs: &Path) -> Result<PathBuf, RunDirError> {
    let latest = runs.join("latest");
    match fs::symlink_metadata(&latest) {
        Ok(found) if !found.is_symlink() => Err(RunDirError::LatestInTheWay { path: latest }),
        _ => Ok(latest),
    }
}

/// Points `runs/latest` at `run` beside it, by renaming a new symlink over the old one.
pub(crate) fn point_latest(latest: &Path, run: &Path) -> Result<(), RunDirError> {
    let Some(name) = run.file_name() else { return Ok(()) };
    let mut fresh = std::ffi::OsString::from(".latest-");
    fresh.push(name);
    let fresh = latest.with_file_name(fresh);
    let _turn = turn();
    std::os::unix::fs::symlink(name, &fresh).map_err(write_failed(latest))?;
    fs::rename(&fresh, latest).map_err(|e| {
        let _ = fs::remove_file(&fresh);
        write_failed(latest)(e)
    })
}

/// A name as part of a file name: letters, digits, `.`, `_`, `-`; anything else is a hyphen.
fn plain_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String =
        name.chars().take(NAME_CHARS_MAX).map(|c| if fits(c) { c } else { '-' }).collect();
    if plain.is_empty() { "run".into() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const WALL: Nanos = Nanos::from_secs(951_782_399);

    #[test]
    fn runs_of_one_second_get_numbers_and_latest_is_the_last() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join("runs");
        let names: Vec<_> = (0..3)
            .map(|_| RunDir::create_under(&runs, "ycsb:a b/../c", WALL).unwrap())
            .map(|run| run.path().file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        let stem = "20000228T235959Z-ycsb-a-b-..-c";
        assert_eq!(names, [stem.to_owned(), format!("{stem}-2"), format!("{stem}-3")]);
        assert_eq!(fs::read_link(runs.join("latest")).unwrap(), Path::new(&names[2]));
        assert_eq!(fs::read_dir(&runs).unwrap().count(), 4);
    }

    #[test]
    fn latest_of_the_user_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("latest")).unwrap();
        let error = RunDir::create_under(home.path(), "a", WALL).unwrap_err();
        assert!(matches!(error, RunDirError::LatestInTheWay { .. }), "{error}");
        assert!(home.path().join("latest").is_dir());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no empty run is left");
    }

    #[test]
    fn a_file_in_the_place_of_the_runs_is_named() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join(RUNS);
        fs::write(&runs, "x").unwrap();
        let error = RunDir::create_under(&runs, "a", WALL).unwrap_err();
        assert!(matches!(error, RunDirError::NotDirectory { .. }), "{error}");
    }

    #[test]
    fn out_must_be_absent_or_empty() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("deep/out");
        let run = RunDir::create(Some(&out), "a").unwrap();
        assert_eq!(run.path(), out);
        // Made, still empty: taking it again is harmless.
        RunDir::create(Some(&out), "a").unwrap().write(SUMMARY, b"{}").unwrap();
        let error = RunDir::create(Some(&out), "a").unwrap_err();
        assert!(error.to_string().contains("out' is not empty"), "{error}");
        let file = home.path().join("file");
        fs::write(&file, "x").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = RunDir::create(Some(&path), "a").unwrap_err();
            assert!(matches!(error, RunDirError::NotDirectory { .. }), "{error}");
            assert!(error.to_string().contains("--out"), "{error}");
        }
        assert!(!home.path().join("latest").exists());
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        // /proc refuses even the superuser.
        let error = RunDir::create(Some(Path::new("/proc/wideload")), "a").unwrap_err().to_string();
        assert!(error.contains("'/proc/wideload'") && error.contains("--out DIR"), "{error}");
    }

    #[test]
    fn a_full_disk_is_named_and_leaves_no_part() {
        let full = Path::new("/dev/full");
        let error = write_failed(full)(fs::write(full, "x").unwrap_err()).to_string();
        assert!(error.contains("'/dev/full'") && error.contains("free space"), "{error}");
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("taken");
        fs::create_dir(&place).unwrap();
        assert!(write_whole(&place, b"x").is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_beside_the_file_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (victim, file) = (home.path().join("victim"), home.path().join("report.html"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, home.path().join("report.html.part")).unwrap();
        write_whole(&file, b"page").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&file).unwrap(), b"page");
        assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    /// A file system of 1 MiB, unmounted when dropped; None without the right to mount.
    struct SmallDisk(tempfile::TempDir);

    impl SmallDisk {
        fn mount() -> Option<Self> {
            let home = tempfile::tempdir().unwrap();
            let mut mount = std::process::Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(home.path());
            mount.output().is_ok_and(|done| done.status.success()).then(|| Self(home))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0.path()).status();
        }
    }

    #[test]
    fn a_manifest_gets_its_end_on_a_full_disk() {
        use crate::Manifest;
        let Some(disk) = SmallDisk::mount() else {
            eprintln!("SKIP: cannot mount a tmpfs here");
            return;
        };
        let run = RunDir::create(Some(&disk.0.path().join("run")), "a").unwrap();
        let mut manifest = Manifest::starting("a", Vec::new(), WALL);
        run.write_json(MANIFEST, &manifest).unwrap();
        assert!(run.append(COUNTERS_CSV).unwrap().write_all(&vec![b'x'; 2 << 20]).is_err());
        manifest.end(Verdict::Failed, Some("the disk is full".into()), WALL);
        run.write_json(MANIFEST, &manifest).unwrap();
        let bytes = fs::read(run.path().join(MANIFEST)).unwrap();
        assert_eq!(serde_json::from_slice::<Manifest>(&bytes).unwrap(), manifest);
        assert!(bytes.ends_with(b"}\n"));
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 2, "manifest and counters");
    }

    #[test]
    fn nothing_is_written_into_a_directory_that_took_the_place() {
        type Harm = fn(&Path);
        let harms: [Harm; 4] = [
            |path| fs::remove_dir_all(path).unwrap(),
            |path| {
                fs::remove_dir_all(path).unwrap();
                fs::create_dir_all(path.join("trial-0001")).unwrap();
            },
            |path| {
                fs::remove_dir_all(path).unwrap();
                fs::write(path, "mine").unwrap();
            },
            |path| fs::rename(path, path.with_extension("moved")).unwrap(),
        ];
        for (number, harm) in harms.into_iter().enumerate() {
            let home = tempfile::tempdir().unwrap();
            let out = home.path().join("out");
            let run = RunDir::create(Some(&out), "a").unwrap();
            let trial = run.trial(1).unwrap();
            trial.write(SUMMARY, b"{}").unwrap();
            harm(&out);
            let refused = [
                run.check(),
                trial.check(),
                run.write_json(MANIFEST, &1),
                run.trial(1).map(drop),
                trial.write(SUMMARY, b"{}"),
                trial.append(LATENCY_HLOG).map(drop),
                trial.raw().map(drop),
            ];
            for error in refused.map(Result::unwrap_err) {
                assert!(matches!(error, RunDirError::Gone { .. }), "{number}: {error}");
                assert!(error.to_string().contains("/out"), "{error}");
            }
            assert!(!out.join("trial-0001/summary.json").exists(), "{number}");
        }
    }

    #[test]
    fn files_appear_whole_and_trials_in_order() {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::create(Some(&home.path().join("out")), "a").unwrap();
        for number in [10, 2] {
            let trial = run.trial(number).unwrap();
            trial.write_json(SUMMARY, &number).unwrap();
            assert!(trial.raw().unwrap().is_dir());
        }
        run.write(TRIALS_CSV, b"first").unwrap();
        run.write(TRIALS_CSV, b"second").unwrap();
        assert_eq!(fs::read(run.path().join(TRIALS_CSV)).unwrap(), b"second");
        let found = trials(run.path()).unwrap();
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 10]);
        assert_eq!(fs::read(found[0].1.join(SUMMARY)).unwrap(), b"2\n");
        assert!(found[1].1.ends_with("trial-0010"));
    }
}
