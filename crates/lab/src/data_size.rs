//! How large a trial's data are against the memory that could hold them.
//!
//! In: the plan, what the target is and where it runs. Out: facts for the manifest, and a caveat
//! when every read can come from memory. Limits: sizes before compression, overhead and replicas;
//! the memory of hosts elsewhere is not known.

use crate::data::{row_bytes_max, volume};
use crate::local_target::LocalTarget;
use analyze::CacheClass;
use machine::Machine;
use record::Caveat;
use record::summary::Target;
use serde_json::{Value, json};
use units::Bytes;
use workload::{Action, Plan};

/// Data against memory.
#[derive(Debug)]
pub(crate) struct DataSize {
    rows: u64,
    row_bytes_max: u64,
    memory_bytes: Option<u64>,
    class: Option<CacheClass>,
}

impl DataSize {
    /// Of so many databases that each hold the plan's rows.
    pub(crate) fn of(
        plan: &Plan,
        databases: usize,
        target: &Target,
        local: &LocalTarget,
        machine: &Machine,
    ) -> Self {
        let rows = plan.keys.records.saturating_mul(databases as u64);
        let row_bytes_max = row_bytes_max(plan);
        let memory_bytes = machine.usable_memory_bytes().filter(|_| local.all_here);
        let class = match target.kind.as_str() {
            // It has no rows.
            Target::NULL_MOCK => None,
            // It has no disk.
            Target::REFERENCE => Some(CacheClass::InCache),
            _ => memory_bytes
                .map(|memory| CacheClass::of(rows.saturating_mul(row_bytes_max), memory)),
        };
        Self { rows, row_bytes_max, memory_bytes, class }
    }

    /// For the manifest.
    pub(crate) fn facts(&self) -> Value {
        json!({
            "rows": self.rows,
            "row_bytes_max": self.row_bytes_max,
            "bytes_max": self.rows.saturating_mul(self.row_bytes_max),
            "memory_bytes": self.memory_bytes,
            "cache_class": self.class.map(CacheClass::name),
        })
    }

    /// Of a database, and of operations that read.
    pub(crate) fn caveat(&self, plan: &Plan, target: &Target) -> Option<Caveat> {
        let reads = plan.run.iter().flat_map(|o| &o.steps).any(|step| {
            matches!(plan.statements[step.first_statement].action, Action::Read | Action::Scan)
        });
        if target.is_stand_in() || !reads || self.class != Some(CacheClass::InCache) {
            return None;
        }
        let memory_bytes = self.memory_bytes?;
        let wanted = memory_bytes.saturating_mul(2) / self.row_bytes_max.max(1);
        let text = "All data fit into memory: reads come from caches and say nothing about a disk.";
        Some(
            Caveat::new("in-cache", text)
                .evidence(format!(
                    "{}; this host's memory: {}",
                    volume(plan, self.rows),
                    Bytes(memory_bytes)
                ))
                .cure(format!("For reads from disk load twice the memory: --records {wanted}.")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use workload::ycsb::{self, Properties};

    fn plan(workload: &str, properties: &[&str], records: u64) -> Plan {
        let files: [&str; 0] = [];
        let properties = Properties::load(&files, properties).unwrap();
        ycsb::plan(workload, &properties, Some(records), None).unwrap().plan
    }

    fn target(kind: &str) -> Target {
        Target { kind: kind.to_owned(), version: None, protocol: Some(4) }
    }

    /// The class, and whether there is a caveat.
    fn judged(plan: &Plan, kind: &str, all_here: bool) -> (Value, bool) {
        let machine = Machine::read(Path::new("/")).unwrap();
        let local = LocalTarget { all_here, ..LocalTarget::default() };
        let target = target(kind);
        let size = DataSize::of(plan, 1, &target, &local, &machine);
        let caveat = size.caveat(plan, &target);
        assert!(caveat.iter().all(|c| c.cure.contains("--records ")), "{caveat:?}");
        (size.facts()["cache_class"].clone(), caveat.is_some())
    }

    #[test]
    fn only_reads_of_a_database_whose_memory_is_known_get_the_caveat() {
        let small = plan("c", &[], 1000);
        assert_eq!(judged(&small, "cassandra", true), ("in-cache".into(), true));
        assert_eq!(judged(&small, "cassandra", false), (Value::Null, false));
        assert_eq!(judged(&small, Target::REFERENCE, true), ("in-cache".into(), false));
        assert_eq!(judged(&small, Target::NULL_MOCK, true), (Value::Null, false));
        let writes = plan("a", &["readproportion=0", "updateproportion=1"], 1000);
        assert_eq!(judged(&writes, "cassandra", true), ("in-cache".into(), false));
        // A thousand TiB is on nobody's test machine.
        let large = plan("c", &[], 1 << 40);
        assert_eq!(judged(&large, "cassandra", true), ("on-disk".into(), false));
    }

    #[test]
    fn facts_are_bytes_at_most() {
        let machine = Machine::read(Path::new("/")).unwrap();
        let local = LocalTarget { all_here: true, ..LocalTarget::default() };
        let facts =
            DataSize::of(&plan("c", &[], 1000), 2, &target("cql"), &local, &machine).facts();
        // "user" and up to 20 digits, ten fields of 100 bytes.
        assert_eq!((&facts["rows"], &facts["row_bytes_max"]), (&2000.into(), &1024.into()));
        assert_eq!(facts["bytes_max"], 2_048_000);
    }
}
