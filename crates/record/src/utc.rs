//! Seconds since 1970 as UTC dates, for names of runs and for manifests.
//!
//! The calendar is the proleptic Gregorian one, by shifting the year to begin in March (H. Hinnant,
//! "chrono-Compatible Low-Level Date Algorithms"). No leap seconds, as POSIX time has none.

/// `20261120T110636Z`, the form in the names of run directories.
#[must_use]
pub fn compact(epoch_s: u64) -> String {
    let [year, month, day, hour, minute, second] = civil(epoch_s);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// `2026-11-20T11:06:36Z` (RFC 3339), the form in manifests.
#[must_use]
pub fn rfc3339(epoch_s: u64) -> String {
    let [year, month, day, hour, minute, second] = civil(epoch_s);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month, day, hour, minute, second.
fn civil(epoch_s: u64) -> [u64; 6] {
    // Days since 0000-03-01; an era is 400 years, so that its days are always the same number.
    let days = epoch_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    [year, month, day, epoch_s / 3600 % 24, epoch_s / 60 % 60, epoch_s % 60]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_calendar() {
        // By `date -u -d @SECONDS`.
        for (epoch_s, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_107_456_000, "2100-02-28T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(epoch_s), date);
        }
        assert_eq!(compact(951_782_399), "20000228T235959Z");
    }
}
