//! One file a verb.

pub(crate) mod calibrate;
pub(crate) mod cassandra;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod down;
pub(crate) mod man;
pub(crate) mod ps;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod up;
