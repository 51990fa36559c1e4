//! Lines of cassandra-stress at a reference target, and what stands in their results.

use super::{Ended, Home, Process, Serve};
use std::time::Duration;

/// A target, and a place to work in.
pub(crate) struct Stress {
    pub(crate) home: Home,
    pub(crate) serve: Serve,
}

impl Stress {
    /// On a target of its own.
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let serve = Serve::start(&home, &[]);
        Self { home, serve }
    }

    /// Starts a line, with `-node` and the port of the target behind it.
    pub(crate) fn start(&self, line: &str) -> Process {
        start(&self.home, &self.serve, &[], line)
    }

    /// A line to its end.
    pub(crate) fn stress(&self, line: &str) -> Ended {
        self.start(line).wait(Duration::from_secs(120))
    }

    /// A line that ends well.
    pub(crate) fn good(&self, line: &str) -> Ended {
        let ended = self.stress(line);
        assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.trim_end().ends_with("END"), "{line}: {ended:?}");
        ended
    }

    pub(crate) fn cells(&self, query: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        self.serve.control().query(query).unwrap()
    }

    /// So many rows a table has.
    pub(crate) fn count(&self, table: &str) -> i64 {
        let rows = self.cells(&format!("SELECT COUNT(*) FROM {table}"));
        i64::from_be_bytes(rows[0][0].clone().unwrap()[..].try_into().unwrap())
    }
}

/// Starts a line, flags of our own before it, `-node` and the port of the target behind it.
pub(crate) fn start(home: &Home, serve: &Serve, own: &[&str], line: &str) -> Process {
    let port = format!("native={}", serve.address.port());
    let words: Vec<&str> = line.split(' ').collect();
    let target = ["-node", "127.0.0.1", "-port", &port];
    home.start(&[&["cassandra-stress"], own, &words[..], &target].concat())
}

/// The first figure behind a label of the results, its unit left out.
pub(crate) fn result(ended: &Ended, label: &str) -> f64 {
    let line = ended.stdout.lines().find(|line| line.starts_with(label));
    let (_, value) = line.unwrap_or_else(|| panic!("{label}: {ended:?}")).split_once(':').unwrap();
    value.trim().split(' ').next().unwrap().replace(',', "").parse().unwrap()
}
