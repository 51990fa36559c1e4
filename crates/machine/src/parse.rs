//! The small text forms of sysfs and procfs: masks, `key : value` lines, sizes, choices.
//!
//! Input: text of any origin. Output: values, or `None` for what is not of the form; no panic.

use units::{CpuId, CpuSet};

/// Hex digits in the mask of the largest kernel (65536 cpus); longer ones are no mask.
const MASK_DIGITS_MAX: usize = 65_536 / 4;

/// A cpu mask as sysfs prints it: hex words with the highest first, `00000000,000000ff`.
pub(crate) fn mask(text: &str) -> Option<CpuSet> {
    let text = text.trim();
    let digits = text.chars().rev().filter(|c| *c != ',');
    if text.is_empty() || digits.clone().count() > MASK_DIGITS_MAX {
        return None;
    }
    let mut cpus = Vec::new();
    for (first, digit) in (0u32..).step_by(4).zip(digits) {
        let bits = digit.to_digit(16)?;
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| CpuId(first + bit)));
    }
    Some(cpus.into_iter().collect())
}

/// The value of the first of `keys` that has a line `key : value`, earlier keys first.
pub(crate) fn field<'a>(text: &'a str, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|wanted| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == *wanted && !value.trim().is_empty()).then(|| value.trim())
        })
    })
}

/// Bytes of a line `MemTotal:  1024 kB`, also in the form `Node 0 MemTotal: 1024 kB`.
pub(crate) fn kib(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (head, value) = line.split_once(':')?;
        if head.split_whitespace().last() != Some(key) {
            return None;
        }
        let (number, unit) = value.trim().split_once(' ')?;
        (unit.trim() == "kB").then(|| number.parse::<u64>().ok()?.checked_mul(1024))?
    })
}

/// The chosen one of `always [madvise] never`; a text without brackets is itself the choice.
pub(crate) fn choice(text: &str) -> Option<&str> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(chosen, _)| chosen),
        None => (!text.trim().is_empty()).then(|| text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_are_read_from_the_right() {
        for (text, list) in [
            ("ff", "0-7"),
            ("00000001,00000000", "32"),
            ("00000000,000000f1\n", "0,4-7"),
            ("80000000,00000000,00000001", "0,95"),
            ("0", ""),
        ] {
            assert_eq!(mask(text).unwrap().to_string(), list, "{text}");
        }
        for text in ["", "x", "0x1", "1 2", &"f".repeat(MASK_DIGITS_MAX + 1)] {
            assert_eq!(mask(text), None, "{text}");
        }
    }

    #[test]
    fn fields_are_found_by_their_whole_key() {
        let text = "model\t: 17\nmodel name\t: A : B\nempty :\n";
        assert_eq!(field(text, &["model name"]), Some("A : B"));
        assert_eq!(field(text, &["Processor", "model"]), Some("17"));
        assert_eq!(field(text, &["empty", "name"]), None);
    }

    #[test]
    fn sizes_are_bytes() {
        let text = "MemFree: 1 kB\nNode 1 MemTotal:   2048 kB\nHuge: 3\n";
        assert_eq!(kib(text, "MemTotal"), Some(2048 * 1024));
        assert_eq!(kib(text, "Huge"), None);
        assert_eq!(kib("MemTotal: 99999999999999999999 kB", "MemTotal"), None);
        assert_eq!(kib(&format!("MemTotal: {} kB", u64::MAX), "MemTotal"), None);
    }

    #[test]
    fn choices_are_in_brackets() {
        assert_eq!(choice("always [madvise] never"), Some("madvise"));
        assert_eq!(choice("tsc\n"), Some("tsc"));
        assert_eq!(choice("[open"), None);
        assert_eq!(choice(" "), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "\\PC{0,80}|[0-9a-f,:\\[\\] kB\n-]{0,80}") {
            let _ = (mask(&text), field(&text, &["a"]), kib(&text, "a"), choice(&text));
        }

        #[test]
        fn a_mask_says_what_a_list_says(cpus in prop::collection::btree_set(0u32..300, 0..40)) {
            let mut words = [0u32; 10];
            for cpu in &cpus {
                words[(cpu / 32) as usize] |= 1 << (cpu % 32);
            }
            let text: Vec<_> = words.iter().rev().map(|w| format!("{w:08x}")).collect();
            prop_assert_eq!(mask(&text.join(",")), Some(cpus.into_iter().map(CpuId).collect()));
        }
    }
}
