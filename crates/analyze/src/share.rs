//! Shares as the percentages of a sentence.
//!
//! A number in a caveat never reads as being on the other side of the limit that it breaks: below a
//! minimum the last digit is cut, above a maximum it is raised. One decimal from 1 % on, two below.

/// A share that is below what it should be, or of which less is worse: cut.
#[must_use]
pub fn percent_cut(share: f64) -> String {
    // The epsilon keeps 1 % from becoming 0.9 % by the binary fraction.
    percent(share, |steps| (steps + 1e-9).floor())
}

/// A share that is above what it should be: raised.
#[must_use]
pub fn percent_raised(share: f64) -> String {
    percent(share, |steps| (steps - 1e-9).ceil().max(0.0))
}

fn percent(share: f64, whole: impl Fn(f64) -> f64) -> String {
    let percent = share * 100.0;
    if percent >= 1.0 {
        format!("{:.1} %", whole(percent * 10.0) / 10.0)
    } else if percent >= 0.01 || percent == 0.0 {
        format!("{:.2} %", whole(percent * 100.0) / 100.0)
    } else {
        "below 0.01 %".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_read_as_on_the_other_side() {
        for (share, cut, raised) in [
            (0.98999, "98.9 %", "99.0 %"),
            (0.9999, "99.9 %", "100.0 %"),
            (0.8004, "80.0 %", "80.1 %"),
            (0.8, "80.0 %", "80.0 %"),
            (0.005, "0.50 %", "0.50 %"),
            (0.01, "1.0 %", "1.0 %"),
            (0.010_01, "1.0 %", "1.1 %"),
            (0.000_001, "below 0.01 %", "below 0.01 %"),
            (0.0, "0.00 %", "0.00 %"),
        ] {
            assert_eq!(
                (percent_cut(share).as_str(), percent_raised(share).as_str()),
                (cut, raised)
            );
        }
    }
}
