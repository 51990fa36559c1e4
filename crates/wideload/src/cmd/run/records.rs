//! What of a run's flags is about records over Aerospike's protocol, and what is not for them.

use super::args::{Args, Spoken, StorageKind};
use super::resolve::starts_cassandra;
use anyhow::bail;
use drive::{RecordEncoder, Writes};
use lab::Records;
use wire::aerospike::RecordExists;
use wire::cql::Compression;
use workload::Plan;
use workload::ycsb::Settings;

/// Connections to a host unless more are asked for: an open loop bounds what is in flight, which is
/// mostly far more than there ever is.
pub(super) const CONNECTIONS_MAX: usize = 1024;

/// That no flag is given which would have no effect.
pub(super) fn check(args: &Args) -> anyhow::Result<()> {
    if args.protocol != Spoken::Aerospike {
        if args.namespace.is_some() {
            bail!("--namespace is of use with --protocol aerospike only");
        }
        return Ok(());
    }
    for (flag, given, why) in [
        ("--keyspace", args.keyspace.is_some(), "give --namespace instead"),
        (
            "--replication",
            args.replication.is_some(),
            "the servers' configuration has it; leave it out",
        ),
        (
            "--consistency",
            args.consistency.is_some(),
            "the namespace's configuration has it; leave it out",
        ),
        ("--compression", args.compression != Compression::None, "it is CQL's; leave it out"),
        ("--datacenter", args.datacenter.is_some(), "its clusters are in one place; leave it out"),
        ("--user", args.user.is_some(), "users are not built yet; leave it out"),
        ("--tls", args.tls.asked(), "TLS is built for CQL only yet; leave it out"),
        ("--settle", args.settle.is_some(), "compactions are not its; leave it out"),
        (
            "--storage null",
            args.storage == StorageKind::Null,
            "its records are in memory only; leave it out",
        ),
    ] {
        if given {
            bail!("{flag} is not for --protocol aerospike: {why}");
        }
    }
    if starts_cassandra(args) {
        bail!(
            "--target cassandra speaks CQL: leave --protocol aerospike out, or give --target HOST"
        );
    }
    Ok(())
}

/// How records are written; None where rows are. YCSB's binding inserts what is not there, and an
/// update replaces the record.
pub(super) fn records(
    args: &Args,
    plan: &Plan,
    settings: &Settings,
) -> anyhow::Result<Option<Records>> {
    if args.protocol != Spoken::Aerospike {
        if settings.upserts.is_some() {
            bail!("property as.update is for --protocol aerospike: leave it out");
        }
        return Ok(None);
    }
    RecordEncoder::check(plan)?;
    let update = match settings.upserts {
        Some(true) => RecordExists::Update,
        _ => RecordExists::ReplaceOnly,
    };
    let server_timeout_ms = u32::try_from(args.timeout.0 / 1_000_000).unwrap_or(u32::MAX);
    let insert = RecordExists::CreateOnly;
    Ok(Some(Records { writes: Writes { insert, update, server_timeout_ms } }))
}
