//! Numbers with a suffix, without floating point: `1.5k` is exactly 1500.

use thiserror::Error;

/// Why a quantity could not be read. The text names the input and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Not of the form that this quantity takes.
    #[error("'{input}' is not {wanted}")]
    Form {
        /// What was given.
        input: String,
        /// What is accepted, with examples.
        wanted: &'static str,
    },
    /// A number that does not fit, or where rounding would be needed.
    #[error("'{input}' is out of range: {limit}")]
    Range {
        /// What was given.
        input: String,
        /// The limit that it breaks.
        limit: &'static str,
    },
}

pub(crate) fn form(input: &str, wanted: &'static str) -> ParseError {
    ParseError::Form { input: input.to_owned(), wanted }
}

pub(crate) fn range(input: &str, limit: &'static str) -> ParseError {
    ParseError::Range { input: input.to_owned(), limit }
}

/// A decimal as `digits / 10^decimals`, and the text behind it (the suffix).
pub(crate) struct Decimal<'a> {
    pub(crate) digits: u128,
    pub(crate) decimals: u32,
    pub(crate) suffix: &'a str,
}

/// Splits `1.5k` into 15 / 10^1 and `k`. At most 18 digits before and 9 behind the point; `_` may
/// group them.
pub(crate) fn decimal(text: &str) -> Option<Decimal<'_>> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (mut digits, mut decimals, mut behind, mut seen) = (0u128, 0u32, false, 0u32);
    for c in number.bytes() {
        match c {
            b'_' if seen > 0 => {}
            b'.' if !behind => behind = true,
            b'0'..=b'9' => {
                digits = digits * 10 + u128::from(c - b'0');
                decimals += u32::from(behind);
                seen += 1;
            }
            _ => return None,
        }
    }
    (seen > 0 && seen - decimals <= 20 && decimals <= 9).then_some(Decimal {
        digits,
        decimals,
        suffix: suffix.trim(),
    })
}

impl Decimal<'_> {
    /// This number times `unit` as an integer; None when it does not fit u64 or has a fraction
    /// left.
    pub(crate) fn times(&self, unit: u128) -> Option<u64> {
        let scaled = self.digits.checked_mul(unit)?;
        let divisor = 10u128.pow(self.decimals);
        (scaled % divisor == 0).then(|| scaled / divisor)?.try_into().ok()
    }
}

/// The factor of a decimal (SI) suffix: nothing, k, M, G (also B for billion), T.
pub(crate) fn si_factor(suffix: &str) -> Option<u128> {
    Some(match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" | "m" => 1_000_000,
        "G" | "B" | "g" | "b" => 1_000_000_000,
        "T" | "t" => 1_000_000_000_000,
        _ => return None,
    })
}
