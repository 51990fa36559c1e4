//! A real Cassandra that `wideload up` has started for a test: frozen, killed, started again.

use super::{Ended, Home, Process, eventually};
use drive::Control;
use stage::{ProcessId, Signal};
use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use units::Nanos;

/// The flag that says where an instance is managed.
const JMX: &str = "-Dcassandra.jmx.local.port=";
/// Long enough for a JVM on a machine that does other things too.
const START_MAX: Duration = Duration::from_secs(180);

/// Jars are fetched once for all tests.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cassandra-cache")
}

/// Whether this machine has not what a real Cassandra needs; says so.
pub(crate) fn is_lacking(status: Option<i32>, stderr: &str) -> bool {
    let missing =
        ["install Maven", "Maven cannot reach", "no java is on PATH", "runs on JDK", "no memory"];
    let lacking = status == Some(3) && missing.iter().any(|what| stderr.contains(what));
    if lacking {
        eprintln!("SKIP: {}", stderr.lines().next().unwrap_or_default());
    }
    lacking
}

/// Instances that form a ring; they end with their [`Home`].
pub(crate) struct Cluster<'a> {
    home: &'a Home,
    pub(crate) instances: Vec<Instance>,
}

/// One JVM.
pub(crate) struct Instance {
    pub(crate) address: SocketAddr,
    process: ProcessId,
    started_by: StartedBy,
}

/// What its process was started with.
struct StartedBy {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

impl<'a> Cluster<'a> {
    /// None, with a line that says why, where this machine cannot have one.
    pub(crate) fn up(home: &'a Home, arguments: &[&str]) -> Option<Self> {
        let up = wideload(home, &[&["up", "cassandra", "--json"], arguments].concat());
        let ended = Process::start(up).wait(START_MAX);
        if is_lacking(ended.status, &ended.stderr) {
            return None;
        }
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let up: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let instances = up["instances"].as_array().unwrap().iter().map(|told| {
            let pid = told["pid"].as_u64().unwrap() as u32;
            Instance {
                address: told["address"].as_str().unwrap().parse().unwrap(),
                process: ProcessId::of(pid).unwrap(),
                started_by: StartedBy::read(pid),
            }
        });
        let instances = instances.collect();
        Some(Self { home, instances })
    }

    /// Starts `wideload` with the caches of this cluster.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Process::start(wideload(self.home, arguments))
    }

    /// Runs `wideload run` at the first instance, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let target = self.instances[0].address.to_string();
        let words = [&["run"], arguments, &["--target", &target, "--json"]].concat();
        self.start(&words).wait(START_MAX)
    }
}

impl Cluster<'_> {
    /// Starts another instance on the address behind the last one, as the first one was started. It
    /// joins the ring at `token`, with the rows that are its own from then on. Not waited for.
    pub(crate) fn join(&mut self, token: i64) {
        let first = &self.instances[0];
        let last = self.instances[self.instances.len() - 1].address;
        let IpAddr::V4(ip) = last.ip() else { panic!("{last}") };
        let address = SocketAddr::new(Ipv4Addr::from(u32::from(ip) + 1).into(), last.port());
        let (own, its) = ("cassandra-1", format!("cassandra-{}", self.instances.len() + 1));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut arguments = Vec::new();
        for word in &first.started_by.arguments {
            let word = word.to_str().unwrap();
            let new = word.replace(own, &its);
            match word.split_once('=') {
                Some(("-Dcassandra.storagedir", _)) => {
                    let dir = new.split_once('=').unwrap().1;
                    fs::create_dir_all(Path::new(dir).join("tmp")).unwrap();
                }
                Some(("-Dcassandra.config", url)) => {
                    let path = url.strip_prefix("file://").unwrap();
                    let yaml = fs::read_to_string(path).unwrap();
                    let yaml = joining(&yaml, first.address, address, token);
                    fs::write(path.replace(own, &its), yaml).unwrap();
                }
                Some(("-Dlogback.configurationFile", path)) => {
                    let logback = fs::read_to_string(path).unwrap().replace(own, &its);
                    fs::write(path.replace(own, &its), logback).unwrap();
                }
                _ => {}
            }
            arguments.push(OsString::from(new));
        }
        let main = arguments.iter().position(|word| word == "-cp").unwrap();
        // It waits so long several times when it joins and when it leaves.
        arguments.insert(main, "-Dcassandra.ring_delay_ms=2000".into());
        arguments.insert(main, format!("{JMX}{port}").into());
        let StartedBy { environment, directory, .. } = &first.started_by;
        let (environment, directory) = (environment.clone(), directory.clone());
        let started_by = StartedBy { arguments, environment, directory };
        let process = started_by.start();
        self.instances.push(Instance { address, process, started_by });
    }
}

/// The settings of an instance that joins, from those of the first one.
fn joining(yaml: &str, first: SocketAddr, address: SocketAddr, token: i64) -> String {
    let line = |line: &str| match line.split(':').next().unwrap() {
        "listen_address" | "rpc_address" => {
            line.replace(&first.ip().to_string(), &address.ip().to_string())
        }
        "auto_bootstrap" => "auto_bootstrap: true".to_owned(),
        "initial_token" => format!("initial_token: \"{token}\""),
        _ => line.to_owned(),
    };
    yaml.lines().map(|text| line(text) + "\n").collect()
}

impl Instance {
    /// Has an instance that has [joined](Cluster::join) leave the ring, by Cassandra's own tool.
    /// Its end is to be waited for.
    pub(crate) fn decommission(&self, home: &Home) -> Process {
        let words: Vec<&str> =
            self.started_by.arguments.iter().map(|word| word.to_str().unwrap()).collect();
        let jars = words.iter().position(|word| *word == "-cp").unwrap() + 1;
        let port = words.iter().find_map(|word| word.strip_prefix(JMX)).unwrap();
        let mut command = Command::new(words[0]);
        command.args(words.iter().filter(|word| word.starts_with("--add-")));
        command.args(["-Xmx128m", "-XX:ParallelGCThreads=1"]);
        // Or it keeps a history in the user's home.
        command.arg(format!("-Duser.home={}", home.path().display()));
        command.args(["-cp", words[jars], "org.apache.cassandra.tools.NodeTool"]);
        // Two of three are fewer than some tables of its own want.
        command.args(["-h", "127.0.0.1", "-p", port, "decommission", "--force"]);
        command.env_clear().envs(self.started_by.environment.iter().cloned());
        Process::start(command)
    }

    /// Whether it takes requests.
    pub(crate) fn answers(&self) -> bool {
        Control::connect(self.address, Nanos::from_secs(2)).is_ok()
    }

    /// Stops it for `time`, as a garbage collection would.
    pub(crate) fn freeze(&self, time: Duration) {
        assert!(self.process.signal(Signal::STOP).unwrap());
        sleep(time);
        assert!(self.process.signal(Signal::CONT).unwrap());
    }

    /// Ends it as the kernel ends what is out of memory.
    pub(crate) fn kill(&self) {
        assert!(self.process.signal(Signal::KILL).unwrap());
        assert!(eventually(Duration::from_secs(10), || !self.process.is_alive()), "it lives on");
    }

    /// Starts a killed one again, as it was started before.
    pub(crate) fn start_again(&mut self) {
        self.process = self.started_by.start();
    }

    /// A socket of the test in the place of a killed instance: it sees who tries to connect.
    pub(crate) fn impersonate(&self) -> TcpListener {
        let mut listener = None;
        // The kernel takes a moment to take a JVM apart.
        eventually(Duration::from_secs(10), || {
            listener = TcpListener::bind(self.address).ok();
            listener.is_some()
        });
        listener.expect("the killed instance's address is free")
    }

    pub(crate) fn control(&self) -> Control {
        Control::connect(self.address, Nanos::from_secs(10)).unwrap()
    }

    /// Reads or writes of one table that this instance has counted in one of its virtual tables,
    /// such as `coordinator_read_latency`.
    pub(crate) fn counted(&self, metric: &str, keyspace: &str, table: &str) -> u64 {
        let query = format!("SELECT keyspace_name, table_name, count FROM system_views.{metric}");
        let rows = self.control().query(&query).unwrap();
        let of_table = rows.iter().filter_map(|row| {
            let [Some(of), Some(name), Some(count)] = &row[..] else { return None };
            let fits = of == keyspace.as_bytes() && name == table.as_bytes();
            fits.then(|| i64::from_be_bytes(count[..].try_into().unwrap()) as u64)
        });
        of_table.sum()
    }
}

impl StartedBy {
    fn start(&self) -> ProcessId {
        let [program, arguments @ ..] = &self.arguments[..] else {
            panic!("a process without a program");
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.environment.iter().cloned());
        command.current_dir(&self.directory).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        // Its home ends it; a thread reaps it.
        std::thread::spawn(move || child.wait_with_output());
        id
    }

    fn read(pid: u32) -> Self {
        let of = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap();
        let words = |bytes: Vec<u8>| -> Vec<OsString> {
            let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
            bytes.split(|b| *b == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
        };
        let pair = |variable: OsString| {
            let bytes = variable.into_vec();
            let at = bytes.iter().position(|b| *b == b'=')?;
            let (name, value) = bytes.split_at(at);
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value[1..].to_vec())))
        };
        Self {
            arguments: words(of("cmdline")),
            environment: words(of("environ")).into_iter().filter_map(pair).collect(),
            directory: fs::read_link(format!("/proc/{pid}/cwd")).unwrap(),
        }
    }
}

fn wideload(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.wideload(arguments);
    command.env("XDG_STATE_HOME", home.at("state")).env("XDG_CACHE_HOME", cache());
    command
}
