//! Times of the command line with their bounds: what is longer than any run is a slip of the pen,
//! and would look like a program that hangs.

use units::Nanos;

const HOUR: Nanos = Nanos::from_secs(3600);
/// The default of `--timeout`: an operation that waits longer is never answered in time.
const SERIAL_MAX: Nanos = Nanos::from_secs(10);
/// A month; a run directory holds an interval per ten seconds of it.
const RUN_MAX: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// How long `--serial` holds its lock.
pub(crate) fn serial(text: &str) -> Result<Nanos, String> {
    at_most(text, SERIAL_MAX)
}

/// How long a target gathers answers.
pub(crate) fn gather(text: &str) -> Result<Nanos, String> {
    match at_most(text, SERIAL_MAX)? {
        Nanos::ZERO => Err("0 gathers nothing: leave it out, or give a time like 5ms".to_owned()),
        time => Ok(time),
    }
}

/// Between two moves of tablets.
pub(crate) fn tablet_move(text: &str) -> Result<Nanos, String> {
    match at_most(text, RUN_MAX)? {
        time if time < Nanos::from_millis(1) => {
            Err(format!("'{text}' is too often: give at least 1ms"))
        }
        time => Ok(time),
    }
}

/// A time until an answer or between two rows; histograms end at one hour.
pub(crate) fn of_operation(text: &str) -> Result<Nanos, String> {
    at_most(text, HOUR)
}

/// A time of a run: its window, its warm-up, its patience.
pub(crate) fn of_run(text: &str) -> Result<Nanos, String> {
    at_most(text, RUN_MAX)
}

fn at_most(text: &str, max: Nanos) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    match time <= max {
        true => Ok(time),
        false => Err(format!("'{text}' is too long: give at most {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded() {
        assert_eq!(serial("500us"), Ok(Nanos::from_micros(500)));
        assert!(serial("1000h").unwrap_err().ends_with("at most 10s"));
        assert!(gather("0s").is_err() && gather("5ms").is_ok());
        assert!(tablet_move("0s").is_err() && tablet_move("1ms").is_ok());
        assert!(of_operation("61m").is_err() && of_operation("60m").is_ok());
        assert!(of_run("721h").is_err() && of_run("720h").is_ok());
        assert!(of_run("soon").unwrap_err().contains("30s"));
    }
}
