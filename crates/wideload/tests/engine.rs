//! Client and target over io_uring: every row comes back verified, the directory says how.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, RunDir, Serve};

#[test]
fn rows_come_back_verified_over_io_uring() {
    if let Err(why) = drive::Engine::IoUring.check() {
        println!("SKIP: {why}");
        return;
    }
    let home = Home::new();
    let serve = Serve::start(&home, &["--engine", "io-uring"]);
    for (workload, threads) in [("ycsb:a", "64"), ("ycsb:e", "8"), ("ycsb:f", "200")] {
        let (target, out) = (serve.target(), home.at(&workload.replace(':', "-")));
        let line = [
            "run",
            workload,
            "--target",
            &target,
            "--engine",
            "io-uring",
            "--records",
            "2k",
            "--ops",
            "20k",
            "--warm",
            "0s",
            "--threads",
            threads,
            "-p",
            "dataintegrity=true",
            "--table",
            workload.rsplit(':').next().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ];
        let summary = home.summary(&line);
        assert_eq!((summary.ops, summary.errors), (20_000, 0), "{workload}");
        let manifest = RunDir(out).manifest();
        assert_eq!(manifest.settings["engine"], "io-uring", "{workload}");
    }
    drop(serve);
    home.assert_nothing_left();
}
