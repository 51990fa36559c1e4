//! QUERY, EXECUTE and BATCH: values are matched with markers, the plan is carried out, the answer
//! encoded.

use crate::counters::Counter;
use crate::cql::ast::{BatchKind, Statement};
use crate::ddl;
use crate::describe;
use crate::error::{CqlError, invalid};
use crate::expr::Context;
use crate::plan::{Compiled, Plan, check_batch};
use crate::read::Form;
use crate::select::SelectPlan;
use crate::session::Session;
use crate::system_tables;
use crate::write::{WriteKind, WritePlan, seconds};
use std::sync::Arc;
use wire::cql::request::query_flags;
use wire::cql::request::{Batch, BatchKind as WireBatchKind, BatchStatement, QueryParameters};
use wire::cql::response::{Column, result_kind};
use wire::cql::{Consistency, Cursor, Opcode, Value, put};

/// The kind of an answer whose body has been appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) opcode: Opcode,
    pub(crate) has_warnings: bool,
}

impl Answer {
    pub(crate) fn of(opcode: Opcode) -> Self {
        Self { opcode, has_warnings: false }
    }
}

fn void(out: &mut Vec<u8>) -> Answer {
    put::i32(out, result_kind::VOID);
    Answer::of(Opcode::Result)
}

/// Replicas that a level needs beyond the one that there is.
fn check_consistency(consistency: Consistency, is_write: bool) -> Result<(), CqlError> {
    match consistency {
        Consistency::Two => Err(CqlError::Unavailable { consistency, required: 2 }),
        Consistency::Three => Err(CqlError::Unavailable { consistency, required: 3 }),
        Consistency::Any if !is_write => {
            Err(invalid("ANY ConsistencyLevel is only supported for writes"))
        }
        Consistency::Serial | Consistency::LocalSerial if is_write => {
            Err(invalid("You must use conditional updates for serializable writes"))
        }
        _ => Ok(()),
    }
}

/// Values in the order of the markers.
fn match_values<'a>(
    given: Vec<(Option<&'a str>, Value<'a>)>,
    markers: &[Column],
) -> Result<Vec<Value<'a>>, CqlError> {
    if given.first().is_some_and(|(name, _)| name.is_some()) {
        let find = |marker: &Column| {
            let value = given.iter().find(|(name, _)| *name == Some(marker.name.as_str()));
            value.map(|(_, value)| *value).ok_or_else(|| {
                invalid(format!("no value is given for the bind marker '{}'", marker.name))
            })
        };
        return markers.iter().map(find).collect();
    }
    check_count(given.len(), markers)?;
    Ok(given.into_iter().map(|(_, value)| value).collect())
}

fn check_count(given: usize, markers: &[Column]) -> Result<(), CqlError> {
    match given == markers.len() {
        true => Ok(()),
        false => Err(invalid(format!(
            "Invalid amount of bind variables: {} in the statement, {given} given",
            markers.len()
        ))),
    }
}

impl Session {
    pub(crate) fn query(
        &mut self,
        text: &str,
        parameters: QueryParameters<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let keyspace = parameters.keyspace.or(self.keyspace.as_deref());
        let compiled = self.engine.compile(text, keyspace)?;
        self.execute(&compiled, None, parameters, out)
    }

    /// Executes a compiled statement, for a client that has the metadata that `metadata_id` stands
    /// for.
    pub(crate) fn execute(
        &mut self,
        compiled: &Compiled,
        metadata_id: Option<&[u8]>,
        parameters: QueryParameters<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let form = Form {
            page_size: parameters.page_size.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0),
            paging_state: parameters.paging_state,
            skip_metadata: parameters.skip_metadata,
            changed: metadata_id
                .filter(|id| *id != compiled.metadata_id)
                .map(|_| compiled.metadata_id),
        };
        let consistency = parameters.consistency;
        let values = match_values(parameters.values, &compiled.markers)?;
        let (timestamp_us, now_us) = self.times(parameters.timestamp_us, parameters.now_s);
        match &compiled.plan {
            Plan::Write(plan) => {
                check_consistency(consistency, true)?;
                self.write(plan, &values, timestamp_us, now_us)?;
                Ok(void(out))
            }
            Plan::Select(plan) => {
                check_consistency(consistency, false)?;
                self.select(plan, &values, form, now_us, out)
            }
            Plan::Canned(canned) => {
                check_consistency(consistency, false)?;
                self.count_canned_select();
                out.extend_from_slice(canned.body(form.skip_metadata));
                Ok(Answer::of(Opcode::Result))
            }
            Plan::Batch(writes) => {
                check_consistency(consistency, true)?;
                let pairs: Vec<_> = writes.iter().map(|w| (w, &values[..])).collect();
                self.write_all(&pairs, timestamp_us, now_us)?;
                Ok(void(out))
            }
            Plan::Schema(Statement::Use(name)) => {
                self.engine.schema().keyspace(name)?;
                self.keyspace = Some(name.clone());
                put::i32(out, result_kind::SET_KEYSPACE);
                put::string(out, name);
                Ok(Answer::of(Opcode::Result))
            }
            Plan::Schema(Statement::Describe(what)) => {
                let keyspace = self.keyspace.as_deref();
                describe::answer(&self.engine.schema(), what, keyspace, out)?;
                Ok(Answer::of(Opcode::Result))
            }
            Plan::Schema(statement) => self.change_schema(statement, out),
        }
    }

    /// The timestamp of written cells, where it is not the next one, and the time by which cells
    /// expire. A client that sets the latter does not set the former.
    fn times(&self, timestamp_us: Option<i64>, now_s: Option<i32>) -> (Option<i64>, i64) {
        let now_us = self.engine.now_us();
        match now_s {
            None => (timestamp_us, now_us),
            Some(now_s) => {
                let next = || self.engine.next_timestamp_us(now_us);
                (Some(timestamp_us.unwrap_or_else(next)), i64::from(now_s) * 1_000_000)
            }
        }
    }

    fn count_canned_select(&self) {
        self.counters.add(Counter::Select, 1);
        self.counters.add(Counter::Rows, 1);
    }

    fn select(
        &mut self,
        plan: &SelectPlan,
        values: &[Value<'_>],
        form: Form<'_>,
        now_us: i64,
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        if plan.table.keyspace == system_tables::OWN {
            system_tables::put_counters(&self.engine)?;
        }
        let context = Context { values, generator: &self.engine.generator, now_us };
        let rows = plan.execute(&context, form, seconds(now_us), &mut self.scratch, out)?;
        self.counters.add(Counter::Select, 1);
        let is_system = system_tables::KEYSPACES.contains(&plan.table.keyspace.as_str());
        self.counters.add(Counter::SystemSelect, u64::from(is_system));
        self.counters.add(Counter::Rows, rows as u64);
        Ok(Answer::of(Opcode::Result))
    }

    fn count_write(&self, plan: &WritePlan) {
        let counter = match plan.kind {
            WriteKind::Insert => Counter::Insert,
            WriteKind::Update => Counter::Update,
            WriteKind::Delete => Counter::Delete,
        };
        self.counters.add(counter, 1);
    }

    fn check_write(&self, plan: &WritePlan) -> Result<(), CqlError> {
        ddl::check_writable(&plan.table.keyspace)?;
        self.engine.check_memory(plan.kind == WriteKind::Delete)
    }

    fn write(
        &self,
        plan: &WritePlan,
        values: &[Value<'_>],
        timestamp_us: Option<i64>,
        now_us: i64,
    ) -> Result<(), CqlError> {
        self.check_write(plan)?;
        if !plan.table.is_mock {
            let context = Context { values, generator: &self.engine.generator, now_us };
            let timestamp_us =
                timestamp_us.unwrap_or_else(|| self.engine.next_timestamp_us(now_us));
            plan.bind(&context, timestamp_us)?.apply(&self.engine.list_sequence);
        }
        self.count_write(plan);
        Ok(())
    }

    /// All or nothing, as far as refusals go.
    fn write_all(
        &self,
        writes: &[(&WritePlan, &[Value<'_>])],
        timestamp_us: Option<i64>,
        now_us: i64,
    ) -> Result<(), CqlError> {
        let timestamp_us = timestamp_us.unwrap_or_else(|| self.engine.next_timestamp_us(now_us));
        let generator = &self.engine.generator;
        let mut bound = Vec::with_capacity(writes.len());
        for (plan, values) in writes {
            self.check_write(plan)?;
            if !plan.table.is_mock {
                let context = Context { values, generator, now_us };
                bound.push(plan.bind(&context, timestamp_us)?);
            }
        }
        bound.iter().for_each(|write| write.apply(&self.engine.list_sequence));
        writes.iter().for_each(|(plan, _)| self.count_write(plan));
        self.counters.add(Counter::Batches, 1);
        Ok(())
    }

    pub(crate) fn batch(
        &mut self,
        batch: &Batch<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        check_consistency(batch.consistency, true)?;
        let mut compiled: Vec<Arc<Compiled>> = Vec::with_capacity(batch.statements.len());
        for (statement, _) in &batch.statements {
            compiled.push(match statement {
                BatchStatement::Id(id) => self.prepared(id)?,
                BatchStatement::Text(text) => {
                    let keyspace = batch.keyspace.or(self.keyspace.as_deref());
                    Arc::new(self.engine.compile(text, keyspace)?)
                }
            });
        }
        let mut writes = Vec::with_capacity(compiled.len());
        for (compiled, (_, values)) in compiled.iter().zip(&batch.statements) {
            let Plan::Write(plan) = &compiled.plan else {
                return Err(invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are \
                     allowed.",
                ));
            };
            check_count(values.len(), &compiled.markers)?;
            writes.push((&**plan, &values[..]));
        }
        let kind = match batch.kind {
            WireBatchKind::Logged => BatchKind::Logged,
            WireBatchKind::Unlogged => BatchKind::Unlogged,
            WireBatchKind::Counter => BatchKind::Counter,
        };
        check_batch(kind, writes.iter().map(|(plan, _)| *plan))?;
        let (timestamp_us, now_us) = self.times(batch.timestamp_us, batch.now_s);
        self.write_all(&writes, timestamp_us, now_us)?;
        Ok(void(out))
    }

    /// EXECUTE on a mock's table: nothing behind the flags is looked at. None when the statement is
    /// on none.
    // Without it the call costs 30 of a mock's 480 instructions per operation.
    #[inline(always)]
    pub(crate) fn execute_mock(
        &mut self,
        v5: bool,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Answer>, CqlError> {
        let mut cursor = Cursor::new(body);
        let compiled = self.prepared(cursor.short_bytes("prepared id")?)?;
        if v5 {
            cursor.short_bytes("metadata id")?;
        }
        match &compiled.plan {
            Plan::Write(plan) if plan.table.is_mock => {
                self.count_write(plan);
                Ok(Some(void(out)))
            }
            Plan::Canned(canned) => {
                cursor.consistency()?;
                let flags = match v5 {
                    true => cursor.i32("query flags")? as u32,
                    false => u32::from(cursor.u8("query flags")?),
                };
                let skip = flags & query_flags::SKIP_METADATA != 0;
                self.count_canned_select();
                out.extend_from_slice(canned.body(skip));
                Ok(Some(Answer::of(Opcode::Result)))
            }
            _ => Ok(None),
        }
    }

    fn change_schema(
        &mut self,
        statement: &Statement,
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let outcome = ddl::change(&self.engine, statement, self.keyspace.as_deref())?;
        self.counters.add(Counter::Schema, 1);
        let has_warnings = !outcome.warnings.is_empty();
        if has_warnings {
            let warnings: Vec<_> = outcome.warnings.iter().map(String::as_str).collect();
            put::string_list(out, &warnings);
        }
        match &outcome.change {
            None => put::i32(out, result_kind::VOID),
            Some(change) => {
                put::i32(out, result_kind::SCHEMA_CHANGE);
                change.encode(out);
            }
        }
        Ok(Answer { opcode: Opcode::Result, has_warnings })
    }
}
