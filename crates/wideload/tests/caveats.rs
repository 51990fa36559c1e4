//! Each caveat is provoked for real, and a clean run has none of them; whatever shows a number
//! shows its caveats.
//!
//! What else runs on the machine may add caveats of the host, never take one away, and no others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::{Caveat, Summary};
use rig::serve::{executed, two_cpus};
use rig::{Home, Process, RunDir, Serve, alone, eventually};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// What the machine itself, or others on it, may give a run that does nothing wrong.
const OF_THE_HOST: [&str; 9] = [
    "busy-host",
    "steal",
    "swap",
    "governor",
    "clock-source",
    "frequency",
    "throttled-cpu",
    "not-steady",
    "intervals-merged",
];

/// What a host that others use may do to such a run.
const OF_THE_DISTURBED: [&str; 3] = ["client-lag", "late-start", "littles-law"];

fn codes(summary: &Summary) -> Vec<&str> {
    summary.caveats.iter().map(|c| c.code.as_str()).collect()
}

/// The caveat with this code, which must be whole.
fn caveat<'a>(summary: &'a Summary, code: &str) -> &'a Caveat {
    let found = summary.caveats.iter().find(|c| c.code == code);
    let found = found.unwrap_or_else(|| panic!("no {code} in {:?}", summary.caveats));
    assert!(found.text.ends_with('.') && found.cure.ends_with('.'), "{found:?}");
    found
}

/// A target of its own process with a loaded table, and the two cpus.
struct Rig {
    home: Home,
    serve: Serve,
    client_cpu: String,
}

const RECORDS: [&str; 2] = ["--records", "1k"];

impl Rig {
    fn start() -> Self {
        let home = Home::new();
        let (target_cpu, client_cpu) = two_cpus();
        let serve = Serve::start(&home, &["--cpus", &target_cpu]);
        let rig = Self { home, serve, client_cpu };
        rig.run("made", &["--ops", "100", "--warm", "0s"]).wait(Duration::from_secs(60));
        rig
    }

    fn run(&self, out: &str, arguments: &[&str]) -> Process {
        let (target, out) = (self.serve.target(), self.home.at(out));
        let run = ["run", "ycsb:c", "--json", "--target", &target, "--out", out.to_str().unwrap()];
        let client = ["--client-cpus", &self.client_cpu];
        self.home.start(&[&run[..], &RECORDS, &client, arguments].concat())
    }

    /// The summary, whatever the exit status.
    fn frozen(&self, out: &str, arguments: &[&str], after: u64, time: Duration) -> Summary {
        let mut control = self.serve.control();
        let before = executed(&mut control);
        let run = self.run(out, arguments);
        let reached =
            eventually(Duration::from_secs(30), || executed(&mut control) >= before + after);
        assert!(reached, "the run did not get to {after} operations");
        self.serve.freeze(time);
        run.wait(Duration::from_secs(60)).summary()
    }
}

#[test]
fn a_clean_run_has_no_caveat_of_its_own() {
    let _alone = alone();
    let home = Home::new();
    let run = ["run", "ycsb:c", "--records", "1k", "--rate", "5k/s"];
    let length = ["--warm", "500ms", "--duration", "3s"];
    // A moment in which the machine does something else is no fault of the rules: one run of
    // three must be clean.
    let clean = (1..=3).any(|_| {
        let summary = home.summary(&[&run[..], &length].concat());
        let codes = codes(&summary);
        println!("{codes:?}");
        let disturbed = codes.contains(&"busy-host") || codes.contains(&"steal");
        let own = codes.iter().filter(|code| !OF_THE_HOST.contains(*code));
        // A client or target that is kept from its cpu lags, and may stall at any moment.
        let own = own.filter(|code| !(disturbed && OF_THE_DISTURBED.contains(*code)));
        own.eq([&"stand-in"])
    });
    assert!(clean, "no run of three had only caveats of the target and the host");
}

#[test]
fn a_client_that_makes_large_values_is_busy() {
    let _alone = alone();
    let home = Home::new();
    let large = ["-p", "fieldcount=50", "-p", "fieldlength=2000", "-p", "writeallfields=true"];
    let writes = ["-p", "readproportion=0", "-p", "updateproportion=1"];
    let run = ["run", "ycsb:a", "--storage", "null", "--records", "100", "--threads", "8"];
    let length = ["--warm", "200ms", "--duration", "2s"];
    let provoked = (1..=5).any(|_| {
        let summary = home.summary(&[&run[..], &large, &writes, &length].concat());
        let busy = summary.client.busy_max.unwrap();
        assert_eq!(codes(&summary).contains(&"client-busy"), busy > 0.8, "{summary:?}");
        if busy > 0.8 {
            let caveat = caveat(&summary, "client-busy");
            assert!(caveat.evidence.contains("worker 0 of"), "{caveat:?}");
        }
        // Who is kept from the cpu by others cannot be busy; then that is what is said.
        busy > 0.8 || codes(&summary).contains(&"busy-host")
    });
    assert!(provoked, "neither a busy client nor a busy host in 5 runs");
}

#[test]
fn workers_that_somebody_moves_are_told() {
    let _alone = alone();
    let rig = Rig::start();
    let mut control = rig.serve.control();
    let before = executed(&mut control);
    let run = rig.run("out", &["--threads", "4", "--warm", "0s", "--duration", "2s"]);
    let begun = eventually(Duration::from_secs(30), || executed(&mut control) > before + 2000);
    assert!(begun, "the run did not begin");
    let mut cpus = rustix::thread::CpuSet::new();
    units::cpus_of_current_thread().unwrap().iter().for_each(|cpu| cpus.set(cpu.0 as usize));
    for task in fs::read_dir(format!("/proc/{}/task", run.id().pid)).unwrap() {
        let thread = task.unwrap().file_name().to_str().unwrap().parse().unwrap();
        rustix::thread::sched_setaffinity(rustix::thread::Pid::from_raw(thread), &cpus).unwrap();
    }
    let summary = run.wait(Duration::from_secs(60)).summary();
    let moved = caveat(&summary, "misplaced");
    assert!(moved.text.contains("1 of 1 workers"), "{moved:?}");
}

#[test]
fn a_rate_beyond_the_target_and_too_few_in_flight_for_it() {
    let _alone = alone();
    let rig = Rig::start();
    let run = ["--rate", "400k/s", "--in-flight-max", "1", "--warm", "0s", "--duration", "500ms"];
    let ended = rig.run("out", &[&run[..], &["--timeout", "60s"]].concat());
    let summary = ended.wait(Duration::from_secs(90)).summary();
    assert_eq!(summary.errors, 0, "{summary:?}");
    let missed = caveat(&summary, "rate-missed");
    assert!(missed.evidence.contains("of 200000 done"), "{missed:?}");
    assert!(summary.latency_us["read"].response.is_none());
    let bound = caveat(&summary, "in-flight-bound");
    assert!(
        bound.text.contains("too low") && bound.evidence.contains("at 1 in flight"),
        "{bound:?}"
    );
    // It is the bound that made operations late.
    assert!(!codes(&summary).contains(&"client-lag"), "{summary:?}");
}

#[test]
fn a_frozen_target_is_errors_late_answers_and_a_full_bound() {
    let _alone = alone();
    let rig = Rig::start();
    let run = ["--rate", "2k/s", "--warm", "0s", "--duration", "4s"];
    let patience = ["--timeout", "300ms", "--in-flight-max", "4096"];
    let freeze = Duration::from_millis(1500);
    let summary = rig.frozen("timeouts", &[&run[..], &patience].concat(), 2000, freeze);
    let errors = caveat(&summary, "errors");
    assert!(errors.evidence.contains("client_timeout"), "{errors:?}");
    caveat(&summary, "late-answers");

    let bound = [&run[..], &["--in-flight-max", "64"]].concat();
    let summary = rig.frozen("bound", &bound, 2000, freeze);
    assert_eq!(summary.errors, 0, "{summary:?}");
    let bound = caveat(&summary, "in-flight-bound");
    assert!(bound.evidence.contains("at 64 in flight; 2000/s x"), "{bound:?}");
}

#[test]
fn a_stall_that_the_throughput_leaves_out_is_told() {
    let _alone = alone();
    let rig = Rig::start();
    let run = ["--threads", "4", "--warm", "3s", "--duration", "3s"];
    // Frozen from the first second of the warm-up to the second of the window.
    // The first thousand statements look for the rows.
    let stalled = rig.frozen("stalled", &run, 1500, Duration::from_secs(4));
    let late = caveat(&stalled, "late-start");
    assert!(late.text.contains("of the window every client waited"), "{late:?}");
    assert!(stalled.duration_s < 2.9, "{stalled:?}");
    // A busy machine may stall it by chance, not each time.
    let calm = (1..=3).any(|number| {
        let run = rig.run(&format!("calm-{number}"), &run);
        !codes(&run.wait(Duration::from_secs(60)).summary()).contains(&"late-start")
    });
    assert!(calm, "without a stall it is told too");
}

#[test]
fn what_else_runs_on_the_host_is_seen() {
    let _alone = alone();
    let home = Home::new();
    let spin = || {
        let mut command = home.command("sh");
        command.args(["-c", "while :; do :; done"]);
        Process::start(command)
    };
    let _spinners: Vec<_> =
        (0..std::thread::available_parallelism().unwrap().get()).map(|_| spin()).collect();
    let run = ["run", "ycsb:c", "--records", "1k", "--rate", "500/s", "--duration", "2s"];
    let summary = home.summary(&run);
    let busy = caveat(&summary, "busy-host");
    assert!(busy.evidence.contains("procs_running was"), "{busy:?}");
}

#[test]
fn cpus_that_client_and_target_share_are_named_whoever_started_the_target() {
    let _alone = alone();
    let home = Home::new();
    let (cpu, other) = two_cpus();
    let short = ["--records", "1k", "--warm", "0s", "--duration", "1s"];
    let ours = ["run", "ycsb:c", "--client-cpus", &cpu, "--target-cpus", &cpu];
    let summary = home.summary(&[&ours[..], &short, &["--rate", "500/s"]].concat());
    assert!(caveat(&summary, "shared-cpus").text.contains(&format!("share cpus {cpu}:")));
    caveat(&summary, "wait-sleep");

    let serve = Serve::start(&home, &["--cpus", &cpu]);
    let target = serve.target();
    let theirs = |client: &str, out: &str| {
        let run = ["run", "ycsb:c", "--target", &target, "--client-cpus", client, "--out", out];
        home.summary(&[&run[..], &short].concat())
    };
    assert!(caveat(&theirs(&cpu, "same"), "shared-cpus").text.contains(&cpu));
    if cpu != other {
        assert!(!codes(&theirs(&other, "apart")).contains(&"shared-cpus"));
    }
    let manifest = RunDir(home.at("same")).manifest();
    assert_eq!(manifest.target["cpus"], cpu.as_str(), "found by who listens there");
}

#[test]
fn a_target_on_this_host_that_cannot_be_seen_is_told() {
    let _alone = alone();
    let rig = Rig::start();
    let nobody = ["--reuid=65534", "--clear-groups"];
    let may = rig.home.command("setpriv").args(nobody).arg("true").status();
    if !may.is_ok_and(|status| status.success()) {
        return eprintln!("SKIP: another user needs setpriv and root");
    }
    fs::set_permissions(rig.home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A copy, because the way to the program may be closed to others.
    let program = rig.home.at("wideload");
    fs::copy(env!("CARGO_BIN_EXE_wideload"), &program).unwrap();
    let mut command = rig.home.command("setpriv");
    command.args(nobody).arg(program).args(["run", "ycsb:c", "--json", "--out", "unseen"]);
    command.args(["--target", &rig.serve.target(), "--records", "1k", "--duration", "1s"]);
    let ended = Process::start(command).wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    let unknown = caveat(&summary, "unknown-cpus");
    assert!(unknown.evidence.contains(&rig.serve.target()), "{unknown:?}");
    assert!(!codes(&summary).contains(&"busy-host"), "it cannot be told from the target");
}

#[test]
fn a_target_that_is_started_again_breaks_connections_and_forgets_statements() {
    let _alone = alone();
    let home = Home::new();
    let serve = Serve::start(&home, &["--storage", "null"]);
    let (target, mut control) = (serve.target(), serve.control());
    let run = ["run", "ycsb:c", "--records", "1k", "--json", "--target", &target];
    let length = ["--warm", "0s", "--duration", "5s", "--threads", "4"];
    let before = executed(&mut control);
    let run = home.start(&[&run[..], &length].concat());
    assert!(eventually(Duration::from_secs(30), || executed(&mut control) > before + 1000));
    drop(serve);
    let _again = home.start(&["serve", "--storage", "null", "--listen", &target]);
    let summary = run.wait(Duration::from_secs(60)).summary();
    caveat(&summary, "connections-lost");
    caveat(&summary, "prepared-again");
    caveat(&summary, "errors");
}

/// A run with several caveats, however calm the machine.
const DOUBTFUL: [&str; 10] = [
    "run",
    "ycsb:a",
    "--records",
    "1k",
    "--throttle",
    "100/s",
    "--warm",
    "0s",
    "--duration",
    "300ms",
];
const ITS_CODES: [&str; 4] = ["stand-in", "throttled", "few-samples", "partial-intervals"];

#[test]
fn no_output_shows_a_number_without_its_caveats() {
    let _alone = alone();
    let home = Home::new();
    let text = home.run(&[&DOUBTFUL[..], &["--out", "out"]].concat());
    assert_eq!(text.status, Some(0), "{text:?}");
    let directory = RunDir(home.at("out"));
    let summary = directory.summary();
    for code in ITS_CODES {
        caveat(&summary, code);
    }
    assert_eq!(directory.manifest().caveats, summary.caveats);
    let trial: record::Manifest = directory.json("trial-0001/manifest.json");
    assert_eq!(trial.caveats, summary.caveats);

    let table = fs::read_to_string(home.at("out/trials.csv")).unwrap();
    let page = fs::read_to_string(home.at("out/report.html")).unwrap();
    // Lines may be broken anywhere between words.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = page.replace("&#39;", "'").replace("&quot;", "\"").replace("&#x27;", "'");
    for caveat in &summary.caveats {
        assert!(words(&text.stdout).contains(&words(&caveat.text)), "{caveat:?} in {text:?}");
        assert!(words(&plain).contains(&words(&caveat.text)), "{caveat:?} in the report");
        let row = table.lines().nth(1).unwrap();
        let codes = row.rsplit(',').next().unwrap();
        assert!(codes.split(';').any(|code| code == caveat.code), "{caveat:?} in {row}");
    }

    let json = home.run(&[&DOUBTFUL[..], &["--out", "json", "--json"]].concat());
    assert_eq!(json.summary(), RunDir(home.at("json")).summary());
    for code in ITS_CODES {
        caveat(&json.summary(), code);
    }
}

#[test]
fn strict_makes_a_failure_of_caveats_and_names_them() {
    let _alone = alone();
    let home = Home::new();
    let doubtful = home.run(&[&DOUBTFUL[..], &["--strict", "--json"]].concat());
    assert_eq!(doubtful.status, Some(1), "{doubtful:?}");
    for code in &ITS_CODES[1..] {
        assert!(doubtful.stderr.contains(code), "{doubtful:?}");
    }
    assert!(!doubtful.stderr.contains("stand-in"), "{doubtful:?}");
    let run = fs::read_dir(home.at("runs")).unwrap().flatten().next().unwrap().path();
    assert_eq!(RunDir(run).manifest().verdict, record::Verdict::Ok, "it is a whole run");

    // Without any but that, the status is 0; a busy host may give more.
    let clean = ["run", "ycsb:c", "--records", "1k", "--threads", "8", "--duration", "3s"];
    let clean = home.run(&[&clean[..], &["--strict", "--json"]].concat());
    let none = clean.summary().caveats.iter().all(|c| c.code == "stand-in");
    assert_eq!(clean.status, Some(i32::from(!none)), "{clean:?}");
    assert_eq!(clean.stderr.is_empty(), none, "{clean:?}");
}

#[test]
fn the_host_is_recorded_beside_the_client() {
    let _alone = alone();
    let home = Home::new();
    let run = ["run", "ycsb:c", "--records", "1k", "--warm", "500ms", "--duration", "3s"];
    home.summary(&[&run[..], &["--out", "out"]].concat());
    let csv = fs::File::open(home.at("out/trial-0001/counters.csv")).unwrap();
    let (rows, _) = record::table::read_counters(csv, 100_000).unwrap();
    let of = |metric: &str| {
        let found = rows.iter().filter(|r| r.source == "procfs" && r.metric == metric);
        found.cloned().collect::<Vec<_>>()
    };
    for (metric, unit) in [
        ("cpu_user", "share"),
        ("cpu_steal", "share"),
        ("procs_running", "tasks"),
        ("context_switches", "1/s"),
        ("memory_available", "MiB"),
        ("swap_used", "MiB"),
        ("target_cpu", "cpus"),
        ("target_rss", "MiB"),
        ("capture_cpu", "cpus"),
    ] {
        let found = of(metric);
        assert!(found.len() >= 2, "{metric}: {found:?}");
        assert!(found.iter().all(|r| r.unit == unit && r.t_s > 0.0 && r.value >= 0.0), "{found:?}");
    }
    assert!(of("target_cpu").iter().any(|r| r.value > 0.0), "the target works");
    // Well below a hundredth of a cpu; the bound is only to find a reader gone wild.
    assert!(of("capture_cpu").iter().all(|r| r.value < 0.1), "{:?}", of("capture_cpu"));
    let target = RunDir(home.at("out")).manifest().target;
    assert_eq!(target["data"]["rows"], 1000);
    assert_eq!(target["data"]["cache_class"], "in-cache");
}
