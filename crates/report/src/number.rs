//! Numbers as people read them: grouped digits, three significant ones, units that fit.

/// Between groups of three digits: narrow, and no line break.
const GROUP: char = '\u{202f}';

/// A count with its digits in groups of three.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// A number with that many decimals, its whole part grouped.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 && text.contains(|c| ('1'..='9').contains(&c)) { "-" } else { "" };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// A number with three significant digits; whole numbers are not shortened.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    // Of the rounded value: 0.9999 has as many decimals as 1.00.
    let rounded = format!("{value:.2e}");
    let magnitude = rounded.rsplit('e').next().and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    fixed(value, (2 - magnitude).clamp(0, 9) as usize)
}

/// As [`significant`], without zeros behind the point: for axes.
pub(crate) fn short(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A time in microseconds, in the unit that fits.
pub(crate) fn latency(us: f64) -> String {
    let (value, unit) = latency_unit(us);
    format!("{} {unit}", significant(value))
}

/// As [`latency`], for axes.
pub(crate) fn latency_short(us: f64) -> String {
    let (value, unit) = latency_unit(us);
    format!("{} {unit}", short(value))
}

fn latency_unit(us: f64) -> (f64, &'static str) {
    // What rounds to the next unit is shown in it: 999.9 us is 1.00 ms.
    match us {
        _ if us <= 0.0 => (0.0, "ns"),
        _ if us < 0.9995 => (us * 1e3, "ns"),
        _ if us < 999.5 => (us, "µs"),
        _ if us < 999_500.0 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    }
}

/// A number of bytes, in the unit that fits.
pub(crate) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", short(value), UNITS[unit])
}

/// A share as a percentage. What is not all is never shown as 100 %.
pub(crate) fn percent(share: f64) -> String {
    if share > 0.99 && share < 1.0 {
        return format!("{} %", fixed((share * 1e6).floor() / 1e4, 4));
    }
    format!("{} %", significant(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1234567, "1 234 567")] {
            assert_eq!(grouped(count).replace(GROUP, " "), text);
        }
        assert_eq!(fixed(-1234.56, 1).replace(GROUP, " "), "-1 234.6");
        assert_eq!(fixed(-0.01, 1), "0.0");
    }

    #[test]
    fn three_significant_digits() {
        for (value, text) in
            [(0.0, "0"), (1.0, "1.00"), (12.345, "12.3"), (71234.5, "71 234"), (0.00123, "0.00123")]
        {
            assert_eq!(significant(value).replace(GROUP, " "), text);
        }
        assert_eq!(
            (short(1.0), short(0.5), short(100.0)),
            ("1".into(), "0.5".into(), "100".into())
        );
        assert_eq!(significant(f64::NAN), "–");
    }

    #[test]
    fn latencies_take_the_unit_that_fits() {
        for (us, text) in [
            (0.0, "0 ns"),
            (0.25, "250 ns"),
            (999.4, "999 µs"),
            (999.9, "1.00 ms"),
            (1_500_000.0, "1.50 s"),
        ] {
            assert_eq!(latency(us), text);
        }
        assert_eq!((bytes(0.0), bytes(1536.0)), ("0 B".into(), "1.5 KiB".into()));
        assert_eq!(bytes(64.0 * 1024.0 * 1024.0 * 1024.0), "64 GiB");
        assert_eq!(latency_short(2000.0), "2 ms");
        assert_eq!(percent(0.0312), "3.12 %");
        assert_eq!((percent(0.999_999_9), percent(1.0)), ("99.9999 %".into(), "100 %".into()));
    }
}
