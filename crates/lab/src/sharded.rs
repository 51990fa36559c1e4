//! How the load lay on the shards of hosts that have such: in the summary, among the counters, and
//! as caveats.

use drive::{Driven, Offering, ShardLoad};
use record::Caveat;
use record::summary::ShardBalance;
use record::table::Counter;
use units::Nanos;

/// Of a run on hosts with shards; None on others.
pub(crate) fn balance(driven: &Driven) -> Option<ShardBalance> {
    let requests = || driven.shards.iter().map(|load| load.requests);
    Some(ShardBalance {
        count: driven.shards.len() as u64,
        requests: requests().sum(),
        least: requests().min()?,
        most: requests().max()?,
        astray: driven.shards.iter().map(|load| load.astray).sum(),
        tablets_told: driven.usage.iter().map(|usage| usage.tablets).sum(),
    })
}

/// Requests per second of each shard, over a window of this length.
pub(crate) fn counters(loads: &[ShardLoad], window: Nanos) -> Vec<Counter> {
    let seconds = window.as_secs_f64();
    let counter = |load: &ShardLoad| Counter {
        t_s: seconds,
        host: load.host.to_string(),
        source: format!("shard-{}", load.shard),
        metric: "shard_requests".to_owned(),
        value: load.requests as f64 / seconds,
        unit: "1/s".to_owned(),
    };
    let counters = loads.iter().map(counter);
    if seconds > 0.0 { counters.collect() } else { Vec::new() }
}

/// Requests that did not go to the shard that has their key: the host passed them on, which is
/// its work and not the client's choice.
pub(crate) fn astray(driven: &Driven) -> Option<Caveat> {
    let balance = balance(driven).filter(|balance| balance.astray > 0)?;
    let share = 100.0 * balance.astray as f64 / balance.requests.max(1) as f64;
    let text = "Requests went out on connections to other shards than those that have their keys: \
                the hosts passed them on, and the figures are lower for it.";
    let evidence = format!("{} of {} requests, {share:.1} %", balance.astray, balance.requests);
    let cure = "Leave --connections to its default, use fewer workers (--client-cpus) on hosts \
                with many shards, and let nothing between client and hosts change source ports.";
    Some(Caveat::new("shards-missed", text).evidence(evidence).cure(cure))
}

/// Hosts that say of their shards what nobody can route by.
pub(crate) fn unread(offering: &Offering) -> Option<Caveat> {
    if offering.unread.is_empty() {
        return None;
    }
    let text = "What a host says of its shards makes no sense: it was driven as if it had none.";
    let cure = "Connect to the hosts directly.";
    let evidence = offering.unread.join("; ");
    Some(Caveat::new("shards-unread", text).evidence(evidence).cure(cure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_by_host_and_second() {
        let load = |shard, requests| ShardLoad {
            host: "127.0.0.1:9042".parse().unwrap(),
            shard,
            requests,
            astray: 0,
        };
        let rows = counters(&[load(0, 10), load(1, 30)], Nanos::from_secs(2));
        let told: Vec<_> = rows.iter().map(|row| (row.source.as_str(), row.value)).collect();
        assert_eq!(told, [("shard-0", 5.0), ("shard-1", 15.0)]);
        assert_eq!(counters(&[load(0, 10)], Nanos::ZERO).len(), 0);
    }

    #[test]
    fn nonsense_is_told_with_what_was_said() {
        assert_eq!(unread(&Offering::default()), None);
        let unread = Offering { unread: vec!["no such number".to_owned()], shards: None };
        let caveat = super::unread(&unread).unwrap();
        assert_eq!(
            (caveat.code.as_str(), caveat.evidence.as_str()),
            ("shards-unread", "no such number")
        );
    }
}
