//! The page that comes out of a run directory: what it says first, what it escapes, what it
//! survives.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[path = "../examples/sample.rs"]
mod sample;

use record::run_dir::{COUNTERS_CSV, LATENCY_HLOG, MANIFEST, SUMMARY};
use record::{Caveat, Manifest, Summary, Verdict};
use report::{LATENCY_TABLE_CSV, REPORT_DATA, ReportError, TableAsked};
use sample::Shape;
use std::fs;
use std::path::{Path, PathBuf};
use units::Nanos;

/// A sample run of that kind of target, in a directory that goes away.
fn run(kind: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    sample::write(&dir, &Shape::of(kind));
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
        "Operations that did not end ok",
        "Response time over time",
        "Service time over time",
        "Lag over time",
        "Operations in flight",
        "procs running (tasks)",
        "Outcomes",
        "What the client itself cost",
        "Balance of workers and hosts",
        "How to repeat it",
        "Environment",
        "Glossary",
    ] {
        assert!(html.contains(title), "{title}");
    }
    assert!(html.contains("wideload run ycsb:f --rate 5000/s --duration 30s --name sample"));
    assert!(html.contains(">step update</a>") && html.contains("AMD EPYC 7601"));
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 13);
    assert!(html.contains("--name sample --seed 42"));
    // A machine of 128 cpus is summed up.
    assert!(html.contains("128 cpus: 2 packages, 64 cores, 8 NUMA nodes, 16 last-level caches"));
    assert!(!html.contains("cpus.17") && !html.contains("siblings"));
}

/// The data of a plot in the page.
fn data(html: &str, id: &str) -> serde_json::Value {
    let figure = html.split_once(&format!("<figure class=\"plot\" id=\"{id}\">")).unwrap().1;
    let script = figure.split_once("<script type=\"application/json\">").unwrap().1;
    serde_json::from_str(script.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_pause_is_zero_in_the_plot_and_an_event_in_the_list() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    let throughput = data(&html, "trial-0001-throughput");
    let ok = throughput["lines"][0]["y"].as_array().unwrap();
    assert_eq!(
        (ok[11].as_f64().unwrap() > 4900.0, ok[12].as_f64(), ok[13].as_f64()),
        (true, Some(0.0), Some(0.0))
    );
    assert!(html.contains("For 2 s no operation ended"));
    let mark = throughput["marks"].as_array().unwrap().iter().find(|m| m["from"] == 12.0).unwrap();
    assert_eq!((mark["to"].as_f64(), mark["bad"].as_bool()), (Some(14.0), Some(true)));
    // Counted in an interval of a second, by one of two workers.
    assert!(html.contains("connections lost</a>. broken connections: 1"));
}

#[test]
fn the_last_moment_makes_no_spike_and_moments_in_flight_are_not_drawn() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    let busy = data(&html, "trial-0001-counter-busy-share");
    for line in busy["lines"].as_array().unwrap() {
        assert!(line["y"].as_array().unwrap().iter().all(|y| y.as_f64().unwrap() < 1.0), "{line}");
    }
    assert!(!html.contains("counter-in-flight"));
    let in_flight = data(&html, "trial-0001-in-flight");
    // 5000 op/s of some hundred microseconds each.
    let first = in_flight["lines"][0]["y"][0].as_f64().unwrap();
    assert!((0.5..5.0).contains(&first), "{first}");
    assert!(html.contains("Zero throughout, and not drawn: late (answers/s), cpu steal."));
}

#[test]
fn every_header_and_every_name_in_a_legend_has_its_meaning() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    let shape = Shape { trials: 3, workers: 9, seconds: 20, ..Shape::of("cassandra") };
    sample::write(&dir, &shape);
    let html = page(&dir);
    let heads = html.split("<thead>").skip(1).map(|head| head.split("</thead>").next().unwrap());
    let headers = heads.flat_map(|head| head.split("<th").skip(1));
    let names = html.split("<ul class=\"legend\">").skip(1);
    let names = names.map(|list| list.split("</ul>").next().unwrap());
    let names = names.flat_map(|list| list.split("<li>").skip(1));
    let mut seen = 0;
    for piece in headers.chain(names) {
        let link = piece.split_once("<a class=\"term\" href=\"#").map(|(_, link)| link);
        let id = link.and_then(|link| link.split('"').next());
        let id = id.unwrap_or_else(|| panic!("no meaning: {piece}"));
        let explained = html.split_once(&format!("<div id=\"{id}\"><dt><dfn>"));
        assert!(explained.is_some(), "{id} is not in the glossary");
        seen += 1;
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn data_files_hold_what_the_page_draws() {
    let (_home, dir) = run("cassandra");
    let paths = report::build_with_data(&dir).unwrap();
    let html = fs::read_to_string(&paths[0]).unwrap();
    assert_eq!(paths.len(), 1 + 2 * html.matches("<svg class=\"chart\"").count());
    let csv = fs::read_to_string(dir.join(REPORT_DATA).join("trial-0001-throughput.csv")).unwrap();
    assert!(csv.starts_with("series,t_s,ops_s\nok,0.5,"), "{}", &csv[..60]);
    let drawn = data(&html, "trial-0001-throughput");
    let fifth = drawn["lines"][0]["y"][5].as_f64().unwrap();
    assert!(csv.contains(&format!("\nok,5.5,{fifth}\n")), "{fifth}");
    let json = dir.join(REPORT_DATA).join("trial-0001-latency-by-percentile.json");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(
        (json["x"]["name"].as_str(), json["y"]["name"].as_str()),
        (Some("quantile"), Some("latency_us"))
    );
    let last = json["series"][0]["points"].as_array().unwrap().last().unwrap();
    assert!(last[0].as_f64().unwrap() > 0.9999);
}

#[test]
fn repeated_trials_have_a_median_and_their_range() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    sample::write(&dir, &Shape { trials: 5, seconds: 3, ..Shape::of("cassandra") });
    let html = page(&dir);
    let said = texts(&html);
    assert!(said.iter().any(|t| t.starts_with("5 trials that ended ok: median ")), "{said:?}");
    for term in ["median", "min", "max"] {
        let row = format!("href=\"#term-{term}\"");
        let together = html.split("<tr class=\"together\">").skip(1);
        assert!(together.into_iter().any(|tr| tr.split("</tr>").next().unwrap().contains(&row)));
    }
    assert!(data(&html, "trials-throughput")["lines"][0]["y"].as_array().unwrap().len() == 5);
}

#[test]
fn caveats_stand_beside_the_numbers() {
    let (_home, dir) = run("cassandra");
    let html = page(&dir);
    let headline = html.split("<section class=\"headline\">").nth(1).unwrap();
    let headline = headline.split("</section>").next().unwrap();
    assert!(headline.contains("op/s") && headline.contains("client-busy"));
    assert!(headline.contains("busiest worker 91 % of the window"));
    assert!(headline.contains("Give it more cpus with --client-cpus."));
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
    fs::write(trial.join(COUNTERS_CSV), counters).unwrap();
    let header = format!("trial,{0},ops_s\n1,{0},5\n", "</script><img>");
    fs::write(dir.join("trials.csv"), header).unwrap();
    fs::create_dir(dir.join("trial-0002")).unwrap();
    let html = page(&dir);
    assert!(!html.contains("<img"));
    assert!(html.contains("&lt;img onerror="));
    report::build_with_data(&dir).unwrap();
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
    assert_eq!(texts(&html)[0], format!("This run failed: {why}"));
    fs::create_dir(home.path().join("trial-0001")).unwrap();
    assert!(page(home.path()).contains("No summary was written"));
}

#[test]
fn damaged_files_are_told_and_the_rest_is_shown() {
    let (_home, dir) = run("cassandra");
    fs::write(dir.join("trial-0001").join(LATENCY_HLOG), "Tag=x,1,2,3,garbage\n").unwrap();
    let html = page(&dir);
    assert!(html.contains("latency.hlog could not be read: the histogram in line 1"));
    assert!(html.contains("Latency by percentile") && !html.contains("<b>Throughput</b>"));
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

/// The counts of lines of a latency table as CSV that have no time: cumulative, by operation.
fn totals_of(csv: &str) -> Vec<(String, Vec<u64>)> {
    let cells = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let total = cells.filter(|cells| cells[3].is_empty());
    let counts = |cells: &[&str]| cells.iter().map(|n| n.parse().unwrap()).collect();
    total.map(|c| (format!("{} {} {}", c[0], c[5], c[6]), counts(&c[7..]))).collect()
}

#[test]
fn a_latency_table_overlays_arms_and_adds_clients_up() {
    let (_one, dir) = run("cassandra");
    let (_two, client) = run("cassandra");
    let (_three, other) = run("cassandra");
    let columns: record::Columns = "21,40us".parse().unwrap();
    let asked = |clients: &[&PathBuf], against: &[&PathBuf]| TableAsked {
        columns: columns.clone(),
        clients: clients.iter().map(PathBuf::from).collect(),
        against: against.iter().map(PathBuf::from).collect(),
    };
    let built = report::build_as(&dir, Some(&asked(&[&client], &[&other])), true).unwrap();
    let text = built.table.unwrap();
    let head = text.lines().next().unwrap();
    assert!(head.contains("<=40us") && head.contains(">800us") && head.ends_with("mean us"));
    assert!(text.contains("the open last one at 820 µs"), "{text}");
    let html = fs::read_to_string(dir.join(record::run_dir::REPORT_HTML)).unwrap();
    assert!(html.contains("<section id=\"latency-table\">"), "the page has it");
    assert!(html.contains("read, response: shares by latency"));
    // Two clients have twice the operations of the one that they are compared with, and the same
    // shares: the sample is the same each time.
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("read response")).collect();
    let [together, compared] = rows[..] else { panic!("{text}") };
    let shares = |row: &str| {
        let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shares(together)[1..], shares(compared)[1..]);
    let count = |row: &str| shares(row)[0].replace('\u{202f}', "").parse::<u64>().unwrap();
    assert_eq!(count(together), 2 * count(compared));
    // Intervals add up to the totals, column by column.
    let csv = fs::read_to_string(dir.join(REPORT_DATA).join(LATENCY_TABLE_CSV)).unwrap();
    let mut sums = vec![0; columns.len() + 1];
    let path = other.display().to_string();
    for line in csv.lines().filter(|l| l.contains(&path) && l.contains(",read,response,")) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[3].is_empty() {
            continue;
        }
        for (sum, cell) in sums.iter_mut().zip(&cells[7..]) {
            *sum += cell.parse::<u64>().unwrap();
        }
    }
    let totals = totals_of(&csv);
    assert!(totals.iter().any(|(what, counts)| what.ends_with("read response") && *counts == sums));
    assert_eq!(sums[0], sums[1] + sums[2], "not above the first limit, and above it");
    // Ended at once it has no totals; its intervals are added up.
    fs::remove_file(dir.join("trial-0001").join(record::run_dir::TOTAL_HLOG)).unwrap();
    let without = report::build_as(&dir, Some(&asked(&[&client], &[&other])), false).unwrap();
    let row = |text: &str| text.lines().find(|l| l.contains("read response")).map(shares);
    assert_eq!(row(&without.table.unwrap()).unwrap()[..22], shares(together)[..22]);
    let twice = report::build_as(&dir, Some(&asked(&[&dir], &[])), false);
    assert!(matches!(twice, Err(ReportError::Twice { .. })), "{twice:?}");
}
