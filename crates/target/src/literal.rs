//! Constants as written in CQL -> serialized values of a type.
//!
//! Which forms a type takes follows CQL 3.4's table of constants; refusals are worded as
//! Cassandra's (`Invalid STRING constant (x) for "c" of type int`). Limits: varints and decimals up
//! to 4096 digits.

use crate::cql::ast::Term;
use crate::cql::parse_uuid;
use crate::datetime::{date_days, duration, put_duration, time_ns, timestamp_ms};
use std::net::IpAddr;
use wire::cql::ColumnType;

const DIGITS_MAX: usize = 4096;

/// The serialized value of a scalar constant; None when the type does not take it.
#[must_use]
pub(crate) fn scalar(term: &Term, kind: &ColumnType) -> Option<Vec<u8>> {
    match (term, kind) {
        (Term::Blob(bytes), ColumnType::Blob) => Some(bytes.clone()),
        (Term::Uuid(id), ColumnType::Uuid) => Some(id.to_vec()),
        (Term::Uuid(id), ColumnType::Timeuuid) => (id[6] >> 4 == 1).then(|| id.to_vec()),
        (Term::Boolean(value), ColumnType::Boolean) => Some(vec![u8::from(*value)]),
        (Term::Text(text), kind) => from_text(text, kind),
        (Term::Integer(digits), kind) => from_integer(digits, kind),
        (Term::Float(text), kind) => from_float(text, kind),
        (Term::Duration(text), ColumnType::Duration) => {
            let mut out = Vec::new();
            put_duration(duration(text)?, &mut out);
            Some(out)
        }
        _ => None,
    }
}

/// The constant's kind and text, for messages.
pub(crate) fn describe(term: &Term) -> String {
    match term {
        Term::Null => "NULL".to_owned(),
        Term::Integer(text) => format!("INTEGER constant ({text})"),
        Term::Float(text) => format!("FLOAT constant ({text})"),
        Term::Text(text) => {
            let short: String = text.chars().take(80).collect();
            format!("STRING constant ({short})")
        }
        Term::Boolean(value) => format!("BOOLEAN constant ({value})"),
        Term::Uuid(_) => "UUID constant".to_owned(),
        Term::Blob(_) => "HEX constant".to_owned(),
        Term::Duration(text) => format!("DURATION constant ({text})"),
        Term::Marker(_) => "bind marker".to_owned(),
        Term::List(_) => "list literal".to_owned(),
        Term::Set(_) => "set literal".to_owned(),
        Term::Map(_) => "map literal".to_owned(),
        Term::Tuple(_) => "tuple literal".to_owned(),
        Term::Function(name, _) => format!("function {name}()"),
    }
}

fn from_text(text: &str, kind: &ColumnType) -> Option<Vec<u8>> {
    match kind {
        ColumnType::Varchar => Some(text.as_bytes().to_vec()),
        ColumnType::Ascii => text.is_ascii().then(|| text.as_bytes().to_vec()),
        ColumnType::Inet => match text.parse().ok()? {
            IpAddr::V4(address) => Some(address.octets().to_vec()),
            IpAddr::V6(address) => Some(address.octets().to_vec()),
        },
        ColumnType::Timestamp => {
            let ms = timestamp_ms(text).or_else(|| text.parse().ok())?;
            Some(ms.to_be_bytes().to_vec())
        }
        ColumnType::Date => Some(date_bytes(date_days(text)?)?.to_vec()),
        ColumnType::Time => Some(time_ns(text)?.to_be_bytes().to_vec()),
        ColumnType::Uuid => parse_uuid(text).map(Vec::from),
        ColumnType::Timeuuid => parse_uuid(text).filter(|id| id[6] >> 4 == 1).map(Vec::from),
        _ => None,
    }
}

/// Days since 1970 -> the unsigned days of the protocol, 1970-01-01 at the middle.
pub(crate) fn date_bytes(days: i64) -> Option<[u8; 4]> {
    u32::try_from(days + (1 << 31)).ok().map(u32::to_be_bytes)
}

fn from_integer(digits: &str, kind: &ColumnType) -> Option<Vec<u8>> {
    Some(match kind {
        ColumnType::Tinyint => digits.parse::<i8>().ok()?.to_be_bytes().to_vec(),
        ColumnType::Smallint => digits.parse::<i16>().ok()?.to_be_bytes().to_vec(),
        ColumnType::Int => digits.parse::<i32>().ok()?.to_be_bytes().to_vec(),
        ColumnType::Bigint | ColumnType::Counter | ColumnType::Timestamp => {
            digits.parse::<i64>().ok()?.to_be_bytes().to_vec()
        }
        ColumnType::Time => {
            let ns =
                digits.parse::<i64>().ok().filter(|ns| (0..86_400_000_000_000).contains(ns))?;
            ns.to_be_bytes().to_vec()
        }
        // An integer counts days with 1970-01-01 at 2^31.
        ColumnType::Date => digits.parse::<u32>().ok()?.to_be_bytes().to_vec(),
        ColumnType::Float | ColumnType::Double => return from_float(digits, kind),
        ColumnType::Varint => varint(digits)?,
        ColumnType::Decimal => decimal(digits)?,
        _ => return None,
    })
}

fn from_float(text: &str, kind: &ColumnType) -> Option<Vec<u8>> {
    match kind {
        ColumnType::Float => Some(text.parse::<f32>().ok()?.to_be_bytes().to_vec()),
        ColumnType::Double => Some(text.parse::<f64>().ok()?.to_be_bytes().to_vec()),
        ColumnType::Decimal => decimal(text),
        _ => None,
    }
}

/// Decimal digits with an optional minus -> big-endian two's complement, as short as can be.
fn varint(text: &str) -> Option<Vec<u8>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut magnitude: Vec<u8> = Vec::new(); // little-endian
    for digit in digits.bytes() {
        let mut carry = u32::from(digit.checked_sub(b'0').filter(|d| *d <= 9)?);
        for byte in &mut magnitude {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            magnitude.push(carry as u8);
        }
    }
    magnitude.push(0);
    if negative {
        let mut carry = true;
        for byte in &mut magnitude {
            let (value, overflow) = (!*byte).overflowing_add(u8::from(carry));
            *byte = value;
            carry = overflow;
        }
    }
    let sign = |b: u8| b & 0x80;
    while let [.., low, high] = magnitude[..] {
        let filler = if sign(low) != 0 { 0xff } else { 0 };
        if high != filler {
            break;
        }
        magnitude.pop();
    }
    magnitude.reverse();
    Some(magnitude)
}

/// Scale (i32) and unscaled varint.
fn decimal(text: &str) -> Option<Vec<u8>> {
    let lower = text.to_ascii_lowercase();
    let (mantissa, exponent) = match lower.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (lower.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let mut out = scale.to_be_bytes().to_vec();
    out.append(&mut varint(&format!("{whole}{fraction}"))?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_and_decimals() {
        for (text, bytes) in [
            ("0", &[0][..]),
            ("127", &[0x7f]),
            ("128", &[0, 0x80]),
            ("-1", &[0xff]),
            ("-128", &[0x80]),
            ("-129", &[0xff, 0x7f]),
            ("18446744073709551616", &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(varint(text).unwrap(), bytes, "{text}");
        }
        assert_eq!(decimal("1.25").unwrap(), [0, 0, 0, 2, 125]);
        assert_eq!(decimal("-5e2").unwrap(), [0xff, 0xff, 0xff, 0xfe, 0xfb]);
        assert!(varint(&"9".repeat(5000)).is_none());
    }

    #[test]
    fn constants_and_types() {
        let int = |t: &str| Term::Integer(t.into());
        let text = |t: &str| Term::Text(t.into());
        for (term, kind, good) in [
            (int("300"), ColumnType::Tinyint, false),
            (int("-128"), ColumnType::Tinyint, true),
            (int("5"), ColumnType::Varchar, false),
            (int("5"), ColumnType::Double, true),
            (text("x"), ColumnType::Int, false),
            (text("::1"), ColumnType::Inet, true),
            (text("é"), ColumnType::Ascii, false),
            (text("2020-01-01"), ColumnType::Date, true),
            (Term::Float("nan".into()), ColumnType::Float, true),
            (Term::Float("1.5".into()), ColumnType::Int, false),
        ] {
            assert_eq!(scalar(&term, &kind).is_some(), good, "{term:?} {kind:?}");
        }
        assert_eq!(scalar(&text("1970-01-01"), &ColumnType::Date).unwrap(), [0x80, 0, 0, 0]);
    }
}
