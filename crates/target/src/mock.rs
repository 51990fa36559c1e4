//! Storage `null`: a mock. Writes are answered without being done, reads by one row that is always
//! the same.
//!
//! The row has the metadata of its SELECT; texts and blobs are 100 bytes of `x`, numbers 0, uuids
//! and other fixed-size types zero bytes, COUNT is 1, collections and all that has no fixed form
//! are null. Bound values are not looked at.

use crate::catalog::Table;
use crate::plan::key_indexes;
use crate::read::Form;
use crate::select::{Output, SelectPlan};
use std::sync::Arc;
use wire::cql::response::Metadata;
use wire::cql::{ColumnType, put};

/// Bytes of the texts and blobs of a canned row; YCSB's field length.
const TEXT_BYTES: usize = 100;

/// The answer to a SELECT on a mock's table.
#[derive(Debug)]
pub(crate) struct Canned {
    pub(crate) table: Arc<Table>,
    pub(crate) metadata: Metadata,
    pub(crate) key_indexes: Vec<u16>,
    full: Vec<u8>,
    bare: Vec<u8>,
}

impl Canned {
    /// Makes the answer to a plan.
    pub(crate) fn new(plan: &SelectPlan) -> Self {
        let body = |skip: bool| {
            let mut out = Vec::new();
            let form = Form { skip_metadata: skip, ..Form::default() };
            plan.put_metadata(form, None, &mut out);
            put::i32(&mut out, 1);
            for (output, column) in plan.outputs.iter().zip(&plan.metadata.columns) {
                let value = match output {
                    Output::Count(_) => Some(1i64.to_be_bytes().to_vec()),
                    _ => filler(&column.kind),
                };
                put::bytes(&mut out, value.as_deref());
            }
            out
        };
        Self {
            table: Arc::clone(&plan.table),
            metadata: plan.metadata.clone(),
            key_indexes: key_indexes(&plan.restrictions),
            full: body(false),
            bare: body(true),
        }
    }

    /// The body of the answer.
    #[inline]
    pub(crate) fn body(&self, skip_metadata: bool) -> &[u8] {
        if skip_metadata { &self.bare } else { &self.full }
    }
}

fn filler(kind: &ColumnType) -> Option<Vec<u8>> {
    let size = match kind {
        ColumnType::Varchar | ColumnType::Ascii | ColumnType::Blob => {
            return Some(vec![b'x'; TEXT_BYTES]);
        }
        ColumnType::Boolean | ColumnType::Tinyint | ColumnType::Varint => 1,
        ColumnType::Smallint => 2,
        ColumnType::Int | ColumnType::Float | ColumnType::Date | ColumnType::Inet => 4,
        ColumnType::Bigint
        | ColumnType::Counter
        | ColumnType::Double
        | ColumnType::Timestamp
        | ColumnType::Time => 8,
        ColumnType::Uuid => 16,
        _ => return None,
    };
    Some(vec![0; size])
}
