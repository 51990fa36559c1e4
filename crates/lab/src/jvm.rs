//! What took effect in the JVMs of a target that was started: for the manifest, and as a caveat
//! where it is not what was asked.
//!
//! In: effects in the order of the instances, and their places. Out: JSON, a caveat. Newer JVMs
//! switch `UseNUMA` off where the nodes of their cpus and of their memory differ: that the flag
//! was given says nothing.

use machine::Machine;
use record::Caveat;
use serde_json::Value;
use stage::Place;
use stage::cassandra::Effect;

/// An object per JVM.
pub(crate) fn facts(effects: &[Effect]) -> Value {
    serde_json::to_value(effects).unwrap_or(Value::Null)
}

/// Whether the cpus or the memory of a place are on several NUMA nodes.
fn spans(place: &Place, machine: &Machine) -> bool {
    let of_cpus = |numa: &&machine::Numa| !numa.cpus.intersection(&place.cpus).is_empty();
    let of_memory = place.memory.numas().map_or(0, |numas| numas.len());
    of_memory > 1 || machine.numa.iter().filter(of_cpus).count() > 1
}

/// When a JVM is known to run otherwise than it was asked to.
pub(crate) fn caveat(effects: &[Effect], places: &[Place], machine: &Machine) -> Option<Caveat> {
    let of = |(index, effect): (usize, &Effect)| {
        let place = places.get(index).or(places.first());
        let differences = effect.differences(place.is_some_and(|place| spans(place, machine)));
        let number = index + 1;
        (!differences.is_empty()).then(|| format!("instance {number}: {}", differences.join(", ")))
    };
    let found: Vec<_> = effects.iter().enumerate().filter_map(of).collect();
    (!found.is_empty()).then(|| {
        let text = "A JVM does not run as it was asked to: the figures are those of what took \
                    effect.";
        let cure = "Ask for what took effect, or see the JVM's own words in raw/*-gc.log.";
        Caveat::new("jvm-differs", text).evidence(found.join("; ")).cure(cure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stage::MemoryPolicy;
    use stage::cassandra::Asked;

    #[test]
    fn numa_that_is_off_counts_where_a_place_spans_several() {
        let machine = Machine::synthetic("package:2 die:1 numa:1 llc:1 core:2 cpu:1").unwrap();
        let effect = Effect {
            instance: "cassandra-1".to_owned(),
            cpus: Asked { asked: 2, seen: Some(2) },
            numa: Asked { asked: true, seen: Some(false) },
            heap_bytes: Asked { asked: 1 << 30, seen: Some(1 << 30) },
            collector: Asked { asked: "G1".to_owned(), seen: Some("G1".to_owned()) },
        };
        let place = |cpus: &str, numas: Option<&str>| Place {
            cpus: cpus.parse().unwrap(),
            memory: numas.map_or(MemoryPolicy::Local, |n| MemoryPolicy::Bind(n.parse().unwrap())),
        };
        let told = |place| caveat(std::slice::from_ref(&effect), &[place], &machine);
        assert_eq!(told(place("0-1", Some("0"))), None);
        assert_eq!(told(place("0-1", None)), None);
        for place in [place("0-3", None), place("0-1", Some("0-1"))] {
            let caveat = told(place).unwrap();
            assert_eq!(caveat.evidence, "instance 1: UseNUMA is off, not on");
        }
        assert_eq!(facts(&[effect])[0]["numa"]["seen"], false);
    }
}
