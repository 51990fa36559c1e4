//! How distributions are written: text -> [`Distribution`], or what is wrong with it and where.
//!
//! `NAME(ARGUMENTS)` in any case, `~` before it inverts; arguments are separated by commas, ranges
//! are `MIN..MAX`, whole numbers end in k, m or b for 10^3, 10^6, 10^9. Source: cassandra-stress,
//! `settings/OptionDistribution.java`. Refused here and let pass there: text behind the second
//! bound, a range from high to low (EXP and EXTREME then always give one value), bounds that
//! overflow 64 bits, and infinite or undefined shapes. `weibull` is named by the original's help
//! and refused by the original.

use super::{Bounds, Distribution, Shape, weibull};
use thiserror::Error;

/// Steps that QEXTREME may have.
const STEPS_MAX: i64 = 1_000_000;

/// Why a distribution could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("distribution '{spec}', character {position}: {problem}")]
pub struct DistributionError {
    /// What was given.
    pub spec: String,
    /// Where the problem starts, in characters from 1.
    pub position: usize,
    /// What is wrong, and what would be right.
    pub problem: DistributionProblem,
}

/// What can be wrong with a distribution.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DistributionProblem {
    /// Not of the form of a distribution.
    #[error("not a distribution; write NAME(ARGUMENTS), for example GAUSSIAN(1..10M)")]
    Form,
    /// No distribution has that name.
    #[error(
        "'{0}' is not a type of distribution; these are: FIXED, UNIFORM, GAUSSIAN (also GAUSS, \
         NORMAL, NORM), EXP, EXTREME (also EXTR), QEXTREME (also QEXTR), SEQ"
    )]
    Name(String),
    /// Too many or too few arguments.
    #[error("{found} arguments; write {wanted}")]
    Arguments {
        /// How many there are.
        found: usize,
        /// How it is written.
        wanted: &'static str,
    },
    /// A range that is none.
    #[error("'{0}' is not a range; write MIN..MAX, for example 1..10M")]
    Range(String),
    /// Not a whole number.
    #[error("'{0}' is not a whole number of 64 bits; write digits, then k, m, b or nothing")]
    Whole(String),
    /// Not a number.
    #[error("'{0}' is not a number; write one such as 2.5")]
    Real(String),
    /// The range is upside down.
    #[error("the range goes down from {min} to {max}; write the lesser bound first")]
    Down {
        /// First bound.
        min: i64,
        /// Second bound.
        max: i64,
    },
    /// More values than 64 bits count.
    #[error("the range holds more than 2^63 - 2 values; write a shorter one")]
    Wide,
    /// A share without its divisor.
    #[error("a share needs a divisor behind it; write for example FIXED(1)/10")]
    Divisor,
    /// EXP over two values, for which the original finds no mean.
    #[error("EXP has no mean over two values; write a longer range, or UNIFORM")]
    Two,
    /// A sequence of one.
    #[error("a sequence of one value; write FIXED({0})")]
    SequenceOfOne(i64),
    /// A shape, deviation, divisor or number of steps that is not above zero.
    #[error("the {name} comes to {value}, and must be above 0{limit}")]
    NotAbove {
        /// What it is.
        name: &'static str,
        /// What it is here.
        value: String,
        /// A limit from above, where there is one.
        limit: &'static str,
    },
}

use DistributionProblem as Problem;

/// A part of the specification and its offset in bytes.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    at: usize,
}

type Failure = (usize, Problem);

impl<'a> Part<'a> {
    fn fails<T>(self, problem: impl FnOnce(String) -> Problem) -> Result<T, Failure> {
        Err((self.at, problem(self.text.to_owned())))
    }

    fn whole(self) -> Result<i64, Failure> {
        match count(self.text) {
            Some(value) => Ok(value),
            None => self.fails(Problem::Whole),
        }
    }

    fn real(self) -> Result<f64, Failure> {
        let text = self.text.trim();
        let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        match digits.parse::<f64>() {
            Ok(value) if plain && value.is_finite() => Ok(value),
            _ => self.fails(Problem::Real),
        }
    }

    fn above_zero(self, name: &'static str) -> Result<f64, Failure> {
        let value = self.real()?;
        if value > 0.0 {
            Ok(value)
        } else {
            Err((self.at, not_above(name, &value.to_string(), "")))
        }
    }

    fn range(self) -> Result<Bounds, Failure> {
        let Some(dots) = self.text.find("..") else { return self.fails(Problem::Range) };
        let behind = self.text[dots..].trim_start_matches('.');
        let max = Part { text: behind, at: self.at + self.text.len() - behind.len() };
        let min = Part { text: &self.text[..dots], at: self.at };
        let (min, max) = (min.whole()?, max.whole()?);
        if min > max {
            return Err((self.at, Problem::Down { min, max }));
        }
        match max.checked_sub(min) {
            Some(width) if width < i64::MAX && max < i64::MAX => Ok(Bounds { min, max }),
            _ => Err((self.at, Problem::Wide)),
        }
    }
}

/// A whole number with the suffixes k, m and b.
pub(super) fn count(text: &str) -> Option<i64> {
    let text = text.trim();
    let factor = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => 1_000,
        b'm' => 1_000_000,
        b'b' => 1_000_000_000,
        _ => 1,
    };
    let digits = if factor == 1 { text } else { &text[..text.len() - 1] };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

pub(super) fn not_above(name: &'static str, value: &str, limit: &'static str) -> Problem {
    Problem::NotAbove { name, value: value.to_owned(), limit }
}

impl Distribution {
    /// Reads a distribution.
    ///
    /// # Errors
    /// When it is not written as the original wants it, or cannot be drawn from.
    pub fn parse(spec: &str) -> Result<Self, DistributionError> {
        read(spec).map_err(|(at, problem)| DistributionError {
            spec: spec.to_owned(),
            position: position(spec, at),
            problem,
        })
    }
}

impl std::str::FromStr for Distribution {
    type Err = DistributionError;

    fn from_str(spec: &str) -> Result<Self, DistributionError> {
        Self::parse(spec)
    }
}

/// Byte offset -> characters from 1.
pub(super) fn position(spec: &str, at: usize) -> usize {
    spec.char_indices().take_while(|(offset, _)| *offset < at).count() + 1
}

fn read(spec: &str) -> Result<Distribution, Failure> {
    let inverted = spec.starts_with('~');
    let start = usize::from(inverted);
    let open = spec.find('(').ok_or((start, Problem::Form))?;
    let name = Part { text: &spec[start..open], at: start };
    if name.text.is_empty() || !name.text.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Err((start, Problem::Form));
    }
    let inner = match spec[open + 1..].strip_suffix(')') {
        Some(inner) if !inner.is_empty() => inner,
        _ => return Err((open, Problem::Form)),
    };
    let mut arguments = Vec::new();
    let mut at = open + 1;
    for text in inner.split(',') {
        if !text.is_empty() {
            arguments.push(Part { text, at });
        }
        at += text.len() + 1;
    }
    let shape = shape(name, &arguments)?;
    Ok(Distribution::new(shape, inverted))
}

fn shape(name: Part<'_>, arguments: &[Part<'_>]) -> Result<Shape, Failure> {
    let wrong = |wanted| Err((name.at, Problem::Arguments { found: arguments.len(), wanted }));
    match name.text.to_ascii_lowercase().as_str() {
        "fixed" => match arguments {
            [value] => Ok(Shape::Fixed(value.whole()?)),
            _ => wrong("FIXED(VALUE)"),
        },
        "uniform" => match arguments {
            [range] => Ok(range.range()?.or_fixed(Shape::Uniform)),
            _ => wrong("UNIFORM(MIN..MAX)"),
        },
        "seq" => match arguments {
            [range] => match range.range()? {
                Bounds { min, max } if min == max => Err((range.at, Problem::SequenceOfOne(min))),
                bounds => Ok(Shape::Sequence(bounds)),
            },
            _ => wrong("SEQ(MIN..MAX)"),
        },
        "gaussian" | "gauss" | "normal" | "norm" => match arguments {
            [range, rest @ ..] if rest.len() <= 2 => gaussian(*range, rest),
            _ => wrong(
                "GAUSSIAN(MIN..MAX), GAUSSIAN(MIN..MAX,DEVIATIONS) or \
                        GAUSSIAN(MIN..MAX,MEAN,DEVIATION)",
            ),
        },
        "exp" => match arguments {
            [range] => match range.range()? {
                Bounds { min, max } if max - min == 1 => Err((range.at, Problem::Two)),
                bounds => Ok(bounds.or_fixed(|bounds| Shape::Exponential {
                    bounds,
                    mean: bounds.width() / -bounds.rarest().ln(),
                })),
            },
            _ => wrong("EXP(MIN..MAX)"),
        },
        "extr" | "extreme" => match arguments {
            [range, shape] => {
                let (bounds, shape) = (range.range()?, shape.above_zero("shape")?);
                Ok(bounds.or_fixed(|bounds| Shape::Extreme {
                    bounds,
                    shape,
                    scale: bounds.scale(shape),
                }))
            }
            _ => wrong("EXTREME(MIN..MAX,SHAPE)"),
        },
        "qextr" | "qextreme" => match arguments {
            [range, shape, steps] => quantized(range.range()?, *shape, *steps),
            _ => wrong("QEXTREME(MIN..MAX,SHAPE,STEPS)"),
        },
        _ => name.fails(Problem::Name),
    }
}

fn gaussian(range: Part<'_>, rest: &[Part<'_>]) -> Result<Shape, Failure> {
    let bounds = range.range()?;
    let half = bounds.width() / 2.0;
    let (mean, deviation, at) = match rest {
        [mean, deviation] => (mean.real()?, deviation.real()?, deviation.at),
        [deviations] => (bounds.middle(), half / deviations.real()?, deviations.at),
        _ => (bounds.middle(), half / 3.0, range.at),
    };
    if bounds.min < bounds.max && !(deviation > 0.0 && deviation.is_finite()) {
        return Err((at, not_above("standard deviation", &deviation.to_string(), " and finite")));
    }
    Ok(bounds.or_fixed(|bounds| Shape::Gaussian { bounds, mean, deviation }))
}

fn quantized(bounds: Bounds, shape: Part<'_>, steps: Part<'_>) -> Result<Shape, Failure> {
    let shape = shape.above_zero("shape")?;
    let count = steps.whole()?;
    if !(1..=STEPS_MAX).contains(&count) {
        let limit = " and at most 1000000";
        return Err((steps.at, not_above("number of steps", &count.to_string(), limit)));
    }
    Ok(bounds.or_fixed(|bounds| {
        let scale = bounds.scale(shape);
        let mut edges: Vec<i64> = (0..=count)
            .map(|step| bounds.offset(weibull(shape, scale, step as f64 / count as f64)))
            .collect();
        if let Some(last) = edges.last_mut() {
            *last = bounds.max + 1;
        }
        Shape::Quantized { bounds, shape, scale, edges }
    }))
}

impl Bounds {
    /// A range of one value is FIXED.
    fn or_fixed(self, shape: impl FnOnce(Self) -> Shape) -> Shape {
        if self.min == self.max { Shape::Fixed(self.min) } else { shape(self) }
    }

    fn width(self) -> f64 {
        (self.max - self.min) as f64
    }

    fn middle(self) -> f64 {
        self.min.wrapping_add(self.max) as f64 / 2.0
    }

    /// What the original takes for the chance of the greatest value: the square root of an even
    /// share. Computed by its detour over 1, which costs digits.
    fn rarest(self) -> f64 {
        1.0 - (1.0 - (1.0 / self.width()).sqrt())
    }

    /// The scale at which EXTREME reaches its greatest value with that chance.
    fn scale(self, shape: f64) -> f64 {
        self.width() / weibull(shape, 1.0, 1.0 - (1.0 / self.width()).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra_stress::{DrawState, Ratio};
    use proptest::prelude::*;

    fn error(spec: &str) -> (usize, Problem) {
        let error = Distribution::parse(spec).unwrap_err();
        assert_eq!(error.spec, spec);
        (error.position, error.problem)
    }

    #[test]
    fn aliases_cases_and_suffixes() {
        let parse = |spec: &str| Distribution::parse(spec).unwrap();
        assert_eq!(parse("FIXED(3)"), Distribution::fixed(3));
        assert_eq!(parse("uniform(2k..3M)"), Distribution::uniform(2_000, 3_000_000));
        assert_eq!(parse("Uniform(-4.. 1B )"), Distribution::uniform(-4, 1_000_000_000));
        assert_eq!(parse("uniform(1....9)"), Distribution::uniform(1, 9));
        assert_eq!(parse("uniform(7..7)"), Distribution::fixed(7));
        for alias in ["gauss", "NORMAL", "norm"] {
            assert_eq!(parse(&format!("{alias}(1..9)")), parse("GAUSSIAN(1..9,3)"));
        }
        assert_eq!(parse("gaussian(1..9,5,2)"), parse("gaussian(1..9,5.0,2e0d)"));
        assert_eq!(parse("extr(1..9,2)"), parse("EXTREME(1..9,2)"));
        assert_eq!(parse("qextr(1..9,2,3)"), parse("QEXTREME(1..9,2,3)"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (spec, position, part) in [
            ("", 1, "NAME(ARGUMENTS)"),
            ("5", 1, "NAME(ARGUMENTS)"),
            ("~", 2, "NAME(ARGUMENTS)"),
            ("fixed()", 6, "NAME(ARGUMENTS)"),
            ("fixed(1", 6, "NAME(ARGUMENTS)"),
            ("fixed 1)", 1, "NAME(ARGUMENTS)"),
            ("(1..2)", 1, "NAME(ARGUMENTS)"),
            ("zipf(1..2)", 1, "'zipf' is not a type"),
            ("~weibull(1..2,3)", 2, "'weibull' is not a type"),
            ("fixed(1,2)", 1, "2 arguments; write FIXED(VALUE)"),
            ("fixed(,)", 1, "0 arguments"),
            ("gaussian(1..2,3,4,5)", 1, "4 arguments"),
            ("uniform(1)", 9, "'1' is not a range"),
            ("uniform(1..)", 12, "'' is not a whole number"),
            ("uniform(..5)", 9, "'' is not a whole number"),
            ("uniform(1..2..3)", 12, "'2..3' is not a whole number"),
            ("uniform(1..5x)", 12, "'5x' is not a whole number"),
            ("uniform(é..5)", 9, "'é' is not a whole number"),
            ("fixed(99999999999b)", 7, "is not a whole number of 64 bits"),
            ("uniform(5..1)", 9, "goes down from 5 to 1"),
            ("uniform(1..9223372036854775807)", 9, "2^63"),
            ("seq(4..4)", 5, "FIXED(4)"),
            ("exp(4..5)", 5, "no mean"),
            ("gaussian(1..9,5M,2)", 15, "'5M' is not a number"),
            ("gaussian(1..9,inf)", 15, "'inf' is not a number"),
            ("gaussian(1..9,0)", 15, "above 0 and finite"),
            ("gaussian(1..9,5,-2)", 17, "comes to -2"),
            ("extreme(1..9,0)", 14, "the shape comes to 0"),
            ("qextreme(1..9,2,0)", 17, "number of steps"),
            ("qextreme(1..9,2,2000000)", 17, "at most 1000000"),
        ] {
            let (at, problem) = error(spec);
            assert_eq!(at, position, "{spec}: {problem}");
            assert!(problem.to_string().contains(part), "{spec}: {problem}");
        }
    }

    #[test]
    fn shares() {
        let mut state = DrawState::seeded(1);
        assert_eq!(Ratio::parse("fixed(1)/10").unwrap().sample(&mut state), 0.1);
        assert_eq!(Ratio::parse("fixed(30)/1k").unwrap().max(), 0.03);
        assert_eq!(Ratio::parse("uniform(1..20)/10").unwrap().max(), 1.0);
        assert_eq!(Ratio::parse("fixed(1)/1").unwrap(), Ratio::whole());
        for (spec, position) in [("fixed(1)", 9), ("fixed(1)/x", 10), ("fixed(1)/0", 10)] {
            assert_eq!(Ratio::parse(spec).unwrap_err().position, position, "{spec}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            spec in "(~?[a-zA-Z]{0,9}\\(?[-0-9kmbKMB.,eé ]{0,24}\\)?(/[0-9kx]{0,3})?)|\\PC{0,40}",
        ) {
            let _ = Distribution::parse(&spec);
            let _ = Ratio::parse(&spec);
        }

        #[test]
        fn draws_stay_in_bounds(
            name in prop::sample::select(vec!["uniform", "gaussian", "exp", "~exp"]),
            min in -1000i64..1000, width in 2i64..100_000_000_000, seed: i64,
        ) {
            let spec = format!("{name}({min}..{})", min + width);
            let distribution = Distribution::parse(&spec).unwrap();
            let mut state = DrawState::seeded(seed);
            for _ in 0..50 {
                let value = distribution.sample(&mut state);
                prop_assert!((min..=min + width).contains(&value));
                let real = distribution.sample_f64(&mut state);
                prop_assert!((min as f64..=(min + width) as f64).contains(&real));
            }
        }

        #[test]
        fn steps_of_qextreme_stay_in_bounds(
            width in 1i64..10_000, shape in 1u8..9, steps in 1u16..50, seed: i64,
        ) {
            let spec = format!("qextreme(1..{},{shape},{steps})", 1 + width);
            let distribution = Distribution::parse(&spec).unwrap();
            let mut state = DrawState::seeded(seed);
            for _ in 0..50 {
                prop_assert!((1..=1 + width).contains(&distribution.sample(&mut state)));
            }
            for tenth in 0..=10 {
                let value = distribution.quantile(f64::from(tenth) / 10.0);
                prop_assert!((1..=1 + width).contains(&value), "{}", value);
            }
        }
    }
}
