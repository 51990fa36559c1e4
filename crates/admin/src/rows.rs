//! Rows of an answer, as the few types that the control plane asks for.

use scylla::cluster::metadata::{ColumnType, NativeType};
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use std::sync::Arc;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Null,
    /// Of type text or ascii.
    Text(String),
    /// Of an integer type, or a counter.
    Integer(i64),
    /// Of type boolean.
    Boolean(bool),
    /// Of any other type, as it came.
    Bytes(Vec<u8>),
}

impl Cell {
    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The number, if it is an integer.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        if let Self::Boolean(value) = self { Some(*value) } else { None }
    }

    /// What does not fit its type stays bytes.
    fn of(kind: &ColumnType<'_>, bytes: Option<&[u8]>) -> Self {
        let Some(bytes) = bytes else { return Self::Null };
        let as_it_came = || Self::Bytes(bytes.to_vec());
        let ColumnType::Native(kind) = kind else { return as_it_came() };
        match kind {
            NativeType::Text | NativeType::Ascii => {
                std::str::from_utf8(bytes).map_or_else(|_| as_it_came(), |t| Self::Text(t.into()))
            }
            NativeType::TinyInt
            | NativeType::SmallInt
            | NativeType::Int
            | NativeType::BigInt
            | NativeType::Counter => match bytes {
                [first, ..] if bytes.len() <= 8 => {
                    let sign = i64::from(*first as i8) >> 7;
                    Self::Integer(bytes.iter().fold(sign, |n, b| n << 8 | i64::from(*b)))
                }
                _ => as_it_came(),
            },
            NativeType::Boolean if bytes.len() == 1 => Self::Boolean(bytes[0] != 0),
            _ => as_it_came(),
        }
    }
}

/// One row: cells by the names of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    names: Arc<[String]>,
    cells: Vec<Cell>,
}

impl Row {
    /// The cell of a column; null when the answer has no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> &Cell {
        let at = self.names.iter().position(|name| name == column);
        at.and_then(|at| self.cells.get(at)).unwrap_or(&Cell::Null)
    }

    /// All cells, in the order of the answer.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// The rows of an answer; none for one that has no rows. An error is the reason why its bytes are
/// none.
pub(crate) fn rows_of(result: QueryResult) -> Result<Vec<Row>, String> {
    if !result.is_rows() {
        return Ok(Vec::new());
    }
    decode(&result.into_rows_result().map_err(|e| e.to_string())?)
}

fn decode(result: &QueryRowsResult) -> Result<Vec<Row>, String> {
    let names: Arc<[String]> =
        result.column_specs().iter().map(|column| column.name().to_owned()).collect();
    let rows = result.rows::<ColumnIterator>().map_err(|e| e.to_string())?;
    rows.map(|row| {
        let cell = |column: Result<_, _>| {
            column.map(|c: scylla::deserialize::row::RawColumn<'_, '_>| {
                Cell::of(c.spec.typ(), c.slice.map(|slice| slice.as_slice()))
            })
        };
        let cells = row.and_then(|row| row.map(cell).collect::<Result<_, _>>());
        Ok(Row { names: names.clone(), cells: cells.map_err(|e| e.to_string())? })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_typed_and_what_does_not_fit_stays_bytes() {
        let cell = |kind, bytes: &[u8]| Cell::of(&ColumnType::Native(kind), Some(bytes));
        assert_eq!(cell(NativeType::Text, b"abc"), Cell::Text("abc".into()));
        assert_eq!(cell(NativeType::Text, b"\xff"), Cell::Bytes(vec![0xff]));
        assert_eq!(cell(NativeType::Int, &(-7i32).to_be_bytes()), Cell::Integer(-7));
        assert_eq!(cell(NativeType::BigInt, &i64::MIN.to_be_bytes()), Cell::Integer(i64::MIN));
        assert_eq!(cell(NativeType::TinyInt, &[0x80]), Cell::Integer(-128));
        assert_eq!(cell(NativeType::BigInt, &[1; 9]), Cell::Bytes(vec![1; 9]));
        assert_eq!(cell(NativeType::Int, b""), Cell::Bytes(Vec::new()));
        assert_eq!(cell(NativeType::Boolean, &[1]), Cell::Boolean(true));
        assert_eq!(cell(NativeType::Boolean, b""), Cell::Bytes(Vec::new()));
        assert_eq!(cell(NativeType::Uuid, &[3; 16]), Cell::Bytes(vec![3; 16]));
        assert_eq!(Cell::of(&ColumnType::Native(NativeType::Int), None), Cell::Null);
    }
}
