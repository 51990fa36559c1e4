//! The command line of an instance's JVM.
//!
//! Input: jars, JVM, heap, files. Output: program and arguments; the user's own flags come last,
//! where they win. Source: `jvm-server.options`, `jvm8-`, `jvm11-` and `jvm17-server.options` of
//! Cassandra 4.1 and 5.0 (which packages of Java it reaches into, how it sets the collector), and
//! its `cassandra-env.sh`; where those files are at hand they are read instead. Limits: the
//! collector is G1 also on Java 8.

use super::cache::option;
use super::heap::{Heap, direct};
use super::install::Install;
use super::java::Java;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos};

/// The class that is started.
pub(crate) const MAIN: &str = "org.apache.cassandra.service.CassandraDaemon";

/// On every JVM.
const ALWAYS: [&str; 16] = [
    "-ea",
    "-da:net.openhft...",
    "-XX:+UseThreadPriorities",
    "-Xss256k",
    "-XX:+AlwaysPreTouch",
    "-XX:+UseTLAB",
    "-XX:+ResizeTLAB",
    "-XX:+UseNUMA",
    "-XX:+PerfDisableSharedMem",
    "-XX:+UseG1GC",
    "-XX:+ParallelRefProcEnabled",
    "-XX:MaxTenuringThreshold=1",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1RSetUpdatingPauseTimePercent=5",
    "-XX:MaxGCPauseMillis=300",
    "-XX:InitiatingHeapOccupancyPercent=70",
];

/// From Java 9 on, where modules close what Cassandra reaches into.
const MODULAR: [&str; 4] = [
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.useCacheForAllThreads=true",
    "-Dio.netty.allocator.maxOrder=11",
];

/// Packages that it calls into, from Java 9 on; in both lists of the original.
const EXPORTS: [&str; 5] = [
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
];
const EXPORTS_11: [&str; 3] =
    ["java.base/jdk.internal.ref", "java.base/jdk.internal.util", "java.base/sun.nio.ch"];
const EXPORTS_17: [&str; 4] = [
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.attach/sun.tools.attach",
];

/// Packages that it reflects on, from Java 9 on.
const OPENS: [&str; 8] = [
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
];
const OPENS_17: [&str; 6] = [
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang.reflect",
    "jdk.compiler/com.sun.tools.javac",
    "java.base/java.lang",
    "java.base/java.util",
];

/// The files and directories of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// Its configuration.
    pub(crate) yaml: PathBuf,
    /// Where its log goes.
    pub(crate) logback: PathBuf,
    /// Its data, commit log, temporary files.
    pub(crate) storage: PathBuf,
    /// The directory of its logs.
    pub(crate) logs: PathBuf,
    /// Its name, which the names of its logs begin with.
    pub(crate) name: String,
}

impl Files {
    /// Where the collector of its JVM writes what it does.
    pub(crate) fn gc_log(&self) -> PathBuf {
        self.logs.join(format!("{}-gc.log", self.name))
    }
}

/// Program and arguments.
pub(crate) fn argv(
    install: &Install,
    java: &Java,
    heap: &Heap,
    ring_delay: Nanos,
    files: &Files,
    own: &[String],
) -> Vec<OsString> {
    let mut usual = install.shipped_flags(java).unwrap_or_else(|| usual_flags(java.major));
    leave_the_collector_to(own, &mut usual);
    let mut argv: Vec<OsString> = vec![java.program.clone().into()];
    argv.extend(flags(usual, java.major, heap.size, ring_delay, files));
    argv.push(option("-javaagent:", &install.jamm));
    argv.extend(own.iter().map(OsString::from));
    argv.push("-cp".into());
    argv.push(class_path(install));
    argv.push(MAIN.into());
    argv
}

/// A JVM with two collectors does not start: the user's replaces the usual G1.
pub(crate) fn leave_the_collector_to(own: &[String], usual: &mut Vec<String>) {
    let other = |flag: &String| {
        flag.starts_with("-XX:+Use") && flag.ends_with("GC") && flag != "-XX:+UseG1GC"
    };
    if own.iter().any(other) {
        usual.retain(|flag| !flag.contains("G1"));
    }
}

/// All flags of wideload: the usual ones, the heap, the logs, where its files are.
pub(crate) fn flags(
    usual: Vec<String>,
    major: u32,
    heap: Bytes,
    ring_delay: Nanos,
    files: &Files,
) -> Vec<OsString> {
    let mut argv: Vec<OsString> = usual.into_iter().map(OsString::from).collect();
    let mib = |bytes: u64| format!("{}m", (bytes >> 20).max(1));
    // The whole heap from the start: growing would cost while it is measured.
    argv.push(format!("-Xms{}", mib(heap.0)).into());
    argv.push(format!("-Xmx{}", mib(heap.0)).into());
    argv.push(format!("-XX:MaxDirectMemorySize={}", mib(direct(heap).0)).into());
    argv.push("-XX:+ExitOnOutOfMemoryError".into());
    argv.push(gc_log(major, files));
    let error_file = format!("{}-hs_err_%p.log", files.name);
    argv.push(option("-XX:ErrorFile=", &files.logs.join(error_file)));
    argv.push(format!("-Dcassandra.config={}", file_url(&files.yaml)).into());
    argv.push(option("-Dlogback.configurationFile=", &files.logback));
    argv.push(option("-Dcassandra.storagedir=", &files.storage));
    argv.push(option("-Dcassandra.logdir=", &files.logs));
    argv.push(option("-Djava.io.tmpdir=", &files.storage.join("tmp")));
    let delay_ms = ring_delay.0 / 1_000_000;
    for flag in [
        // Or it closes its standard output, and with it what it says at its end.
        "-Dcassandra-foreground=yes".to_owned(),
        "-Djava.net.preferIPv4Stack=true".to_owned(),
        "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
        format!("-Dcassandra.ring_delay_ms={delay_ms}"),
    ] {
        argv.push(flag.into());
    }
    argv
}

/// What lets the classes of Cassandra into those of Java, for its tools.
pub(crate) fn module_flags(major: u32) -> Vec<String> {
    usual_flags(major).into_iter().filter(|flag| flag.starts_with("--add-")).collect()
}

/// All jars.
pub(crate) fn class_path(install: &Install) -> OsString {
    let wildcards = install.jar_dirs.iter().map(|dir| dir.join("*").into_os_string());
    wildcards.collect::<Vec<_>>().join(":".as_ref())
}

/// The flags of the original for a JVM of this major version.
pub(crate) fn usual_flags(major: u32) -> Vec<String> {
    let mut flags: Vec<String> = ALWAYS.iter().map(ToString::to_string).collect();
    if major < 17 {
        flags.push("-XX:-UseBiasedLocking".to_owned());
    }
    if major >= 9 {
        flags.extend(MODULAR.iter().map(ToString::to_string));
        let (exports, opens): (&[_], &[_]) = match major {
            17.. => (&EXPORTS_17, &OPENS_17),
            _ => (&EXPORTS_11, &[]),
        };
        let mut let_in = |flag: &str, packages: &[&str]| {
            flags.extend(packages.iter().map(|package| format!("{flag}={package}=ALL-UNNAMED")));
        };
        let_in("--add-exports", &EXPORTS);
        let_in("--add-exports", exports);
        let_in("--add-opens", &OPENS);
        let_in("--add-opens", opens);
    }
    flags
}

fn gc_log(major: u32, files: &Files) -> OsString {
    let log = files.gc_log();
    if major < 9 {
        return option("-Xloggc:", &log);
    }
    let mut flag = option("-Xlog:gc*,safepoint:file=", &log);
    flag.push(":time,uptime,level,tags:filecount=4,filesize=16m");
    flag
}

/// The `file:` URL of an absolute path (RFC 8089), percent-encoded.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
    url
}

/// The text of `logback.xml`: one file, four of 64 MiB at the most.
pub(crate) fn logback(files: &Files) -> String {
    let log = files.logs.join(format!("{}-system.log", files.name)).display().to_string();
    let log = log.replace('&', "&amp;").replace('<', "&lt;").replace('$', "\\$");
    format!(
        r#"<configuration>
  <appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>{log}</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>{log}.%i</fileNamePattern>
      <minIndex>1</minIndex>
      <maxIndex>3</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>64MB</maxFileSize>
    </triggeringPolicy>
    <encoder>
      <pattern>%-5level [%thread] %date{{ISO8601}} %logger{{0}} - %msg%n</pattern>
    </encoder>
  </appender>
  <root level="INFO">
    <appender-ref ref="FILE"/>
  </root>
</configuration>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra::install::{Source, resolve};
    use std::sync::atomic::AtomicBool;

    fn files() -> Files {
        Files {
            yaml: "/l/a b.yaml".into(),
            logback: "/l/logback.xml".into(),
            storage: "/d".into(),
            logs: "/l".into(),
            name: "cassandra-1".into(),
        }
    }

    fn line(major: u32, own: &[&str]) -> Vec<String> {
        let home = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(home.path().join("lib")).unwrap();
        for jar in ["apache-cassandra-5.0.5.jar", "jamm-0.4.0.jar"] {
            std::fs::write(home.path().join("lib").join(jar), "").unwrap();
        }
        let source = Source::Home(home.path().to_owned());
        let install = resolve(&source, &mut |_| {}, &AtomicBool::new(false)).unwrap();
        let java = Java { program: "/j/bin/java".into(), version: String::new(), major };
        let heap = Heap { size: Bytes(1 << 30), why: String::new() };
        let own: Vec<_> = own.iter().map(ToString::to_string).collect();
        let argv = argv(&install, &java, &heap, Nanos::from_secs(5), &files(), &own);
        argv.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_jvm_is_started_directly_with_the_users_flags_last() {
        let line = line(17, &["-Dcassandra.ring_delay_ms=1", "-XX:ParallelGCThreads=2"]);
        assert_eq!(line[0], "/j/bin/java");
        let at = |word: &str| line.iter().position(|w| w == word).expect(word);
        assert!(at("-Xms1024m") < at("-XX:MaxDirectMemorySize=512m"));
        assert!(at("-Dcassandra.ring_delay_ms=5000") < at("-Dcassandra.ring_delay_ms=1"));
        assert!(at("-XX:ParallelGCThreads=2") < at("-cp"));
        at("-Dcassandra.config=file:///l/a%20b.yaml");
        at("-Dcassandra.storagedir=/d");
        assert!(line.iter().any(|word| word.starts_with("-javaagent:") && word.contains("jamm")));
        assert_eq!(line.last().map(String::as_str), Some(MAIN));
        let class_path = &line[line.len() - 2];
        assert!(class_path.contains("/lib/*:"), "{class_path}");
    }

    #[test]
    fn each_java_gets_the_flags_that_it_knows() {
        let count = |major, start: &str| {
            line(major, &[]).iter().filter(|word| word.starts_with(start)).count()
        };
        assert_eq!([8, 11, 17].map(|major| count(major, "--add-")), [0, 16, 23]);
        assert_eq!([8, 11, 17].map(|major| count(major, "-XX:-UseBiasedLocking")), [1, 1, 0]);
        assert_eq!([8, 11, 17].map(|major| count(major, "-Xlog:gc")), [0, 1, 1]);
        assert_eq!(count(8, "-Xloggc:/l/cassandra-1-gc.log"), 1);
    }

    #[test]
    fn the_users_collector_is_the_only_one() {
        let collectors = |own: &[&str]| {
            let line = line(17, own).into_iter();
            line.filter(|w| w.starts_with("-XX:+Use") && w.ends_with("GC")).collect::<Vec<_>>()
        };
        assert_eq!(collectors(&[]), ["-XX:+UseG1GC"]);
        assert_eq!(collectors(&["-XX:+UseParallelGC"]), ["-XX:+UseParallelGC"]);
    }

    #[test]
    fn paths_cannot_break_the_logging_file() {
        let text = logback(&Files { logs: "/a<b>&${c}".into(), ..files() });
        assert!(text.contains("<file>/a&lt;b>&amp;\\${c}/cassandra-1-system.log</file>"), "{text}");
    }
}
