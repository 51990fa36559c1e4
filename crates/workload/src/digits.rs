//! Numbers as decimal text, eight digits in one word: a number -> its digits.
//!
//! Hashed keys have 19 digits, and a division for each of them was a tenth of all instructions of
//! an operation. Here a word is halved three times, all its parts by one multiplication each.

/// Digits of the largest number.
pub(crate) const COUNT_MAX: usize = 20;

/// Three words of digits hold them all.
const WIDTH: usize = 24;

/// The digits of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits {
    /// As text, zeros in front.
    text: [u8; WIDTH],
    /// Where the number begins.
    start: usize,
}

impl Digits {
    #[inline]
    pub(crate) fn of(number: u64) -> Self {
        const PART: u64 = 100_000_000;
        let (upper, low) = (number / PART, number % PART);
        // The upper ones of 20 digits are four: no number has more.
        let words = [digits_of((upper / PART) << 32), eight(upper % PART), eight(low)];
        let start = match words {
            // The last digit stands, zero or not.
            [0, 0, low] => 16 + (low | 1 << 56).trailing_zeros() / 8,
            [0, middle, _] => 8 + middle.trailing_zeros() / 8,
            [high, ..] => high.trailing_zeros() / 8,
        };
        let mut text = [0; WIDTH];
        for (part, word) in text.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *part = (word + u64::from_le_bytes([b'0'; 8])).to_le_bytes();
        }
        Self { text, start: start as usize }
    }

    /// Without zeros in front.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text[self.start..]
    }

    /// With zeros in front up to `count` digits, as far as 24.
    #[inline]
    pub(crate) fn padded(&self, count: usize) -> &[u8] {
        &self.text[self.start.min(WIDTH.saturating_sub(count))..]
    }
}

/// The eight digits of a number below 10^8, a byte each, the first one lowest.
#[inline]
const fn eight(number: u64) -> u64 {
    digits_of((number / 10_000) | ((number % 10_000) << 32))
}

/// The digits of two numbers below 10^4, the first one in the lower half of the word.
#[inline]
const fn digits_of(fours: u64) -> u64 {
    // Multiplied and shifted, the quotients by 100 and by 10 are exact below 10^4 and below 10^2,
    // and no product reaches its neighbour.
    let hundreds = ((fours * 10_486) >> 20) & 0x7F_0000_007F;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_parts_of_eight_digits() {
        for number in 0..10_000u64 {
            let text = format!("{number:04}{:04}", 9_999 - number);
            let word = eight(text.parse().unwrap()) + u64::from_le_bytes([b'0'; 8]);
            assert_eq!(word.to_le_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn edges() {
        for number in [0, 1, 9, 10, 99_999_999, 100_000_000, 10u64.pow(16), u64::MAX] {
            assert_eq!(Digits::of(number).text(), number.to_string().as_bytes());
        }
    }

    proptest! {
        #[test]
        fn digits_are_those_of_the_standard_library(
            number: u64,
            shift in 0u32..64,
            count in 0usize..=24,
        ) {
            let number = number >> shift;
            let digits = Digits::of(number);
            let text = |digits: &[u8]| String::from_utf8(digits.to_vec()).unwrap();
            prop_assert_eq!(text(digits.text()), number.to_string());
            prop_assert_eq!(text(digits.padded(count)), format!("{number:0count$}"));
        }
    }
}
