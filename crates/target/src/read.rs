//! A SELECT's execution: rows of the store -> the body of a ROWS result.
//!
//! Cells are encoded straight into the send buffer. When more pages may follow, rows go into a
//! scratch buffer first, because the paging state stands before them. A page ends at the page size
//! or at 8 MiB; an answer without paging is refused beyond 128 MiB.

use crate::catalog::{Role, Table};
use crate::error::{CqlError, invalid};
use crate::expr::{Context, Expr};
use crate::filter::Condition;
use crate::keys::{clustering_part, partition_part};
use crate::paging::PagingState;
use crate::plan::PreparedId;
use crate::restrict::Partitions;
use crate::select::{Output, SelectPlan};
use crate::store::{Content, KeyRange, Partition, Position, Row};
use std::borrow::Cow;
use std::ops::ControlFlow;
use wire::cql::response::{result_kind, rows_flags};
use wire::cql::{ColumnType, put};

const PAGE_BYTES_MAX: usize = 8 << 20;
const ANSWER_BYTES_MAX: usize = 128 << 20;

/// What the client said about the answer's form.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form<'a> {
    pub(crate) page_size: Option<u32>,
    pub(crate) paging_state: Option<&'a [u8]>,
    pub(crate) skip_metadata: bool,
    /// The client has other metadata: it gets these, and what stands for them.
    pub(crate) changed: Option<PreparedId>,
}

/// A row in its surroundings.
pub(crate) struct View<'a> {
    pub(crate) token: i64,
    /// Of the partition.
    pub(crate) key: &'a [u8],
    pub(crate) row: Option<&'a Row>,
    pub(crate) statics: Option<&'a Row>,
}

fn limit(value: &Option<Expr>, name: &str, context: &Context<'_>) -> Result<u32, CqlError> {
    let Some(expr) = value else { return Ok(u32::MAX) };
    match expr.evaluate(context)?.bytes().and_then(|b| b.try_into().ok()).map(i32::from_be_bytes) {
        Some(limit) if limit > 0 => Ok(limit as u32),
        Some(_) => Err(invalid(format!("{name} must be strictly positive"))),
        None => Ok(u32::MAX),
    }
}

impl SelectPlan {
    /// Appends the body of the answer; returns the number of rows. `scratch` is only lent.
    ///
    /// # Errors
    /// [`CqlError`] for values or a paging state that do not fit; nothing has been appended then.
    pub(crate) fn execute(
        &self,
        context: &Context<'_>,
        form: Form<'_>,
        now_s: u32,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, CqlError> {
        let partitions = self.restrictions.partitions(&self.table, context)?;
        let ranges = self.restrictions.ranges(&self.table, context)?;
        if let (true, Partitions::Keys(keys)) = (self.ordered, &partitions)
            && keys.len() > 1
        {
            return Err(invalid(
                "Cannot page queries with both ORDER BY and a IN restriction on the partition key; \
                 you must either remove the ORDER BY or the IN and sort client side",
            ));
        }
        let counts = matches!(self.outputs.first(), Some(Output::Count(_)));
        let direct = !counts && self.is_point;
        let start = out.len();
        let mut count_at = 0;
        if direct {
            self.put_metadata(form, None, out);
            count_at = out.len();
            put::i32(out, 0);
        }
        scratch.clear();
        let rows = if direct { &mut *out } else { &mut *scratch };
        let mut sink = Sink::new(self, context, form, counts, now_s, rows)?;
        sink.visit_all(&partitions, &ranges);
        let (count, too_large, state) = (sink.count, sink.too_large, sink.state());
        let totals = std::mem::take(&mut sink.totals);
        if too_large {
            out.truncate(start);
            return Err(invalid(format!(
                "the answer is larger than {ANSWER_BYTES_MAX} bytes: ask for it in pages"
            )));
        }
        if direct {
            out[count_at..count_at + 4].copy_from_slice(&(count as i32).to_be_bytes());
            return Ok(count);
        }
        self.put_metadata(form, state.as_ref(), out);
        if counts {
            put::i32(out, 1);
            totals.iter().for_each(|n| put::bytes(out, Some(&n.to_be_bytes())));
            return Ok(1);
        }
        put::i32(out, count as i32);
        out.extend_from_slice(scratch);
        Ok(count)
    }

    /// Appends the kind of the result and the metadata of its rows.
    pub(crate) fn put_metadata(
        &self,
        form: Form<'_>,
        state: Option<&PagingState>,
        out: &mut Vec<u8>,
    ) {
        let skip = form.skip_metadata && form.changed.is_none();
        let columns = if skip { rows_flags::NO_METADATA } else { rows_flags::GLOBAL_TABLE };
        let more = state.map_or(0, |_| rows_flags::HAS_MORE_PAGES);
        let changed = form.changed.map_or(0, |_| rows_flags::METADATA_CHANGED);
        put::i32(out, result_kind::ROWS);
        put::i32(out, columns | more | changed);
        put::i32(out, self.outputs.len() as i32);
        if let Some(state) = state {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            put::bytes(out, Some(&bytes));
        }
        if let Some(id) = &form.changed {
            put::short_bytes(out, id);
        }
        if !skip {
            out.extend_from_slice(&self.columns_encoded);
        }
    }
}

/// Where rows go, and when to stop.
struct Sink<'a> {
    plan: &'a SelectPlan,
    conditions: Vec<Condition<'a>>,
    now_s: u32,
    out: &'a mut Vec<u8>,
    /// Length of `out` at which the page is full or the answer too large.
    size_max: usize,
    /// Rows are counted instead of put out.
    totals: Vec<i64>,
    counting: bool,
    paged: bool,
    count: usize,
    page_left: u32,
    limit_left: u32,
    partition_limit: u32,
    partition_left: u32,
    resume: Option<PagingState>,
    /// The last row of a full page.
    last: Option<PagingState>,
    more: bool,
    too_large: bool,
}

const GO: ControlFlow<()> = ControlFlow::Continue(());
const STOP: ControlFlow<()> = ControlFlow::Break(());

impl<'a> Sink<'a> {
    fn new(
        plan: &'a SelectPlan,
        context: &Context<'_>,
        form: Form<'_>,
        counting: bool,
        now_s: u32,
        out: &'a mut Vec<u8>,
    ) -> Result<Self, CqlError> {
        let name = |column: usize| &plan.table.columns[column].name;
        let filters = &plan.restrictions.filters;
        let conditions = filters.iter().map(|f| f.evaluate(name(f.column), context));
        let mut limit_left = limit(&plan.limit, "LIMIT", context)?;
        let partition_limit = limit(&plan.partition_limit, "PER PARTITION LIMIT", context)?;
        let resume = form.paging_state.map(PagingState::decode).transpose()?;
        if let Some(state) = &resume {
            limit_left = state.limit_left;
        }
        let paged = form.page_size.is_some() && !counting;
        Ok(Self {
            conditions: conditions.collect::<Result<_, _>>()?,
            plan,
            now_s,
            size_max: out.len() + if paged { PAGE_BYTES_MAX } else { ANSWER_BYTES_MAX },
            out,
            totals: vec![0; if counting { plan.outputs.len() } else { 0 }],
            counting,
            paged,
            count: 0,
            page_left: form.page_size.filter(|_| paged).unwrap_or(u32::MAX),
            // LIMIT is about rows of the answer, and a count is one.
            limit_left: if counting { u32::MAX } else { limit_left },
            partition_limit,
            partition_left: partition_limit,
            resume,
            last: None,
            more: false,
            too_large: false,
        })
    }

    /// The state to send, when there is more.
    fn state(&mut self) -> Option<PagingState> {
        self.last.take().filter(|_| self.more)
    }

    fn visit_all(&mut self, partitions: &Partitions, ranges: &[KeyRange]) {
        let resume = self.resume.take();
        match partitions {
            Partitions::Keys(keys) => self.visit_keys(keys, ranges, resume.as_ref()),
            Partitions::Ring(None) => {}
            Partitions::Ring(Some((first, last))) => {
                self.visit_ring(*first, *last, ranges, resume.as_ref());
            }
        }
    }

    fn visit_keys(
        &mut self,
        keys: &[(i64, Vec<u8>)],
        ranges: &[KeyRange],
        resume: Option<&PagingState>,
    ) {
        let plan = self.plan;
        for (token, key) in keys {
            let from = match resume {
                None => None,
                Some(state) if (*token, key) == (state.token, &state.key) => match &state.row {
                    Some(row) => {
                        self.partition_left = state.partition_left;
                        Some(&row[..])
                    }
                    None => continue,
                },
                Some(state) if (*token, key) < (state.token, &state.key) => continue,
                Some(_) => None,
            };
            let flow = plan.table.store.read(*token, key, |partition| match partition {
                Some(partition) => self.visit(*token, key, partition, ranges, from),
                None => GO,
            });
            if flow.is_break() {
                return;
            }
        }
    }

    fn visit_ring(
        &mut self,
        first: i64,
        last: i64,
        ranges: &[KeyRange],
        resume: Option<&PagingState>,
    ) {
        let store = &self.plan.table.store;
        let mut from = Position { token: first, key: None };
        // A state from another statement may lie outside of the range.
        if let Some(state) = resume.filter(|s| (first..=last).contains(&s.token)) {
            if let Some(row) = &state.row {
                self.partition_left = state.partition_left;
                let flow = store.read(state.token, &state.key, |partition| match partition {
                    Some(p) => self.visit(state.token, &state.key, p, ranges, Some(row)),
                    None => GO,
                });
                if flow.is_break() {
                    return;
                }
            }
            from = Position { token: state.token, key: Some(&state.key) };
        }
        store.scan(from, last, |token, key, partition| {
            self.visit(token, key, partition, ranges, None)
        });
    }

    /// Puts out the rows of a partition, those behind `from` when it is given.
    fn visit(
        &mut self,
        token: i64,
        key: &[u8],
        partition: &Partition,
        ranges: &[KeyRange],
        from: Option<&[u8]>,
    ) -> ControlFlow<()> {
        if from.is_none() {
            self.partition_left = self.partition_limit;
        }
        let statics = partition.statics();
        let mut view = View { token, key, row: None, statics };
        let whole = KeyRange::default();
        let now_s = self.now_s;
        let any_row = || partition.rows(&whole).any(|(_, row)| row.is_live(now_s));
        let live_statics = statics.is_some_and(|row| row.is_live(now_s));
        if self.plan.distinct {
            let flow = if live_statics || any_row() { self.row(&view, &[]) } else { GO };
            if let Some(last) = &mut self.last {
                last.row = None;
            }
            return flow;
        }
        if from.is_none()
            && live_statics
            && self.plan.restrictions.is_whole_partition()
            && !any_row()
        {
            let flow = self.row(&view, &[]);
            if let Some(last) = &mut self.last {
                last.row = None;
            }
            return flow;
        }
        let reversed = self.plan.reversed;
        for n in 0..ranges.len() {
            let range = &ranges[if reversed { ranges.len() - 1 - n } else { n }];
            let mut rows = partition.rows(range);
            while let Some((row_key, row)) = if reversed { rows.next_back() } else { rows.next() } {
                let done = |from: &[u8]| if reversed { row_key >= from } else { row_key <= from };
                if from.is_some_and(done) || !row.is_live(now_s) {
                    continue;
                }
                view.row = Some(row);
                if self.partition_left == 0 {
                    return GO;
                }
                self.row(&view, row_key)?;
            }
        }
        GO
    }

    /// Puts out one row, unless a filter rejects it.
    fn row(&mut self, view: &View<'_>, row_key: &[u8]) -> ControlFlow<()> {
        let table = &self.plan.table;
        let accepts = |c: &Condition<'_>| {
            c.accepts(value(table, c.filter.column, view, self.now_s).as_deref())
        };
        if !self.conditions.iter().all(accepts) {
            return GO;
        }
        if self.limit_left == 0 {
            return STOP;
        }
        if self.page_left == 0 {
            self.more = true;
            return STOP;
        }
        self.limit_left -= 1;
        self.page_left -= 1;
        self.partition_left -= 1;
        if self.counting {
            for (total, output) in self.totals.iter_mut().zip(&self.plan.outputs) {
                *total += match output {
                    Output::Count(Some(column)) => {
                        i64::from(value(table, *column, view, self.now_s).is_some())
                    }
                    _ => 1,
                };
            }
            return GO;
        }
        self.count += 1;
        for output in &self.plan.outputs {
            put_output(table, *output, view, self.now_s, self.out);
        }
        if self.out.len() > self.size_max {
            match self.paged {
                true => self.page_left = 0,
                false => {
                    self.too_large = true;
                    return STOP;
                }
            }
        }
        if self.page_left == 0 {
            self.last = Some(PagingState {
                token: view.token,
                key: view.key.to_vec(),
                row: Some(row_key.to_vec()),
                limit_left: self.limit_left,
                partition_left: self.partition_left,
            });
        }
        GO
    }
}

fn source<'a>(view: &View<'a>, role: Role) -> Option<&'a Row> {
    if role == Role::Static { view.statics } else { view.row }
}

/// A column's value, serialized; None for null.
pub(crate) fn value<'a>(
    table: &Table,
    column: usize,
    view: &View<'a>,
    now_s: u32,
) -> Option<Cow<'a, [u8]>> {
    let column = &table.columns[column];
    match column.role {
        Role::Partition(n) => partition_part(view.key, n, table.partition_count).map(Cow::Borrowed),
        Role::Clustering { position, .. } => {
            clustering_part(view.row?.clustering(), position).map(Cow::Borrowed)
        }
        role => match source(view, role)?.content(column.id)? {
            Content::Atom(atom) => atom.live(now_s).map(Cow::Borrowed),
            Content::Counter { sum, .. } => sum.map(|s| Cow::Owned(s.to_be_bytes().to_vec())),
            Content::Elements(elements) => {
                let mut out = Vec::new();
                let mut count = 0i32;
                put::i32(&mut out, 0);
                for (path, value) in elements.live(now_s) {
                    count += 1;
                    match &column.data_type.kind {
                        ColumnType::Map(..) => {
                            put::bytes(&mut out, Some(path));
                            put::bytes(&mut out, Some(value));
                        }
                        ColumnType::Set(_) => put::bytes(&mut out, Some(path)),
                        _ => put::bytes(&mut out, Some(value)),
                    }
                }
                out[..4].copy_from_slice(&count.to_be_bytes());
                (count > 0).then_some(Cow::Owned(out))
            }
        },
    }
}

#[inline]
fn put_output(table: &Table, output: Output, view: &View<'_>, now_s: u32, out: &mut Vec<u8>) {
    let atom = |index: usize| {
        let column = &table.columns[index];
        match source(view, column.role)?.content(column.id)? {
            Content::Atom(atom) => atom.live(now_s).map(|_| (atom.timestamp_us, atom.expiry)),
            Content::Counter { sum, timestamp_us } => {
                sum.map(|_| (*timestamp_us, crate::store::Expiry::default()))
            }
            Content::Elements(_) => None,
        }
    };
    match output {
        Output::Column(index) => put::bytes(out, value(table, index, view, now_s).as_deref()),
        Output::Token => put::bytes(out, Some(&view.token.to_be_bytes())),
        Output::Writetime(index) => {
            put::bytes(out, atom(index).map(|(t, _)| t.to_be_bytes()).as_ref().map(|b| &b[..]));
        }
        Output::Ttl(index) => {
            let left = atom(index).filter(|(_, e)| e.at_s != 0);
            let left = left.map(|(_, e)| (e.at_s.saturating_sub(now_s) as i32).to_be_bytes());
            put::bytes(out, left.as_ref().map(|b| &b[..]));
        }
        Output::Count(_) => put::i32(out, -1),
    }
}
