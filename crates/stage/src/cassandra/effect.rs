//! What took effect in a JVM: what it says of itself at its start, beside what it was asked for.
//!
//! Input: its arguments, its cpus, the text of its log of the collector. Output: [`Effect`].
//! Source: HotSpot's `gcInitLogger.cpp` (JDK 16 on: cpus, NUMA and heap under the tags gc,init) and
//! the line `Using ...` of every collector. Limits: an older JVM says its collector alone, and of
//! what is not said nothing is known.

use serde::Serialize;
use std::ffi::OsString;
use units::Bytes;

/// Heaps are rounded up to whole regions, which are no larger than this.
const REGION_MAX: u64 = 32 << 20;

/// Something that was asked for, and what is known to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked<T> {
    /// By the arguments, or what follows from where the instance is put.
    pub asked: T,
    /// By the JVM's own words; None where it does not say.
    pub seen: Option<T>,
}

impl<T: PartialEq> Asked<T> {
    /// Whether it is known to be otherwise.
    fn differs(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| *seen != self.asked)
    }
}

/// What took effect in one JVM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// The instance.
    pub instance: String,
    /// Processors that it reckons with.
    pub cpus: Asked<u32>,
    /// Whether the heap is placed by NUMA node.
    pub numa: Asked<bool>,
    /// The largest heap.
    pub heap_bytes: Asked<u64>,
    /// The collector: G1, Parallel, Serial, Z, Shenandoah.
    pub collector: Asked<String>,
}

/// What is asked of a JVM by its arguments; `cpus` is how many it is bound to.
pub(crate) fn asked(instance: &str, argv: &[OsString], cpus: u32, heap: Bytes) -> Effect {
    // Of flags that contradict each other the last one wins.
    let flags = || argv.iter().rev().filter_map(|word| word.to_str());
    let mut processors = flags().filter_map(|flag| {
        flag.strip_prefix("-XX:ActiveProcessorCount=").and_then(|count| count.parse().ok())
    });
    let mut numa = flags().filter_map(|flag| flag.strip_prefix("-XX:")?.strip_suffix("UseNUMA"));
    let mut collector =
        flags().filter_map(|flag| flag.strip_prefix("-XX:+Use")?.strip_suffix("GC"));
    Effect {
        instance: instance.to_owned(),
        cpus: unseen(processors.next().unwrap_or(cpus)),
        numa: unseen(numa.next() == Some("+")),
        heap_bytes: unseen(heap.0),
        collector: unseen(collector.next().unwrap_or("G1").to_owned()),
    }
}

fn unseen<T>(asked: T) -> Asked<T> {
    Asked { asked, seen: None }
}

impl Effect {
    /// The same with what its log of the collector says.
    pub(crate) fn seen_in(mut self, log: &str) -> Self {
        for line in log.lines() {
            let Some((tags, text)) = line.rsplit_once("] ") else { continue };
            match (tags.rsplit_once('[').map(|(_, tags)| tags.trim()), text.split_once(": ")) {
                (Some("gc,init"), Some((name, value))) => self.read(name.trim(), value.trim()),
                (Some("gc"), None) => {
                    let name = text.trim().strip_prefix("Using ");
                    let name = name.map(|name| name.trim_start_matches("The "));
                    let name = name.and_then(|name| name.split_whitespace().next());
                    self.collector.seen = self.collector.seen.or(name.map(str::to_owned));
                }
                _ => {}
            }
        }
        self
    }

    fn read(&mut self, name: &str, value: &str) {
        match name {
            "CPUs" => {
                let available = value.split(", ").find_map(|part| part.strip_suffix(" available"));
                self.cpus.seen = available.and_then(|n| n.parse().ok());
            }
            "NUMA Support" => self.numa.seen = Some(value == "Enabled"),
            "Heap Max Capacity" | "Max Capacity" => {
                self.heap_bytes.seen = value.parse().ok().map(|size: Bytes| size.0);
            }
            _ => {}
        }
    }

    /// What is known to be otherwise than asked, in words. That NUMA is off counts only where the
    /// instance `spans` several nodes: on one there is nothing for it to do.
    #[must_use]
    pub fn differences(&self, spans: bool) -> Vec<String> {
        let mut all = Vec::new();
        let mut tell = |what: String| all.push(what);
        if let (true, Some(seen)) = (self.cpus.differs(), self.cpus.seen) {
            tell(format!("it reckons with {seen} cpus, not {}", self.cpus.asked));
        }
        if let (true, Some(seen)) = (self.numa.differs() && spans, self.numa.seen) {
            let word = |on| if on { "on" } else { "off" };
            tell(format!("UseNUMA is {}, not {}", word(seen), word(self.numa.asked)));
        }
        if let Some(seen) = self.heap_bytes.seen
            && seen.abs_diff(self.heap_bytes.asked) > REGION_MAX
        {
            tell(format!("its heap is {}, not {}", Bytes(seen), Bytes(self.heap_bytes.asked)));
        }
        if let (true, Some(seen)) = (self.collector.differs(), &self.collector.seen) {
            tell(format!("its collector is {seen}, not {}", self.collector.asked));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The begin of a log of JDK 17.
    const LOG: &str = "\
[2026-11-21T21:27:22.500+0000][0.214s][info][gc] Using G1
[2026-11-21T21:27:22.500+0000][0.214s][info][gc,init] Version: 17.0.15+6 (release)
[2026-11-21T21:27:22.500+0000][0.214s][info][gc,init] CPUs: 2 total, 1 available
[2026-11-21T21:27:22.500+0000][0.214s][info][gc,init] NUMA Support: Disabled
[2026-11-21T21:27:22.500+0000][0.214s][info][gc,init] Heap Initial Capacity: 512M
[2026-11-21T21:27:22.500+0000][0.214s][info][gc,init] Heap Max Capacity: 512M
[2026-11-21T21:27:23.100+0000][0.814s][info][gc      ] GC(0) Pause Young: 1M->1M(2M) 3.1ms
";

    fn asked_with(own: &[&str], mib: u64) -> Effect {
        let usual = ["java", "-XX:+UseNUMA", "-XX:+UseG1GC", "-XX:+UseTLAB"];
        let argv: Vec<_> = usual.iter().chain(own).map(OsString::from).collect();
        asked("cassandra-1", &argv, 1, Bytes(mib << 20))
    }

    #[test]
    fn a_jvm_that_does_as_it_is_told_differs_in_nothing() {
        let effect = asked_with(&[], 512).seen_in(LOG);
        assert_eq!(effect.cpus, Asked { asked: 1, seen: Some(1) });
        assert_eq!(effect.numa, Asked { asked: true, seen: Some(false) });
        assert_eq!(effect.heap_bytes, Asked { asked: 512 << 20, seen: Some(512 << 20) });
        assert_eq!(effect.collector, Asked { asked: "G1".into(), seen: Some("G1".into()) });
        assert_eq!(effect.differences(false), Vec::<String>::new());
        // A heap of whole regions.
        assert!(asked_with(&[], 500).seen_in(LOG).differences(false).is_empty());
    }

    #[test]
    fn what_did_not_take_effect_is_told() {
        let own = ["-XX:ActiveProcessorCount=4", "-XX:+UseParallelGC"];
        let effect = asked_with(&own, 1024).seen_in(LOG);
        assert_eq!(
            effect.differences(true),
            [
                "it reckons with 1 cpus, not 4",
                "UseNUMA is off, not on",
                "its heap is 512.0 MiB, not 1.0 GiB",
                "its collector is G1, not Parallel",
            ]
        );
        assert_eq!(asked_with(&["-XX:-UseNUMA"], 512).seen_in(LOG).differences(true).len(), 0);
    }

    #[test]
    fn other_collectors_and_older_jvms_are_read_as_far_as_they_say() {
        let z = "[1s][info][gc,init] Max Capacity: 1024M\n\
                 [1s][info][gc] Using The Z Garbage Collector\n";
        let effect = asked_with(&["-XX:+UseZGC"], 1024).seen_in(z);
        assert!(effect.differences(true).is_empty(), "{effect:?}");
        assert_eq!(effect.collector.seen.as_deref(), Some("Z"));
        for log in ["", "garbage\n[] \n[gc,init] CPUs: many\n[x][gc,init] NUMA Support", "[a] b"] {
            let effect = asked_with(&[], 512).seen_in(log);
            assert!(effect.differences(true).is_empty(), "{log}: {effect:?}");
            assert_eq!(effect.cpus.seen, None);
        }
    }
}
