//! On a terminal and without one: lines that fit, colours only where they are wanted, and an end in
//! good order when the terminal or the reader of a pipe goes away.
//!
//! The terminal is a pseudo-terminal that `script` (util-linux) makes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Verdict;
use rig::{Home, Process, RunDir, eventually};
use stage::{ProcessId, Signal};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const BEGUN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(10);
const SHORT: &str = "--records 5k --warm 300ms --duration 1s --interval 100ms";

/// Starts the program on a terminal of so many columns; None without `script`.
fn on_terminal(
    home: &Home,
    columns: usize,
    arguments: &str,
    variables: &[(&str, &str)],
) -> Option<Process> {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("SKIP: there is no script(1) here");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_wideload");
    let line = format!("stty cols {columns} rows 24; exec '{program}' {arguments}");
    let mut command = home.command("script");
    command.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]);
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
    command.envs(variables.iter().copied());
    Some(Process::start(command))
}

/// `wideload run` itself, among what was started here.
fn the_run(home: &Home) -> Option<ProcessId> {
    home.left().into_iter().find(|id| {
        let line = fs::read(format!("/proc/{}/cmdline", id.pid)).unwrap_or_default();
        let mut words = line.split(|b| *b == 0);
        words.next().is_some_and(|w| w.ends_with(b"wideload")) && words.next() == Some(b"run")
    })
}

fn recorded(home: &Home) {
    let log = home.at("out/trial-0001/latency.hlog");
    let begun = || fs::metadata(&log).is_ok_and(|found| found.len() > 0);
    assert!(eventually(BEGUN, begun), "the run did not begin");
}

/// What a terminal shows between two returns of its carriage, without what steers it.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                // ESC [ parameters, and a letter.
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                }
            }
            '\r' | '\n' => pieces.push(String::new()),
            c => pieces.last_mut().unwrap().push(c),
        }
    }
    pieces
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [80, 120, 40] {
        let home = Home::new();
        let run = format!("run ycsb:f --out out --rate 2k/s {SHORT}");
        let Some(process) = on_terminal(&home, columns, &run, &[]) else { return };
        let ended = process.wait(Duration::from_secs(60));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let live = |piece: &&String| piece.contains("in flight") || piece.contains("rows");
        let pieces = pieces(&ended.stdout);
        assert!(pieces.iter().any(|piece| live(&piece)), "no live line: {ended:?}");
        for piece in &pieces {
            let is_path = piece.starts_with("run  ") || piece.starts_with("report  ");
            // The result has 80 columns, whatever the terminal has.
            let most = if live(&piece) { columns } else { 80 };
            let width = piece.trim_end().chars().count();
            assert!(is_path || width <= most, "{width} columns of {columns}: '{piece}'");
        }
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let coloured = |text: &str| ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m"].map(|c| text.contains(c));
    for (variables, wanted) in
        [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)]
    {
        let home = Home::new();
        let run = format!("run ycsb:a --out out {SHORT}");
        let Some(process) = on_terminal(&home, 80, &run, variables) else { return };
        let ended = process.wait(Duration::from_secs(60));
        assert_eq!(coloured(&ended.stdout)[0], wanted, "{variables:?}: {ended:?}");
    }
    let home = Home::new();
    let arguments: Vec<_> = SHORT.split(' ').collect();
    let ended = home.run(&[&["run", "ycsb:a", "--out", "out"], &arguments[..]].concat());
    assert!(!ended.stdout.contains('\u{1b}') && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn an_interrupt_gives_the_terminal_back() {
    for times in [1, 2] {
        let home = Home::new();
        let run = "run ycsb:a --out out --records 5k --warm 0s --duration 1h --interval 100ms";
        let Some(process) = on_terminal(&home, 80, run, &[]) else { return };
        recorded(&home);
        let id = the_run(&home).unwrap();
        for _ in 0..times {
            let _ = id.signal(Signal::INT);
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = process.wait(SOON);
        home.assert_nothing_left();
        assert_eq!(ended.status, Some(130), "{ended:?}");
        let (hidden, shown) =
            (ended.stdout.rfind("\u{1b}[?25l"), ended.stdout.rfind("\u{1b}[?25h"));
        assert!(hidden <= shown, "the cursor is back: {ended:?}");
        let on_screen = pieces(&ended.stdout);
        let last = on_screen.iter().rfind(|piece| !piece.trim().is_empty()).unwrap();
        assert!(times == 2 || last.starts_with("report"), "'{last}'");
        assert_eq!(RunDir(home.at("out")).manifest().verdict, Verdict::Interrupted);
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_in_good_order() {
    let home = Home::new();
    let run = "run ycsb:a --out out --records 5k --warm 0s --duration 1h --interval 100ms";
    let Some(process) = on_terminal(&home, 80, run, &[]) else { return };
    recorded(&home);
    // The master's end goes with its owner; the kernel hangs up on the rest.
    assert!(process.signal(Signal::KILL));
    let ended = eventually(SOON, || the_run(&home).is_none());
    assert!(ended, "it goes on without a terminal: {:?}", home.left());
    home.assert_nothing_left();
    let directory = RunDir(home.at("out"));
    assert_eq!(directory.manifest().verdict, Verdict::Interrupted);
    assert!(directory.summary().ops > 0 && home.at("out/report.html").exists());
}

#[test]
fn nobody_reads_the_output() {
    for (arguments, status) in [
        (&["run", "ycsb:a", "--out", "out"][..], 0),
        (&["run", "ycsb:a", "--out", "out", "--json"], 0),
        (&["run", "ycsb:a", "--skip-load"], 2),
        (&["--help"], 0),
        (&["completions", "bash"], 0),
        (&["ps"], 0),
        (&["serve", "--cpus", "1000"], 2),
    ] {
        let home = Home::new();
        let mut command = home.wideload(arguments);
        if arguments.contains(&"out") {
            command.args(SHORT.split(' '));
        }
        command.env("XDG_STATE_HOME", home.at("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let mut ended = None;
        let over = eventually(Duration::from_secs(60), || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        if !over {
            let _ = child.kill();
        }
        assert_eq!(ended.and_then(|e| e.code()), Some(status), "{arguments:?}");
        home.assert_nothing_left();
        if arguments.contains(&"out") {
            assert_eq!(RunDir(home.at("out")).manifest().verdict, Verdict::Ok);
        }
    }
}
