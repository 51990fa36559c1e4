//! The page that comes out of a run directory: what it says first, what it escapes, what it
//! survives.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[path = "../examples/sample.rs"]
mod sample;

use record::run_dir::{LATENCY_HLOG, MANIFEST, SUMMARY};
use record::{Caveat, Manifest, Summary, Verdict};
use report::ReportError;
use std::fs;
use std::path::{Path, PathBuf};
use units::Nanos;

/// A sample run of that kind of target, in a directory that goes away.
fn run(kind: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    sample::write(&dir, kind);
    (home, dir)
}

/// The page, with the slashes that the template engine writes as entities.
fn page(dir: &Path) -> String {
    fs::read_to_string(report::build(dir).unwrap()).unwrap().replace("&#x2f;", "/")
}

/// The text of the page's body, markup removed, one line per piece.
fn texts(html: &str) -> Vec<String> {
    let body = html.split_once("<body>").unwrap().1;
    let pieces = body.split('>').filter_map(|piece| piece.split('<').next());
    pieces.map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
}

fn change_summary(dir: &Path, change: impl FnOnce(&mut Summary)) {
    let path = dir.join("trial-0001").join(SUMMARY);
    let mut summary: Summary = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut summary);
    fs::write(path, serde_json::to_vec(&summary).unwrap()).unwrap();
}

#[test]
fn the_first_line_says_what_a_stand_in_does_not_say() {
    for (kind, what) in [("reference", "reference target"), ("null-mock", "canned answers")] {
        let (_home, dir) = run(kind);
        let first = texts(&page(&dir)).remove(0);
        assert!(first.starts_with("This result says nothing about Cassandra"), "{first}");
        assert!(first.contains(what), "{first}");
    }
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    assert_eq!(texts(&html)[0], "ycsb:f on cassandra 5.0.5");
    assert!(!html.contains("says nothing about"));
}

#[test]
fn the_page_stands_alone_and_is_small() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link", "fetch("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains("undefined"));
}

#[test]
fn figures_tables_plots_and_command_are_there() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    for title in [
        "Latency in ms",
        "Latency by percentile",
        "Throughput",
        "Response time over time",
        "Service time over time",
        "cpu (cpus)",
        "Outcomes",
        "What the client itself cost",
        "Environment",
    ] {
        assert!(html.contains(title), "{title}");
    }
    assert!(html.contains("wideload run ycsb:f --rate 5000/s --duration 30s --name sample"));
    assert!(html.contains("step update, service") && html.contains("AMD EPYC 7601"));
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 6);
    // The two seconds in which nothing was done: zero, not left out.
    assert!(html.contains("\"0/s\""));
}

#[test]
fn caveats_stand_beside_the_numbers() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    let headline = html.split("<section class=\"headline\">").nth(1).unwrap();
    let headline = headline.split("</section>").next().unwrap();
    assert!(headline.contains("op/s") && headline.contains("client-busy"));
    assert!(headline.contains("overloaded 31"));
}

#[test]
fn names_of_users_are_text_and_not_markup() {
    let (_home, dir) = run("cassandra");
    let hostile = "</script><img onerror='x' \"&";
    change_summary(&dir, |summary| {
        summary.workload = hostile.into();
        let read = summary.latency_us.remove("read").unwrap();
        summary.latency_us.insert(hostile.into(), read);
        summary.caveats.push(Caveat::new("odd", hostile));
    });
    let path = dir.join(MANIFEST);
    let mut manifest: Manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest.command_line = vec![hostile.into()];
    manifest.settings.insert(hostile.into(), hostile.into());
    fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    let trial = dir.join("trial-0001");
    let counters =
        format!("t_s,host,source,metric,value,unit\n1,{0},a,{0},5,x\n", "</script><img>");
    fs::write(trial.join("counters.csv"), counters).unwrap();
    let html = page(&dir);
    assert!(!html.contains("<img"));
    assert!(html.contains("&lt;img onerror="));
}

#[test]
fn a_missed_rate_shows_no_response() {
    let (_home, dir) = run("cassandra");
    change_summary(&dir, |summary| {
        summary.caveats.push(Caveat::new("rate-missed", "Only half was done."));
        summary.latency_us.values_mut().for_each(|op| op.response = None);
    });
    let html = page(&dir);
    assert!(!html.contains("Response time over time") && !html.contains("read response"));
    assert!(html.contains("read service") && html.contains("Only half was done."));
    assert!(html.contains("p99 service") && html.contains("the scheduled rate was missed"));
}

#[test]
fn a_run_that_failed_early_says_why() {
    let home = tempfile::tempdir().unwrap();
    let mut manifest = Manifest::starting("early", vec!["wideload".into()], Nanos::from_secs(1));
    let why = "port 9042 is in use; stop what listens there".to_owned();
    manifest.end(Verdict::Failed, Some(why.clone()), Nanos::from_secs(2));
    fs::write(home.path().join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
    let html = page(home.path());
    assert!(html.contains(&why) && html.contains("Failed"));
    fs::create_dir(home.path().join("trial-0001")).unwrap();
    assert!(page(home.path()).contains("No summary was written"));
}

#[test]
fn damaged_files_are_told_and_the_rest_is_shown() {
    let (_home, dir) = run("cassandra");
    fs::write(dir.join("trial-0001").join(LATENCY_HLOG), "Tag=x,1,2,3,garbage\n").unwrap();
    let html = page(&dir);
    assert!(html.contains("latency.hlog could not be read: the histogram in line 1"));
    assert!(html.contains("Latency by percentile") && !html.contains("Throughput</b>"));
    fs::write(dir.join("trial-0001").join(SUMMARY), "{}").unwrap();
    assert!(page(&dir).contains("summary.json could not be read"));
    fs::write(dir.join(MANIFEST), "[").unwrap();
    let error = report::build(&dir).unwrap_err();
    assert!(matches!(error, ReportError::Damaged { .. }), "{error}");
}

#[test]
fn what_is_no_run_is_refused_with_the_cure() {
    let home = tempfile::tempdir().unwrap();
    let error = report::build(home.path()).unwrap_err();
    assert!(matches!(error, ReportError::NotARun { .. }));
    assert!(error.to_string().contains("give one of the directories in runs/"), "{error}");
}

#[test]
fn many_trials_are_a_table_and_a_few_in_detail() {
    let (_home, dir) = run("cassandra");
    for number in 2..=40 {
        let trial = dir.join(format!("trial-{number:04}"));
        fs::create_dir(&trial).unwrap();
        for entry in fs::read_dir(dir.join("trial-0001")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), trial.join(entry.file_name())).unwrap();
        }
    }
    let html = page(&dir);
    assert_eq!(html.matches("<article").count(), 6);
    assert!(html.contains("The first 6 trials follow in detail"));
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}
