//! A reference target of its own process, and what it has counted.

use super::{Home, Process, eventually};
use drive::Control;
use stage::Signal;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use units::{CpuSet, Nanos};

/// A running `wideload serve`.
pub(crate) struct Serve {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
}

impl Serve {
    /// Starts it on any free port.
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        let mut process = home.start(&[&listen, arguments].concat());
        let mut address = None;
        let announced = eventually(Duration::from_secs(20), || {
            address = announced(&process.stdout());
            address.is_some() || !process.is_running()
        });
        assert!(announced, "the target did not announce itself");
        let Some(address) = address else {
            panic!("the target ended: {:?}", process.wait(Duration::from_secs(1)));
        };
        Self { process, address }
    }

    /// Its address as `--target` takes it.
    pub(crate) fn target(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn control(&self) -> Control {
        control(self.address)
    }

    pub(crate) fn executed(&self) -> u64 {
        executed(&mut self.control())
    }

    /// Stops it for `time`, as a garbage collection would.
    pub(crate) fn freeze(&self, time: Duration) {
        assert!(self.process.signal(Signal::STOP));
        std::thread::sleep(time);
        assert!(self.process.signal(Signal::CONT));
    }
}

/// The address in the announcement of a target.
pub(crate) fn announced(text: &str) -> Option<SocketAddr> {
    let line = text.lines().find(|line| line.contains("reference target ("))?;
    line.rsplit_once(" on ")?.1.trim().parse().ok()
}

pub(crate) fn control(address: SocketAddr) -> Control {
    Control::connect(address, Nanos::from_secs(10)).unwrap()
}

/// What the target has counted since its start.
pub(crate) fn counters(control: &mut Control) -> BTreeMap<String, u64> {
    let rows = control.query("SELECT name, value FROM system_wideload.counters").unwrap();
    rows.into_iter()
        .map(|row| {
            let [Some(name), Some(value)] = &row[..] else { panic!("{row:?}") };
            let value = i64::from_be_bytes(value[..].try_into().unwrap());
            (String::from_utf8(name.clone()).unwrap(), u64::try_from(value).unwrap())
        })
        .collect()
}

/// Statements on tables other than the target's own that it has executed since its start: what
/// drivers ask for by themselves is not among them.
pub(crate) fn executed(control: &mut Control) -> u64 {
    let counters = counters(control);
    let sum = ["select", "insert", "update", "delete"].map(|kind| counters[&statements(kind)]);
    sum.iter().sum::<u64>() - counters[&statements("select.system")]
}

fn statements(kind: &str) -> String {
    format!("statements.{kind}")
}

/// One cpu for the target and one for the client, when this process may use two.
pub(crate) fn two_cpus() -> (String, String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
    let allowed: CpuSet = line.trim().parse().unwrap();
    let cpus: Vec<_> = allowed.iter().map(|cpu| cpu.0.to_string()).collect();
    (cpus[0].clone(), cpus[1.min(cpus.len() - 1)].clone())
}
