//! Command lines of cassandra-stress: text -> settings -> plan, statements and the settings' dump.
//!
//! Must hold: nothing panics, whatever the line; what was understood has a plan that writes keys
//! and values within its own bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use workload::cassandra_stress::{Asked, Compat, help, parse, print};
use workload::{Phase, Sampler};

/// What `profile=posts` reads.
const PROFILE: &str = "
keyspace: blog
table: posts
table_definition: CREATE TABLE posts (site text, at timeuuid, body text, PRIMARY KEY (site, at))
columnspec: [{name: at, cluster: uniform(1..20)}]
insert: {partitions: uniform(1..3), select: fixed(1)/4, batchtype: UNLOGGED}
queries: {latest: {cql: select * from posts where site = ?, fields: samerow}}
";

fuzz_target!(|text: &str| {
    for compat in [Compat::Apache3, Compat::Apache5, Compat::Scylla] {
        // A file's name is its text, so that profiles are among the lines.
        let file = |name: &str| match name {
            "posts" => Ok(PROFILE.to_owned()),
            text => Ok(text.replace(';', "\n")),
        };
        match parse(&[text.to_owned()], compat, &file) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(Asked::Help(topic)) => drop(help(topic.as_deref())),
            Ok(Asked::Print(drawn)) => drop(print(&drawn)),
            Ok(Asked::Version) => {}
            Ok(Asked::Run(settings)) => {
                assert!(!settings.dump().is_empty());
                drop(settings.schema_statements());
                drop((settings.table(), settings.keyspace(), settings.tables()));
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
                    let statement = plan.run[usize::from(draw.operation)].steps[0].first_statement;
                    let size = plan.write_key_of(statement, draw.key, &mut key);
                    if plan.tables.is_some() {
                        continue;
                    }
                    plan.write_value(&draw, &key[..size], 0, &mut value);
                }
            }
        }
    }
});
