//! How tests went, read from what libtest prints.
//!
//! Input: the output of `cargo test -- --show-output`. Output: [`Outcome`].
//! Limits: this is libtest's text for people; its JSON form is not stable.

/// Counts and reasons of some tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// What failed, one line each.
    pub(super) failures: Vec<String>,
    /// Why tests were skipped.
    pub(super) reasons: Vec<String>,
    /// The output of the tests that failed.
    pub(super) report: String,
}

/// What libtest is printing.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Elsewhere,
    /// Below `successes:`, in the output of a test; whether that test was skipped already.
    Success(bool),
    /// Below `failures:`.
    Failure,
}

impl Outcome {
    pub(super) fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(super) fn failed(what: String) -> Self {
        Self { failed: 1, failures: vec![what], ..Self::default() }
    }

    pub(super) fn skipped(count: usize, reason: String) -> Self {
        Self { skipped: count, reasons: vec![reason], ..Self::default() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
        self.reasons.extend(other.reasons);
        self.report.push_str(&other.report);
    }

    /// Sums the test binaries up. libtest counts a skipped test as passed; here it is not.
    pub(super) fn of_tests(output: &str) -> Self {
        let mut outcome = Self::default();
        let mut part = Part::Elsewhere;
        let mut excused = 0;
        for line in output.lines() {
            if let Some(counts) = line.strip_prefix("test result: ") {
                outcome.passed += count(counts, "passed");
                outcome.failed += count(counts, "failed");
                outcome.skipped += count(counts, "ignored");
                part = Part::Elsewhere;
            } else if line == "successes:" {
                part = Part::Success(false);
            } else if line == "failures:" {
                part = Part::Failure;
            } else if matches!(part, Part::Success(_)) && heading(line).is_some() {
                part = Part::Success(false);
            }
            match (part, line.strip_prefix("SKIP: ")) {
                (Part::Success(counted), Some(reason)) => {
                    outcome.reasons.push(reason.to_owned());
                    excused += usize::from(!counted);
                    part = Part::Success(true);
                }
                (Part::Failure, _) => {
                    outcome.failures.extend(heading(line).map(str::to_owned));
                    outcome.report.push_str(line);
                    outcome.report.push('\n');
                }
                _ => {}
            }
        }
        outcome.skipped += excused;
        outcome.passed = outcome.passed.saturating_sub(excused);
        outcome
    }
}

/// The test whose output follows.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The number before `what` in `ok. 7 passed; 0 failed; 1 ignored; ...`.
fn count(counts: &str, what: &str) -> usize {
    let word_before = |part: &str| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let at = words.iter().position(|word| *word == what)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    counts.split(';').find_map(word_before).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
running 4 tests
test a ... ok
test b ... ok
test c ... FAILED

successes:

---- a stdout ----
SKIP: no java
SKIP: no maven either

---- b stdout ----
 SKIP: is only counted at the start of a line

successes:
    a
    b

failures:

---- c stdout ----
SKIP: does not excuse a failure
thread 'c' panicked

failures:
    c

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s

running 1 test
test d ... ok

successes:

---- d stdout ----
SKIP: no python

successes:
    d

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn results_are_summed_and_skips_are_not_passes() {
        let outcome = Outcome::of_tests(PRINTED);
        assert_eq!((outcome.passed, outcome.failed, outcome.skipped), (1, 1, 3), "{outcome:?}");
        assert_eq!(outcome.reasons, ["no java", "no maven either", "no python"]);
        assert_eq!(outcome.failures, ["c"]);
        assert!(outcome.report.contains("thread 'c' panicked"), "{}", outcome.report);
        assert!(!outcome.report.contains("no java"));
    }

    #[test]
    fn outcomes_add_up() {
        let mut all = Outcome::passed();
        all.add(Outcome::failed("x".into()));
        all.add(Outcome::skipped(2, "y".into()));
        assert_eq!((all.passed, all.failed, all.skipped), (1, 1, 2));
        assert_eq!((all.failures.len(), all.reasons.len()), (1, 1));
    }
}
