//! Options: words of a group -> which grouping they belong to, and their values.
//!
//! A group has one or more groupings, lists of options of which some are required. Every word must
//! be taken by an option of some grouping; the first grouping that takes them all and has what it
//! requires is the one that is meant. An option takes the words that begin with its prefix, in any
//! case; what follows must fit its pattern. Source: cassandra-stress, `GroupedOptions.select`,
//! `OptionSimple`, `OptionMulti`.

use super::line::{Group, LineError, Word};

/// What may follow an option's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Nothing.
    Nothing,
    /// `.*`
    Anything,
    /// `.+`
    Something,
    /// `[0-9]+`
    Digits,
    /// `[1-9][0-9]*`
    Positive,
    /// `[0-9]+[bmk]?`
    Count,
    /// `[0-9]+[smh]`
    Time,
    /// `[0-9]+/s`
    PerSecond,
    /// `[0-9]+(ms|s|)`
    Interval,
    /// `0\.[0-9]+`
    Fraction,
    /// `[0-9]+(\.[0-9]+)?`
    Ratio,
    /// `[0-9]+[MBK]?\.\.+[0-9]+[MBK]?`
    Range,
    /// `[2-5]+`
    Versions,
    /// `[^=,]+(,[^=,]+)*`
    List,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// A distribution; it is read where it is used.
    Distribution,
    /// `(a=b,...)`: these options, and with true any others of the form `name=value`.
    Several(&'static [Opt], bool),
}

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opt {
    /// What a word begins with: `threads=`, `no-warmup`.
    pub(crate) prefix: &'static str,
    pub(crate) pattern: Pattern,
    /// As help shows it.
    pub(crate) default: Option<&'static str>,
    /// In our words, for help.
    pub(crate) about: &'static str,
    pub(crate) required: bool,
}

/// An option that may be left out.
pub(crate) const fn opt(
    prefix: &'static str,
    pattern: Pattern,
    default: Option<&'static str>,
    about: &'static str,
) -> Opt {
    Opt { prefix, pattern, default, about, required: false }
}

/// An option that makes its grouping.
pub(crate) const fn required(prefix: &'static str, pattern: Pattern, about: &'static str) -> Opt {
    Opt { prefix, pattern, default: None, about, required: true }
}

/// The words of a group as values of one of its groupings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    /// Index of the grouping.
    pub(crate) grouping: usize,
    values: Vec<(&'static str, Word)>,
}

impl Chosen {
    /// What was written behind a prefix, with its place.
    pub(crate) fn get(&self, prefix: &str) -> Option<&Word> {
        self.values.iter().find(|(p, _)| *p == prefix).map(|(_, word)| word)
    }

    /// Whether it was written.
    pub(crate) fn has(&self, prefix: &str) -> bool {
        self.get(prefix).is_some()
    }

    /// What was written, with the prefixes.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&'static str, &Word)> {
        self.values.iter().map(|(prefix, word)| (*prefix, word))
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn digits_and(text: &str, units: &[u8]) -> bool {
    let unit = text.bytes().last().is_some_and(|b| units.contains(&b.to_ascii_lowercase()));
    digits(if unit { &text[..text.len() - 1] } else { text })
}

impl Pattern {
    /// As the original writes it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Anything => ".*".to_owned(),
            Self::Something => ".+".to_owned(),
            Self::Digits => "[0-9]+".to_owned(),
            Self::Positive => "[1-9][0-9]*".to_owned(),
            Self::Count => "[0-9]+[bmk]?".to_owned(),
            Self::Time => "[0-9]+[smh]".to_owned(),
            Self::PerSecond => "[0-9]+/s".to_owned(),
            Self::Interval => "[0-9]+(ms|s|)".to_owned(),
            Self::Fraction => "0\\.[0-9]+".to_owned(),
            Self::Ratio => "[0-9]+(\\.[0-9]+)?".to_owned(),
            Self::Range => "[0-9]+[MBK]?\\.\\.+[0-9]+[MBK]?".to_owned(),
            Self::Versions => "[2-5]+".to_owned(),
            Self::List => "[^=,]+(,[^=,]+)*".to_owned(),
            Self::Choice(words) => words.join("|"),
            Self::Distribution => "DIST(?)".to_owned(),
            Self::Several(..) => "(?)".to_owned(),
        }
    }

    fn takes(self, text: &str) -> bool {
        match self {
            Self::Nothing => text.is_empty(),
            Self::Anything | Self::Distribution | Self::Several(..) => true,
            Self::Something => !text.is_empty(),
            Self::Digits => digits(text),
            Self::Positive => digits(text) && !text.starts_with('0'),
            Self::Count => digits_and(text, b"bmk"),
            Self::Time => !digits(text) && digits_and(text, b"smh"),
            Self::PerSecond => {
                text.len() > 2
                    && text.is_char_boundary(text.len() - 2)
                    && text[text.len() - 2..].eq_ignore_ascii_case("/s")
                    && digits(&text[..text.len() - 2])
            }
            Self::Interval => {
                let lower = text.to_lowercase();
                digits(lower.strip_suffix("ms").or(lower.strip_suffix('s')).unwrap_or(&lower))
            }
            Self::Fraction => text.strip_prefix("0.").is_some_and(digits),
            Self::Ratio => match text.split_once('.') {
                Some((whole, part)) => digits(whole) && digits(part),
                None => digits(text),
            },
            Self::Range => text.split_once("..").is_some_and(|(from, to)| {
                digits_and(from, b"mbk") && digits_and(to.trim_start_matches('.'), b"mbk")
            }),
            Self::Versions => !text.is_empty() && text.bytes().all(|b| (b'2'..=b'5').contains(&b)),
            Self::List => !text.contains('=') && text.split(',').all(|part| !part.is_empty()),
            Self::Choice(words) => words.iter().any(|word| word.eq_ignore_ascii_case(text)),
        }
    }
}

impl Opt {
    /// What follows this option's prefix in a word; None of another option's word.
    fn value(&self, word: &Word) -> Result<Option<Word>, LineError> {
        let size = self.prefix.len();
        let begins = word.text.get(..size).is_some_and(|w| w.eq_ignore_ascii_case(self.prefix));
        if !begins {
            return Ok(None);
        }
        let text = word.text[size..].to_owned();
        let value = Word { text, column: word.column + size };
        if let Pattern::Several(options, others) = self.pattern {
            return parts(self.prefix, &value, options, others).map(|parts| parts.map(|_| value));
        }
        if self.pattern.takes(&value.text) {
            return Ok(Some(value));
        }
        let (given, pattern) = (&value.text, self.pattern.text());
        let what = format!("Invalid value {given}; must match pattern {pattern}");
        let cure = match self.pattern {
            Pattern::Nothing => format!("Write {} alone.", self.prefix),
            _ => format!("Write {}{}.", self.prefix, self.example()),
        };
        Err(LineError::at(&value, what, cure))
    }

    /// A value that would be taken.
    fn example(&self) -> &'static str {
        match self.pattern {
            Pattern::Nothing => "",
            Pattern::Count => "1000, or 10k, 10m, 10b",
            Pattern::Time => "30s, or 10m, 1h",
            Pattern::PerSecond => "5000/s",
            Pattern::Interval => "1, or 1s, 500ms",
            Pattern::Fraction => "0.02",
            Pattern::Range => "1..1000000, or 1..1M",
            Pattern::List => "host1,host2",
            Pattern::Choice(words) => words.first().copied().unwrap_or_default(),
            _ => self.default.unwrap_or("1"),
        }
    }
}

/// The parts of `name(part,part)`; None where `value`, what follows the name, has no parentheses.
pub(crate) fn parts(
    name: &str,
    value: &Word,
    options: &'static [Opt],
    others: bool,
) -> Result<Option<Vec<(String, Word)>>, LineError> {
    let Some(inner) = value.text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return Ok(None);
    };
    let mut taken: Vec<(String, Word)> = Vec::new();
    let mut column = value.column + 1;
    // Distributions have parentheses and commas of their own; no option of these has one as value.
    for text in inner.split(',').filter(|_| !inner.is_empty()) {
        let word = Word { text: text.to_owned(), column };
        column += text.chars().count() + 1;
        let invalid = |cure: String| {
            LineError::at(&word, format!("Invalid {name} specification: {text}"), cure)
        };
        let mut found = None;
        for option in options {
            if let Some(value) = option.value(&word)? {
                found = Some((option.prefix.trim_end_matches('=').to_owned(), value));
                break;
            }
        }
        let found = match (found, text.split_once('=')) {
            (Some(found), _) => found,
            (None, Some((key, given)))
                if others && !key.is_empty() && !given.is_empty() && !given.contains('=') =>
            {
                let column = word.column + key.chars().count() + 1;
                (key.to_owned(), Word { text: given.to_owned(), column })
            }
            (None, _) => {
                let known: Vec<_> = options.iter().map(|option| option.prefix).collect();
                return Err(invalid(match others {
                    true => format!("Write {}, or NAME=VALUE.", known.join(", ")),
                    false => format!("Write some of {}.", known.join(", ")),
                }));
            }
        };
        if taken.iter().any(|(key, _)| *key == found.0) {
            let what = format!("Suboption {}= has been specified more than once", found.0);
            return Err(LineError::at(&word, what, "Write it once."));
        }
        taken.push(found);
    }
    Ok(Some(taken))
}

/// Which grouping the words of a group are of, and their values.
pub(crate) fn select(group: &Group, groupings: &[&'static [Opt]]) -> Result<Chosen, LineError> {
    let named = |error: LineError| LineError { group: Some(group.name.clone()), ..error };
    let mut chosen: Vec<Chosen> =
        (0..groupings.len()).map(|grouping| Chosen { grouping, values: Vec::new() }).collect();
    for word in &group.words {
        let mut accepted = false;
        for (options, chosen) in groupings.iter().zip(&mut chosen) {
            accepted |= accept(options, chosen, word).map_err(named)?;
        }
        if !accepted {
            let known: Vec<_> = groupings.iter().flat_map(|g| g.iter()).map(|o| o.prefix).collect();
            let mut listed: Vec<&str> = Vec::new();
            for prefix in known.into_iter().filter(|prefix| !prefix.is_empty()) {
                if !listed.contains(&prefix) {
                    listed.push(prefix);
                }
            }
            let cure = format!("{} takes {}.", group.name, listed.join(" "));
            let what = format!("Invalid parameter {}", word.text);
            return Err(named(LineError::at(word, what, cure)));
        }
    }
    let happy = |options: &[Opt], chosen: &Chosen| {
        options.iter().filter(|o| o.required).all(|o| chosen.has(o.prefix))
            && chosen.values.len() == group.words.len()
    };
    let index = groupings.iter().zip(&chosen).position(|(options, c)| happy(options, c));
    index.map(|index| chosen.swap_remove(index)).ok_or_else(|| {
        let what = format!("Invalid {} options provided, see output for valid options", group.name);
        let needs: Vec<_> = groupings
            .iter()
            .map(|g| g.iter().filter(|o| o.required).map(|o| o.prefix).collect::<Vec<_>>())
            .map(|needed| if needed.is_empty() { "nothing".into() } else { needed.join(" ") })
            .collect();
        let cure = format!(
            "Words of one form only belong together; its forms need: {}.",
            needs.join(", or ")
        );
        let error = LineError::anywhere(what, cure);
        named(LineError { column: Some(group.column), ..error })
    })
}

fn accept(options: &'static [Opt], chosen: &mut Chosen, word: &Word) -> Result<bool, LineError> {
    for option in options {
        let Some(value) = option.value(word)? else { continue };
        if chosen.has(option.prefix) {
            let what = format!("Suboption {} has been specified more than once", option.prefix);
            return Err(LineError::at(word, what, "Write it once."));
        }
        chosen.values.push((option.prefix, value));
        return Ok(true);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra_stress::line::Line;

    const THREADS: &[Opt] = &[
        required("threads=", Pattern::Digits, ""),
        opt("throttle=", Pattern::PerSecond, Some("0/s"), ""),
    ];
    const AUTO: &[Opt] = &[
        opt("threads>=", Pattern::Digits, Some("4"), ""),
        opt("auto", Pattern::Nothing, None, ""),
    ];

    fn chosen(text: &str) -> Result<Chosen, LineError> {
        let arguments: Vec<_> = text.split(' ').map(str::to_owned).collect();
        let line = Line::of(&arguments)?;
        select(&line.groups[0], &[AUTO, THREADS])
    }

    #[test]
    fn the_first_grouping_that_takes_all_words_is_meant() {
        assert_eq!(chosen("-rate auto").unwrap().grouping, 0);
        assert_eq!(chosen("-rate").unwrap().grouping, 0);
        let threads = chosen("-rate THREADS=4 throttle=5/s").unwrap();
        assert_eq!(threads.grouping, 1);
        assert_eq!(threads.get("throttle=").unwrap().text, "5/s");
    }

    #[test]
    fn errors_are_the_originals_with_place_and_cure() {
        for (line, what, column) in [
            ("-rate thread=4", "Invalid parameter thread=4", 7),
            ("-rate threads=x", "Invalid value x; must match pattern [0-9]+", 15),
            (
                "-rate threads=1 threads=2",
                "Suboption threads= has been specified more than once",
                17,
            ),
            (
                "-rate threads=1 auto",
                "Invalid -rate options provided, see output for valid options",
                1,
            ),
            (
                "-rate throttle=5/s",
                "Invalid -rate options provided, see output for valid options",
                1,
            ),
        ] {
            let error = chosen(line).unwrap_err();
            assert_eq!((&error.what[..], error.column), (what, Some(column)), "{line}");
            assert!(!error.cure.is_empty() && error.group.as_deref() == Some("-rate"));
        }
    }

    #[test]
    fn patterns_take_what_the_originals_take() {
        for (pattern, good, bad) in [
            (Pattern::Count, &["0", "10", "5k", "5M", "1b"][..], &["", "k", "5g", "-1", "1.5"][..]),
            (Pattern::Time, &["5s", "10m", "1H"], &["5", "s", "5d", "5ms"]),
            (Pattern::PerSecond, &["0/s", "100/S"], &["100", "/s", "1k/s", "é/s"]),
            (Pattern::Interval, &["1", "5s", "500ms"], &["", "s", "1m"]),
            (Pattern::Fraction, &["0.02"], &["1.0", "0.", ".5"]),
            (Pattern::Range, &["1..10", "1...10M", "1k..2b"], &["1.10", "..", "1..", "a..b"]),
            (Pattern::List, &["a", "a,b"], &["", "a,", "a=b", ",a"]),
            (Pattern::Versions, &["4", "34"], &["", "1", "v4"]),
            (Pattern::Ratio, &["1", "1.5"], &["", ".5", "1.", "x"]),
            (Pattern::Choice(&["a", "b"]), &["a", "B"], &["", "ab"]),
        ] {
            assert!(good.iter().all(|text| pattern.takes(text)), "{pattern:?}");
            assert!(!bad.iter().any(|text| pattern.takes(text)), "{pattern:?}");
        }
    }
}
