//! CQL's types: from their names to the wire's, back to the schema tables' text, and the validation
//! of values.
//!
//! Values are held and sent in their serialized form (native protocol v4, section 6), so validation
//! is all that a bound value needs. The texts of refusals follow Cassandra 3.11's
//! `org.apache.cassandra.serializers`.

use crate::cql::ast::TypeName;
use crate::error::{CqlError, invalid};
use wire::cql::{ColumnType, Cursor};

/// A column's type. `frozen` matters for collections only: a collection that is not frozen is
/// stored by element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataType {
    /// As in metadata.
    pub(crate) kind: ColumnType,
    /// Stored as one value; always so inside another type.
    pub(crate) frozen: bool,
}

/// Names of the types without parameters.
const NAMES: [(&str, ColumnType); 21] = [
    ("ascii", ColumnType::Ascii),
    ("bigint", ColumnType::Bigint),
    ("blob", ColumnType::Blob),
    ("boolean", ColumnType::Boolean),
    ("counter", ColumnType::Counter),
    ("decimal", ColumnType::Decimal),
    ("double", ColumnType::Double),
    ("float", ColumnType::Float),
    ("int", ColumnType::Int),
    ("timestamp", ColumnType::Timestamp),
    ("uuid", ColumnType::Uuid),
    ("text", ColumnType::Varchar),
    ("varchar", ColumnType::Varchar),
    ("varint", ColumnType::Varint),
    ("timeuuid", ColumnType::Timeuuid),
    ("inet", ColumnType::Inet),
    ("date", ColumnType::Date),
    ("time", ColumnType::Time),
    ("smallint", ColumnType::Smallint),
    ("tinyint", ColumnType::Tinyint),
    ("duration", ColumnType::Duration),
];

impl DataType {
    /// The type that a declaration names.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] for unknown names and combinations that CQL forbids.
    pub(crate) fn resolve(name: &TypeName) -> Result<Self, CqlError> {
        match name {
            TypeName::Frozen(inner) => {
                let inner = Self::resolve(inner)?;
                match inner.is_collection() || matches!(inner.kind, ColumnType::Tuple(_)) {
                    true => Ok(Self { frozen: true, ..inner }),
                    false => Err(invalid(
                        "frozen<> is only allowed on collections, tuples, and user-defined types",
                    )),
                }
            }
            _ => {
                let kind = resolve(name)?;
                let frozen = matches!(kind, ColumnType::Tuple(_));
                Ok(Self { kind, frozen })
            }
        }
    }

    /// List, set or map.
    pub(crate) fn is_collection(&self) -> bool {
        matches!(self.kind, ColumnType::List(_) | ColumnType::Set(_) | ColumnType::Map(..))
    }

    /// Stored by element.
    pub(crate) fn is_multicell(&self) -> bool {
        self.is_collection() && !self.frozen
    }

    /// As the schema tables print it.
    pub(crate) fn name(&self) -> String {
        match self.frozen && self.is_collection() {
            true => format!("frozen<{}>", type_name(&self.kind)),
            false if matches!(self.kind, ColumnType::Tuple(_)) => nested_name(&self.kind),
            false => type_name(&self.kind),
        }
    }
}

fn resolve(name: &TypeName) -> Result<ColumnType, CqlError> {
    Ok(match name {
        TypeName::Plain(name) => match NAMES.iter().find(|(n, _)| n == name) {
            Some((_, kind)) => kind.clone(),
            None => {
                return Err(invalid(format!(
                    "Unknown type {name}; the reference target has CQL's native types, \
                     no user-defined ones"
                )));
            }
        },
        TypeName::List(element) => ColumnType::List(Box::new(nested(element)?)),
        TypeName::Set(element) => ColumnType::Set(Box::new(ordered(element, "sets")?)),
        TypeName::Map(key, value) => {
            ColumnType::Map(Box::new(ordered(key, "map keys")?), Box::new(nested(value)?))
        }
        TypeName::Tuple(elements) => {
            ColumnType::Tuple(elements.iter().map(nested).collect::<Result<_, _>>()?)
        }
        TypeName::Frozen(inner) => DataType::resolve(&TypeName::Frozen(inner.clone()))?.kind,
    })
}

/// A type inside another.
fn nested(name: &TypeName) -> Result<ColumnType, CqlError> {
    let inner = DataType::resolve(name)?;
    if inner.is_multicell() {
        let name = type_name(&inner.kind);
        return Err(invalid(format!(
            "Non-frozen collections are not allowed inside collections: {name}"
        )));
    }
    match inner.kind {
        ColumnType::Counter => Err(invalid("Counters are not allowed inside collections")),
        kind => Ok(kind),
    }
}

fn ordered(name: &TypeName, whose: &str) -> Result<ColumnType, CqlError> {
    match nested(name)? {
        ColumnType::Duration => Err(invalid(format!("Durations are not allowed as {whose}"))),
        kind => Ok(kind),
    }
}

fn nested_name(kind: &ColumnType) -> String {
    match kind {
        ColumnType::List(_) | ColumnType::Set(_) | ColumnType::Map(..) | ColumnType::Tuple(_) => {
            format!("frozen<{}>", type_name(kind))
        }
        _ => type_name(kind),
    }
}

/// CQL's name of a type, without an outer `frozen`.
pub(crate) fn type_name(kind: &ColumnType) -> String {
    match kind {
        ColumnType::List(element) => format!("list<{}>", nested_name(element)),
        ColumnType::Set(element) => format!("set<{}>", nested_name(element)),
        ColumnType::Map(key, value) => {
            format!("map<{}, {}>", nested_name(key), nested_name(value))
        }
        ColumnType::Tuple(elements) => {
            let inner: Vec<_> = elements.iter().map(nested_name).collect();
            format!("tuple<{}>", inner.join(", "))
        }
        simple => NAMES.iter().find(|(_, k)| k == simple).map_or("?", |(n, _)| n).to_owned(),
    }
}

/// Whether `bytes` are a value of the type.
///
/// # Errors
/// The reason, in Cassandra's words where it has some.
#[inline]
pub(crate) fn validate(kind: &ColumnType, bytes: &[u8]) -> Result<(), String> {
    let size = bytes.len();
    let fixed = |want: usize, name: &str| match size == want || size == 0 {
        true => Ok(()),
        false => Err(format!("Expected {want} or 0 byte {name} ({size})")),
    };
    match kind {
        ColumnType::Blob | ColumnType::Custom(_) | ColumnType::Udt { .. } => Ok(()),
        ColumnType::Varchar => match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(_) => Err("String didn't validate.".to_owned()),
        },
        ColumnType::Ascii => match bytes.is_ascii() {
            true => Ok(()),
            false => Err("Invalid byte for ascii: a byte above 127".to_owned()),
        },
        ColumnType::Int => fixed(4, "int"),
        ColumnType::Float => fixed(4, "value for a float"),
        ColumnType::Bigint | ColumnType::Counter => fixed(8, "long"),
        ColumnType::Double => fixed(8, "value for a double"),
        ColumnType::Timestamp => fixed(8, "long for date"),
        ColumnType::Boolean => fixed(1, "value"),
        ColumnType::Uuid => match size {
            16 | 0 => Ok(()),
            _ => Err(format!("UUID should be 16 or 0 bytes ({size})")),
        },
        ColumnType::Timeuuid => match (size, bytes.get(6)) {
            (0, _) => Ok(()),
            (16, Some(b)) if b & 0xf0 == 0x10 => Ok(()),
            (16, _) => Err("Invalid version for TimeUUID type.".to_owned()),
            _ => Err(format!("UUID should be 16 or 0 bytes ({size})")),
        },
        ColumnType::Date => match size {
            4 => Ok(()),
            _ => Err(format!("Expected 4 byte long for date ({size})")),
        },
        ColumnType::Time => validate_time(bytes),
        ColumnType::Smallint => match size {
            2 => Ok(()),
            _ => Err(format!("Expected 2 bytes for a smallint ({size})")),
        },
        ColumnType::Tinyint => match size {
            1 => Ok(()),
            _ => Err(format!("Expected 1 byte for a tinyint ({size})")),
        },
        ColumnType::Inet => match size {
            0 | 4 | 16 => Ok(()),
            _ => Err(format!("Expected 4 or 16 byte inetaddress; got {size}")),
        },
        ColumnType::Varint => Ok(()),
        ColumnType::Decimal => match size {
            1..=3 => Err(format!("Expected 0 or at least 4 bytes (got {size})")),
            _ => Ok(()),
        },
        ColumnType::Duration => validate_duration(bytes),
        ColumnType::List(element) | ColumnType::Set(element) => {
            validate_elements(&[element], bytes)
        }
        ColumnType::Map(key, value) => validate_elements(&[key, value], bytes),
        ColumnType::Tuple(elements) => validate_tuple(elements, bytes),
    }
}

fn validate_time(bytes: &[u8]) -> Result<(), String> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let value = bytes.try_into().map(i64::from_be_bytes);
    match value {
        Ok(ns) if (0..DAY_NS).contains(&ns) => Ok(()),
        Ok(ns) => Err(format!("Input long out of bounds: {ns}")),
        Err(_) => Err(format!("Expected 8 byte long for time ({})", bytes.len())),
    }
}

fn validate_duration(bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    for part in ["months", "days", "nanoseconds"] {
        // The number of leading ones in the first byte is the number of bytes that follow.
        let size = 1 + rest.first().map_or(0, |b| b.leading_ones() as usize);
        rest = rest.get(size..).ok_or(format!("The duration ends inside its {part}"))?;
    }
    match rest.is_empty() {
        true => Ok(()),
        false => Err("Unexpected extraneous bytes after the duration".to_owned()),
    }
}

/// Elements of a serialized list or set (one type), or map (two types).
pub(crate) fn elements(
    bytes: &[u8],
) -> Result<impl Iterator<Item = Result<&[u8], String>>, String> {
    let short = |_| "Not enough bytes to read a collection".to_owned();
    let mut cursor = Cursor::new(bytes);
    cursor.count(4, "elements").map_err(short)?;
    Ok(std::iter::from_fn(move || {
        (!cursor.rest().is_empty()).then(|| match cursor.bytes("element") {
            Ok(Some(element)) => Ok(element),
            Ok(None) => {
                // After an error nothing is read.
                cursor = Cursor::new(&[]);
                Err("null is not supported inside collections".to_owned())
            }
            Err(error) => {
                cursor = Cursor::new(&[]);
                Err(short(error))
            }
        })
    }))
}

fn validate_elements(kinds: &[&ColumnType], bytes: &[u8]) -> Result<(), String> {
    let count = bytes.first_chunk().map_or(0, |c| i32::from_be_bytes(*c));
    let mut found = 0usize;
    for (element, kind) in elements(bytes)?.zip(kinds.iter().cycle()) {
        validate(kind, element?)?;
        found += 1;
    }
    match usize::try_from(count).ok().and_then(|c| c.checked_mul(kinds.len())) == Some(found) {
        true => Ok(()),
        false => Err("Unexpected extraneous bytes after the collection, or too few".to_owned()),
    }
}

fn validate_tuple(kinds: &[ColumnType], bytes: &[u8]) -> Result<(), String> {
    let mut cursor = Cursor::new(bytes);
    for kind in kinds {
        if cursor.rest().is_empty() {
            return Ok(());
        }
        match cursor.bytes("tuple component") {
            Ok(Some(value)) => validate(kind, value)?,
            Ok(None) => {}
            Err(_) => return Err("Not enough bytes to read a tuple".to_owned()),
        }
    }
    match cursor.rest().is_empty() {
        true => Ok(()),
        false => Err("Invalid remaining data after end of tuple value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_as_the_schema_tables_print_them() {
        let text = TypeName::Plain("varchar".into());
        let list = |t| TypeName::List(Box::new(t));
        let frozen = |t| TypeName::Frozen(Box::new(t));
        let name = |t: &TypeName| DataType::resolve(t).map(|t| t.name());
        assert_eq!(name(&text).unwrap(), "text");
        assert_eq!(name(&list(text.clone())).unwrap(), "list<text>");
        assert_eq!(name(&frozen(list(text.clone()))).unwrap(), "frozen<list<text>>");
        assert_eq!(name(&list(frozen(list(text.clone())))).unwrap(), "list<frozen<list<text>>>");
        assert_eq!(name(&TypeName::Tuple(vec![text.clone()])).unwrap(), "frozen<tuple<text>>");
        assert!(name(&list(list(text.clone()))).is_err());
        assert!(name(&frozen(text)).is_err());
        assert!(name(&TypeName::Plain("widget".into())).is_err());
    }

    #[test]
    fn values_are_validated() {
        for (kind, bytes, good) in [
            (ColumnType::Int, &[0, 0, 0, 1][..], true),
            (ColumnType::Int, &[1], false),
            (ColumnType::Varchar, b"\xff", false),
            (ColumnType::Boolean, &[1], true),
            (ColumnType::Inet, &[1, 2, 3], false),
            (ColumnType::Duration, &[2, 4, 0x80 | 1, 0], true),
            (ColumnType::Duration, &[2, 4], false),
            (ColumnType::Timeuuid, &[0; 16], false),
            (ColumnType::List(Box::new(ColumnType::Tinyint)), &[0, 0, 0, 1, 0, 0, 0, 1, 9], true),
            (ColumnType::List(Box::new(ColumnType::Tinyint)), &[0, 0, 0, 2, 0, 0, 0, 1, 9], false),
            (ColumnType::List(Box::new(ColumnType::Tinyint)), &[0x7f, 0, 0, 2], false),
            (ColumnType::Tuple(vec![ColumnType::Tinyint]), &[0, 0, 0, 1, 9], true),
            (ColumnType::Tuple(vec![ColumnType::Tinyint]), &[0xff, 0xff, 0xff, 0xff], true),
        ] {
            assert_eq!(validate(&kind, bytes).is_ok(), good, "{kind:?} {bytes:?}");
        }
        let error = validate(&ColumnType::Int, &[0; 8]).unwrap_err();
        assert_eq!(error, "Expected 4 or 0 byte int (8)");
    }

    proptest! {
        #[test]
        fn hostile_values_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for (_, kind) in NAMES {
                let _ = validate(&kind, &bytes);
                let _ = validate(&ColumnType::Set(Box::new(kind.clone())), &bytes);
                let _ = validate(&ColumnType::Tuple(vec![kind.clone(), kind]), &bytes);
            }
        }
    }
}
