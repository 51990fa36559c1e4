//! Looks after the partitions of a cluster while a run goes on.
//!
//! In: the servers, each asked once a second what all clients ask so often (two numbers, which
//! change with their partitions and their peers). Out: masters for the workers ([`Roster`]), and
//! [`News`] for people. A server that does not answer stays where it is; its partitions are those
//! of others when these say so. Limits: a server that left for good keeps its place among the
//! hosts, and is tried again.

use crate::records::Tended;
use crate::ring_watch::News;
use drive::{Change, Masters, Roster};
use record::events::EventKind;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// Between two looks, as clients have it; sooner when workers are in trouble.
const LOOK: Nanos = Nanos::from_secs(1);
const LOOK_IN_TROUBLE: Nanos = Nanos::from_millis(200);
/// How long the end of the run may go unseen.
const TICK: Nanos = Nanos::from_millis(50);

/// Looks until it is over.
pub(crate) fn watch(tended: Tended, hosts: &Roster, over: &AtomicBool, tell: &dyn Fn(News)) {
    let Tended { mut cluster, mut masters } = tended;
    let mut looked = clock::now();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(TICK.to_duration());
        let since = clock::now().since(looked);
        if since < LOOK_IN_TROUBLE || since < LOOK && !hosts.take_trouble() {
            continue;
        }
        looked = clock::now();
        if cluster.tend().is_err() {
            return;
        }
        let Some(now) = Masters::new(cluster.masters()) else { continue };
        let moved = masters.moved(&now);
        let change = hosts.update_masters(&cluster.addresses(), now.clone());
        masters = now;
        if !change.is_none() {
            tell(News { at: clock::now(), kind: EventKind::Ring, text: text(&change, moved) });
        }
    }
}

fn text(change: &Change, moved: usize) -> String {
    let joined: Vec<_> = change.joined.iter().map(ToString::to_string).collect();
    let joined = match joined.is_empty() {
        true => String::new(),
        false => format!("{} joined, ", joined.join(", ")),
    };
    format!("The ring changed: {joined}{moved} partitions have another master")
}
