//! Where the instances of a target were put, and where their memory was found, for the manifest;
//! and what speaks against a trial when they were elsewhere at its end.
//!
//! In: places and, of each, the bytes of anonymous memory by NUMA node, or what is elsewhere. Out:
//! JSON, an object per instance: its cpus and its memory policy in the kernel's form, bytes by the
//! number of the NUMA node; a caveat. Limits: what went away and came back between two looks is not
//! seen.

use record::Caveat;
use serde_json::{Map, Value, json};
use stage::{PagesPerNuma, Place, VerifyError};

/// The code of the caveat: an instance was not where it was put.
pub(crate) const MISPLACED: &str = "misplaced";
/// So many instances are named in a caveat; all are in the manifest.
const NAMED_MAX: usize = 4;

/// What was found of an instance; None of one that has ended.
type Found = Option<Result<PagesPerNuma, VerifyError>>;

/// An object per instance, in their order. One place may be shared by several instances.
pub(crate) fn facts(places: &[Place], pages: &[PagesPerNuma]) -> Value {
    let of = |(index, pages): (usize, &PagesPerNuma)| {
        let place = place(places, index);
        json!({
            "cpus": place.cpus.to_string(),
            "memory": place.memory.to_string(),
            "anonymous_bytes": bytes(pages),
        })
    };
    pages.iter().enumerate().map(of).collect()
}

/// Likewise behind the window: the bytes of those that are in their places, and of the others why
/// they are not.
pub(crate) fn facts_at_end(found: &[Found]) -> Value {
    let of = |found: &Found| match found {
        Some(Ok(pages)) => json!({ "anonymous_bytes": bytes(pages) }),
        Some(Err(why)) => json!({ MISPLACED: why.to_string() }),
        None => Value::Null,
    };
    found.iter().map(of).collect()
}

/// Says which instances are elsewhere than they were put.
pub(crate) fn moved(places: &[Place], found: &[Found]) -> Option<Caveat> {
    let why = |(index, found): (usize, &Found)| {
        let why = found.as_ref()?.as_ref().err()?;
        Some(format!("instance {} ({}): {why}", index + 1, place(places, index)))
    };
    let moved: Vec<String> = found.iter().enumerate().filter_map(why).collect();
    if moved.is_empty() {
        return None;
    }
    let text = format!(
        "At the end {} of {} instances were not where they were put: this is no result of their \
         layout.",
        moved.len(),
        found.len()
    );
    let mut evidence = moved[..moved.len().min(NAMED_MAX)].join("; ");
    let more = moved.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        evidence += &format!("; and {more} more, see target.places_at_end");
    }
    let cure = "Find what moves them (a cgroup, a daemon that balances, taskset, numad), keep it \
                off and run it again.";
    Some(Caveat::new(MISPLACED, text).evidence(evidence).cure(cure))
}

fn place(places: &[Place], index: usize) -> Place {
    places.get(index).or(places.first()).cloned().unwrap_or_default()
}

fn bytes(pages: &PagesPerNuma) -> Map<String, Value> {
    pages.iter().map(|(numa, bytes)| (numa.0.to_string(), bytes.0.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn instances_that_moved_are_named_and_those_that_ended_are_not() {
        let places: Vec<Place> =
            (0..7).map(|numa| format!("{numa}@{numa}").parse().unwrap()).collect();
        let gone =
            |pid| Some(Err(VerifyError::Unreadable { pid, cause: io::ErrorKind::NotFound.into() }));
        let in_place = || Some(Ok(PagesPerNuma::default()));
        assert_eq!(moved(&places, &[in_place(), None, in_place()]), None);
        let two = [in_place(), gone(77), None, gone(78)];
        let caveat = moved(&places, &two).unwrap();
        assert_eq!(caveat.code, "misplaced");
        assert!(caveat.text.contains("2 of 4 instances"), "{caveat:?}");
        let evidence = caveat.evidence;
        assert!(evidence.contains("instance 2 (1@1): ") && evidence.contains("process 77"));
        assert!(evidence.contains("instance 4 (3@3): ") && !evidence.contains("more"));
        let facts = facts_at_end(&two);
        assert_eq!((&facts[0], &facts[2]), (&json!({ "anonymous_bytes": {} }), &Value::Null));
        assert!(facts[1]["misplaced"].as_str().unwrap().contains("process 77"), "{facts}");
        let all: Vec<Found> = (0..7).map(gone).collect();
        let evidence = moved(&places, &all).unwrap().evidence;
        assert!(evidence.contains("instance 4 ") && evidence.contains("and 3 more"), "{evidence}");
        assert!(!evidence.contains("instance 5 "), "{evidence}");
    }
}
