//! Text of dates, times and durations -> the integers that CQL stores. Proleptic Gregorian, UTC
//! unless a zone is given.
//!
//! Accepted as in CQL 3.4: `2011-02-03[ T]04:05[:06[.789]][Z|+0100|+01:00]`, `2011-02-03`,
//! `08:12:54.123456789`, `1y2mo3w4d5h6m7s8ms9us10ns`. Limits: ISO 8601 durations (`P1Y..`) and
//! named zones are refused; years 0 to 9999.

/// Days from 1970-01-01 to a date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month - 1).ok()?;
    if !(0..=9999).contains(&year) || day < 1 || day > *lengths.get(index)? {
        return None;
    }
    let before: i64 = lengths.iter().take(index).sum();
    let past = year - 1;
    // Days before a year, from 0001-01-01 on; 719162 of them before 1970.
    Some(
        past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 719_162
            + before
            + day
            - 1,
    )
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// `yyyy-mm-dd` -> days since 1970-01-01.
pub(crate) fn date_days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 {
        return None;
    }
    days(number(year)?, number(month)?, number(day)?)
}

/// `hh:mm[:ss[.fffffffff]]` -> nanoseconds since midnight.
pub(crate) fn time_ns(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction),
        None => (text, "0"),
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let second = parts.next().map_or(Some(0), number)?;
    if hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let scale = 10i64.pow(9 - fraction.len() as u32);
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + number(fraction)? * scale)
}

/// A timestamp's text -> milliseconds since 1970-01-01 UTC.
pub(crate) fn timestamp_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = match text.find(['T', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.trim()),
        // A zone may follow a date at once.
        None => match text.get(10..) {
            Some(zone) => (text.get(..10)?, zone),
            None => (text, ""),
        },
    };
    let zone_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = (rest.get(..zone_at)?.trim(), rest.get(zone_at..)?);
    let clock_ns = if clock.is_empty() { 0 } else { time_ns(clock)? };
    let zone_min = match zone.strip_prefix(['+', '-']) {
        None if zone.is_empty() || zone == "Z" => 0,
        None => return None,
        Some(digits) => {
            let digits = digits.replace(':', "");
            let (hours, minutes) = (digits.get(..2)?, digits.get(2..).filter(|m| !m.is_empty()));
            let sum = number(hours)? * 60 + minutes.map_or(Some(0), number)?;
            if zone.starts_with('-') { -sum } else { sum }
        }
    };
    Some(date_days(date)? * 86_400_000 + clock_ns / 1_000_000 - zone_min * 60_000)
}

/// Units of a duration: name, part (0 months, 1 days, 2 nanoseconds), factor.
const UNITS: [(&str, usize, i64); 11] = [
    ("y", 0, 12),
    ("mo", 0, 1),
    ("w", 1, 7),
    ("d", 1, 1),
    ("h", 2, 3_600_000_000_000),
    ("ms", 2, 1_000_000),
    ("us", 2, 1_000),
    ("µs", 2, 1_000),
    ("ns", 2, 1),
    ("m", 2, 60_000_000_000),
    ("s", 2, 1_000_000_000),
];

/// `1h30m` -> months, days, nanoseconds.
pub(crate) fn duration(text: &str) -> Option<[i64; 3]> {
    let lower = text.to_lowercase();
    let (negative, mut rest) = match lower.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, lower.as_str()),
    };
    let mut parts = [0i64; 3];
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let amount: i64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = rest.get(..letters)?;
        let (_, part, factor) = UNITS.iter().find(|(name, ..)| *name == unit)?;
        let slot = parts.get_mut(*part)?;
        *slot = slot.checked_add(amount.checked_mul(*factor)?)?;
        rest = rest.get(letters..)?;
    }
    let fits = parts[0] <= i64::from(i32::MAX) && parts[1] <= i64::from(i32::MAX);
    fits.then(|| parts.map(|p| if negative { -p } else { p }))
}

/// Appends the three zig-zag variable-length integers of a duration (native protocol v5, section
/// 6.6, as 3.11 sends it in v4 too).
pub(crate) fn put_duration(parts: [i64; 3], out: &mut Vec<u8>) {
    for part in parts {
        let zigzag = ((part << 1) ^ (part >> 63)) as u64;
        let bits = 64 - zigzag.leading_zeros() as usize;
        // n extra bytes carry 7 more bits each, up to 8 extra bytes of pure data.
        let extra = if bits <= 7 { 0 } else { ((bits - 1) / 7).min(8) };
        let bytes = zigzag.to_be_bytes();
        match extra {
            8 => {
                out.push(0xff);
                out.extend_from_slice(&bytes);
            }
            extra => {
                let start = out.len();
                out.extend_from_slice(bytes.get(7 - extra..).unwrap_or(&[]));
                if let Some(first) = out.get_mut(start) {
                    *first |= !(0xff_u8.checked_shr(extra as u32).unwrap_or(0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of GNU `date -u -d .. +%s`.
    #[test]
    fn timestamps() {
        for (text, ms) in [
            ("1970-01-01", Some(0)),
            ("2011-02-03 04:05+0000", Some(1_296_705_900_000)),
            ("2011-02-03T04:05:06.789+01:00", Some(1_296_702_306_789)),
            ("2011-02-03T04:05:06Z", Some(1_296_705_906_000)),
            ("2000-02-29", Some(951_782_400_000)),
            ("1969-12-31 23:59:59", Some(-1_000)),
            ("2011-02-03+0100", Some(1_296_687_600_000)),
            ("2011-02-30", None),
            ("2011-13-01", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(timestamp_ms(text), ms, "{text}");
        }
    }

    #[test]
    fn times_and_durations() {
        assert_eq!(time_ns("08:12:54.123"), Some(29_574_123_000_000));
        assert_eq!(time_ns("24:00:00"), None);
        assert_eq!(duration("1y2mo3w4d5h6m7s8ms9us10ns").unwrap(), [14, 25, 18_367_008_009_010]);
        assert_eq!(duration("-1d").unwrap(), [0, -1, 0]);
        assert_eq!(duration("1x"), None);
        let mut out = Vec::new();
        put_duration([1, -1, 64], &mut out);
        assert_eq!(out, [2, 1, 0x80, 0x80]);
        out.clear();
        put_duration([0, 0, i64::MIN], &mut out);
        assert_eq!(out.len(), 11);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
            let _ = (timestamp_ms(&text), time_ns(&text), duration(&text));
        }

        #[test]
        fn durations_are_valid_values(months: i32, days: i32, ns: i64) {
            let mut out = Vec::new();
            put_duration([months.into(), days.into(), ns], &mut out);
            prop_assert!(crate::types::validate(&wire::cql::ColumnType::Duration, &out).is_ok());
        }
    }
}
