//! One file a verb, and what several take.

pub(crate) mod asbench;
pub(crate) mod calibrate;
pub(crate) mod cassandra;
pub(crate) mod cassandra_stress;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod down;
pub(crate) mod explain;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod ps;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod serve;
pub(crate) mod times;
pub(crate) mod tls;
pub(crate) mod topo;
pub(crate) mod up;
pub(crate) mod ycsb;
