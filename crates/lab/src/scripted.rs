//! Commands of other tools: what they do before they measure, as they say it.
//!
//! A foreign command names its own schema, fills no table first, and has a warm-up of so many
//! operations of each kind. It writes to whatever table it names: wideload's marker, which guards
//! tables against its own workloads, is neither asked for nor left. Input: statements and counts.
//! Output: a target that is ready to be measured.

use crate::driven::failure_text;
use crate::error::LabError;
use crate::live::Live;
use crate::profiled;
use crate::requests;
use crate::trial::{Ready, Running, Trial};
use admin::{Admin, SchemaError};
use drive::{Amount, Arrivals, Control, Drive, Ended, Interval, Load, Observer, Unwitnessed};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Nanos;
use workload::Plan;

/// What a foreign command says beside its plan and its load.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    /// Statements of a file of the user's, which come first; what of them is refused is told.
    pub ddl: Vec<String>,
    /// Statements that create what is missing, in order.
    pub create: Vec<String>,
    /// What the plan's tables say makes them is made where it is missing.
    pub creates_tables: bool,
    /// Tables that are emptied behind the warm-up, their names in full.
    pub truncate: Vec<String>,
    /// Its warm-up.
    pub rehearsals: Vec<Rehearsal>,
    /// The first operation that fails for good ends the run.
    pub first_failure_ends: bool,
    /// A read that finds no row has not failed.
    pub missing_is_fine: bool,
}

/// Operations of one kind that are not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rehearsal {
    /// Index into the plan's operations of the run.
    pub operation: usize,
    /// So many.
    pub ops: u64,
    /// By so many clients.
    pub threads: usize,
}

/// What happens before the first operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prelude<'a> {
    /// Keyspace and tables are there, on all hosts.
    Created,
    /// The keyspace and table of a profile are there, on all hosts.
    Defined,
    /// What else a profile makes is there, too.
    Extended,
    /// A part of the warm-up begins.
    Rehearsing(Rehearsal),
    /// The table is empty.
    Truncated {
        /// Its name in full.
        table: &'a str,
    },
    /// It is measured from now on.
    Running,
}

/// Keeps the draws of a warm-up apart from those of the run.
const REHEARSAL_SALT: u64 = 0x57_41_52_4d_55_50;

impl Scripted {
    /// Creates what the command creates.
    pub(crate) fn create(
        &self,
        trial: &Trial,
        admin: &Admin,
        live: &mut dyn Live,
    ) -> Result<(), LabError> {
        for statement in &self.ddl {
            match admin.schema_change(statement) {
                Err(error @ (SchemaError::Refused { .. } | SchemaError::Exists { .. })) => {
                    live.notice(&format!("--ddl: {error}"));
                }
                other => other?,
            }
        }
        for statement in &self.create {
            admin.schema_change(statement)?;
        }
        if let Some(tables) = trial.plan.tables.as_ref().filter(|_| self.creates_tables) {
            profiled::create(tables, admin, live)?;
        }
        if !self.create.is_empty() {
            live.stage(&format!("created {}", trial.table.quoted()));
            live.prelude(Prelude::Created);
        }
        Ok(())
    }
}

impl Running<'_> {
    /// The warm-up of a foreign command, and the emptying of its table.
    pub(crate) fn rehearse(
        &mut self,
        ready: &Ready,
        halt: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let Some(scripted) = self.trial.scripted.clone() else { return Ok(()) };
        for rehearsal in &scripted.rehearsals {
            self.live.prelude(Prelude::Rehearsing(*rehearsal));
            self.rehearse_one(*rehearsal, ready, halt)?;
        }
        for table in &scripted.truncate {
            self.truncate(ready, table, halt)?;
            self.live.prelude(Prelude::Truncated { table });
        }
        self.live.prelude(Prelude::Running);
        Ok(())
    }

    fn rehearse_one(
        &mut self,
        rehearsal: Rehearsal,
        ready: &Ready,
        halt: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let Rehearsal { operation, ops, threads } = rehearsal;
        let trial = self.trial;
        let Some(operation) = trial.plan.run.get(operation).cloned() else { return Ok(()) };
        let name = operation.name.clone();
        let plan = Plan { run: vec![operation], runs: None, ..Plan::clone(&trial.plan) };
        let encoder = requests::of_run(trial, Arc::new(plan), ready.ids())?;
        let arrivals = Arrivals::Closed { threads, throttle: None };
        let workers = drive::workers(trial.client_cpus.len(), &arrivals, 1);
        let of_run = self.drive_of(ready);
        let drive = Drive {
            encoder,
            load: Load { arrivals, amount: Amount::Ops(ops), limit: None, warm: Nanos::ZERO },
            connections: drive::connections(trial.connections, workers),
            seed: of_run.seed ^ REHEARSAL_SALT,
            ..of_run
        };
        let driven = drive::run(&drive, vec![Unwitnessed; workers], &mut Unseen, halt)?.0;
        match driven.ended {
            Ended::Stopped => Err(LabError::Interrupted),
            Ended::Completed => Ok(()),
            Ended::GaveUp | Ended::Failed => {
                let said = failure_text(&trial.plan, &driven);
                Err(LabError::Rehearsal { name: name.into_owned(), said })
            }
        }
    }

    fn truncate(
        &mut self,
        ready: &Ready,
        table: &str,
        halt: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let Some(&host) = ready.addresses().first() else { return Ok(()) };
        // Every replica takes part; a minute is what Cassandra gives it.
        let timeout = self.trial.timeout.max(Nanos::from_secs(60));
        let access = &self.trial.access;
        let mut control = Control::connect_unless(host, timeout, access, halt)?;
        control.query(&format!("TRUNCATE {table}"))?;
        Ok(())
    }
}

/// Keeps nothing.
struct Unseen;

impl Observer for Unseen {
    fn interval(&mut self, _: Interval<'_>) -> Result<(), io::Error> {
        Ok(())
    }
}
