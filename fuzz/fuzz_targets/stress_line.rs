//! Command lines of cassandra-stress: text -> settings -> plan, statements and the settings' dump.
//!
//! Must hold: nothing panics, whatever the line; what was understood has a plan that writes keys
//! and values within its own bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use workload::cassandra_stress::{Asked, Compat, help, parse, print};
use workload::{Phase, Sampler};

fuzz_target!(|text: &str| {
    for compat in [Compat::Apache3, Compat::Apache5, Compat::Scylla] {
        match parse(&[text.to_owned()], compat) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(Asked::Help(topic)) => drop(help(topic.as_deref())),
            Ok(Asked::Print(drawn)) => drop(print(&drawn)),
            Ok(Asked::Version) => {}
            Ok(Asked::Run(settings)) => {
                assert!(!settings.dump().is_empty());
                drop(settings.schema_statements());
                // As many columns as this are a matter of memory, not of the line.
                if settings.columns.names.len() > 64 || settings.key_size > 1024 {
                    return;
                }
                let plan = Arc::new(settings.plan(8));
                if plan.value_room() > 1 << 20 {
                    return;
                }
                let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 2);
                let (mut key, mut value) = (vec![0; plan.key_room()], vec![0; plan.value_room()]);
                for _ in 0..4 {
                    let Some(draw) = sampler.draw() else { break };
                    let size = plan.write_key(draw.key, &mut key);
                    plan.write_value(&draw, &key[..size], 0, &mut value);
                }
            }
        }
    }
});
