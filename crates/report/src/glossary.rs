//! What every word on the page means, in one line.
//!
//! Input: a term; output: its meaning. Headers of tables and names in legends are written through
//! [`link`], which makes each a link to its line in the glossary at the end of the page, with the
//! meaning as its tool tip; the glossary lists the terms that were used.
//!
//! Limits: names that come from a run (operations, hosts, metrics that this version does not know)
//! are explained by what kind of thing they are.

use crate::chart::slug;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The terms and their meanings.
const TERMS: &[(&str, &str)] = &[
    // Times.
    ("service", "from the first send of an operation to its final answer, retries inside"),
    ("response", "from the moment an operation was due to its final answer: what a user waits"),
    ("lag", "from the moment an operation was due to its first send: the client's own lateness"),
    (
        "latency table",
        "shares of operations above limits of their latency; each holds all that is longer",
    ),
    ("weighted average", "sum of the shares of columns times their middles; the last is open"),
    ("step", "service time of one statement of an operation that has several"),
    ("time", "which of the three times of an operation: service, response or lag"),
    ("operation", "what is measured as one: a read, an update; may have several steps"),
    ("samples", "how many operations the figures of this row are made of"),
    ("mean", "the sum of all values over their number"),
    ("p50", "the median: half of the values are not above it"),
    ("p90", "90 of 100 values are not above it"),
    ("p99", "99 of 100 values are not above it"),
    ("p99.9", "999 of 1000 values are not above it"),
    ("max", "the largest value"),
    ("min", "the least value"),
    ("median", "the middle value: as many are above as below"),
    ("percentile", "the value that this share of all values does not exceed"),
    // Amounts.
    ("throughput", "operations that ended ok, per second"),
    ("op/s", "operations that ended ok, per second of the measured window"),
    ("scheduled rate", "operations per second that fell due in an open loop"),
    ("errors", "operations that did not end ok, timeouts among them"),
    ("operations", "measured operations: those that were due in the window"),
    ("share", "part of all measured operations"),
    ("in flight", "operations sent and not answered yet, on average over an interval"),
    ("per second", "how often, divided by the length of the interval"),
    // Outcomes.
    ("outcome", "how an operation ended"),
    ("ok", "ended as asked"),
    ("not found", "a read of one key that answered no row"),
    ("invalid", "an answer whose content is not what was written"),
    ("client timeout", "no answer within --timeout"),
    ("server timeout", "the target answered that it ran out of time"),
    ("unavailable", "the target had too few live replicas"),
    ("overloaded", "the target refused for load"),
    ("connection lost", "the connection broke before the answer"),
    ("error", "any other error that the target answered with"),
    ("not sent", "was due in the window and never left the client"),
    // The run.
    ("trial", "one workload under one load against one deployment, once"),
    ("verdict", "how it ended: ok, failed, interrupted, or running (not ended, or crashed)"),
    ("factor", "what is varied from trial to trial"),
    ("speed-up", "how many times as much as with the least budget"),
    ("efficiency", "speed-up over what as many times the budget could give"),
    ("from, to", "95 %: the truth is in 95 of 100 such intervals; min-max: what was measured"),
    (
        "scalability law",
        "op/s = a x n / (1 + contention x (n - 1) + crosstalk x n x (n - 1)), fitted (Gunther)",
    ),
    ("contention", "share of the work that is done one after the other; it bounds the speed-up"),
    ("crosstalk", "what each costs the others by agreeing with them; it can make more give less"),
    ("best", "surely ahead of all others; by how much stands beside it"),
    (
        "best over it",
        "how many times as well the best arm did: op/s, or at a rate how short a wait",
    ),
    ("ahead", "ahead of all others by 95 %, where a winner needs 99 %, or with few repetitions"),
    ("cannot tell", "of these arms none is surely best; a bound is said where there is one"),
    ("certainty", "100 % less how often equal arms would be as far apart by chance"),
    ("stand-in", "a target that is no database: the reference target or a mock"),
    ("reference target", "the small CQL server in wideload, a default and a test double"),
    (
        "mock",
        "a target that gives canned answers, or is slow on purpose: what is measured is known",
    ),
    ("cpu of the host", "share of the time of all its cpus that programs and kernel used"),
    ("cpu of the instances", "cpus that the target's processes used together, of those they have"),
    ("cpu of each", "instances, and the cpus that the least and the busiest of them used"),
    ("cpu of the client", "cpus that its workers worked, polling apart"),
    ("page placement", "memory of the instances by the NUMA node of their cpus and its own"),
    ("on their own NUMA node", "share of that memory on the NUMA node of the cpus that use it"),
    ("window", "the measured time, without the warm-up"),
    ("interval", "the time after which histograms are written down"),
    ("caveat", "a reason to trust a number less"),
    ("caveats", "reasons to trust the numbers less, by their codes"),
    ("evidence", "what a caveat rests on: figures, limits, where they were read"),
    ("cure", "what to do about it"),
    ("closed loop", "a client sends its next operation when the one before is done"),
    ("open loop", "operations fall due by a schedule, whatever the target does"),
    // Events.
    ("event", "a stretch of time that stands out; its number is that in the plots"),
    ("when", "seconds since the start of the measured window"),
    ("what", "what happened, with its figures"),
    ("many errors", "intervals in which more than one of 100 operations failed"),
    ("nothing done", "a time in which no operation ended, in whatever way"),
    ("no success", "intervals in which operations ended and none was ok"),
    ("connections lost", "connections that broke while measuring"),
    ("throughput drop", "intervals with less than half of the median interval's throughput"),
    ("slow", "intervals whose p99 is more than five times that of the median interval"),
    ("late answers", "answers that came behind the timeout of their operation"),
    ("ring change", "hosts that joined or left while it was measured, or that could not be asked"),
    ("schema change", "the table was altered, dropped or created again while it was measured"),
    ("host status", "the target said that one of its hosts was up, or down"),
    ("late", "answers that came behind the timeout of their operation"),
    ("steal", "cpu time that the hypervisor gave to other guests"),
    // Balance, cost and counters.
    ("metric", "what was counted, and by how many"),
    ("least", "the least of their means over the window, and whose it is"),
    ("middle", "the median of their means over the window"),
    ("most", "the largest of their means over the window, and whose it is"),
    ("most/least", "the largest of the means over the least: 1 is an even load"),
    ("cost", "what measuring took from the client machine"),
    ("value", "as measured over the window"),
    ("CPU time per operation", "user and system time of the client over operations, no polling"),
    ("system calls per operation", "system calls of the client's workers over operations"),
    (
        "busiest worker",
        "share of the window that the busiest client thread worked; above 80 % it may be the limit",
    ),
    ("spinning", "share of the window that the client polled to be on time; neither work nor cost"),
    ("largest resident set", "the most memory that the client process held"),
    ("busy", "share of an interval that a worker of the client worked, polling apart"),
    ("worker", "a thread of the client that sends and receives, on a cpu of its own"),
    ("shard requests", "requests per second of a shard of a host, mean over the window"),
    ("counter", "a value read every interval; source, metric and unit are in counters.csv"),
    ("cpu user", "share of all cpu time that programs ran, on that host"),
    ("cpu system", "share of all cpu time that the kernel worked for programs"),
    ("cpu interrupts", "share of all cpu time in interrupts, those of the network among them"),
    ("cpu disk wait", "share of all cpu time idle while a disk was waited for"),
    ("cpu steal", "share of all cpu time that the hypervisor gave to other guests"),
    ("host", "the machine on which it was read"),
    ("procfs", "read from the kernel of that host"),
    ("target", "the database, or what stands in for it"),
];

/// The term of that name, when there is one.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    entry(name).map(|(term, _)| *term)
}

fn entry(name: &str) -> Option<&'static (&'static str, &'static str)> {
    TERMS.iter().find(|(term, _)| *term == name)
}

/// The term of whatever wrote a counter: a worker, the kernel, something else.
pub(crate) fn source_term(source: &str) -> &'static str {
    match source {
        "procfs" => "procfs",
        _ if source.starts_with("client-") => "worker",
        _ if source.starts_with("target") || source.starts_with("instance-") => "target",
        _ => "host",
    }
}

/// The terms that a page has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(Arc<Mutex<BTreeSet<&'static str>>>);

impl Used {
    /// `text` as a link to the line of `term`; the text alone when there is no such term.
    pub(crate) fn link(&self, term: &str, text: &str) -> String {
        let text = escape(text);
        let Some((term, meaning)) = entry(term) else { return text };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(term);
        let (id, meaning) = (id(term), escape(meaning));
        format!("<a class=\"term\" href=\"#{id}\" title=\"{meaning}\">{text}</a>")
    }

    /// Id, term and meaning of all that were used, by the alphabet.
    pub(crate) fn list(&self) -> Vec<(String, &'static str, &'static str)> {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries: Vec<_> = TERMS.iter().filter(|(term, _)| used.contains(term)).collect();
        entries.sort_by_key(|(term, _)| term.to_lowercase());
        entries.into_iter().map(|(term, meaning)| (id(term), *term, *meaning)).collect()
    }
}

fn id(term: &str) -> String {
    format!("term-{}", slug(term))
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Outcome;

    #[test]
    fn terms_are_unique_and_their_ids_too() {
        let ids: BTreeSet<_> = TERMS.iter().map(|(term, _)| id(term)).collect();
        assert_eq!(ids.len(), TERMS.len());
        assert!(TERMS.iter().all(|(_, meaning)| meaning.len() > 10 && !meaning.contains('\n')));
    }

    #[test]
    fn every_term_is_in_the_glossary_of_the_docs_which_is_in_order() {
        let docs = include_str!("../../../docs/GLOSSARY.md");
        let words = docs.lines().filter_map(|line| line.strip_prefix("| **")?.split_once("** |"));
        let words: Vec<&str> = words.map(|(word, _)| word).collect();
        for (term, _) in TERMS {
            assert!(words.contains(term), "'{term}' is not in docs/GLOSSARY.md");
        }
        for pair in words.windows(2) {
            let [one, other] = [pair[0].to_lowercase(), pair[1].to_lowercase()];
            assert!(one < other, "'{}' is to be behind '{}'", pair[0], pair[1]);
        }
    }

    #[test]
    fn every_outcome_has_a_meaning() {
        for outcome in Outcome::ALL {
            assert!(find(&outcome.name().replace('_', " ")).is_some(), "{outcome}");
        }
    }

    #[test]
    fn what_is_used_is_listed() {
        let used = Used::default();
        let link = used.link("p99", "read <p99>");
        assert!(link.contains("href=\"#term-p99\"") && link.contains(">read &lt;p99&gt;</a>"));
        assert_eq!(used.link("no such term", "a&b"), "a&amp;b");
        used.link("lag", "lag");
        let listed: Vec<_> = used.list().into_iter().map(|(_, term, _)| term).collect();
        assert_eq!(listed, ["lag", "p99"]);
    }
}
