//! A request of a session meets its fate.

use super::{Access, Fault, FaultPlan};
use crate::counters::{Counter, CounterBlocks};
use crate::error::CqlError;
use crate::execute::Answer;
use crate::plan::{Compiled, Plan};
use crate::session::{Mode, Session};
use crate::system_tables;
use std::sync::Arc;
use units::Nanos;
use wire::cql::request::Request;
use wire::cql::{Consistency, ErrorCode, Header};

/// What a statement does to tables of clients; None when it is about others, or the schema.
fn access(compiled: &Compiled) -> Option<Access> {
    match &compiled.plan {
        Plan::Select(plan) => {
            let is_system = system_tables::KEYSPACES.contains(&plan.table.keyspace.as_str());
            (!is_system).then_some(Access::Read)
        }
        Plan::Canned(_) => Some(Access::Read),
        Plan::Write(_) | Plan::Conditional(_) | Plan::Batch(_) => Some(Access::Write),
        Plan::Schema(_) => None,
    }
}

/// The counter of a fault.
pub(crate) fn counter(fault: Fault) -> Counter {
    match fault {
        Fault::Error => Counter::FaultError,
        Fault::Overloaded => Counter::FaultOverloaded,
        Fault::Unavailable => Counter::FaultUnavailable,
        Fault::ReadTimeout => Counter::FaultReadTimeout,
        Fault::WriteTimeout => Counter::FaultWriteTimeout,
        Fault::Drop => Counter::FaultDrop,
        Fault::Late(_) => Counter::FaultLate,
    }
}

/// The error that a fault is answered with.
fn code(fault: Fault) -> Option<ErrorCode> {
    match fault {
        Fault::Error => Some(ErrorCode::SERVER),
        Fault::Overloaded => Some(ErrorCode::OVERLOADED),
        Fault::Unavailable => Some(ErrorCode::UNAVAILABLE),
        Fault::ReadTimeout => Some(ErrorCode::READ_TIMEOUT),
        Fault::WriteTimeout => Some(ErrorCode::WRITE_TIMEOUT),
        Fault::Drop | Fault::Late(_) => None,
    }
}

impl Session {
    /// What a request does to tables of clients, and at which level. What cannot be told is None:
    /// carrying it out says why.
    fn exposed(&mut self, header: &Header, body: &[u8]) -> Option<(Access, Consistency)> {
        let (compiled, consistency) = match Request::decode(header, body).ok()? {
            Request::Batch(batch) => return Some((Access::Write, batch.consistency)),
            Request::Execute(prepared, parameters) => {
                (self.prepared(prepared.id).ok()?, parameters.consistency)
            }
            Request::Query(text, parameters) => {
                let keyspace = parameters.keyspace.or(self.keyspace.as_deref());
                (Arc::new(self.engine.compile(text, keyspace).ok()?), parameters.consistency)
            }
            _ => return None,
        };
        access(&compiled).map(|access| (access, consistency))
    }

    /// Answers what no fault keeps from being answered.
    fn answer_fateless(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        match self.seat {
            Some(_) => self.answer_sharded(header, body, out),
            None => self.answer_faultless(header, body, out),
        }
    }

    /// Answers a request as its fate has it. What of that concerns the connection is left for
    /// [`Self::take_fate`].
    #[cold]
    pub(crate) fn meet_fate(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let exposed = self.exposed(header, body);
        let (Some((access, consistency)), Mode::Faulty(fates)) = (exposed, &mut self.mode) else {
            return self.answer_fateless(header, body, out);
        };
        let fate = fates.next(access);
        let Some(fault) = fate.fault else { return self.answer_fateless(header, body, out) };
        self.counters.add(counter(fault), 1);
        let Some(code) = code(fault) else { return self.answer_fateless(header, body, out) };
        if fault == Fault::WriteTimeout && fate.is_done {
            // A write that is refused is refused, and does not time out.
            self.answer_fateless(header, body, out)?;
        }
        Err(CqlError::Injected { code, consistency })
    }
}

/// Fates of a server, in words: how many operations could meet a fault, and what they met.
#[must_use]
pub(crate) fn told(plan: &FaultPlan, counters: &CounterBlocks, now: Nanos) -> String {
    let met = counters.sums().into_iter().filter_map(|(name, count)| {
        let fault = name.strip_prefix("faults.")?;
        (count > 0).then(|| format!("{count} {fault}"))
    });
    let mut met: Vec<_> = met.collect();
    met.extend((plan.faults.stall.is_some()).then(|| format!("{} stalls", plan.stalls(now))));
    let met = if met.is_empty() { "none".to_owned() } else { met.join(", ") };
    format!("faults met by {} operations: {met}", plan.exposed())
}
