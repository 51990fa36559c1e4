//! Values of a statement, compiled once against their types and evaluated per execution.
//!
//! A constant is serialized when the statement is prepared; a bound value is validated and borrowed
//! from the frame.

use crate::cql::ast::Term;
use crate::error::{CqlError, invalid};
use crate::literal;
use crate::types::{type_name, validate};
use crate::uuid::{self, Generator};
use std::borrow::Cow;
use wire::cql::response::Column;
use wire::cql::{ColumnType, Value, put};
use wire::murmur3;

/// A compiled value.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    Null,
    Constant(Box<[u8]>),
    Marker {
        index: usize,
        kind: ColumnType,
    },
    /// A list, set, map (keys and values in turn) or tuple with parts that are not constant.
    Composite {
        kind: ColumnType,
        parts: Vec<Expr>,
    },
    Function {
        function: Function,
        arguments: Vec<Expr>,
    },
}

/// Functions that stand for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Now,
    Uuid,
    CurrentTimestamp,
    CurrentDate,
    CurrentTime,
    ToTimestamp,
    ToDate,
    ToUnixTimestamp,
    MinTimeuuid,
    MaxTimeuuid,
    Token,
}

/// Name, function, type of the argument, type of the result.
const FUNCTIONS: [(&str, Function, Option<ColumnType>, ColumnType); 14] = [
    ("now", Function::Now, None, ColumnType::Timeuuid),
    ("currenttimeuuid", Function::Now, None, ColumnType::Timeuuid),
    ("uuid", Function::Uuid, None, ColumnType::Uuid),
    ("currenttimestamp", Function::CurrentTimestamp, None, ColumnType::Timestamp),
    ("currentdate", Function::CurrentDate, None, ColumnType::Date),
    ("currenttime", Function::CurrentTime, None, ColumnType::Time),
    ("totimestamp", Function::ToTimestamp, Some(ColumnType::Timeuuid), ColumnType::Timestamp),
    ("dateof", Function::ToTimestamp, Some(ColumnType::Timeuuid), ColumnType::Timestamp),
    ("todate", Function::ToDate, Some(ColumnType::Timeuuid), ColumnType::Date),
    ("tounixtimestamp", Function::ToUnixTimestamp, Some(ColumnType::Timeuuid), ColumnType::Bigint),
    ("unixtimestampof", Function::ToUnixTimestamp, Some(ColumnType::Timeuuid), ColumnType::Bigint),
    ("mintimeuuid", Function::MinTimeuuid, Some(ColumnType::Timestamp), ColumnType::Timeuuid),
    ("maxtimeuuid", Function::MaxTimeuuid, Some(ColumnType::Timestamp), ColumnType::Timeuuid),
    ("tounixtime", Function::ToUnixTimestamp, Some(ColumnType::Timeuuid), ColumnType::Bigint),
];

/// What a value is compiled for: its column's name and type, for metadata and messages.
#[derive(Clone, Copy)]
pub(crate) struct Receiver<'a> {
    pub(crate) keyspace: &'a str,
    pub(crate) table: &'a str,
    pub(crate) name: &'a str,
    pub(crate) kind: &'a ColumnType,
}

/// The markers of a statement as they become known.
pub(crate) struct Markers {
    names: Vec<Option<String>>,
    columns: Vec<Option<Column>>,
}

impl Markers {
    pub(crate) fn new(names: Vec<Option<String>>) -> Self {
        let columns = vec![None; names.len()];
        Self { names, columns }
    }

    /// Notes what marker `index` is bound to.
    pub(crate) fn bind(&mut self, index: usize, receiver: Receiver<'_>) {
        let name = self.names.get(index).cloned().flatten();
        if let Some(column) = self.columns.get_mut(index) {
            *column = Some(Column {
                keyspace: receiver.keyspace.to_owned(),
                table: receiver.table.to_owned(),
                name: name.unwrap_or_else(|| receiver.name.to_owned()),
                kind: receiver.kind.clone(),
            });
        }
    }

    /// The markers' specifications, in their order.
    pub(crate) fn finish(self) -> Result<Vec<Column>, CqlError> {
        let unknown = || invalid("a bind marker stands where its type cannot be told");
        self.columns.into_iter().map(|c| c.ok_or_else(unknown)).collect()
    }
}

/// Compiles a term for a receiver.
pub(crate) fn compile(
    term: &Term,
    to: Receiver<'_>,
    markers: &mut Markers,
) -> Result<Expr, CqlError> {
    let refuse = || {
        let (name, kind) = (to.name, type_name(to.kind));
        invalid(format!("Invalid {} for \"{name}\" of type {kind}", literal::describe(term)))
    };
    let part = |kind, term, markers: &mut Markers| {
        let expr = compile(term, Receiver { kind, ..to }, markers)?;
        match expr {
            Expr::Null => Err(invalid(format!(
                "Invalid {} for \"{}\": null is not supported inside collections",
                literal::describe(term),
                to.name
            ))),
            expr => Ok(expr),
        }
    };
    let parts = match (term, to.kind) {
        (Term::Null, _) => return Ok(Expr::Null),
        (Term::Marker(index), kind) => {
            markers.bind(*index, to);
            return Ok(Expr::Marker { index: *index, kind: kind.clone() });
        }
        (Term::Function(name, arguments), _) => return function(name, arguments, to, markers),
        (Term::List(terms), ColumnType::List(element))
        | (Term::Set(terms), ColumnType::Set(element)) => {
            terms.iter().map(|t| part(element, t, markers)).collect::<Result<Vec<_>, _>>()?
        }
        (Term::Set(terms), ColumnType::Map(..)) if terms.is_empty() => Vec::new(),
        (Term::Map(pairs), ColumnType::Map(key, value)) => {
            let mut parts = Vec::with_capacity(pairs.len() * 2);
            for (k, v) in pairs {
                parts.push(part(key, k, markers)?);
                parts.push(part(value, v, markers)?);
            }
            parts
        }
        (Term::Tuple(terms), ColumnType::Tuple(kinds)) if terms.len() <= kinds.len() => terms
            .iter()
            .zip(kinds)
            .map(|(t, kind)| compile(t, Receiver { kind, ..to }, markers))
            .collect::<Result<Vec<_>, _>>()?,
        // A tuple of one in an IN list or a condition is its value.
        (Term::Tuple(terms), _) if terms.len() == 1 => return compile(&terms[0], to, markers),
        (term, kind) => {
            let value = literal::scalar(term, kind).ok_or_else(refuse)?;
            return Ok(Expr::Constant(value.into()));
        }
    };
    let expr = Expr::Composite { kind: to.kind.clone(), parts };
    match expr.is_constant() {
        true => {
            let generator = Generator::new(0);
            let context = Context { values: &[], generator: &generator, now_us: 0 };
            match expr.evaluate(&context)? {
                Operand::Bytes(bytes) => Ok(Expr::Constant(bytes.into_owned().into())),
                _ => Ok(Expr::Null),
            }
        }
        false => Ok(expr),
    }
}

fn function(
    name: &str,
    arguments: &[Term],
    to: Receiver<'_>,
    markers: &mut Markers,
) -> Result<Expr, CqlError> {
    let Some((_, function, argument, result)) = FUNCTIONS.iter().find(|(n, ..)| *n == name) else {
        return Err(invalid(format!(
            "Unknown function '{name}'; the reference target has now, uuid, current*, to*, \
             min/maxTimeuuid and token"
        )));
    };
    if arguments.len() != usize::from(argument.is_some()) {
        return Err(invalid(format!("Invalid number of arguments in call to function {name}")));
    }
    let fits = result == to.kind
        || (*result == ColumnType::Timeuuid && *to.kind == ColumnType::Uuid)
        || (*result == ColumnType::Bigint && *to.kind == ColumnType::Timestamp);
    if !fits {
        return Err(invalid(format!(
            "Type error: cannot assign result of function {name} (type {}) to {} (type {})",
            type_name(result),
            to.name,
            type_name(to.kind)
        )));
    }
    let arguments = match (argument, arguments.first()) {
        (Some(kind), Some(term)) => vec![compile(term, Receiver { kind, ..to }, markers)?],
        _ => Vec::new(),
    };
    Ok(Expr::Function { function: *function, arguments })
}

/// What an evaluation may ask for.
pub(crate) struct Context<'a> {
    /// The bound values, in the order of the markers.
    pub(crate) values: &'a [Value<'a>],
    pub(crate) generator: &'a Generator,
    /// Microseconds since 1970 at the execution.
    pub(crate) now_us: i64,
}

/// An evaluated value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand<'a> {
    Null,
    Unset,
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Operand<'a> {
    /// The bytes, unless null or unset.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of a part of a key or a bound.
    pub(crate) fn required(self, name: &str) -> Result<Cow<'a, [u8]>, CqlError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Null => {
                Err(invalid(format!("Invalid null value in condition for column {name}")))
            }
            Self::Unset => Err(invalid(format!("Invalid unset value for column {name}"))),
        }
    }
}

impl Expr {
    fn is_constant(&self) -> bool {
        match self {
            Self::Null | Self::Constant(_) => true,
            Self::Composite { parts, .. } => parts.iter().all(Self::is_constant),
            Self::Marker { .. } | Self::Function { .. } => false,
        }
    }

    /// The value of this execution, validated.
    #[inline]
    pub(crate) fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Operand<'a>, CqlError> {
        match self {
            Self::Null => Ok(Operand::Null),
            Self::Constant(bytes) => Ok(Operand::Bytes(Cow::Borrowed(bytes))),
            Self::Marker { index, kind } => match context.values.get(*index) {
                Some(Value::Bytes(bytes)) => {
                    validate(kind, bytes).map_err(CqlError::Invalid)?;
                    Ok(Operand::Bytes(Cow::Borrowed(bytes)))
                }
                Some(Value::Null) => Ok(Operand::Null),
                Some(Value::Unset) => Ok(Operand::Unset),
                None => Err(invalid("Invalid amount of bind variables")),
            },
            Self::Composite { kind, parts } => composite(kind, parts, context),
            Self::Function { function, arguments } => call(*function, arguments, context),
        }
    }
}

fn composite<'a>(
    kind: &ColumnType,
    parts: &'a [Expr],
    context: &Context<'a>,
) -> Result<Operand<'a>, CqlError> {
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        values.push(part.evaluate(context)?);
    }
    let mut out = Vec::new();
    if let ColumnType::Tuple(_) = kind {
        values.iter().for_each(|v| put::bytes(&mut out, v.bytes()));
        return Ok(Operand::Bytes(Cow::Owned(out)));
    }
    let mut items = Vec::with_capacity(values.len());
    for value in &values {
        items.push(
            value.bytes().ok_or_else(|| invalid("null is not supported inside collections"))?,
        );
    }
    let size = if matches!(kind, ColumnType::Map(..)) { 2 } else { 1 };
    let mut entries: Vec<&[&[u8]]> = items.chunks(size).collect();
    if !matches!(kind, ColumnType::List(_)) {
        let element = match kind {
            ColumnType::Map(element, _) | ColumnType::Set(element) => element,
            other => other,
        };
        sort_unique(element, &mut entries);
    }
    put::i32(&mut out, entries.len() as i32);
    entries.iter().for_each(|e| e.iter().for_each(|item| put::bytes(&mut out, Some(item))));
    Ok(Operand::Bytes(Cow::Owned(out)))
}

/// Sets and maps are sent in the order of their elements, each once; of equal keys the last counts.
fn sort_unique(kind: &ColumnType, entries: &mut Vec<&[&[u8]]>) {
    let key = |entry: &&[&[u8]]| {
        let mut out = Vec::new();
        crate::order::append_any(kind, entry.first().unwrap_or(&&[][..]), &mut out);
        out
    };
    entries.reverse();
    entries.sort_by_cached_key(key);
    entries.dedup_by_key(|entry| key(entry));
}

fn call<'a>(
    function: Function,
    arguments: &'a [Expr],
    context: &Context<'a>,
) -> Result<Operand<'a>, CqlError> {
    let now_ms = context.now_us.div_euclid(1000);
    let bytes = |b: &[u8]| Ok(Operand::Bytes(Cow::Owned(b.to_vec())));
    let argument = match arguments.first() {
        None => None,
        Some(_) if function == Function::Token => None,
        Some(argument) => match argument.evaluate(context)? {
            Operand::Bytes(value) => Some(value),
            _ => return Ok(Operand::Null),
        },
    };
    let timeuuid_ms = || argument.as_deref().and_then(uuid::time_ms).unwrap_or(0);
    let argument_ms =
        || argument.as_deref().and_then(|a| a.try_into().ok()).map_or(0, i64::from_be_bytes);
    match function {
        Function::Now => bytes(&context.generator.timeuuid(context.now_us)),
        Function::Uuid => bytes(&context.generator.random()),
        Function::CurrentTimestamp => bytes(&now_ms.to_be_bytes()),
        Function::CurrentDate => bytes(&date(now_ms)),
        Function::CurrentTime => {
            let ns = context.now_us.rem_euclid(86_400_000_000) * 1000;
            bytes(&ns.to_be_bytes())
        }
        Function::ToTimestamp | Function::ToUnixTimestamp => bytes(&timeuuid_ms().to_be_bytes()),
        Function::ToDate => bytes(&date(timeuuid_ms())),
        Function::MinTimeuuid => bytes(&uuid::bound(argument_ms(), false)),
        Function::MaxTimeuuid => bytes(&uuid::bound(argument_ms(), true)),
        Function::Token => {
            let mut parts = Vec::with_capacity(arguments.len());
            for argument in arguments {
                parts.push(argument.evaluate(context)?.required("token")?);
            }
            let mut key = Vec::new();
            crate::keys::append_partition_key(&parts, &mut key)?;
            bytes(&murmur3::token(&key).to_be_bytes())
        }
    }
}

fn date(ms: i64) -> [u8; 4] {
    literal::date_bytes(ms.div_euclid(86_400_000)).unwrap_or([0x80, 0, 0, 0])
}
