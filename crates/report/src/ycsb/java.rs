//! Numbers and hashes as Java makes them.
//!
//! Source: the documentation of Double.toString, DecimalFormat (pattern `#.##`), String.hashCode
//! and ConcurrentHashMap.

/// `Double.toString`: at least one decimal, an exponent from 10^7 on and below 10^-3.
pub(super) fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    if plain {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

/// `#.##`: at most two decimals, half to even, no zeros at the end.
pub(super) fn two_decimals(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "\u{221e}" } else { "-\u{221e}" }.to_owned();
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `String.hashCode`.
pub(super) fn hash(text: &str) -> u32 {
    text.encode_utf16()
        .fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

/// Puts names into the order in which a `ConcurrentHashMap` of Java lists them: by bins, of which
/// there are 16 and twice as many whenever three quarters are used. What shares a bin keeps its
/// order.
pub(super) fn map_order<T>(entries: &mut [T], name: impl Fn(&T) -> &str) {
    let mut bins = 16u32;
    while entries.len() as u32 >= bins / 4 * 3 {
        bins *= 2;
    }
    entries.sort_by_key(|entry| {
        let hash = hash(name(entry));
        (hash ^ (hash >> 16)) & (bins - 1)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_java_s() {
        for (value, text) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (1234.5678, "1234.5678"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.000_5, "5.0E-4"),
            (-2.5, "-2.5"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn two_decimals_at_most() {
        for (value, text) in [
            (0.0, "0"),
            (5.0, "5"),
            (100.0, "100"),
            (0.5, "0.5"),
            (1234.567, "1234.57"),
            (0.125, "0.12"),
            (0.375, "0.38"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(two_decimals(value), text);
        }
    }

    #[test]
    fn names_come_in_the_order_of_the_map() {
        assert_eq!(hash("READ"), 2_511_254);
        let ordered = |names: &[&str]| {
            let mut names = names.to_vec();
            map_order(&mut names, |name| name);
            names.join(" ")
        };
        assert_eq!(ordered(&["UPDATE", "CLEANUP", "READ"]), "READ CLEANUP UPDATE");
        assert_eq!(ordered(&["INSERT", "CLEANUP"]), "CLEANUP INSERT");
        assert_eq!(
            ordered(&["CLEANUP", "UPDATE", "READ-MODIFY-WRITE", "READ"]),
            "READ READ-MODIFY-WRITE CLEANUP UPDATE"
        );
    }
}
