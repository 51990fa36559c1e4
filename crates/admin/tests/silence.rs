//! Nothing of the control plane lives once it is dropped. Alone in its program, because it counts
//! the threads of the process.

#![allow(clippy::unwrap_used)]

use admin::{Admin, Config};
use target::Server;
use units::{CpuSet, Nanos};

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "admin").count()
}

#[test]
fn a_dropped_control_plane_has_no_thread() {
    let target = target::Config::new("127.0.0.1:0".parse().unwrap());
    let target = Server::bind(target).unwrap().start().unwrap();
    let config = Config {
        hosts: vec![target.local_addr()],
        credentials: None,
        tls: None,
        fixed_hosts: false,
        identities: Vec::new(),
        datacenter: None,
        timeout: Nanos::from_secs(5),
        cpus: CpuSet::default(),
    };
    for _ in 0..3 {
        let admin = Admin::connect(&config).unwrap();
        assert_eq!(threads(), 1);
        drop(admin);
        assert_eq!(threads(), 0);
    }
}
