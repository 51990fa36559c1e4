//! What happens to the disk and to the run directory while a run records: the error names the file
//! and the cure, what was recorded can be read, nothing is written where it does not belong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::{Manifest, Verdict};
use rig::{Ended, Home, Process, RunDir, eventually};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ENVIRONMENT: i32 = 3;
/// Within this a run notices and ends, on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// A run that would go on far longer, and writes much.
const LOAD: [&str; 12] = [
    "run",
    "ycsb:a",
    "--records",
    "1k",
    "--warm",
    "0s",
    "--duration",
    "10m",
    "--interval",
    "20ms",
    "--threads",
    "4",
];

/// A file system of its own, unmounted on every way out.
struct Mount(PathBuf);

impl Mount {
    /// None where this user may not mount.
    fn new(at: PathBuf, arguments: &[&str], what: &Path) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(arguments).arg(what).arg(&at).output();
        mounted.is_ok_and(|done| done.status.success()).then_some(Self(at))
    }

    fn tmpfs(at: PathBuf, size: &str) -> Option<Self> {
        let size = format!("size={size}");
        Self::new(at, &["-t", "tmpfs", "-o", &size], Path::new("wideload-test"))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn start(home: &Home, out: &str) -> Process {
    home.start(&[&LOAD[..], &["--out", out]].concat())
}

/// Waits until some intervals of a run are on disk.
fn recorded(home: &Home, out: &str, process: &mut Process) {
    let log = home.at(out).join("trial-0001/latency.hlog");
    let begun = eventually(Duration::from_secs(30), || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.matches("Tag=read-service").count() >= 3 || !process.is_running()
    });
    assert!(begun && process.is_running(), "it did not get to record: {:?}", process.stdout());
}

/// One sentence on stderr with all of these words, and the status of an environment that fails.
fn assert_refused(home: &Home, ended: &Ended, says: &[&str]) {
    assert_eq!(ended.status, Some(ENVIRONMENT), "{ended:?}");
    assert_eq!((ended.stderr.lines().count(), ended.stdout.as_str()), (1, ""), "{ended:?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    for word in says {
        assert!(ended.stderr.contains(word), "'{word}' is not in it: {ended:?}");
    }
    home.assert_nothing_left();
}

/// The manifests say why, and all intervals until then can be read.
fn assert_kept(directory: &RunDir, why: &str) {
    for file in ["manifest.json", "trial-0001/manifest.json"] {
        let manifest: Manifest = directory.json(file);
        assert_eq!(manifest.verdict, Verdict::Failed, "{file}");
        assert!(manifest.failure.as_ref().is_some_and(|f| f.contains(why)), "{manifest:?}");
    }
    let log = fs::read_to_string(directory.0.join("trial-0001/latency.hlog")).unwrap();
    assert!(log.ends_with('\n'), "no part of an interval is left");
    assert!(directory.series("latency.hlog", "service").count() > 0);
    let counters = fs::read_to_string(directory.0.join("trial-0001/counters.csv")).unwrap();
    assert!(counters.ends_with('\n'));
    assert!(directory.files().iter().all(|file| !file.ends_with(".part")));
}

#[test]
fn a_disk_that_fills_up_while_recording() {
    let home = Home::new();
    let Some(disk) = Mount::tmpfs(home.at("disk"), "600k") else {
        eprintln!("SKIP: this user may not mount a tmpfs");
        return;
    };
    let ended = start(&home, "disk/out").wait(Duration::from_secs(120));
    let log = "disk/out/trial-0001/";
    assert_refused(&home, &ended, &[log, "No space left", "free space", "--out"]);
    assert_kept(&RunDir(home.at("disk/out")), "No space left");
    drop(disk);
}

#[test]
fn a_disk_that_turns_read_only_while_recording() {
    let home = Home::new();
    let image = home.at("image");
    fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).output();
    let made = made.is_ok_and(|done| done.status.success());
    let disk = made.then(|| Mount::new(home.at("disk"), &["-o", "loop"], &image)).flatten();
    let Some(disk) = disk else {
        eprintln!("SKIP: this user may not mount an ext4 image");
        return;
    };
    let mut process = start(&home, "disk/out");
    recorded(&home, "disk/out", &mut process);
    // As after an error of the disk: the kernel takes no further writes.
    let broken = Command::new("mount").args(["-o", "remount,abort"]).arg(&disk.0).status();
    assert!(broken.unwrap().success());
    let ended = process.wait(SOON);
    // The manifest could not be told any more, which is told here; it can be read.
    let (unwritten, error) = ended.stderr.split_once('\n').unwrap();
    assert!(unwritten.starts_with("how this run ended could not be noted in it: "), "{ended:?}");
    assert!(unwritten.contains("manifest.json") && unwritten.contains("Read-only"), "{ended:?}");
    let ended = Ended { stderr: error.to_owned(), ..ended };
    assert_refused(&home, &ended, &["disk/out/trial-0001/", "Read-only", "--out"]);
    assert_eq!(RunDir(home.at("disk/out")).manifest().verdict, Verdict::Running);
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(home.at("disk/out")).arg(home.at("copy"));
    assert!(copy.status().unwrap().success());
    assert_eq!(home.run(&["report", "copy"]).status, Some(0));
    let page = fs::read_to_string(home.at("copy/report.html")).unwrap();
    assert!(page.contains("How this run ended is not known"), "{page:.400}");
    assert!(RunDir(home.at("disk/out")).files().iter().all(|file| !file.ends_with(".part")));
}

#[test]
fn a_limit_on_the_size_of_files() {
    let home = Home::new();
    let mut command = home.command("prlimit");
    command.arg("--fsize=200000").arg("--").arg(env!("CARGO_BIN_EXE_wideload"));
    command.args(LOAD).args(["--out", "out"]);
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("SKIP: there is no prlimit here");
        return;
    }
    let ended = Process::start(command).wait(Duration::from_secs(120));
    assert_refused(&home, &ended, &["out/trial-0001/", "File too large", "ulimit -f"]);
    assert_kept(&RunDir(home.at("out")), "File too large");
    assert!(home.at("out/report.html").exists() || home.run(&["report", "out"]).status == Some(0));
}

#[test]
fn a_run_directory_that_is_taken_away() {
    type Harm = (&'static str, fn(&Path));
    let harms: [Harm; 4] = [
        ("deleted", |out| remove(out)),
        ("moved", |out| fs::rename(out, out.with_extension("moved")).unwrap()),
        ("replaced by a file", |out| {
            remove(out);
            fs::write(out, "mine").unwrap();
        }),
        ("replaced by another directory", |out| {
            fs::rename(out, out.with_extension("moved")).unwrap();
            fs::create_dir_all(out.join("trial-0001")).unwrap();
            fs::write(out.join("manifest.json"), "mine").unwrap();
        }),
    ];
    for (what, harm) in harms {
        let home = Home::new();
        let mut process = start(&home, "out");
        recorded(&home, "out", &mut process);
        let out = home.at("out");
        harm(&out);
        let ended = process.wait(SOON);
        assert_refused(&home, &ended, &["out/trial-0001'", "deleted, moved or replaced"]);
        match what {
            "replaced by a file" => assert_eq!(fs::read_to_string(&out).unwrap(), "mine"),
            "replaced by another directory" => {
                assert_eq!(RunDir(out).files(), ["manifest.json", "trial-0001/"]);
                assert_eq!(fs::read_to_string(home.at("out/manifest.json")).unwrap(), "mine");
            }
            _ => assert!(!out.exists(), "{what}: it is not made again"),
        }
        if what == "moved" {
            let moved = RunDir(home.at("out.moved"));
            assert!(moved.series("latency.hlog", "service").count() > 0);
        }
    }
}

/// Removes a directory into which a program still writes.
fn remove(directory: &Path) {
    let gone = eventually(Duration::from_secs(10), || {
        let _ = fs::remove_dir_all(directory);
        !directory.exists()
    });
    assert!(gone, "{} is still there", directory.display());
}
