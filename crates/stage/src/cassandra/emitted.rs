//! The parts of a Cassandra's configuration that are also written for others to start.
//!
//! Input and output: see the modules that these come from.

pub(crate) use super::flush::flag as jmx_flag;
pub(crate) use super::jvm::{Files, MAIN, flags, leave_the_collector_to, logback, usual_flags};
pub(crate) use super::retired::{flags as flags_of_jvm, keys, unknown_keys};
pub(crate) use super::version::Version;
pub(crate) use super::yaml::{Member, Setting, text_of as yaml};
