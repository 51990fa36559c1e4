//! The values that `=` and IN give to the columns of a key, and their combinations.

use crate::catalog::{Column, Table};
use crate::cql::ast::{InTerms, Term};
use crate::error::{CqlError, invalid};
use crate::expr::{Context, Expr, Markers, Operand, Receiver, compile};
use crate::restrict::receiver;
use crate::types::elements;
use std::borrow::Cow;
use wire::cql::ColumnType;

/// Keys and ranges that a statement may expand to, by its INs.
const COMBINATIONS_MAX: usize = 10_000;

/// The values that a column is restricted to by `=` or IN.
#[derive(Debug)]
pub(crate) enum Choice {
    One(Expr),
    Several(Vec<Expr>),
    /// One marker for the whole list, of this element type.
    Bound(Expr),
}

/// Compiles the `=` or IN on a column.
pub(crate) fn choice(
    table: &Table,
    column: &Column,
    equal: Option<&Term>,
    within: Option<&InTerms>,
    markers: &mut Markers,
) -> Result<Choice, CqlError> {
    let to = receiver(table, column);
    match (equal, within) {
        (_, Some(InTerms::Marker(index))) => {
            let kind = ColumnType::List(Box::new(column.data_type.kind.clone()));
            let name = format!("in({})", column.name);
            let to = Receiver { name: &name, kind: &kind, ..to };
            Ok(Choice::Bound(compile(&Term::Marker(*index), to, markers)?))
        }
        (_, Some(InTerms::List(terms))) => {
            let values = terms.iter().map(|t| compile(t, to, markers)).collect::<Result<_, _>>()?;
            Ok(Choice::Several(values))
        }
        (Some(term), _) => Ok(Choice::One(compile(term, to, markers)?)),
        (None, None) => Err(invalid(format!("Missing restriction on column {}", column.name))),
    }
}

/// Calls `each` with every combination of the choices' values.
pub(crate) fn each_combination(
    choices: &[Choice],
    columns: &[Column],
    context: &Context<'_>,
    mut each: impl FnMut(&[Cow<'_, [u8]>]) -> Result<(), CqlError>,
) -> Result<(), CqlError> {
    let mut lists: Vec<Vec<Cow<'_, [u8]>>> = Vec::with_capacity(choices.len());
    let mut single = true;
    for (choice, column) in choices.iter().zip(columns) {
        let values = choice_values(choice, &column.name, context)?;
        single &= values.len() == 1;
        lists.push(values);
    }
    if single {
        let parts: Vec<_> = lists.into_iter().flatten().collect();
        return each(&parts);
    }
    let total = lists.iter().try_fold(1usize, |n, l| n.checked_mul(l.len()));
    if total.is_none_or(|n| n > COMBINATIONS_MAX) {
        return Err(invalid(format!(
            "the INs of this statement make more than {COMBINATIONS_MAX} keys; send several"
        )));
    }
    for n in 0..total.unwrap_or(0) {
        let mut rest = n;
        let mut parts = Vec::with_capacity(lists.len());
        for list in &lists {
            parts.push(Cow::Borrowed(list[rest % list.len()].as_ref()));
            rest /= list.len();
        }
        each(&parts)?;
    }
    Ok(())
}

fn choice_values<'a>(
    choice: &'a Choice,
    name: &str,
    context: &Context<'a>,
) -> Result<Vec<Cow<'a, [u8]>>, CqlError> {
    match choice {
        Choice::One(value) => Ok(vec![value.evaluate(context)?.required(name)?]),
        Choice::Several(values) => {
            values.iter().map(|v| v.evaluate(context)?.required(name)).collect()
        }
        Choice::Bound(list) => match list.evaluate(context)? {
            Operand::Bytes(Cow::Borrowed(bytes)) => {
                let values = elements(bytes).map_err(CqlError::Invalid)?;
                values.map(|v| v.map(Cow::Borrowed).map_err(CqlError::Invalid)).collect()
            }
            other => other.required(name).map(|_| Vec::new()),
        },
    }
}
